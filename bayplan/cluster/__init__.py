"""Clusters: the sources of the objects that the scheduler decides about.

What lives here: `objects/`, what all clusters have in common; `memory/`, a cluster within the
process, for simulations and tests; `kube/`, a real one behind an API server; `apiserver/`, an
embedded API server. What may enter: api, framework. What must not happen: a decision about
placement, dependence on the queue, the cache or a plugin. Who calls it: scheduler is given one, sim
and cli build them, testing uses the one in memory.
"""
