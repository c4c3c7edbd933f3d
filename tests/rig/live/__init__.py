"""Live: API servers and schedulers as separate processes, with tools for tests.

Shipped, so that plugin authors can test on a real control plane: `control_plane.py` starts etcd and
kube-apiserver where their binaries are installed, `embedded.py` the server of `bayplan up`;
`cluster.py` is where a test starts. This package is independent of the scheduler's implementation:
a scheduler is a process with a kubeconfig.
"""
