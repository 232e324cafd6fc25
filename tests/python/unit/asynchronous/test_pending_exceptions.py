"""What Python would drop of the program's exceptions is raised a moment later."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from shapetrace._asynchronous import is_asynchronous, suppressing
from shapetrace._pending_exceptions import Undropped
from tests.support.interrupting import SIGNAL


class Late(TimeoutError):
    """What the program's handler raises."""


class Interrupted:
    """Dropped while a signal comes."""

    def __del__(self) -> None:
        signal.raise_signal(SIGNAL)


class Failing:
    """Dropped with an error of its own."""

    def __del__(self) -> None:
        raise ValueError("of its own")


def raise_late(signum: int, frame: object) -> None:
    raise Late


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.signal(SIGNAL, raise_late)
    yield
    signal.signal(SIGNAL, before)


def test_what_comes_in_a_finalizer_is_raised_after_the_block() -> None:
    told = sys.unraisablehook
    done = []

    def work() -> None:
        Interrupted()
        done.append("the rest")

    with pytest.raises(Late), Undropped():
        work()
    assert done == ["the rest"]
    assert sys.unraisablehook == told


def test_other_errors_of_finalizers_are_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: told.append(type(it.exc_value)))
    with Undropped():
        Failing()
    assert told == [ValueError]


def test_one_that_is_on_its_way_goes_first() -> None:
    def work() -> None:
        Interrupted()
        signal.raise_signal(SIGNAL)

    with pytest.raises(Late) as first, Undropped():
        work()
    assert first.value.__context__ is None


def test_the_programs_own_is_not_suppressed() -> None:
    with suppressing(OSError):
        raise FileNotFoundError
    with pytest.raises(Late), suppressing(OSError):
        signal.raise_signal(SIGNAL)


def test_an_error_of_cythons_is_not_the_programs(tmp_path: Path) -> None:
    (tmp_path / "no.h5").write_bytes(b"nothing of HDF5's")
    with pytest.raises(OSError, match="file signature not found") as caught:
        h5py.File(tmp_path / "no.h5")
    assert not is_asynchronous(caught.value)
