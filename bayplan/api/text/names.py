"""Names: which texts are valid label keys, label values and qualified names.

Mirrors staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go.
"""

import re
from functools import lru_cache

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253


@lru_cache(maxsize=65536)
def is_qualified_name(text: str) -> bool:
    """Whether `text` is `name` or `dns.prefix/name`, as label keys and resource names are."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether `text` may be the value of a label; the empty text may."""
    return not text or (len(text) <= _MAX_NAME and _NAME.fullmatch(text) is not None)
