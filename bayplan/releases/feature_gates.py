"""FeatureGates: the position of every feature gate of a release of Kubernetes, and that release.

Mirrors staging/src/k8s.io/component-base/featuregate/feature_gate.go; `feature_gates.txt` has the gates. The texts of
refusals are those of kube-scheduler, which people search for. `gate_effects.py` describes their effects here.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..errors import ConfigError
from .gate_effects import EARLIER_GATES, EFFECTS
from .release import DEFAULT_RELEASE, RELEASES, Release

CURRENT_VERSION = DEFAULT_RELEASE.version
ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"
STAGE_GATES = {ALL_ALPHA: "alpha", ALL_BETA: "beta"}
PRE_ALPHA = "pre-alpha"


class GateState(NamedTuple):
    """A gate at one version: its stage, its default, and whether it is locked to that."""

    stage: str
    default: bool
    is_locked: bool = False


class Gate(msgspec.Struct, frozen=True):
    """A feature gate: its states by the version they begin with, the releases that have it, and the gates it needs."""

    name: str
    states: tuple[tuple[tuple[int, int], GateState], ...]
    releases: frozenset[str] = frozenset(RELEASES)
    needs_by_release: dict[str, tuple[str, ...]] = {}

    @property
    def needs(self) -> tuple[str, ...]:
        """The gates that it needs in the default release."""
        return self.needs_in(DEFAULT_RELEASE)

    def needs_in(self, release: Release) -> tuple[str, ...]:
        """The gates that it needs in `release`."""
        return self.needs_by_release.get(release.version, ())

    def at(self, version: str) -> GateState:
        """The state at `version`; before the first one the gate is off and cannot be set."""
        wanted = _parse_version(version)
        found = [state for since, state in self.states if since <= wanted]
        return found[-1] if found else GateState(PRE_ALPHA, False)


class FeatureGates(Mapping[str, bool]):
    """The position of every gate of `release`; `settings` are the gates that were set.

    `version` is the emulated one: the release has the gates, in the state that they have at that version. Raises
    ConfigError, with a line for each mistake that begins with `source`.
    """

    def __init__(
        self,
        settings: Mapping[str, bool] | None = None,
        *,
        release: Release = DEFAULT_RELEASE,
        version: str = "",
        source: str = "featureGates",
    ) -> None:
        self.settings: dict[str, bool] = dict(settings or {})
        self.release = release
        self.version = version = version or release.version
        self._gates = gates_of(release)
        faults = self._setting_faults()
        self._positions = {name: gate.at(version).default for name, gate in self._gates.items()}
        self._positions.update(self._positions_by_stage())
        self._positions.update((n, v) for n, v in self.settings.items() if n in self._positions)
        self.left_out = self._leave_out()
        """Gates that AllAlpha or AllBeta would set to a position that is not implemented: they keep the other one."""
        faults = faults or self._dependency_faults() or self._missing()
        if faults:
            raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults))

    @classmethod
    def of(
        cls, settings: Mapping[str, bool] | None, release: Release = DEFAULT_RELEASE
    ) -> FeatureGates:
        """The gates of `release` with these settings; gates that were read already as they are."""
        if isinstance(settings, FeatureGates):
            return settings
        if settings or release is not DEFAULT_RELEASE:
            return cls(settings, release=release)
        return DEFAULT_GATES

    def enabled(self, name: str) -> bool:
        """Whether gate `name` is on; one that the release does not have yet, or no longer, as it was last.

        One that was merged into another has the position of that one.
        """
        found = self._positions.get(self.release.merged_gates.get(name, name))
        return GATES[name].at(self.version).default if found is None else found

    def with_position(self, name: str, position: bool) -> FeatureGates:
        """A copy for trials with this gate in another position, whether or not the release allows that."""
        made = copy.copy(self)
        made._positions = {**self._positions, name: position}
        return made

    def lack(self, *names: str) -> str:
        """The end of a sentence about something that needs these gates: `without --feature-gates=A=true`, with those of
        the release; `in v1.34` if it does not have them all.
        """
        own = list(dict.fromkeys(self.release.merged_gates.get(name, name) for name in names))
        if any(name not in self._gates or name in self.release.refused_gates for name in own):
            return f"in v{self.release.version}"
        return f"without --feature-gates={','.join(f'{name}=true' for name in own)}"

    def without_effect(self) -> tuple[str, ...]:
        """The gates that were set and do not concern the scheduler."""
        return tuple(sorted(n for n in self.settings if n not in EFFECTS and n not in STAGE_GATES))

    def _leave_out(self) -> tuple[str, ...]:
        """Undo the values that a gate for a whole stage set without effect; a gate that is set by name is refused
        instead.
        """
        by_stage = self._positions_by_stage()
        found = {
            name: position
            for name, (position, _) in self._not_implemented().items()
            if name not in self.settings and by_stage.get(name) is position
        }
        self._positions.update((name, not position) for name, position in found.items())
        return tuple(sorted(found))

    def _missing(self) -> list[str]:
        """The gates in a position that is not implemented."""
        found = []
        for name, (position, text) in self._not_implemented().items():
            if position is not self._positions.get(name):
                continue
            cause = ""
            if name not in self.settings:
                cause = f" (its default in v{self.version}; add {name}={_shown(not position)})"
            found.append(f"{name}={_shown(position)} is not implemented: {text}{cause}")
        return found

    def _not_implemented(self) -> dict[str, tuple[bool, str]]:
        """By gate: the position that is not implemented, and a text about it."""
        found = {
            name: (effect.missing, effect.describe(effect.missing))
            for name, effect in EFFECTS.items()
            if effect.missing is not None
        }
        return {
            **found,
            **{name: (True, text) for name, text in self.release.refused_gates.items()},
        }

    def _setting_faults(self) -> list[str]:
        faults, version = [], self.version
        for name, value in self.settings.items():
            gate = self._gates.get(name)
            if gate is None:
                faults.append(f"unrecognized feature gate: {name}{self._suggestion(name)}")
                continue
            state, start = gate.at(version), f"cannot set feature gate {name} to {_shown(value)}"
            if state.is_locked and value is not state.default:
                faults.append(f"{start}, feature is locked to {_shown(state.default)}")
            elif state.stage == PRE_ALPHA:
                major, minor = _parse_version(version)
                compatible = f"min compatibility version {major}.{minor - 1}"
                faults.append(
                    f"{start}, feature is PreAlpha at emulated version {version}, {compatible}"
                )
        return faults

    def _positions_by_stage(self) -> dict[str, bool]:
        """Positions that AllAlpha and AllBeta set."""
        settings, version = self.settings, self.version
        by_stage = {stage: settings[n] for n, stage in STAGE_GATES.items() if n in settings}
        return {
            name: by_stage[gate.at(version).stage]
            for name, gate in self._gates.items()
            if by_stage and name not in STAGE_GATES and gate.at(version).stage in by_stage
        }

    def _dependency_faults(self) -> list[str]:
        faults: list[str] = []
        if not self.release.checks_gate_needs:
            return faults
        for name, gate in self._gates.items():
            off = [needed for needed in gate.needs_in(self.release) if not self.enabled(needed)]
            if self._positions[name] and off:
                names = " ".join(off)
                faults.append(
                    f"{name} is enabled, but depends on features that are disabled: [{names}]"
                )
        return faults

    def _suggestion(self, name: str) -> str:
        """The releases that have the gate, or the gates with similar names, as the end of a sentence."""
        if name in GATES:
            having = [version for version in RELEASES if version in GATES[name].releases]
            return f"; v{self.release.version} does not have it, only {span(having)}"
        similar = difflib.get_close_matches(name, self._gates, n=3)
        return f"; did you mean {' or '.join(similar)}?" if similar else ""

    def __getitem__(self, name: str) -> bool:
        return self._positions[self.release.merged_gates.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __repr__(self) -> str:
        return f"FeatureGates({self.settings}, version={self.version!r}, release={self.release.version!r})"


def span(versions: list[str]) -> str:
    """A run of releases in words: `v1.33`, or `v1.33 to v1.36`."""
    ends = dict.fromkeys((versions[0], versions[-1]))
    return " to ".join(f"v{version}" for version in ends)


def _shown(value: bool | None) -> str:
    return str(value).lower()


@cache
def _parse_version(text: str) -> tuple[int, int]:
    major, _, minor = text.removeprefix("v").partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise ConfigError(f"emulated version: expected a version such as 1.36; got {text!r}")
    return int(major), int(minor)


def _read_gates() -> dict[str, Gate]:
    """All gates: those of the releases, those of earlier ones that older formats know, AllAlpha and AllBeta."""
    text = Path(__file__).with_name("feature_gates.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    gates = [_read_gate(line) for line in lines]
    for name, default in EARLIER_GATES.items():
        gates.append(Gate(name, (((0, 0), GateState("past", default)),)))
    for name, stage in STAGE_GATES.items():
        gates.append(Gate(name, (((0, 0), GateState(stage, False)),)))
    return {gate.name: gate for gate in gates}


def _read_gate(words: list[str]) -> Gate:
    name, *rest = words
    parts: dict[str, list[str]] = {"states": []}
    part = parts["states"]
    for word in rest:
        if word in ("in", "needs"):
            part = parts[word] = []
        else:
            part.append(word)
    states = []
    for word in parts["states"]:
        version, stage, default, *locked = word.split(":")
        states.append((_parse_version(version), GateState(stage, default == "on", bool(locked))))
    releases = list(RELEASES)
    if "in" in parts:
        first, _, last = parts["in"][0].partition("-")
        releases = releases[releases.index(first) : releases.index(last) + 1]
    return Gate(name, tuple(states), frozenset(releases), _read_needs(parts.get("needs", [])))


def _read_needs(words: list[str]) -> dict[str, tuple[str, ...]]:
    """The gates that are needed, by release; `words` is one list for all, or `release=list` for each."""
    if not words:
        return {}
    if "=" not in words[0]:
        return dict.fromkeys(RELEASES, tuple(words[0].split(",")))
    given = dict(word.split("=") for word in words)
    return {version: tuple(names.split(",")) for version, names in given.items() if names != "none"}


def gates_of(release: Release) -> Mapping[str, Gate]:
    """The gates that kube-scheduler of `release` takes, by name."""
    return _gates_in(release.version)


@cache
def _gates_in(version: str) -> Mapping[str, Gate]:
    return {name: gate for name, gate in GATES.items() if version in gate.releases}


GATES = _read_gates()
DEFAULT_GATES = FeatureGates()
