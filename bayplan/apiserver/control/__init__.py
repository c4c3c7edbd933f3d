"""Control: the controllers of the embedded cluster.

Contents: the cluster as decoded objects, the controllers of `cluster.memory` on top of it,
fake kubelets, garbage collection, and the statuses that clients wait for. Imports: api,
framework, cluster.memory, registry, store. Never: waiting, or writing objects other
than through registry. Callers: server.py.
"""
