"""Schema: the fields of Kubernetes objects, and operations based on them.

What lives here: the table of fields (`fields.txt`), the check of client input against it, the patch
types, and the OpenAPI documents. What may enter: nothing of the house but errors. What must not
happen: dependence on stored objects or on HTTP. Who calls it: registry and web.
"""

from .fields import FIELDS, Field, Fields, FieldType

__all__ = ["FIELDS", "Field", "FieldType", "Fields"]
