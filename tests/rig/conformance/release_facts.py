"""Release facts: the recorded cases of v1.36 whose decisions another release changes, and the fact that changes each.

`python -m tests.rig.conformance.release_facts FILES... [--release 1.35]` runs every case with each release, then with
each difference between the releases by itself: a fact of the release or a feature gate. The cases that change in the
release must be the cases that some single difference changes; a case that changes without one, or that one changes and
the release does not, is printed. Ends with `predicted A of B cases`; status 0 only when A is B. Where decisions of the
release were recorded with the same input, the cases must also be those whose recorded decisions differ.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayplan.answers.release_changes import single_changes
from bayplan.releases.feature_gates import DEFAULT_GATES, FeatureGates
from bayplan.releases.release import DEFAULT_RELEASE, RELEASES, Release, find_release

from .autoscalers import is_autoscaler_case
from .cases import TRIAL
from .cli import RELEASES as RELEASES_FOLDER
from .cli import RUNNERS, case_files, read_cases
from .long_run import is_long_run
from .pod_groups import is_group_case

OPTION = "--release"
PROGRESS = 500
Case = dict[str, Any]


@dataclass(slots=True)
class Prediction:
    """The outcome for one case in one release."""

    case: str
    changes: bool
    facts: tuple[str, ...]
    """The differences that change it, each by itself."""
    are_undone: bool = False
    """Whether it does not change because each of them is undone by a second difference: a pair leaves it as it was."""

    @property
    def is_right(self) -> bool:
        """Whether the facts predict the outcome."""
        return self.changes is bool(self.facts) or self.are_undone

    def __str__(self) -> str:
        if self.facts:
            return f"{self.case}: does not change, but each of these by itself changes it: {', '.join(self.facts)}"
        return f"{self.case}: changes, and no single fact or gate changes it"


@dataclass(slots=True)
class ReleaseReport:
    """The predictions for one release."""

    release: Release
    cases: int = 0
    changed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By case that changes: the facts that do it."""
    wrong: list[Prediction] = field(default_factory=list)
    recorded: int = 0
    """Cases of which there are recorded decisions of the release, too."""
    unlike: list[str] = field(default_factory=list)
    """Cases of those that do not change as recorded."""

    def add(self, found: Prediction) -> None:
        """Count one case."""
        self.cases += 1
        if found.changes:
            self.changed[found.case] = found.facts
        if not found.is_right:
            self.wrong.append(found)

    def compare(self, recorded: Mapping[str, bool]) -> None:
        """Note the cases that change and whose recorded decisions do not, or the other way round."""
        self.recorded += len(recorded)
        self.unlike += [
            case for case, differs in recorded.items() if differs is not (case in self.changed)
        ]

    def facts(self) -> Counter[str]:
        """The number of cases by fact."""
        return Counter(fact for facts in self.changed.values() for fact in facts)

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield f"{self.release.patch}: {len(self.changed)} of {self.cases} cases change"
        for fact, number in self.facts().most_common():
            yield f"  {number:5} {fact}"
        if self.recorded:
            yield f"  {self.recorded - len(self.unlike)} of {self.recorded} cases change as recorded"
        yield from (f"  {case}: does not change as recorded" for case in self.unlike)
        yield from (f"  {each}" for each in self.wrong)


def is_tried(case: Case) -> bool:
    """Whether releases decide about the case; pod groups of v1.36 are in no other release, autoscalers in none."""
    return not (is_group_case(case) or is_autoscaler_case(case) or "release" in case)


def changes(case: Case, gates: FeatureGates) -> bool:
    """Whether a decision of the case changes with these gates; the first difference is enough."""
    run = next(run for is_kind, run in RUNNERS if is_kind(case))
    return any(run({**case, TRIAL: gates}))


class NotedRelease(Release, frozen=True, kw_only=True, eq=False):
    """The default release, which notes the facts that are read."""

    def __getattribute__(self, name: str) -> Any:
        READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()
FACTS = frozenset(Release.__struct_fields__)
NOTED = NotedRelease(**{fact: getattr(DEFAULT_RELEASE, fact) for fact in FACTS})


class CaseTrials:
    """The runs of one case; a fact that it does not read, or that was tried with the same value, is not tried."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._found: dict[tuple[str, str], bool] = {}
        READ.clear()
        assert not changes(case, FeatureGates(release=NOTED)), f"{case['id']}: differs in v1.36"
        self._read = frozenset(READ)

    def predict(self, release: Release) -> Prediction:
        """Run the case with a release, and with each of its differences to the default release."""
        new = FeatureGates(release=release)
        does_change = changes(self._case, new)
        if is_long_run(self._case) and not does_change:
            return Prediction(self._case["id"], False, ())  # a history takes seconds
        tried = single_changes(DEFAULT_GATES, new)
        found = {name: gates for name, gates in tried if self._changes(name, gates)}
        if does_change or not found:
            return Prediction(self._case["id"], does_change, tuple(found))
        are_undone = all(self._is_undone(each, new) for each in found.values())
        return Prediction(self._case["id"], does_change, tuple(found), are_undone)

    def _is_undone(self, gates: FeatureGates, new: FeatureGates) -> bool:
        """Whether the case does not change with these gates and one more difference."""
        return any(not changes(self._case, both) for _, both in single_changes(gates, new))

    def _changes(self, name: str, gates: FeatureGates) -> bool:
        is_fact = name in FACTS
        if is_fact and name not in self._read:
            return False
        value = getattr(gates.release, name) if is_fact else gates.enabled(name)
        key = name, repr(value)
        if key not in self._found:
            self._found[key] = changes(self._case, gates)
        return self._found[key]


def predict_all(cases: Collection[Case], releases: Iterable[Release]) -> dict[str, ReleaseReport]:
    """The reports by version of the release."""
    reports = {release.version: ReleaseReport(release) for release in releases}
    for number, case in enumerate(cases, 1):
        trials = CaseTrials(case)
        for report in reports.values():
            report.add(trials.predict(report.release))
        if number % PROGRESS == 0:
            print(f"{number} of {len(cases)} cases", file=sys.stderr)
    return reports


def recorded_changes(cases: Iterable[Case], folder: Path) -> Mapping[str, bool]:
    """By case of which `folder` has the decisions of a release, too: whether they differ from those of the default."""
    expected = {case["id"]: case["expected"] for case in cases if "expected" in case}
    found = {}
    for path in case_files([str(folder)]):
        for case in read_cases(path):
            if case["id"] in expected:
                found[case["id"]] = case["expected"] != expected[case["id"]]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the named files and folders; return the exit status."""
    names = sys.argv[1:] if arguments is None else list(arguments)
    chosen = [release for release in RELEASES.values() if release is not DEFAULT_RELEASE]
    if OPTION in names:
        place = names.index(OPTION)
        chosen = [find_release(names[place + 1])]
        del names[place : place + 2]
    files = [path for path in case_files(names) if path.parent.parent.name != RELEASES_FOLDER]
    cases = [case for path in files for case in read_cases(path) if is_tried(case)]
    recorded = {
        release.version: [
            recorded_changes(cases, folder)
            for folder in dict.fromkeys(
                path.parent / RELEASES_FOLDER / release.patch for path in files
            )
            if folder.is_dir()
        ]
        for release in chosen
    }
    reports = predict_all(cases, chosen)
    for version, report in reports.items():
        for each in recorded[version]:
            report.compare(each)
        print("\n".join(report.lines()))
    total = sum(report.cases for report in reports.values())
    wrong = sum(len(report.wrong) + len(report.unlike) for report in reports.values())
    print(f"predicted {total - wrong} of {total} cases")
    return 0 if total and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
