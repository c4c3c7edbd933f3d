"""Rules: the defaults and the validation of kube-apiserver, for objects as trees.

What lives here: defaults of fields, and the faults of new and changed objects in kube-apiserver's words. What may
enter: api. What must not happen: a look at other objects, or at a cluster. Who calls it: the registry of `up` for
requests, and the reader of manifests for the input of simulations.
"""
