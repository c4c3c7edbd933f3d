"""PodTopologySpread: lay the pods that belong together evenly over zones, nodes or other domains."""
