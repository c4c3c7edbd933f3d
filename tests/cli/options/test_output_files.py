"""Files that are written completely or not at all: afterwards there is the new file or the old one."""

import gzip
import os
import stat
import threading
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.cli.options.output_files import whole_target, write_whole
from bayplan.errors import OutputError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]


class FailedError(Exception):
    """The errors in between."""


def test_until_it_is_complete_the_old_one_is_there(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("old")

    with whole_target("--html", target) as file:
        file.write("new")
        assert target.read_text() == "old"

    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("was_there", [True, False])
def test_a_failure_leaves_what_was_there(tmp_path: Path, was_there: bool) -> None:
    target = tmp_path / "page.html"
    if was_there:
        target.write_text("old")
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def fail() -> None:
        with whole_target("--html", target) as file:
            file.write("half of the n")
            raise FailedError

    with pytest.raises(FailedError):
        fail()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_a_link_goes_on_leading_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)

    write_whole("--to", link, ["new"])

    assert link.is_symlink()
    assert file.read_text() == "new"


def test_permissions_are_those_of_the_old_one_or_the_usual_ones(tmp_path: Path) -> None:
    old, usual, new = tmp_path / "old", tmp_path / "usual", tmp_path / "new"
    old.touch()
    old.chmod(0o640)
    usual.touch()

    for target in (old, new):
        write_whole("--to", target, ["text"])

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"old": 0o640, "usual": modes["usual"], "new": modes["usual"]}


def test_what_is_no_file_is_written_as_it_is(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()

    write_whole("--metrics", pipe, ["a", "b"])

    reader.join(10)
    assert got == ["ab"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_name_that_says_so_is_gzipped(tmp_path: Path) -> None:
    write_whole("--to", tmp_path / "list.json.gz", ["{", "}"])

    assert gzip.decompress((tmp_path / "list.json.gz").read_bytes()) == b"{}"


def test_a_full_disk_is_said_and_the_option_named() -> None:
    with pytest.raises(
        OutputError, match="--to: /dev/full: expected a file to write to; got No sp"
    ):
        write_whole("--to", Path("/dev/full"), ["text"])


@pytest.mark.parametrize("option", ["--html", "--metrics"])
def test_a_run_that_fails_leaves_the_file(tmp_path: Path, option: str) -> None:
    """A class of pods that is not there is noticed when the run begins, after the file was opened."""
    broken, target = tmp_path / "broken.yaml", tmp_path / "out"
    spec = {"containers": [{"name": "c"}], "priorityClassName": "no-such-class"}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": spec}
    broken.write_text(yaml.safe_dump(pod))
    target.write_text("old")

    result = CliRunner().invoke(
        app, ["simulate", *FILES, "-f", str(broken), option, str(target), "-o", "name"]
    )

    assert result.exit_code == 2
    assert "no-such-class" in result.stderr
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.yaml", "out"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        pytest.param("--html", "<!doctype html>", id="the page"),
        pytest.param("--metrics", "scheduler_schedule_attempts_total", id="the metrics"),
    ],
)
def test_a_run_that_ends_replaces_the_file(tmp_path: Path, option: str, words: str) -> None:
    target = tmp_path / "out"
    target.write_text("old")

    result = CliRunner().invoke(app, ["simulate", *FILES, option, str(target), "-o", "name"])

    assert result.exit_code == 1  # some pods of the example wait
    assert words in target.read_text()


def test_a_trace_that_is_wrong_leaves_the_file(tmp_path: Path) -> None:
    table, target = tmp_path / "pods.csv", tmp_path / "out.json"
    table.write_text("name,cpu\na,1\nb,much\n")
    target.write_text("old")

    result = CliRunner().invoke(
        app, ["trace", "import", "csv", "--pods", str(table), "--to", str(target)]
    )

    assert result.exit_code == 2
    assert target.read_text() == "old"
