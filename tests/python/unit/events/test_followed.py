from __future__ import annotations

import dataclasses
import json

import pytest

from shapetrace._errors import TraceFileError
from shapetrace.events import followed
from shapetrace.events.followed import (
    CallBegan,
    CallEnded,
    Caller,
    FollowedEvent,
    FollowedStatistics,
    FollowedValue,
    FollowingNote,
    NamedValue,
    PartChanged,
    VariableChanged,
    from_json,
    to_json,
)
from shapetrace.events.model import Container, DimensionRange, Other, Tensor

_VIDEO = FollowedValue(followed.ARRAY, Tensor((73, 3, 720, 720), "uint8", kind="ndarray"))
_FLOATS = FollowedValue(
    followed.TENSOR,
    Tensor((3, "s0", DimensionRange(1, 4)), "float32", "cuda:0"),
    FollowedStatistics(12, 10, -1.0, 2.0, 0.5, 1, 1),
)
_SAMPLE = FollowedValue(
    followed.CONTAINER, Container("dict", (_VIDEO.value, Other("3")), ("video", "index"), 9)
)

EVENTS: list[FollowedEvent] = [
    CallBegan(
        *(7, 3, 2, "Dataset.transform", "/data.py", 40),
        (Caller("__getitem__", "/data.py", 28),),
        (NamedValue("video", _VIDEO, True), NamedValue("sample", _SAMPLE)),
        process=12,
        thread="Thread-2",
    ),
    CallBegan(8, None, 0, "main", "/data.py", 1, (), (), "async generator"),
    VariableChanged(7, 2, "video", "/data.py", 45, _VIDEO, _FLOATS, ("shape", "dtype")),
    VariableChanged(
        *(7, 2, "sample", "/data.py", 46, None, _SAMPLE, ("new",)),
        parts=(PartChanged("['video']", None, _VIDEO, ("new",)),),
        more_parts=2,
    ),
    CallEnded(7, 2, "Dataset.transform", "/data.py", 47, "returned", _FLOATS, 0.0123),
    CallEnded(8, 0, "main", "/data.py", 9, "raised", None, 1.5, "ValueError", "coroutine"),
    FollowingNote("transform never assigns 'vidoe'", "transform", "/data.py", 40),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_come_back_from_json_as_they_were(event: FollowedEvent) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_keys_of_a_newer_version_survive(event: FollowedEvent) -> None:
    document = {**to_json(event), "colour": "red"}
    read = from_json(document)
    assert read == dataclasses.replace(event, extra={"colour": "red"})
    assert read is not None
    assert to_json(read) == document


def test_an_event_of_a_kind_not_known_here_is_nobodys() -> None:
    assert from_json({"event": "slept", "call": 1}) is None


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(TraceFileError, match="call should be a whole number, not text"):
        from_json({**to_json(EVENTS[0]), "call": "seven"})
