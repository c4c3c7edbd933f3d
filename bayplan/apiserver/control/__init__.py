"""Control: the controllers of the embedded cluster.

What lives here: the cluster as decoded objects, the controllers of `cluster.memory` on top of it,
fake kubelets, garbage collection, and the statuses that clients wait for. What may enter: api,
framework, cluster.memory, registry, store. What must not happen: waiting, or writing objects other
than through registry. Who calls it: server.py.
"""
