"""Custom: resources of CustomResourceDefinitions.

What lives here: the rules for definitions, and what their schemas do to objects: pruning, defaults, validation, rules
in CEL. What may enter: api, store, the registry's resources and errors. What must not happen: a case for a known
project's definition. Who calls it: registry.
"""
