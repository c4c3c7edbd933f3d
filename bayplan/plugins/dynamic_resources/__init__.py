"""DynamicResources: the claims of a pod must have, or be given, devices that the node can reach."""
