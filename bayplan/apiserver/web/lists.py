"""Lists: many objects at once or page by page.

A paged list is consistent: later pages show the state at the first page. Records are immutable, so
keeping a list means keeping references.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Sequence
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from ...clock import Clock
from ..registry.query_selectors import make_matcher
from ..registry.resource_table import ApiResource
from ..registry.status_errors import StatusError, bad_request, gone
from ..store.records import Record
from ..store.store import Store
from .requests import Options, is_number

MAX_KEPT = 64
KEPT_S = 300.0


class ListPage(NamedTuple):
    """Some objects, and the metadata of the list."""

    records: Sequence[Record]
    metadata: dict[str, Any]


class _Rest(NamedTuple):
    """The rest of a paged list."""

    resource: str
    namespace: str
    records: Sequence[Record]
    resource_version: int
    until: float = 0.0


class Lists:
    """Reads lists from the store, and keeps the rest of paged lists."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rests: OrderedDict[str, _Rest] = OrderedDict()

    def read(self, resource: ApiResource, namespace: str, options: Options) -> ListPage:
        """The list, or its next page; raises StatusError when that is impossible."""
        if options.continue_token:
            return self._go_on(resource, namespace, options)
        self._check_version(options)
        matches = make_matcher(resource, options.labels, options.fields)
        records = self._store.list(resource.storage, namespace)
        if matches is not None:
            records = [record for record in records if matches(record)]
        version = self._store.resource_version
        return self._page(_Rest(resource.storage, namespace, records, version), options.limit)

    def _check_version(self, options: Options) -> None:
        text, current = options.resource_version, self._store.resource_version
        if not text or text == "0":
            return
        if not is_number(text):
            raise bad_request(f'Invalid value: "{text}": resourceVersion: expected a number')
        if int(text) > current:
            raise too_large(int(text), current)
        if options.version_match == "Exact" and int(text) != current:
            raise gone(f"The resourceVersion for the provided list is too old: {text} ({current})")

    def _go_on(self, resource: ApiResource, namespace: str, options: Options) -> ListPage:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        rest = self._rests.get(_read_token(options.continue_token))
        if (
            rest is None
            or (rest.resource, rest.namespace) != (resource.storage, namespace)
            or rest.until < self._clock.monotonic()
        ):
            raise gone(
                "The provided continue parameter is too old to display a consistent list result."
                " Start the list anew."
            )
        return self._page(rest, options.limit)

    def _page(self, rest: _Rest, limit: int) -> ListPage:
        records, version = rest.records, rest.resource_version
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if limit <= 0 or len(records) <= limit:
            return ListPage(records, metadata)
        token = token_hex(8)
        until = self._clock.monotonic() + KEPT_S * self._clock.speed
        self._rests[token] = rest._replace(records=records[limit:], until=until)
        now = self._clock.monotonic()
        while len(self._rests) > MAX_KEPT or next(iter(self._rests.values())).until < now:
            self._rests.popitem(last=False)
        data = msgspec.json.encode({"v": "bayplan", "rv": version, "rest": token})
        metadata["continue"] = base64.urlsafe_b64encode(data).decode().rstrip("=")
        metadata["remainingItemCount"] = len(records) - limit
        return ListPage(records[:limit], metadata)


def too_large(asked: int, current: int) -> StatusError:
    """The error for a resource version from the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause]}, retry_after_s=1)


def _read_token(token: str) -> str:
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return str(msgspec.json.decode(data)["rest"])
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        raise bad_request(f"continue key is not valid: {token}") from None
