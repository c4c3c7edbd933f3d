import io
import json
import logging

import pytest

from bayplan.observe.logs import set_up_logging, set_verbosity, step

log = logging.getLogger("bayplan.somewhere")


def write(verbosity: int | None = None, *, as_json: bool = False) -> list[str]:
    """The lines for one record of each level."""
    stream = io.StringIO()
    set_up_logging(verbosity, as_json=as_json, stream=stream)
    log.debug("in detail")
    step(log, 4, "Picked a node", pod="shop/web", score=12)
    log.info("pod %s came", "shop/web")
    log.warning("pod %s: odd", "shop/web")
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("verbosity", "levels"),
    [
        pytest.param(None, ["WARNING"], id="warnings by default"),
        pytest.param(0, ["INFO", "WARNING"], id="level 0"),
        pytest.param(3, ["INFO", "WARNING"], id="a level below that of a step"),
        pytest.param(4, ["INFO", "INFO", "WARNING"], id="the level of a step"),
        pytest.param(10, ["INFO", "INFO", "INFO", "WARNING"], id="Python's debug level is 10"),
        pytest.param(99, ["INFO", "INFO", "INFO", "WARNING"], id="more is no error"),
        pytest.param(-1, ["INFO", "WARNING"], id="a negative number is no error"),
    ],
)
def test_verbosity_selects_the_levels(verbosity: int, levels: list[str]) -> None:
    assert [line.split()[1] for line in write(verbosity)] == levels


def test_text_has_time_logger_and_message() -> None:
    moment, rest = write()[0].split(maxsplit=1)

    assert moment.endswith("Z")
    assert rest == "WARNING bayplan.somewhere: pod shop/web: odd"


def test_json_is_one_object_per_line() -> None:
    lines = [json.loads(line) for line in write(4, as_json=True)]

    assert [line["level"] for line in lines] == ["info", "info", "warning"]
    assert lines[0] | {"ts": ""} == {
        "ts": "",
        "level": "info",
        "v": 4,
        "logger": "bayplan.somewhere",
        "msg": "Picked a node",
        "pod": "shop/web",
        "score": 12,
    }


def test_text_has_the_keys_behind_the_message() -> None:
    assert write(4)[0].endswith('bayplan.somewhere: Picked a node pod="shop/web" score=12')


def test_the_verbosity_can_be_changed() -> None:
    stream = io.StringIO()
    set_up_logging(0, stream=stream)
    step(log, 5, "hidden")
    set_verbosity(5)
    step(log, 5, "shown")

    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["shown"]


def test_a_traceback_is_part_of_the_object() -> None:
    stream = io.StringIO()
    set_up_logging(as_json=True, stream=stream)

    try:
        raise ValueError("no such thing")
    except ValueError:
        log.exception("it failed")

    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["err"].endswith("ValueError: no such thing")


def test_a_step_has_the_module_of_its_caller() -> None:
    stream = io.StringIO()
    set_up_logging(0, stream=stream, modules={"test_logs": 4})
    step(log, 4, "shown")

    assert stream.getvalue().endswith("shown\n")


def test_text_has_lists_and_objects_as_json() -> None:
    stream = io.StringIO()
    set_up_logging(0, stream=stream)
    step(log, 0, "slow", steps={"Filter": 1.5})

    assert stream.getvalue().endswith('slow steps={"Filter": 1.5}\n')
