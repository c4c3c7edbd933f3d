"""Manifests: every supported form, and every fault with its place."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from bayplan.manifests import pieces
from bayplan.manifests.loader import read_source
from bayplan.manifests.sources import open_source
from bayplan.sim import read_manifests

Write = Callable[[str, str | bytes], Path]


def make(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


NODE = make("Node", "n1", status={"allocatable": {"cpu": "4"}})
POD = make("Pod", "a", spec={"containers": [{"name": "c"}]})
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}
POD_LIST = {"kind": "PodList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into the working directory and return its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, content: str | bytes) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def names(*paths: Path | str) -> list[str]:
    return [f"{obj.kind} {obj.name}" for obj in read_manifests(paths).objects]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("a.json", json.dumps(LIST), id="a JSON list on one line"),
        pytest.param("a.json", json.dumps(LIST, indent=4), id="a JSON list as kubectl prints it"),
        pytest.param("a.yaml", yaml.safe_dump(LIST), id="a YAML list as kubectl prints it"),
        pytest.param("a.yaml", yaml.safe_dump_all([NODE, POD]), id="YAML documents"),
        pytest.param("a.yaml", f"{json.dumps(NODE)}\n{json.dumps(POD)}\n", id="a JSON text a line"),
        pytest.param(
            "a.json", json.dumps(NODE, indent=1) + json.dumps(POD), id="JSON texts in a row"
        ),
        pytest.param(
            "a.json",
            f"{json.dumps(NODE, indent=4)}\n==== START logs for container c of pod x/y ====\n"
            '{"started": 1}\n==== END logs for container c of pod x/y ====\n'
            f"{json.dumps(POD, indent=4)}\n==== START logs for container c of pod x/z ====\n"
            "==== END logs for container c of pod x/z ====\n",
            id="kubectl cluster-info dump",
        ),
        pytest.param(
            "a.yaml",
            "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n" + yaml.safe_dump(POD),
            id="YAML in flow style",
        ),
        pytest.param(
            "a.json",
            f"{json.dumps(NODE)}\n---\n{json.dumps(POD)}",
            id="JSON texts as YAML documents",
        ),
        pytest.param(
            "a.json", json.dumps(LIST).replace("]}", "],}"), id="JSON with a comma too many"
        ),
        pytest.param(
            "a.yaml",
            "# head\n\n---\n" + yaml.safe_dump_all([NODE, None, POD]),
            id="empty documents",
        ),
        pytest.param("a.yaml", "\ufeff" + yaml.safe_dump(LIST), id="YAML with a byte order mark"),
        pytest.param("a.json", "\ufeff" + json.dumps(LIST), id="JSON with a byte order mark"),
        pytest.param("a.yaml", yaml.safe_dump(LIST).replace("\n", "\r\n"), id="Windows line ends"),
        pytest.param("a.yaml", yaml.safe_dump(LIST).encode("utf-16"), id="UTF-16 of PowerShell"),
        pytest.param(
            "a.json",
            b"\xfe\xff" + json.dumps(LIST).encode("utf-16-be"),
            id="UTF-16 in the other byte order",
        ),
        pytest.param("a.yaml.gz", gzip.compress(yaml.safe_dump(LIST).encode()), id="gzip"),
        pytest.param(
            "a.gz",
            gzip.compress(b"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n")
            + gzip.compress(json.dumps(POD).encode()),
            id="gzip in parts",
        ),
        pytest.param(
            "a.yaml",
            yaml.safe_dump({**LIST, "items": [LIST]}),
            id="a list in a list",
        ),
    ],
)
def test_forms(write: Write, name: str, content: str | bytes) -> None:
    assert names(write(name, content)) == ["Node n1", "Pod a"]


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump], ids=["JSON", "YAML"])
def test_items_of_a_typed_list_need_no_kind(write: Write, dump: Callable[[Any], str]) -> None:
    assert names(write("pods", dump(POD_LIST))) == ["Pod a", "Pod b"]


def test_a_folder_gives_its_manifests_sorted(write: Write) -> None:
    write("all/b.yaml", yaml.safe_dump(POD))
    write("all/a.json", json.dumps(NODE))
    write("all/c.yml.gz", gzip.compress(yaml.safe_dump(make("Pod", "z")).encode()))
    write("all/README.md", "not a manifest")

    assert names("all") == ["Node n1", "Pod a", "Pod z"]


def test_files_are_read_in_the_order_given(write: Write) -> None:
    first, second = write("z.yaml", yaml.safe_dump(POD)), write("a.yaml", yaml.safe_dump(NODE))

    assert names(first, second) == ["Pod a", "Node n1"]


def test_a_dash_is_standard_input(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(yaml.safe_dump(LIST).encode())

    monkeypatch.setattr(sys, "stdin", Stdin())

    manifests = read_manifests(["-"])

    assert [manifests.place_of(obj) for obj in manifests.objects] == [
        "stdin: document 1: items[0]",
        "stdin: document 1: items[1]",
    ]
    with pytest.raises(InputError, match="stdin: expected one file or option that reads it"):
        read_manifests(["-"])


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump], ids=["JSON", "YAML"])
def test_the_places_of_other_objects_stay_when_running_pods_are_dropped(
    write: Write, dump: Callable[[Any], str]
) -> None:
    running = {**make("Pod", "running"), "spec": {**POD["spec"], "nodeName": "n1"}}
    items = [NODE, running, POD]
    manifests = read_manifests([write("a.yaml", dump({**LIST, "items": items}))])
    before = [(obj, manifests.place_of(obj)) for obj in manifests.objects if obj.name != "running"]

    manifests.drop_running()

    assert [(obj, manifests.place_of(obj)) for obj in manifests.objects] == before
    assert [place for _, place in before] == [
        "a.yaml: document 1: items[0]",
        "a.yaml: document 1: items[2]",
    ]


def test_places(write: Write) -> None:
    path = write("a.yaml", yaml.safe_dump_all([NODE, {**LIST, "items": [POD]}]))

    manifests = read_manifests([path])

    assert list(map(manifests.place_of, manifests.objects)) == [
        "a.yaml: document 1",
        "a.yaml: document 2: items[0]",
    ]
    stranger = decode_object(POD)
    assert manifests.place_of(stranger) == ""  # type: ignore[arg-type]


def test_ignored_kinds_are_counted(write: Write) -> None:
    others = [make("ConfigMap", "a"), make("ConfigMap", "b"), make("Secret", "s")]
    custom = {**make("Pod", "x"), "apiVersion": "example.com/v1"}

    manifests = read_manifests([write("a.yaml", yaml.safe_dump_all([*others, NODE, custom]))])

    assert manifests.unused == {"ConfigMap": 2, "Secret": 1, "Pod.example.com": 1}
    assert [obj.kind for obj in manifests.objects] == ["Node"]


SELECTOR = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Near", "values": ["a"]}]}]
}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": SELECTOR}}


def with_container(**fields: Any) -> dict[str, Any]:
    return make("Pod", "a", spec={"containers": [{"name": "c", **fields}]})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(
            "kind: Pod\nmetadata:\n  name: [a\n",
            "document 1: line 4: expected YAML; did not find expected ',' or ']'",
            id="broken YAML",
        ),
        pytest.param(
            "a: 1\n---\nb: 1\n---\nc: [\n",
            "document 1: expected apiVersion and kind; got a document with the fields a",
            id="no kind, before broken YAML",
        ),
        pytest.param(
            yaml.safe_dump(POD) + "---\nx: 1\nw: .inf\n",
            "document 2: line 10: expected a number that JSON has; got .inf",
            id="a fault, counted from the top of the file",
        ),
        pytest.param(
            '{"kind": "Pod",',
            "document 1: expected JSON; got malformed text: Input data was truncated",
            id="broken JSON",
        ),
        pytest.param(
            json.dumps(POD) + json.dumps(NODE)[:-1],
            "document 2: expected JSON; got Expecting ',' delimiter (line 1)",
            id="broken JSON in a row",
        ),
        pytest.param(b"\x7fELF\x00\x01\x02", "expected YAML or JSON; got binary data", id="binary"),
        pytest.param(
            b"kind: caf\xe9 \n",
            "document 1: expected UTF-8 text; invalid trailing UTF-8 octet at byte 10",
            id="another encoding",
        ),
        pytest.param(
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n"
                for a, b in ("ab", "bc", "cd", "de", "ef")
            ),
            "document 1: line 5: expected aliases for at most 100000 values; got more",
            id="an alias bomb",
        ),
        pytest.param(
            yaml.safe_dump({"kind": "Pod", "metadata": {"labels": {"a": "b"}}}),
            "document 1: pod: metadata.name: expected a name; got none",
            id="no name",
        ),
        pytest.param(
            json.dumps({**LIST, "items": [POD, {"kind": "Node"}]}),
            "document 1: items[1]: node: metadata.name: expected a name; got none",
            id="no name in a list",
        ),
        pytest.param(
            yaml.safe_dump(with_container(resources={"requests": {"cpu": "-1"}})),
            "document 1: pod default/a: spec.containers[0].resources.requests.cpu: "
            'expected zero or more; got "-1"',
            id="a negative quantity",
        ),
        pytest.param(
            yaml.safe_dump(with_container(ports=[{"containerPort": "http"}])),
            "document 1: pod default/a: spec.containers[0].ports[0].containerPort: "
            "expected integer, got string",
            id="a wrong type, deeply nested",
        ),
        pytest.param(
            yaml.safe_dump(make("Pod", "a", spec={"affinity": AFFINITY})),
            "document 1: pod default/a: spec.affinity.nodeAffinity."
            "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
            "matchExpressions[0].operator: "
            'expected In, NotIn, Exists, DoesNotExist, Gt or Lt; got "Near"',
            id="a bad operator",
        ),
        pytest.param("hello\n", "document 1: expected an object; got text", id="prose"),
        pytest.param("- a\n- b\n", "document 1: expected an object; got a list", id="a bare list"),
        pytest.param("[" * 100_000, "document 1: expected less deep nesting", id="deep JSON"),
        pytest.param(
            "a: " + "[" * 1000, "document 1: line 1: expected at most 200 levels", id="deep YAML"
        ),
        pytest.param(
            b"\x1f\x8bnonsense",
            "expected a whole gzip file; got unknown compression method",
            id="broken gzip",
        ),
        pytest.param(
            gzip.compress(b"kind: Pod\n" * 100)[:-20],
            "expected a whole gzip file; got one that is cut off",
            id="gzip that is cut off",
        ),
    ],
)
def test_faults(write: Write, content: str | bytes, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_manifests([write("bad", content)])

    assert str(caught.value) == f"bad: {expected}"


def test_a_missing_file(write: Write) -> None:
    with pytest.raises(InputError) as caught:
        read_manifests(["nope.yaml"])

    assert str(caught.value) == "nope.yaml: expected a file or folder; got nothing of that name"


def test_a_folder_without_manifests(write: Write) -> None:
    write("docs/README.md", "")

    with pytest.raises(InputError) as caught:
        read_manifests(["docs"])

    assert str(caught.value) == (
        "docs: expected files named *.yaml, *.yml, *.json or *.bay; got none; -R reads folders below it, too"
    )


def test_the_last_document_of_an_object_counts_with_a_note(write: Write) -> None:
    first, second = write("a.yaml", yaml.safe_dump(POD)), write("b.json", json.dumps(LIST))

    read = read_manifests([first, second])

    assert [obj.name for obj in read.objects].count("a") == 1
    assert [place.source for place in read.places] == ["b.json"] * len(read.objects)
    assert read.notes[0] == (
        "pod default/a in a.yaml: document 1 is replaced by that in b.json: document 1: items[1]"
    )


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut all lists into pieces, however short they are."""
    monkeypatch.setattr(pieces, "LIST_FROM", 0)
    for name in ("YAML_PIECE", "JSON_PIECE"):
        monkeypatch.setattr(f"bayplan.manifests.decoder.{name}", 1)


PODS = [make("Pod", f"p{i}", spec={"containers": [{"name": "c"}]}) for i in range(5)]
MANY = {"apiVersion": "v1", "items": PODS, "kind": "List", "metadata": {"resourceVersion": ""}}
BARE = {"apiVersion": "v1", "items": [{"metadata": {"name": "x"}}], "kind": "PodList"}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("content", "count", "in_pieces"),
    [
        pytest.param(yaml.safe_dump(MANY), 5, True, id="YAML"),
        pytest.param(
            yaml.safe_dump(MANY, indent=4).replace("\n", "\r\n"),
            5,
            True,
            id="YAML with Windows line ends",
        ),
        pytest.param(
            "kind: List\nitems:\n" + "".join(f"  - {json.dumps(pod)}\n" for pod in PODS),
            5,
            True,
            id="YAML with indented items",
        ),
        pytest.param(yaml.safe_dump(BARE), 1, True, id="YAML items without a kind"),
        pytest.param(json.dumps(MANY, indent=4), 5, True, id="JSON"),
        pytest.param(json.dumps(MANY, indent=2), 5, True, id="JSON as jq prints it"),
        pytest.param(json.dumps(BARE, indent=4), 1, True, id="JSON items without a kind"),
        pytest.param(json.dumps(MANY), 5, True, id="JSON on one line"),
        pytest.param(
            "kind: List\nitems:\n- &p {kind: Pod, metadata: {name: a}}\n"
            "- {kind: Pod, metadata: {<<: {labels: {a: b}}, name: b}}\n- <<: *p\n  metadata: {name: c}\n",
            3,
            False,
            id="an alias across items",
        ),
        pytest.param(
            'kind: List\nitems:\n- kind: Pod\n  metadata: {name: a, annotations: {x: "one\n- two"}}\n',
            1,
            False,
            id="text similar to an item",
        ),
        pytest.param(
            yaml.safe_dump({"apiVersion": "example.com/v1", "kind": "Thing", "items": [1, 2]}),
            0,
            False,
            id="items of something that is no list",
        ),
    ],
)
def test_long_lists_are_read_in_pieces_with_the_same_result(
    write: Write, content: str, count: int, in_pieces: bool
) -> None:
    told: list[float] = []
    source = open_source(str(write("list", content)))

    manifests = read_source(source, told.append)

    assert len(manifests.objects) == count
    assert [manifests.place_at(i).item for i in range(count)] == list(range(count))
    if in_pieces:
        assert told == sorted(told)
        assert told[-1] < 1
        assert len(told) == count


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "dump",
    [
        pytest.param(yaml.safe_dump, id="YAML"),
        pytest.param(lambda tree: json.dumps(tree, indent=4), id="JSON"),
    ],
)
def test_a_fault_in_a_piece_has_the_number_of_its_item(
    write: Write, dump: Callable[[Any], str]
) -> None:
    path = write("list", dump({**MANY, "items": [*PODS, make("Pod", "")]}))

    with pytest.raises(InputError) as caught:
        read_manifests([path])

    expected = "list: document 1: items[5]: pod: metadata.name: expected a name; got none"
    assert str(caught.value) == expected


@pytest.mark.usefixtures("small_pieces")
def test_a_fault_around_the_items_has_its_line(write: Write) -> None:
    path = write("list", yaml.safe_dump({"items": PODS}) + "kind: List\nwidth: .inf\n")
    line = path.read_text().count("\n")

    with pytest.raises(InputError) as caught:
        read_manifests([path])

    expected = f"list: document 1: line {line}: expected a number that JSON has; got .inf"
    assert str(caught.value) == expected


@pytest.mark.usefixtures("small_pieces")
def test_a_fault_in_a_piece_of_a_very_long_text_has_its_line(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayplan.manifests.decoder.REPARSE_UP_TO", 0)
    text = yaml.safe_dump({"kind": "List", "items": PODS}, sort_keys=False)
    line = text.count("\n") + 1

    with pytest.raises(InputError) as caught:
        read_manifests([write("list", f"{text}- kind: Pod\n  width: .inf\n")])

    expected = f"list: document 1: line {line + 1}: expected a number that JSON has; got .inf"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "size", [pytest.param(1, id="in pieces"), pytest.param(1 << 20, id="whole")]
)
def test_the_last_of_equal_keys_counts_and_a_note_tells_of_it(
    write: Write, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("bayplan.manifests.decoder.YAML_PIECE", size)
    text = yaml.safe_dump({"kind": "List", "items": PODS}, sort_keys=False)
    line = text.count("\n") + 1
    text += "- {kind: Pod, apiVersion: v1,\n   metadata: {name: first, name: last}}\n"

    manifests = read_manifests([write("list", text)])

    assert manifests.objects[-1].name == "last"
    assert manifests.notes[:1] == [
        f'list: document 1: line {line + 1}: the key "name" is there twice; the last one counts'
    ]


def test_progress_ends_with_everything_done(write: Write) -> None:
    first, second = write("a.yaml", yaml.safe_dump(MANY)), write("b.json", json.dumps(NODE))
    told: list[tuple[int, int]] = []

    read_manifests([first, second], lambda done, total: told.append((done, total)))

    total = first.stat().st_size + second.stat().st_size
    assert told[-1] == (total, total)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {total}
