"""Schema: which fields the objects of Kubernetes have, and what follows from that.

What lives here: the table of fields (`fields.txt`), the check of what clients send against it, the ways to patch an
object, and the OpenAPI documents that clients ask for. What may enter: nothing of the house but errors. What must not
happen: knowledge of stored objects or of HTTP. Who calls it: registry and web.
"""

from .fields import FIELDS, Field, Fields, FieldType

__all__ = ["FIELDS", "Field", "FieldType", "Fields"]
