"""A damaged trace is refused in one line, or shown; whatever it says, nothing of ours fails."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from shapetrace.cli.main import main
from shapetrace.events import codec
from tests.python.unit.comparing.worlds import random_world
from tests.support.examples import some

_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**400, -0.5, 1e300, "", "x", "\x1b[31m", "\ud800", "a\nb"),
    *([], {}, [[]], [None], [-5], ["s0"], {"low": 5, "high": -2}, {"text": "x"}),
    *({"shape": [1], "dtype": "float32"}, {"container": "tuple", "items": []}),
)

_NUMBERS = (-1, 0, 1, 2, 5, 100, 10**6, 2**40)


def places(node: object, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything that is in a document."""
    found = [place] if place else []
    if isinstance(node, dict):
        for key, item in node.items():
            found += places(item, (*place, key))
    if isinstance(node, list):
        for position, item in enumerate(node):
            found += places(item, (*place, position))
    return found


def value_at(document: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        document = document[step]
    return document


def written(document: dict[str, Any]) -> str:
    """A document line by line, as a trace file is."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
            parts.append(f"{json.dumps(key)}:[\n{lines}]")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}")
    return "{" + ",\n".join(parts) + "}\n"


def damaged(text: str, chance: random.Random) -> bytes:
    """A trace that is cut off, has other bytes or lines, or says something else somewhere."""
    way = chance.randrange(10)
    if way == 0:
        return text[: chance.randrange(len(text))].encode()
    if way == 1:
        content = bytearray(text.encode())
        for _ in range(chance.choice((1, 3, 20))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        return bytes(content)
    if way == 2:
        lines = text.split("\n")
        lines.insert(chance.randrange(len(lines)), lines.pop(chance.randrange(len(lines))))
        return "\n".join(lines).encode()
    document = json.loads(text)
    everywhere = places(document)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.choice(everywhere)
        try:
            parent = value_at(document, place[:-1])
            old = parent[place[-1]]
        except (LookupError, TypeError):
            continue  # It is gone with what was changed before.
        if type(old) is int:
            parent[place[-1]] = chance.choice(_NUMBERS)
        elif way < 5:
            parent[place[-1]] = copy.deepcopy(chance.choice(_VALUES))
        elif way < 8:
            other = chance.choice([each for each in everywhere if each[-1] == place[-1]])
            parent[place[-1]] = copy.deepcopy(value_at(json.loads(text), other))
        elif isinstance(parent, list):
            parent.insert(place[-1], copy.deepcopy(chance.choice(parent)))
        else:
            del parent[place[-1]]
    return written(document).encode()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_damaged_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    codec.save(random_world(seed + 5, with_values=True, depth=2).trace(), "good.json")
    text = Path("good.json").read_text()
    codes: set[tuple[str, int]] = set()
    for _ in range(some(100)):
        content = damaged(text, chance)
        Path("damaged.json").write_bytes(content)
        view = chance.choice(("tree", "listing", "table", "markdown", "json"))
        form = chance.choice(("text", "json", "markdown"))
        files = chance.sample(("good.json", "damaged.json"), 2)
        for command in (
            ["show", "--view", view, "damaged.json"],
            ["diff", "--format", form, *files],
        ):
            code = main(command)
            shown = capsys.readouterr()
            codes.add((command[0], code))
            assert code in ((0, 2) if command[0] == "show" else (0, 1, 2)), content
            assert shown.err.count("\n") == (code == 2), shown.err
            assert bool(shown.out) == (code != 2), content
        assert Path("damaged.json").read_bytes() == content
    assert codes == {("show", 0), ("show", 2), ("diff", 0), ("diff", 1), ("diff", 2)}
