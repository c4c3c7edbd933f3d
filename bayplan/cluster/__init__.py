"""Clusters: the sources of the objects that the scheduler decides about.

Contents: `objects/`, what all clusters have in common; `memory/`, a cluster within the
process, for simulations and tests; `kube/`, a real one behind an API server; `apiserver/`, an
embedded API server. Imports: api, framework. Never: a decision about
placement, dependence on the queue, the cache or a plugin. Callers: scheduler is given one, sim
and cli build them, testing uses the one in memory.
"""
