"""Limits on input: small gzip files that unpack to much, long lines, aliases, nesting."""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bayplan
from bayplan.api.own_documents import API_VERSION
from bayplan.cli.main import app
from bayplan.errors import InputError
from bayplan.manifests import input_bytes
from bayplan.manifests.input_bytes import (
    FREE,
    RATIO,
    VARIABLE,
    CutOffError,
    DamagedFileError,
    bounded_lines,
    limited_input,
    open_input,
)
from bayplan.sim.traces.table_rows import read_rows
from bayplan.yaml_tree import YamlError, iter_trees

MIB = 1 << 20
HEAD = (
    b'{"apiVersion":"%s","kind":"Recording","start":"2026-01-01T00:00:00Z"}\n'
    % API_VERSION.encode()
)
META = b'{"generateName":"p","annotations":{"a":"%s"}}' % (b"x" * 2000)
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":%s,"spec":{"containers":[]}}' % META
EVENT = b'{"t":0,"type":"ADDED","object":%s}\n' % POD
NODE = b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}\n'
ADVICE = "--max-input-size (or BAYPLAN_MAX_INPUT_SIZE) sets another limit"


def pack(file: Path, head: bytes, unit: bytes, total: int) -> Path:
    """Write a gzip file that unpacks to `total` bytes."""
    block = unit * (MIB // len(unit))
    with gzip.open(file, "wb", 9) as packed:
        packed.write(head)
        for _ in range(total // len(block)):
            packed.write(block)
    return file


def peak_mib(*words: str) -> tuple[str, int, float]:
    """The last line of a command, its status, and the most memory that it had.

    The maximum that getrusage gives includes the parent's memory at the time of the fork.
    """
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from typer.testing import CliRunner\n"
        "from bayplan.cli.main import app\n"
        "done = CliRunner().invoke(app, sys.argv[1:])\n"
        "print(done.stderr.strip().splitlines()[-1])\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(done.exit_code, status.partition('VmHWM:')[2].split()[0])\n"
    )
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    line, figures = done.stdout.splitlines()
    status, peak = figures.split()
    return line, int(status), int(peak) * 1024 / MIB


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
@pytest.mark.parametrize(
    ("words", "name", "head", "unit"),
    [
        pytest.param(("replay",), "run.jsonl.gz", HEAD, EVENT, id="a recording of equal lines"),
        pytest.param(("replay",), "run.jsonl.gz", HEAD + b'{"t":0,"a":"', b"x", id="one long line"),
        pytest.param(("simulate", "-f"), "pods.yaml.gz", b"", b"---\nkind: Pod\n", id="a manifest"),
        pytest.param(
            ("simulate", "-f"),
            "dump.json.gz",
            b'{"apiVersion":"v1","kind":"List","items":[{}',
            b"," + POD,
            id="a dump",
        ),
        pytest.param(("trace", "simulate"), "t.jsonl.gz", NODE, POD + b"\n", id="a trace of lines"),
        pytest.param(("sweep",), "sweep.yaml.gz", b"", b"- a\n", id="a sweep"),
    ],
)
def test_a_small_file_does_not_become_a_large_one(
    words: tuple[str, ...], name: str, head: bytes, unit: bytes, tmp_path: Path
) -> None:
    file = pack(tmp_path / name, head, unit, 100 * MIB)
    allowed = max(FREE, RATIO * file.stat().st_size)

    line, status, peak = peak_mib(*words, str(file))

    assert status == 2
    assert line.startswith(f"error: {file}: expected at most ")
    assert line.endswith(f"Mi when it is unpacked; got more. {ADVICE}")
    assert peak < 90 + 8 * allowed / MIB


def test_the_option_the_variable_and_the_argument_set_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cluster.json.gz"
    file.write_bytes(gzip.compress(NODE))
    small = f"{file}: expected at most 16 when it is unpacked; got more. {ADVICE}"

    done = CliRunner().invoke(app, ["simulate", "-f", str(file), "--max-input-size", "16"])
    assert (done.exit_code, small in done.stderr) == (2, True)
    with pytest.raises(InputError) as caught:
        bayplan.Cluster.read(file, max_input_size=16)
    assert str(caught.value) == small
    monkeypatch.setenv(VARIABLE, "16")
    with pytest.raises(InputError) as caught:
        bayplan.Cluster.read(file)
    assert str(caught.value) == small
    assert len(bayplan.Cluster.read(file, max_input_size="1Mi").objects) == 1


def test_a_limit_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_bytes, "FREE", 1024)
    monkeypatch.setattr(input_bytes, "RATIO", 0)
    file = pack(tmp_path / "big.txt.gz", b"", b"x", 2 * MIB)

    with pytest.raises(InputError, match="expected at most 1Ki when it is unpacked"):
        open_input(file).read()
    with limited_input("2Mi"):
        assert len(open_input(file).read()) == 2 * MIB


def test_a_plain_file_has_the_limit_that_was_set(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    file.write_bytes(b"# x\n" * MIB + b"---\n" + NODE)

    with limited_input("1Mi"), pytest.raises(InputError, match="expected at most 1Mi; got more"):
        bayplan.Cluster.read(file)
    bayplan.Cluster.read(file)


@pytest.mark.parametrize("size", ["", "-1", "0", "many", True])
def test_a_limit_is_a_size(size: str) -> None:
    with (
        pytest.raises(
            InputError, match=r"^--max-input-size: expected a size, such as 512Mi or 8Gi"
        ),
        limited_input(size),
    ):
        pass


def test_joined_and_padded_gzip_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "joined.gz"
    file.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 100)

    assert open_input(file).read() == b"one two"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param(lambda data: data[:-9], CutOffError, id="cut off"),
        pytest.param(lambda data: data[:-8] + b"\0" * 8, DamagedFileError, id="another checksum"),
        pytest.param(lambda data: data + b"xx", DamagedFileError, id="something after it"),
    ],
)
def test_a_damaged_gzip_file_is_refused(change: object, error: type, tmp_path: Path) -> None:
    file = tmp_path / "x.gz"
    assert callable(change)
    file.write_bytes(change(gzip.compress(b"abc" * 1000)))

    with pytest.raises(error, match=f"^{file}: expected a whole gzip file; got "):
        open_input(file).read()


def test_lines_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_bytes, "MAX_LINE", 1 << 20)
    stream = io.BytesIO(b"short\n" + b"x" * (2 << 20))

    with pytest.raises(InputError, match="2: expected a line of at most 1 MiB; got a longer one"):
        list(bounded_lines(stream, lambda number, text: InputError(f"{number}: {text}")))


def test_holes_of_an_archive_are_not_read(tmp_path: Path) -> None:
    member = tarfile.TarInfo("t.csv")
    member.size = 512
    member.type = tarfile.GNUTYPE_SPARSE
    file = tmp_path / "t.tar"
    with tarfile.open(file, "w") as archive:
        archive.addfile(member, io.BytesIO(b"a,b\n" * 128))

    with pytest.raises(InputError, match=r"expected an archive with a .csv file; got none"):
        list(read_rows(file))


def test_an_archive_has_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "t.tar.gz"
    member = tarfile.TarInfo("t.csv")
    member.size = 64 * MIB
    with tarfile.open(file, "w:gz") as archive:
        archive.addfile(member, io.BytesIO((b"a," + b"b" * 1021 + b"\n") * (64 << 10)))

    with pytest.raises(InputError, match="expected at most 32Mi when it is unpacked; got more"):
        list(read_rows(file))


def test_aliases_of_long_texts_count_by_their_length() -> None:
    aliases = "".join(f"b{i}: *a\n" for i in range(1000))

    with pytest.raises(YamlError, match="line 8: expected aliases for at most 100000 values"):
        list(iter_trees(f"a: &a {'x' * MIB}\n{aliases}"))


DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000


@pytest.mark.parametrize(
    ("words", "name", "content"),
    [
        pytest.param(("replay",), "r.jsonl", HEAD + DEEP + b"\n", id="a recording"),
        pytest.param(("simulate", "-f"), "m.json", DEEP, id="a manifest"),
        pytest.param(("simulate", "-f"), "m.json", NODE + DEEP, id="several manifests"),
        pytest.param(("simulate", "-f"), "m.json", NODE + b"9" * 5000, id="a number"),
        pytest.param(("pools", "check"), "p.json", DEEP, id="pools"),
        pytest.param(("pools", "check"), "p.json", b'{"a":"\xff"}', id="no text"),
        pytest.param(("trace", "simulate"), "t.jsonl", NODE + DEEP, id="a trace"),
        pytest.param(("sweep",), "s.yaml", DEEP, id="a sweep"),
        pytest.param(("bench", "--from"), "b.json", DEEP, id="a report"),
        pytest.param(("config", "check"), "c.yaml", DEEP, id="a configuration"),
    ],
)
def test_nesting_is_refused_in_a_line(
    words: tuple[str, ...], name: str, content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)

    done = CliRunner().invoke(app, [*words, str(file)])

    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(f"error: {file}: ")
