"""Kubernetes objects as plain data, and pure functions on them.

Contents: typed, immutable objects (pod, node, workloads, storage), the arithmetic of quantities and requests, the
matching of selectors and taints, and the decoder that makes the objects from JSON or YAML. Imports: nothing of the
package but errors and clock. Never: I/O, NumPy, a decision about placement. Callers: everyone.
"""
