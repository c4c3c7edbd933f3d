"""Custom: resources of CustomResourceDefinitions.

Contents: the rules for definitions, and what their schemas do to objects: pruning, defaults, validation, rules
in CEL. Imports: api, store, the registry's resources and errors. Never: a case for a known
project's definition. Callers: registry.
"""
