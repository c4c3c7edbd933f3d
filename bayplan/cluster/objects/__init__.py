"""Objects: the parts that all clusters have in common.

Contents: the index of a cluster's objects, which is the scheduler's lister, the interface that controllers use, the
statuses and events of pods that are bound, preempted or finished. Imports: api, framework. Never: I/O, or anything
specific to one cluster. Callers: memory, kube, apiserver, and what reads manifests.
"""
