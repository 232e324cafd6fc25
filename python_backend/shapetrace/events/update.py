"""The new events of a recording that is running.

A recording that is followed while it runs arrives as a sequence of updates. All of them together
are its trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shapetrace.events.fingerprint import CallFingerprints
from shapetrace.events.model import Coverage, Frame, ModuleCall, Op, Run, Variable


@dataclass(frozen=True, slots=True)
class Source:
    """A source file as it ran."""

    path: str
    digest: str | None
    """SHA-256 of its bytes; None where it has changed since, or there is no such file."""
    text: str | None
    """Decoded, with line ends as ``\\n``; None where the digest is."""


def _no_counts() -> Mapping[int, int]:
    return {}


def _no_fingerprints() -> Mapping[int, tuple[CallFingerprints, ...]]:
    return {}


def _no_variables() -> Mapping[int, Variable]:
    return {}


@dataclass(frozen=True, slots=True)
class Update:
    """The new part of a recording since the previous update."""

    run: Run | None = None
    """The whole run, when anything about it is new; its ``files`` are left to ``sources``."""
    sources: tuple[Source, ...] = ()
    frames: tuple[Frame, ...] = ()
    modules: tuple[ModuleCall, ...] = ()
    """New ones, and known ones (by id) that have changed."""
    ops: tuple[Op, ...] = ()
    """New ones, and known ones (by id) that have changed."""
    variables: Mapping[int, Variable] = field(default_factory=_no_variables)
    """By a number of their own; a number that is known replaces the former one."""
    counts: Mapping[int, int] = field(default_factory=_no_counts)
    """The new number of calls of ops and module calls that changed in nothing else; 0 where a
    kernel turned out to be another call's."""
    fingerprints: Mapping[int, tuple[CallFingerprints, ...]] = field(
        default_factory=_no_fingerprints
    )
    """All that is known of the values that calls returned, by the id of the op or module, where
    there is more of it."""
    coverage: tuple[Coverage, ...] | None = None
    """All of it, when it has changed."""
