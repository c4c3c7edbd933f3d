"""The page about real objects, in a real Chromium."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.field.material import Project, own_projects

from .chromium import Tab

Open = Callable[..., Tab]


@pytest.mark.parametrize("project", list(own_projects()), ids=lambda project: project.name)
def test_the_corpus_is_shown_without_an_error(
    open_page: Open, project: Project, tmp_path: Path
) -> None:
    files = [word for file in project.files for word in ("-f", str(file))]
    page = tmp_path / "page.html"
    assert CliRunner().invoke(app, ["simulate", *files, "--html", str(page)]).exit_code == 1

    tab = open_page(page)

    assert sorted(tab.run("bayplan.data.nodes")) == sorted(project.nodes)
    assert "train-gpu" in tab.run("document.body.textContent")
