"""Store: the objects of the embedded cluster as bytes, with numbered changes.

Contents: the records, the counter of resource versions, the journal on disk, the events for watchers, and the
selectors of lists and watches. Imports: errors. Never: dependence on the meaning of an object. Callers: registry,
control and web.
"""

from .journal import Journal, SqliteJournal
from .records import Key, Record, RecordChange
from .store import Store, TooOldError
from .watcher import Watcher

__all__ = [
    "RecordChange",
    "Journal",
    "Key",
    "Record",
    "SqliteJournal",
    "Store",
    "TooOldError",
    "Watcher",
]
