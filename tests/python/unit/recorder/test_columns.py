"""What the recorder writes and the server reads has the columns that are declared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shapetrace.events import row_columns
from shapetrace.events.rows import RowReader
from shapetrace.events.update import Update
from shapetrace.events.value_rows import read_value, write_value
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.rows import RowWriter
from shapetrace.recorder.session import Recorder
from tests.support.recorder import PRELUDE

PROGRAM = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x, scale=2):
        y = self.fc(x)
        parts = torch.split(y, 2, dim=1)
        return {"y": y * scale, "parts": parts, "scale": "double"}


net = Net()
for size in (2, 2, 5):
    out = net(torch.ones(size, 3))
torch.tensor([[1, 2], [3, 4]]).t()
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError:
    pass
"""

Row = dict[str, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[list[Any]]]]:
    """What a recorder writes of a program at once, and what of it changed later, through JSON."""
    path = tmp_path_factory.mktemp("columns") / "program.py"
    path.write_text(PRELUDE + PROGRAM, encoding="utf-8")
    recorder = Recorder(RecorderOptions(fingerprint=True), None)
    writer = RowWriter(recorder)
    names = {"__name__": "program", "__file__": str(path)}
    code = compile(path.read_bytes(), str(path), "exec")
    recorder.start(None)
    messages = []
    try:
        for _ in range(2):
            exec(code, names)
            messages += [writer.write(final=True), writer.write_changes()]
    finally:
        recorder.stop()
    recorder.note("not seen", "a place")
    messages.append(writer.write_changes())
    found: list[dict[str, list[list[Any]]]] = json.loads(json.dumps(list(filter(None, messages))))
    return found


def by_name(message: dict[str, list[list[Any]]], kind: str) -> list[Row]:
    names = row_columns.ROWS[kind].names
    return [dict(zip(names, row, strict=True)) for row in message.get(kind, ())]


def test_every_row_has_the_columns_of_its_kind(
    written: list[dict[str, list[list[Any]]]],
) -> None:
    kinds = {kind for message in written for kind in message}
    assert kinds == {*row_columns.ROWS, "run"}
    for message in written:
        assert {*message.get("run", row_columns.RUN)} == {*row_columns.RUN}
        for kind in message.keys() & row_columns.ROWS.keys():
            for row in message[kind]:
                row_columns.ROWS[kind].check_closely(row)


OF_ITSELF = {
    "sources": "path digest text",
    "frames": "file line function column end_line end_column",
    "modules": "parent path class_name detail call count result parameters note direct",
    "ops": "name label form module direct result count level parent thread",
    "variables": "name file line column end_line end_column function module kind",
    "coverage": "reason where count",
}
"""The columns whose value an event has as it is, in a field of that name."""


def test_what_is_read_of_a_column_is_what_its_name_says(
    written: list[dict[str, list[list[Any]]]],
) -> None:
    reader = RowReader()
    for message in written:
        events = events_of(reader.read(message))
        for kind, names in OF_ITSELF.items():
            for row, event in zip(by_name(message, kind), events[kind], strict=True):
                assert {name: getattr(event, name) for name in names.split()} == {
                    name: row[name] for name in names.split()
                }


def events_of(update: Update) -> dict[str, tuple[Any, ...]]:
    return {
        "sources": update.sources,
        "frames": update.frames,
        "modules": update.modules,
        "ops": update.ops,
        "variables": tuple(update.variables.values()),
        "coverage": update.coverage or (),
    }


def test_a_value_is_written_again_as_the_recorder_wrote_it(
    written: list[dict[str, list[list[Any]]]],
) -> None:
    rows = [row["value"] for message in written for row in by_name(message, "values")]
    for mark in ("[0, ", "[1, ", "[2, "):
        assert mark in json.dumps(rows)
    for row in rows:
        assert write_value(read_value(row)) == row
