"""What the programs of these tests share: small rounds, and telling what was gathered."""

from __future__ import annotations

import json
from typing import Any

from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks.gathering import Gathering


def a_round(number: int, rank: int, *values: Any, name: str = "x", mode: Any = "train") -> Round:
    values = values or (f"{rank}:{number}",)
    return Round(number, rank, mode, {name: ResultEntry([number] * len(values), [], list(values))})


def tell(scenario: str, gathering: Gathering, gathered: list[dict[str, ResultEntry]]) -> None:
    """Print what came out, as one line that does not mix with those of other ranks."""
    blocks = [
        {
            name: list(zip(entry.ranks, entry.values, strict=True))
            for name, entry in sorted(entries.items())
        }
        for entries in gathered
    ]
    line = {
        "scenario": scenario,
        "rank": gathering.rank,
        "gathered": blocks,
        "problems": gathering.problems,
    }
    print("\n" + json.dumps(line, default=lambda value: value.tolist()), flush=True)
