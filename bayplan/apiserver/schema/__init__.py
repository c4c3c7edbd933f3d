"""Schema: operations based on the fields of Kubernetes objects.

Contents: the check of client input against the table of fields (`api/schema`), the patch types, and the OpenAPI
documents. Imports: nothing of the house but errors and that table. Never: dependence on stored objects or on HTTP.
Callers: registry and web.
"""
