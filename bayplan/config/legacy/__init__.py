"""Legacy: the Policy format of kube-scheduler up to v1.22, and the default plugins of earlier releases."""
