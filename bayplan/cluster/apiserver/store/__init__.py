"""Store: the objects of the embedded cluster as bytes, each change numbered.

What lives here: the records, the one counter of resource versions, the journal on disk, the events for those who watch,
and the selectors that lists and watches are filtered by. What may enter: errors. What must not happen: knowledge of
what an object means. Who calls it: registry, control and web.
"""

from .journal import Journal, MemoryJournal, SqliteJournal
from .records import Change, Key, Record
from .store import Store, TooOldError
from .watching import Watcher

__all__ = [
    "Change",
    "Journal",
    "Key",
    "MemoryJournal",
    "Record",
    "SqliteJournal",
    "Store",
    "TooOldError",
    "Watcher",
]
