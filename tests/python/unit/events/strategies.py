"""Random traces: every field of every event, with what a newer version may have added."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

from hypothesis import strategies as st

from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import (
    Container,
    Coverage,
    Dimension,
    DimensionRange,
    ErrorInfo,
    Frame,
    JsonObject,
    ModuleCall,
    Op,
    Other,
    Run,
    Tensor,
    Trace,
    Value,
    Variable,
)

# Bytes that are no text come as U+DC80 to U+DCFF in the name of a file.
characters = st.characters(exclude_categories=["Cs"]) | st.characters(
    min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"]
)
texts = st.text(characters, max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
unknown_keys = st.dictionaries(texts.map("x-{}".format), json_values, max_size=2)


def _several(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=3).map(tuple)


_BY_HINT: dict[object, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(),
    float: finite,
    str: texts,
    tuple[float | int | str, ...]: _several(finite | st.integers() | texts),
    tuple[int, ...]: _several(st.integers()),
    tuple[str, ...]: _several(texts),
    tuple[int | str, ...]: _several(st.integers() | texts),
    JsonObject: unknown_keys,
    Mapping[str, str | None]: st.dictionaries(texts, st.none() | texts, max_size=3),
}


def _events(event_class: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(event_class)
    return st.builds(
        event_class,
        **{field.name: _of_hint(hints[field.name]) for field in dataclasses.fields(event_class)},
    )


def _of_hint(hint: Any) -> st.SearchStrategy[Any]:
    if hint not in _BY_HINT:
        # The only hints not entered below are those of an optional value.
        (present,) = [kind for kind in hint.__args__ if kind is not type(None)]
        _BY_HINT[hint] = st.none() | _BY_HINT[present]
    return _BY_HINT[hint]


_BY_HINT[tuple[Dimension, ...]] = _several(st.integers() | texts | _events(DimensionRange))
_BY_HINT[Tensor] = _events(Tensor)
_BY_HINT[tuple[Tensor, ...]] = _several(_BY_HINT[Tensor])
_BY_HINT[Value] = st.deferred(lambda: _BY_HINT[Tensor] | _BY_HINT[Other] | _BY_HINT[Container])
_BY_HINT[tuple[Value, ...]] = _several(_BY_HINT[Value])
_BY_HINT[tuple[Fingerprint, ...]] = _several(_events(Fingerprint))
_BY_HINT[tuple[CallFingerprints, ...]] = _several(_events(CallFingerprints))
_BY_HINT[ErrorInfo] = _events(ErrorInfo)
_BY_HINT[Other] = _events(Other)
_BY_HINT[Container] = _events(Container)
_BY_HINT[Run] = _events(Run)
_BY_HINT[tuple[ModuleCall, ...]] = _several(_events(ModuleCall))
_BY_HINT[tuple[Op, ...]] = _several(_events(Op))
_BY_HINT[tuple[Frame, ...]] = _several(_events(Frame))
_BY_HINT[tuple[Variable, ...]] = _several(_events(Variable))
_BY_HINT[tuple[Coverage, ...]] = _several(_events(Coverage))

traces: st.SearchStrategy[Trace] = _events(Trace)
