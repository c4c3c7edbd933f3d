"""Schema: operations based on the fields of Kubernetes objects.

What lives here: the check of client input against the table of fields (`api/schema`), the patch types, and
the OpenAPI documents. What may enter: nothing of the house but errors and that table. What must not happen:
dependence on stored objects or on HTTP. Who calls it: registry and web.
"""
