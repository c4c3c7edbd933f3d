"""Registry: the API server's operations on objects, for all callers.

Contents: the resources, defaulting and validation on creation and change, deletion, and the
subresources. Imports: api, store, schema, cluster.memory for rules shared with the
simulator. Never: HTTP. Callers: web for clients, control for the controllers.
"""
