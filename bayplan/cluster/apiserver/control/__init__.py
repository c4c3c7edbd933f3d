"""Control: what goes on in the embedded cluster besides scheduling.

What lives here: the cluster as our types see it, the controllers of `cluster.memory` on top of it, kubelets that only
pretend, garbage collection, and the statuses that people wait for. What may enter: api, framework, cluster.memory,
registry, store. What must not happen: waiting, or a way to write objects beside registry. Who calls it: server.py.
"""
