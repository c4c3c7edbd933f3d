"""Observe: metrics and logs of a scheduler.

Lives here: the metrics with kube-scheduler's names, their text form for Prometheus, and the set-up
of logging. May enter: `errors`, `clock`, `stamped_cache`, nothing else of the package; every folder may import from
here. Must not happen: a look-up by label, a lock or a string on the path of a pod. Called by: all
code that counts something, and drivers that serve metrics.
"""
