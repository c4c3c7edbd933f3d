"""Schema: the fields of the Kubernetes objects of v1.36, as a table.

What lives here: the table (`fields.txt`) and its types. What may enter: errors. What must not happen:
dependence on our own types, which have only the fields that affect placement. Who calls it: the API server of
`up` for validation, patches, OpenAPI and protocol buffers; the reading of files for fields that do not exist.
"""

from .fields import FIELDS, Field, Fields, FieldType

__all__ = ["FIELDS", "Field", "FieldType", "Fields"]
