"""Following: the changes of a lister since the last read."""

from bayplan.framework.handle import EmptyLister
from bayplan.framework.lister import Follower, ObjectKey, ObjectLog
from bayplan.table.changes import KEEP
from bayplan.testing.builders import ObjectLister
from bayplan.testing.storage import make_claim, make_volume


def test_the_first_look_is_at_everything_and_the_next_at_what_changed() -> None:
    lister = ObjectLister([make_volume("v")])
    follower = Follower(lister)

    assert follower.changes() is None
    assert follower.changes() == ()
    lister.add(make_claim("c"))
    lister.add(make_claim("c"))
    lister.remove(make_volume("v"))
    assert follower.changes() == [
        ObjectKey("PersistentVolumeClaim", "default", "c"),
        ObjectKey("PersistentVolume", "", "v"),
    ]
    assert follower.changes() == ()


def test_a_lister_that_cannot_tell_is_read_anew_when_it_changed() -> None:
    class Silent(EmptyLister):
        version = 1

    lister = Silent()
    follower = Follower(lister)

    assert follower.changes() is None
    assert follower.changes() == ()
    lister.version = 2
    assert follower.changes() is None


def test_a_reader_that_is_too_late_reads_everything() -> None:
    log, volume = ObjectLog(), make_volume("v")
    for _ in range(2 * KEEP + 1):
        log.mark(ObjectKey(volume.kind, volume.namespace, volume.name))

    assert log.since(0) is None
    assert log.since(log.version) == []
    assert log.since(log.version - 1) == [ObjectKey("PersistentVolume", "", "v")]


def test_the_version_of_a_kind_changes_with_its_objects_only() -> None:
    lister = ObjectLister([make_claim("c")])
    claims, both = ("PersistentVolumeClaim",), ("PersistentVolumeClaim", "PersistentVolume")
    before = [lister.version_of(*claims), lister.version_of(*both), lister.version_of("Service")]

    lister.add(make_volume("v"))

    after = [lister.version_of(*claims), lister.version_of(*both), lister.version_of("Service")]
    assert [a != b for a, b in zip(before, after, strict=True)] == [False, True, False]
