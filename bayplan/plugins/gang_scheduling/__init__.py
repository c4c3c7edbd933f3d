"""GangScheduling: the pods of a PodGroup with a gang policy are bound when enough of them have a node."""
