"""Rules: the defaults and the validation of kube-apiserver, for objects as trees.

Contents: defaults of fields, and the faults of new and changed objects in kube-apiserver's words. A rule takes a `Part`
of an object and adds the faults of its fields, in kube-apiserver's order. Imports: api.
Never: a look at other objects, or at a cluster. Callers: the registry of `up` for requests, and the reader of
manifests for the input of simulations.
"""
