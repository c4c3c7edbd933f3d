"""Results on disk: the journal survives a killed writer, and the tables have all columns."""

import csv
from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.sweeps.result_files import ResultTable, RunJournal
from bayplan.sweeps.worker import RunResult

parquet = pytest.importorskip("pyarrow.parquet")
ROWS: list[dict[str, Any]] = [
    {"run": "a", "weight.X": None, "seed": 0, "status": "done", "placed": 3.0},
    {"run": "b", "weight.X": 2, "seed": 0, "status": "failed"},
    {"run": "c", "weight.X": "many", "seed": 1, "status": "done", "placed": 4.0, "extra": 0.5},
]


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    journal = RunJournal(path)
    journal.add(RunResult(id="a", measures={"placed": 1.0}))
    journal.add(RunResult(id="b", error="no"))
    journal.add(RunResult(id="b", measures={"placed": 2.0}))

    found = RunJournal(path).results

    assert found["a"].measures == {"placed": 1.0}
    assert not found["b"].is_failed, "the last line counts"


def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    RunJournal(path).add(RunResult(id="a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:7])

    journal = RunJournal(path)
    journal.add(RunResult(id="b"))

    assert journal.results.keys() == {"a", "b"} == RunJournal(path).results.keys()


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("hello\n")

    with pytest.raises(InputError, match=r"x.jsonl: line 1: expected a run of a sweep"):
        RunJournal(path)


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"

    ResultTable(path).write(ROWS)

    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["run", "weight.X", "seed", "status", "placed", "extra"]
    assert [row["weight.X"] for row in rows] == ["", "2", "many"]
    assert rows[1]["placed"] == ""
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"

    ResultTable(path).write(ROWS)

    columns = parquet.read_table(path).to_pydict()
    assert columns["weight.X"] == [None, "2", "many"], "texts and numbers are texts"
    assert columns["seed"] == [0, 0, 1]
    assert columns["placed"] == [3.0, None, 4.0]


def test_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x.xls: expected a name that ends in .csv or .parquet"):
        ResultTable(tmp_path / "x.xls")
