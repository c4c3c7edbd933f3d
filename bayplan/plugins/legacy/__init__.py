"""Legacy: plugins that kube-scheduler had up to v1.22 and that a configuration of that time may name."""
