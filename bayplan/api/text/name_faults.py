"""NameFaults: Kubernetes' messages about invalid label keys, label values and names of objects.

Mirrors staging/src/k8s.io/apimachinery/pkg/api/validate/content. The texts are those of
Kubernetes, which people search for.
"""

import re
from functools import lru_cache

_CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE = (
    f"{_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME_FORM}')"
)
_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM = f"{_LABEL_FORM}(\\.{_LABEL_FORM})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN_FORM}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_LABEL_FORM}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
    f"'my_value',  or '12345', regex used for validation is '({_NAME_FORM})?')"
)
_LABEL_1035_FORM = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_LABEL_1035_FORM}')"
)
_NAME = re.compile(_NAME_FORM)
_LABEL_1035 = re.compile(_LABEL_1035_FORM)
_LABEL = re.compile(_LABEL_FORM)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORM)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253


@lru_cache(maxsize=65536)
def key_faults(text: str) -> tuple[str, ...]:
    """Return all faults of `text` as a label key, empty if it is valid."""
    parts = text.split("/")
    if len(parts) > 2:
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_NAME_RULE} {prefix}",)
    faults = [
        f"prefix part {fault}"
        for prefix in parts[:-1]
        for fault in (subdomain_faults(prefix, "bytes") if prefix else ("must be non-empty",))
    ]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif _bytes(name) > _MAX_NAME:
        faults.append(f"name part {_too_long(_MAX_NAME)}")
    if not _NAME.fullmatch(name):
        faults.append(f"name part {_NAME_RULE}")
    return tuple(faults)


def is_qualified_name(text: str) -> bool:
    """Whether `text` is `name` or `dns.prefix/name`, as label keys and resource names are."""
    return not key_faults(text)


def value_faults(text: str) -> tuple[str, ...]:
    """Return all faults of `text` as a label value, empty if it is valid."""
    faults = []
    if _bytes(text) > _MAX_NAME:
        faults.append(_too_long(_MAX_NAME))
    if text and not _NAME.fullmatch(text):
        faults.append(_VALUE_RULE)
    return tuple(faults)


def is_label_value(text: str) -> bool:
    """Whether `text` may be the value of a label; the empty text may."""
    return not value_faults(text)


def subdomain_faults(text: str, unit: str = "characters") -> tuple[str, ...]:
    """Return all faults of `text` as a DNS subdomain, which most names of objects are.

    Messages about label keys, and those of rules that are declared on types, count in bytes.
    """
    faults = (_too_long(_MAX_SUBDOMAIN, unit),) if _bytes(text) > _MAX_SUBDOMAIN else ()
    return faults if _SUBDOMAIN.fullmatch(text) else (*faults, _SUBDOMAIN_RULE)


def dns_label_faults(text: str, unit: str = "characters") -> tuple[str, ...]:
    """Return all faults of `text` as a DNS label, which names of parts of objects are."""
    faults = (_too_long(_MAX_NAME, unit),) if _bytes(text) > _MAX_NAME else ()
    if _LABEL.fullmatch(text):
        return faults
    return (*faults, "must not contain dots" if _SUBDOMAIN.fullmatch(text) else _LABEL_RULE)


def label_1035_faults(text: str) -> tuple[str, ...]:
    """Return all faults of `text` as a DNS label that begins with a letter."""
    faults = (_too_long(_MAX_NAME, "characters"),) if _bytes(text) > _MAX_NAME else ()
    return faults if _LABEL_1035.fullmatch(text) else (*faults, _LABEL_1035_RULE)


def path_segment_faults(text: str) -> tuple[str, ...]:
    """Return all faults of `text` as one step of a path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{part}'" for part in "/%" if part in text)


def _bytes(text: str) -> int:
    """Return the length of `text` in UTF-8; an invalid character counts as one replacement
    character."""
    return len(text.encode(errors="replace"))


def _too_long(limit: int, unit: str = "bytes") -> str:
    return f"must be no more than {limit} {unit}"
