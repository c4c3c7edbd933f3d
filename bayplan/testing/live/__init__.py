"""Live: API servers and schedulers as processes of their own, and what a test needs to play with them.

Shipped, so that whoever writes a plugin can try it on a real control plane: `control_plane.py` starts etcd and
kube-apiserver where their binaries are, `embedded.py` the server of `bayplan up`; `cluster.py` is where a test begins.
Nothing in here knows how a scheduler works: it is a process that is given a kubeconfig.
"""
