"""Registry: what the API server does with objects, whoever asks.

What lives here: which resources there are, what is filled in and what is refused when objects are created and changed,
how they are deleted, and the subresources. What may enter: api, store, schema, cluster.memory for rules that the
simulator has, too. What must not happen: HTTP. Who calls it: web for clients, control for the controllers.
"""
