"""Store: the objects of the embedded cluster as bytes, with numbered changes.

Contents: the records, the counter of resource versions, the journal on disk, the events for watchers, and the
selectors of lists and watches. Imports: errors. Never: dependence on the meaning of an object. Callers: registry,
control and web.
"""
