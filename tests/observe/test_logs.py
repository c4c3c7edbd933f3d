import io
import json
import logging
from collections.abc import Iterator

import pytest

from bayplan.observe.logs import set_up_logging

log = logging.getLogger("bayplan.somewhere")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def write(verbosity: int = 0, *, as_json: bool = False) -> list[str]:
    """The lines for one record of each level."""
    stream = io.StringIO()
    set_up_logging(verbosity, as_json=as_json, stream=stream)
    log.debug("in detail")
    log.info("pod %s came", "shop/web")
    log.warning("pod %s: odd", "shop/web")
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("verbosity", "levels"),
    [
        pytest.param(0, ["WARNING"], id="warnings by default"),
        pytest.param(1, ["INFO", "WARNING"], id="-v"),
        pytest.param(2, ["DEBUG", "INFO", "WARNING"], id="-vv"),
        pytest.param(9, ["DEBUG", "INFO", "WARNING"], id="more is no error"),
        pytest.param(-1, ["WARNING"], id="a negative number is no error"),
    ],
)
def test_verbosity_selects_the_levels(verbosity: int, levels: list[str]) -> None:
    assert [line.split()[1] for line in write(verbosity)] == levels


def test_text_has_time_logger_and_message() -> None:
    moment, rest = write()[0].split(maxsplit=1)

    assert moment.endswith("Z")
    assert rest == "WARNING bayplan.somewhere: pod shop/web: odd"


def test_json_is_one_object_per_line() -> None:
    lines = [json.loads(line) for line in write(2, as_json=True)]

    assert [line["level"] for line in lines] == ["debug", "info", "warning"]
    assert lines[1] | {"ts": ""} == {
        "ts": "",
        "level": "info",
        "logger": "bayplan.somewhere",
        "msg": "pod shop/web came",
    }


def test_a_traceback_is_part_of_the_object() -> None:
    stream = io.StringIO()
    set_up_logging(as_json=True, stream=stream)

    try:
        raise ValueError("no such thing")
    except ValueError:
        log.exception("it failed")

    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["err"].endswith("ValueError: no such thing")
