from __future__ import annotations

import dataclasses
import gc
import json
import math
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from shapetrace._errors import TraceFileError
from shapetrace.events import codec, fingerprint, model
from tests.python.unit.events.strategies import traces

CONTRACT = Path(__file__).parents[3] / "contract"
SAMPLES = sorted(CONTRACT.glob("trace_*.json"))
REFUSED: list[dict[str, Any]] = json.loads((CONTRACT / "refused_traces.json").read_text("utf-8"))
EVENT_CLASSES = [
    value
    for value in (*vars(model).values(), fingerprint.Fingerprint)
    if dataclasses.is_dataclass(value) and isinstance(value, type)
]

RUN = model.Run(
    argv=("train.py",),
    python="3.11.7",
    torch="2.13.0",
    pid=1,
    rank=None,
    world_size=None,
    started="2026-03-01T09:30:00Z",
    files={},
)
TRACE = model.Trace(RUN, coverage=(model.Coverage("asleep", "everywhere", 3),))


def read_sample(name: str) -> Any:
    return json.loads((CONTRACT / f"trace_{name}.json").read_text("utf-8"))


def refusal(path: Path | str) -> str:
    with pytest.raises(TraceFileError) as caught:
        codec.load(path)
    message = str(caught.value)
    assert message.isprintable(), "the message must be one line"
    assert caught.value.__cause__ is None
    return message.replace(str(path), "FILE")


def save_refusal(trace: model.Trace, path: Path) -> str:
    with pytest.raises(TraceFileError) as caught:
        codec.save(trace, path)
    return str(caught.value).replace(str(path), "FILE")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_loses_nothing(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    trace = codec.load(path)
    assert codec.encode(trace) == document
    assert codec.loads(codec.dumps(trace)) == trace


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces)
def test_any_trace_survives(trace: model.Trace) -> None:
    text = codec.dumps(trace)
    assert codec.loads(text) == trace
    assert codec.decode(codec.encode(trace)) == trace
    assert json.loads(text) == codec.encode(trace)


def test_one_event_stands_on_a_line() -> None:
    assert codec.dumps(TRACE) == (
        '{"format":"shapetrace/1",\n'
        '"run":{"argv":["train.py"],"python":"3.11.7","torch":"2.13.0","pid":1,"rank":null,'
        '"world_size":null,"started":"2026-03-01T09:30:00Z","files":{}},\n'
        '"modules":[],\n'
        '"ops":[],\n'
        '"frames":[],\n'
        '"variables":[],\n'
        '"coverage":[\n'
        '{"reason":"asleep","where":"everywhere","count":3}]}\n'
    )


def test_the_sample_of_everything_has_every_key() -> None:
    """So that every field of every event is written and read by the tests of the samples."""
    seen = {event_class: set[str]() for event_class in EVENT_CLASSES}
    pending: list[Any] = [codec.load(CONTRACT / "trace_everything.json")]
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(value)
        elif type(value) in seen:
            assert not value.extra
            for field in dataclasses.fields(value):
                content = getattr(value, field.name)
                pending.append(content)
                if content not in (None, (), field.default):
                    seen[type(value)].add(field.name)
    for event_class, names in seen.items():
        missing = {field.name for field in dataclasses.fields(event_class)} - names - {"extra"}
        assert not missing, f"trace_everything.json shows no {event_class.__name__} with {missing}"


def test_unknown_keys_are_kept_at_every_level() -> None:
    trace = codec.decode(read_sample("newer_minor"))
    op = trace.ops[0]
    tensor = op.inputs[0]
    assert tensor.shape is not None
    size = tensor.shape[0]
    assert isinstance(size, model.DimensionRange)
    assert op.error is None
    assert trace.ops[1].error is not None
    assert [
        trace.extra,
        trace.run.extra,
        trace.frames[0].extra,
        op.extra,
        trace.ops[1].error.extra,
        tensor.extra,
        size.extra,
    ] == [
        {"summary": {"nested": [1, 2.5, None, True, "x"]}},
        {"host": "workstation"},
        {"seconds": 0.25},
        {"seconds": 0.25},
        {"notes": ["seen in a retry"]},
        {"memory": {"bytes": 24}},
        {"typical": 2},
    ]


def test_an_unknown_key_never_replaces_a_known_one() -> None:
    trace = dataclasses.replace(TRACE, extra={"format": "other/1", "ops": 5, "mine": 1})
    document = json.loads(codec.dumps(trace))
    assert (document["format"], document["ops"], document["mine"]) == ("shapetrace/1", [], 1)
    assert codec.encode(trace) == document


def test_keys_that_the_design_lists_are_always_there() -> None:
    tensor = model.Tensor((2,), "float32")
    trace = dataclasses.replace(
        TRACE, variables=(model.Variable("x", "a.py", 1, 0, 1, 1, "f", None, tensor),)
    )
    document: Any = codec.encode(trace)
    assert document["variables"][0]["tensor"] == {
        "shape": [2],
        "dtype": "float32",
        "device": "cpu",
        "requires_grad": False,
        "layout": "strided",
        "strides": None,
        "name": None,
        "kind": "Tensor",
        "placements": None,
    }
    assert "kind" not in document["variables"][0]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case["name"]))
def test_a_bad_document_is_refused_in_one_line(case: dict[str, Any]) -> None:
    with pytest.raises(TraceFileError) as caught:
        codec.decode(case["document"])
    assert str(caught.value) == case["message"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "run.json") == (
        "there is no file FILE; name a file that `shapetrace run -o FILE` or `trace.save(FILE)` "
        "wrote"
    )
    assert refusal(tmp_path).startswith("FILE is a folder; name a file")


def test_a_path_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match=r"cannot read '.*\\x00': .*; choose another place"):
        codec.load(f"{tmp_path}/\0")
    with pytest.raises(TraceFileError, match=r"cannot write '.*\\x00': .*; choose another place"):
        codec.save(TRACE, f"{tmp_path}/\0")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "FILE: this file is empty; record it again"),
        (b" \n", "FILE: this file is empty; record it again"),
        (b"\x89PNG\r\n\x1a\n", "FILE: this is not a Shapetrace trace; name a file that"),
        (b"import torch\n", "FILE: this is not a Shapetrace trace; name a file that"),
        (b"3", "FILE: this is not a Shapetrace trace; name a file that"),
        (
            b'{"a":' + b"[" * 100_000,
            "FILE: this file is damaged: its values are nested too deeply; record",
        ),
        (b'{"format":"shapetrace/1","x":NaN}', "FILE: this is not a Shapetrace trace;"),
        (b'{"format":"shapetrace/1","x":1e999}', "FILE: this is not a Shapetrace trace;"),
        (b'{"format":"shapetrace/1","x":' + b"9" * 5000 + b"}", "FILE: this is not a Shapetrace"),
        (b'{"format":"shapetrace/1",\n"run"', "FILE: this file is cut short or damaged at line 2;"),
        (b'{"format":"shape\ntrace/9"}', "FILE: this file is cut short or damaged at line 1;"),
        (b'{"format":"shapetrace/\\n9"}', "FILE: this was written by a newer Shapetrace (format '"),
        (b'{"format":"shapetrace/12"}', "FILE: this was written by a newer Shapetrace (format sha"),
    ],
)
def test_a_file_of_something_else(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    assert refusal(path).startswith(problem)


def test_a_file_cut_short_anywhere(tmp_path: Path) -> None:
    content = codec.dumps(codec.decode(read_sample("ordinary"))).encode().rstrip()
    path = tmp_path / "run.json"
    for length in range(1, len(content), 97):
        path.write_bytes(content[:length])
        assert refusal(path).startswith("FILE: this file is cut short or damaged at line ")


def test_reading_leaves_the_garbage_collector_as_it_was() -> None:
    text = codec.dumps(TRACE)
    assert gc.isenabled()
    codec.loads(text)
    assert gc.isenabled()
    gc.disable()
    try:
        codec.loads(text)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_file_name_of_any_bytes(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode("модель-\udcff".encode("utf-8", "surrogateescape"))
    codec.save(TRACE, path)
    assert codec.load(path) == TRACE
    missing = path.with_name(path.name + "-2")
    assert refusal(missing).startswith("there is no file '")


def test_an_older_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("x" * 100_000)
    codec.save(TRACE, path)
    assert codec.load(path) == TRACE
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    before = os.umask(0o027)
    try:
        codec.save(TRACE, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_an_older_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.touch()
    path.chmod(0o600)
    codec.save(TRACE, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    link = tmp_path / "link.json"
    link.symlink_to(target)
    for _ in range(2):
        codec.save(TRACE, link)
        assert link.is_symlink()
        assert codec.load(target) == TRACE


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(path.read_text()))
    reader.start()
    codec.save(TRACE, path)
    reader.join()
    assert received == [codec.dumps(TRACE)]
    assert path.is_fifo()


class InterruptedWhenRead(Mapping[str, Any]):
    """Unknown keys whose reading Ctrl-C ends."""

    def __getitem__(self, key: str) -> Any:
        raise KeyboardInterrupt

    def __iter__(self) -> Iterator[str]:
        raise KeyboardInterrupt

    def __len__(self) -> int:
        return 1


def test_an_interrupted_save_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("older")
    with pytest.raises(KeyboardInterrupt):
        codec.save(dataclasses.replace(TRACE, extra=InterruptedWhenRead()), path)
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["run.json"]


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1, 2}, b"bytes"])
def test_what_json_cannot_hold_changes_nothing(tmp_path: Path, value: object) -> None:
    path = tmp_path / "run.json"
    path.write_text("older")
    trace = dataclasses.replace(TRACE, extra={"value": value})
    assert save_refusal(trace, path).startswith(
        "cannot write FILE: this trace has a value that JSON cannot express: "
    )
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["run.json"]


def test_values_nested_too_deeply(tmp_path: Path) -> None:
    value: model.Value = model.Other("None")
    for _ in range(5000):
        value = model.Container("list", (value,))
    trace = dataclasses.replace(
        TRACE, variables=(model.Variable("x", "a.py", 1, 0, 1, 1, "f", None, value),)
    )
    assert save_refusal(trace, tmp_path / "run.json") == (
        "cannot write FILE: the values of this trace are nested too deeply for JSON"
    )
    with pytest.raises(TraceFileError, match="nested too deeply"):
        codec.encode(trace)
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none" / "run.json", tmp_path / "file" / "run.json"):
        assert save_refusal(TRACE, path) == (
            "cannot write FILE: its folder does not exist; make it first, or choose another place"
        )
    assert save_refusal(TRACE, tmp_path) == "cannot write FILE: it is a folder; name a file in it"
    assert save_refusal(TRACE, tmp_path / ("x" * 300)) == (
        "cannot write FILE: file name too long; choose another place"
    )


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (PermissionError(13, "Permission denied"), "it is not permitted there"),
        (OSError(28, "No space left on device"), "no space left on device"),
    ],
)
def test_a_disk_that_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, advice: str
) -> None:
    def refuse(descriptor: int) -> None:
        raise error

    path = tmp_path / "run.json"
    path.write_text("older")
    monkeypatch.setattr(os, "fsync", refuse)
    assert save_refusal(TRACE, path) == f"cannot write FILE: {advice}; choose another place"
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["run.json"]
