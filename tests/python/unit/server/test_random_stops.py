"""Random programs: at each stop, what is told without a mark is what was stored in this call."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from random import Random
from types import FrameType

import pytest
import torch

from shapetrace.server.features.inlay_hints import BEFORE, Hint
from tests.python.unit.server.random_stops import Writer
from tests.python.unit.server.stops import Stops
from tests.support.examples import some

CALLS = 14
_CLAIM = re.compile(r"(?:([a-z,]+) )?f32\[(\d+)(?:\.\.(\d+))?\]")
"""Names, where there are any, and the size that they have, which may be a range."""


class _Judge(Stops):
    """Runs a program, and compares what is shown with what it has noted."""

    def __init__(self, text: str, path: Path, seed: int) -> None:
        super().__init__(text, path)
        self._random = Random(seed)
        self._noted: dict[int, dict[int, dict[str, int]]] = {}
        self._sizes = 0
        self.wrong: list[str] = []
        self.right = 0
        self.marked = 0
        self.names |= {
            "CALLS": CALLS,
            "size": self._size,
            "chance": lambda: self._random.random() < 0.5,
            "may_fail": self._may_fail,
            "note": self._note,
        }
        self.names["begin"] = self._begin

    def _size(self) -> int:
        """Sizes repeat for a while, and are others then."""
        self._sizes += 1
        if self._random.random() < 0.85:
            return 20
        return 20 + self._random.randrange(6)

    def _may_fail(self) -> None:
        if self._random.random() < 0.3:
            failed: type[Exception] = self.names["Failed"]
            raise failed

    def _begin(self, line: int, **values: torch.Tensor) -> None:
        self._noted[id(sys._getframe(1))] = {line: _sizes(values)}

    def _note(self, line: int, **values: torch.Tensor) -> None:
        self._noted.setdefault(id(sys._getframe(1)), {})[line] = _sizes(values)

    def stop(self, outwards: int = 0, shown: int = 0) -> int:
        """Stop now and then."""
        if self._random.random() < 0.4:
            return 0
        return super().stop_at(sys._getframe(1), outwards, shown)

    def look(self, frame: FrameType, hints: list[Hint]) -> None:
        """Compare the hints of the function that is looked at."""
        noted = self._noted.get(id(frame), {})
        for hint in hints:
            line = hint.line + 1
            source = self.lines[hint.line]
            if "=" not in source and "def " not in source and "for " not in source:
                continue
            if hint.text.startswith(BEFORE):
                self.marked += 1
            elif "del" in self.lines[hint.line + 1]:
                continue
            elif _is_right(hint.text, noted.get(line, {})):
                self.right += 1
            else:
                text = f"{line}: {source.strip()} «{hint.text}» but {noted.get(line)}"
                self.wrong.append(f"at line {frame.f_lineno}: {text}")


def _sizes(values: dict[str, torch.Tensor]) -> dict[str, int]:
    return {name: len(value) for name, value in values.items()}


def _is_right(text: str, noted: dict[str, int]) -> bool:
    """Whether all that a hint claims is what was noted; of a range, that it may have been."""
    claims = _CLAIM.findall(text)
    for names, low, high in claims:
        sizes = [noted.get(name) for name in names.split(",")] if names else noted.values()
        if not all(size is not None and int(low) <= size <= int(high or low) for size in sizes):
            return False
    return bool(claims) and bool(noted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(some(48)))
def test_nothing_wrong_is_told(seed: int, tmp_path: Path) -> None:
    text = Writer(seed).program()
    judge = _Judge(text, tmp_path / "program.py", seed)
    judge.run()
    assert judge.wrong == [], "\n".join(f"{n} {line}" for n, line in enumerate(text.split("\n"), 2))
