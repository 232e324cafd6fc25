"""Calls as they come, while the program runs, and what modules returned: one line for each.

MHA  (f32[2,5,6])                                                              train.py:9
│ query (Linear)  (f32[2,5,6])                                                  mha.py:30
│ │ linear(f32[2,5,6], f32[6,6], f32[6]) -> f32[2,5,6]                          mha.py:30
│ └ query (Linear) -> f32[2,5,6]

A call that repeats another is not written again: how many there were is known at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapetrace.events.model import ModuleCall, Op
from shapetrace.events.update import Update
from shapetrace.views.call_text import error_text, filled_form, module_inputs, module_title, outcome
from shapetrace.views.place_text import short_path
from shapetrace.views.styled import Line, Span, StyledText, cut_line, join_right
from shapetrace.views.view_options import ViewOptions

_GUIDE = "│ "
_RETURN = "└ "
_DEEPEST = 12
"""Levels that are still set further to the right."""


class LiveView:
    """Writes down what updates bring, in the order in which it ran."""

    def __init__(self, level: str = "torch", options: ViewOptions | None = None) -> None:
        self._level = level
        self._options = options or ViewOptions()
        self._parents: dict[int, int | None] = {}
        """For each module call that was begun, what it was made in."""
        self._ended: set[int] = set()
        self._written: set[int] = set()

    def text(self, updates: Iterable[Update]) -> StyledText:
        """The lines for what has come."""
        return StyledText(tuple(line for update in updates for line in self._lines(update)))

    def _lines(self, update: Update) -> Iterator[Line]:
        returned: list[ModuleCall] = []
        calls: list[Op | ModuleCall] = [*update.modules, *update.ops]
        # What was called first has the smaller number; what returned did so after what is in it.
        for call in sorted(calls, key=lambda each: each.id):
            around = call.module if isinstance(call, Op) else call.parent
            above = set(self._above(around))
            for module in [each for each in reversed(returned) if each.id not in above]:
                returned.remove(module)
                yield self._returned(module)
            if isinstance(call, Op):
                if call.id not in self._written and self._is_shown(call):
                    self._written.add(call.id)
                    yield self._op(call, len(above))
                continue
            if call.id not in self._parents:
                self._parents[call.id] = call.parent
                yield self._module(call, len(above))
            if call.id not in self._ended and (call.outputs or call.result or call.error):
                self._ended.add(call.id)
                returned.append(call)
        for module in reversed(returned):
            yield self._returned(module)

    def _is_shown(self, op: Op) -> bool:
        """Whether an op is of the level that is asked for, or failed before it came to that."""
        return op.level == self._level or (op.level == "torch" and op.error is not None)

    def _above(self, module: int | None) -> Iterator[int]:
        while module is not None:
            yield module
            module = self._parents.get(module)

    def _module(self, call: ModuleCall, depth: int) -> Line:
        spans: list[Span] = [(module_title(call), "class"), (f"  ({module_inputs(call)})", "shape")]
        return self._line(depth, spans, call)

    def _returned(self, call: ModuleCall) -> Line:
        depth = sum(1 for _ in self._above(call.id)) - 1
        result: Span = (error_text(call), "error") if call.error else (outcome(call), "shape")
        title = module_title(call)
        spans: list[Span] = [(_RETURN, "guide"), (title, "class"), (" -> ", "note"), result]
        return self._line(depth, spans, None)

    def _op(self, op: Op, depth: int) -> Line:
        result: Span = (error_text(op), "error") if op.error else (outcome(op), "shape")
        return self._line(depth, [(filled_form(op), "call"), (" -> ", "note"), result], op)

    def _line(self, depth: int, spans: list[Span], call: Op | ModuleCall | None) -> Line:
        guides: Span = (_GUIDE * min(depth, _DEEPEST), "guide")
        left = (guides, *spans) if guides[0] else tuple(spans)
        width = self._options.columns
        if call is None or call.file is None:
            return cut_line(left, width)
        place: Span = (f"{short_path(call.file, self._options.base)}:{call.line}", "location")
        return join_right(left, (place,), width) or cut_line(left, width)
