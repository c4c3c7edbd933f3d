"""Every question has an answer about real material: no traceback, no undocumented exit status."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .material import Project, own_projects, shared_projects
from .questions import Question, questions_about

SHARED_QUESTIONS = (
    "simulate json",
    "explain json",
    "what-if drain",
    "capacity",
    "compare",
    "rebalance spread",
)
"""Questions about published manifests in every run of the tests; `make field` has all of them."""


QUICK = ("online-boutique", "kube-prometheus", "longhorn", "dump-readme")
"""The projects with the most kinds of objects, and a dump; `make field` has all of them."""


def quick_projects() -> list[Project]:
    """The published manifests of every run of the tests."""
    return [project for project in shared_projects() if project.name in QUICK]


def own_cases() -> Iterator[object]:
    for project in own_projects():
        for question in questions_about(project, breadth=1):
            yield pytest.param(project, question, id=f"{project.name}: {question.name}")


@pytest.mark.parametrize(("project", "question"), list(own_cases()))
def test_our_corpus(project: Project, question: Question, tmp_path: Path) -> None:
    assert question.ask(project, tmp_path) is None


@pytest.mark.skipif(
    not list(shared_projects()), reason="no published manifests beside the repository"
)
@pytest.mark.parametrize("project", quick_projects(), ids=lambda project: project.name)
def test_published_manifests_and_dumps(project: Project, tmp_path: Path) -> None:
    faults = {
        question.name: question.ask(project, tmp_path)
        for question in questions_about(project, breadth=1)
        if question.name in SHARED_QUESTIONS
    }

    assert "simulate json" in faults
    assert set(faults.values()) == {None}, faults
