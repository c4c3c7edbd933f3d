"""FeatureGates: the position of every feature gate of Kubernetes v1.36.

Mirrors staging/src/k8s.io/component-base/featuregate/feature_gate.go; `feature_gates.txt` has the gates. The texts of
refusals are those of kube-scheduler, which people search for. `gate_effects.py` says what gates do here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..errors import ConfigError
from .gate_effects import EARLIER_GATES, EFFECTS, Effect

CURRENT_VERSION = "1.36"
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
    """A feature gate: its states by the version they begin with, and the gates it needs."""

    name: str
    states: tuple[tuple[tuple[int, int], GateState], ...]
    needs: tuple[str, ...] = ()

    def at(self, version: str) -> GateState:
        """The state at `version`; before the first one the gate is off and cannot be set."""
        wanted = _parse_version(version)
        found = [state for since, state in self.states if since <= wanted]
        return found[-1] if found else GateState(PRE_ALPHA, False)


class FeatureGates(Mapping[str, bool]):
    """The position of every gate; `settings` are the gates that were set.

    Raises ConfigError, with a line for each mistake that begins with `source`.
    """

    def __init__(
        self,
        settings: Mapping[str, bool] | None = None,
        *,
        version: str = CURRENT_VERSION,
        source: str = "featureGates",
    ) -> None:
        self.settings: dict[str, bool] = dict(settings or {})
        self.version = version
        faults = _setting_faults(self.settings, version)
        self._positions = {name: gate.at(version).default for name, gate in GATES.items()}
        self._positions.update(_positions_by_stage(self.settings, version))
        self._positions.update((n, v) for n, v in self.settings.items() if n in self._positions)
        self.left_out = self._leave_out()
        """Gates that AllAlpha or AllBeta would set to a position that is not implemented: they keep the other one."""
        faults = faults or _dependency_faults(self._positions) or self._missing()
        if faults:
            raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults))

    @classmethod
    def of(cls, settings: Mapping[str, bool] | None) -> FeatureGates:
        """The gates with these settings; gates that were read already as they are."""
        if isinstance(settings, FeatureGates):
            return settings
        return cls(settings) if settings else DEFAULT_GATES

    def enabled(self, name: str) -> bool:
        """Whether gate `name` is on."""
        return self._positions[name]

    def without_effect(self) -> tuple[str, ...]:
        """The gates that were set and do not concern the scheduler."""
        return tuple(sorted(n for n in self.settings if n not in EFFECTS and n not in STAGE_GATES))

    def _leave_out(self) -> tuple[str, ...]:
        """Undo what a gate for a whole stage set without effect; a gate that is set by name is refused instead."""
        by_stage = _positions_by_stage(self.settings, self.version)
        found = [
            name
            for name, effect in EFFECTS.items()
            if name not in self.settings
            and effect.missing is by_stage.get(name, not effect.missing)
        ]
        self._positions.update((name, not EFFECTS[name].missing) for name in found)
        return tuple(sorted(found))

    def _missing(self) -> list[str]:
        """The gates in a position that is not implemented."""
        found = []
        for name, effect in EFFECTS.items():
            if effect.missing is not self._positions.get(name):
                continue
            value = _shown(effect.missing)
            cause = "" if name in self.settings else self._cause(name)
            found.append(
                f"{name}={value} is not implemented: {effect.describe(effect.missing)}{cause}"
            )
        return found

    def _cause(self, name: str) -> str:
        """Why a gate that was not set by its name is on or off."""
        opposite = _shown(not self._positions[name])
        return f" (its default in v{self.version}; add {name}={opposite})"

    def __getitem__(self, name: str) -> bool:
        return self._positions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __repr__(self) -> str:
        return f"FeatureGates({self.settings}, version={self.version!r})"


def _setting_faults(settings: Mapping[str, bool], version: str) -> list[str]:
    faults = []
    for name, value in settings.items():
        gate = GATES.get(name)
        if gate is None:
            faults.append(f"unrecognized feature gate: {name}{_suggestion(name)}")
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


def _positions_by_stage(settings: Mapping[str, bool], version: str) -> dict[str, bool]:
    """What AllAlpha and AllBeta set."""
    by_stage = {stage: settings[n] for n, stage in STAGE_GATES.items() if n in settings}
    return {
        name: by_stage[gate.at(version).stage]
        for name, gate in GATES.items()
        if name not in STAGE_GATES and gate.at(version).stage in by_stage
    }


def _dependency_faults(positions: Mapping[str, bool]) -> list[str]:
    faults = []
    for name, gate in GATES.items():
        off = [needed for needed in gate.needs if not positions[needed]]
        if positions[name] and off:
            names = " ".join(off)
            faults.append(
                f"{name} is enabled, but depends on features that are disabled: [{names}]"
            )
    return faults


def _suggestion(name: str) -> str:
    """The gates with similar names, as the end of a sentence."""
    similar = difflib.get_close_matches(name, GATES, n=3)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def _shown(value: bool | None) -> str:
    return str(value).lower()


@cache
def _parse_version(text: str) -> tuple[int, int]:
    major, _, minor = text.removeprefix("v").partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise ConfigError(f"emulated version: expected a version such as 1.36; got {text!r}")
    return int(major), int(minor)


def _read_gates() -> dict[str, Gate]:
    """All gates: those of v1.36, those of earlier releases that older formats know, AllAlpha and AllBeta."""
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
    cut = rest.index("needs") if "needs" in rest else len(rest)
    states = []
    for word in rest[:cut]:
        version, stage, default, *locked = word.split(":")
        states.append((_parse_version(version), GateState(stage, default == "on", bool(locked))))
    return Gate(name, tuple(states), tuple(rest[cut + 1 :]))


GATES = _read_gates()
DEFAULT_GATES = FeatureGates()

__all__ = [
    "ALL_ALPHA",
    "ALL_BETA",
    "CURRENT_VERSION",
    "DEFAULT_GATES",
    "EFFECTS",
    "GATES",
    "Effect",
    "FeatureGates",
    "Gate",
    "GateState",
]
