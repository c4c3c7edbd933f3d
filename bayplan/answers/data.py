"""Data: base of all answers: plain data, camelCase on the wire."""

import msgspec


class Data(msgspec.Struct, kw_only=True, rename="camel"):
    """Base of the parts of an answer."""
