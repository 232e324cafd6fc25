"""The JSON view of a comparison, for other programs; docs/diff.md says what is in it."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, Final

from shapetrace.comparing.comparison import (
    Apart,
    Aspect,
    Comparison,
    Difference,
    Event,
    Side,
    Throughout,
    largest,
)
from shapetrace.events.model import ModuleCall, Value
from shapetrace.events.schema import record_of
from shapetrace.views.difference_text import notes_of, where_text
from shapetrace.views.styled import StyledText, unstyled
from shapetrace.views.view_options import ViewOptions

FORMAT: Final = "shapetrace-diff/1"
"""Changes when a program that reads it would no longer understand it; new keys alone do not."""

_MOST_LARGEST: Final = 20


def render_differences_json(
    comparison: Comparison, names: tuple[str, str], _: ViewOptions | None = None
) -> StyledText:
    """The whole comparison, one difference on a line."""
    document = encode_comparison(comparison, names)
    listed = document.pop("differences")
    head = json.dumps(document, indent=1)[:-2]
    rows = ",\n".join(json.dumps(item, separators=(",", ":")) for item in listed)
    inside = f"\n{rows}\n" if rows else ""
    return unstyled(f'{head},\n "differences": [{inside}]\n}}\n')


def encode_comparison(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """The comparison as plain dicts and lists."""
    kinds = Counter(item.kind for item in comparison.differences)
    positions = {id(item): at for at, item in enumerate(comparison.differences)}
    first = comparison.first
    return {
        "format": FORMAT,
        "differ": comparison.differ,
        "a": _side(comparison.a, names[0]),
        "b": _side(comparison.b, names[1]),
        "compared": comparison.compared,
        "alike": comparison.alike,
        "counts": dict(kinds),
        "throughout": [_throughout(item) for item in comparison.throughout],
        "notes": notes_of(comparison),
        "first": None if first is None else positions[id(first)],
        "largest": [positions[id(item)] for item in largest(comparison, _MOST_LARGEST)],
        "differences": [_difference(item) for item in comparison.differences],
    }


def _side(side: Side, name: str) -> dict[str, Any]:
    run = side.run
    return {
        "file": name,
        "argv": list(run.argv),
        "torch": run.torch,
        "started": run.started,
        "rank": run.rank,
        "passes": run.passes,
        "modules": side.modules,
        "ops": side.ops,
        "kernels": side.kernels,
        "fingerprinted": side.fingerprinted,
        "unseen": list(side.unseen),
    }


def _throughout(item: Throughout) -> dict[str, Any]:
    return {"kind": item.kind, "a": item.a, "b": item.b, "places": item.places, "of": item.of}


def _difference(item: Difference) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "alike_before": item.alike_before,
        "where": where_text(item),
        "module_a": None if item.module_a is None else item.module_a.path,
        "module_b": None if item.module_b is None else item.module_b.path,
        "inside": item.inside,
        "aspects": [_aspect(aspect) for aspect in item.aspects],
        "a": _event(item.a),
        "b": _event(item.b),
    }


def _aspect(aspect: Aspect) -> dict[str, Any]:
    return {
        "kind": aspect.kind,
        "part": aspect.part,
        "position": aspect.position,
        "a": _value(aspect.a),
        "b": _value(aspect.b),
        "apart": None if aspect.apart is None else _apart(aspect.apart),
    }


def _apart(apart: Apart) -> dict[str, Any]:
    return {
        "amount": _number(apart.amount),
        "relative": _number(apart.relative),
        "tolerance": apart.tolerance,
        "where": apart.where,
        "first": apart.first,
        "last": apart.last,
        "new": apart.is_new,
    }


def _number(number: float) -> float | None:
    """JSON has no infinity: null is as far apart as can be."""
    return None if math.isinf(number) else number


def _event(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    what = "module" if isinstance(event, ModuleCall) else "op"
    return {"event": what, **record_of(type(event)).write(event)}


def _value(value: Value | None) -> dict[str, Any] | None:
    return None if value is None else record_of(type(value)).write(value)
