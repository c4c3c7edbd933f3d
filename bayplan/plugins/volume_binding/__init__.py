"""VolumeBinding: the claims of the pod must have, or find, volumes that the node can reach."""
