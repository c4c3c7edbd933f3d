"""Kubernetes objects as plain data, and pure functions on them.

What lives here: typed, immutable objects (pod, node, workloads, storage), the arithmetic of
quantities and requests, the matching of selectors and taints, and the decoder that makes the
objects from JSON or YAML. What may enter: nothing of the package but errors and clock. What
must not happen: I/O, NumPy, a decision about placement. Who calls it: everyone.
"""
