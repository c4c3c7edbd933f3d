"""Schema: the fields of the Kubernetes objects of v1.36, as a table.

Contents: the table (`fields.txt`) and its types. Imports: errors. Never: dependence on our own types, which have only
the fields that affect placement. Callers: the API server of `up` for validation, patches, OpenAPI and protocol
buffers; the reading of files for fields that do not exist.
"""
