"""NodeResourcesFit: the node must have room for the pod; a scoring strategy ranks the nodes that do."""
