"""Registry: the API server's operations on objects, for all callers.

What lives here: the resources, defaulting and validation on creation and change, deletion, and the
subresources. What may enter: api, store, schema, cluster.memory for rules shared with the
simulator. What must not happen: HTTP. Who calls it: web for clients, control for the controllers.
"""
