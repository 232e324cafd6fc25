"""Running an expression in a frame of the program that stands still, as if the program had.

What it calls is recorded, wherever the frame is, and whatever the recording was doing there. But no
line of the program claims it: it stands in a file of its own, and apart from what the program has
called from that frame, so that nothing is taken for reached. A module called in it is a part of the
module call that the frame runs in; it is no forward pass of the program's.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from traceback import walk_tb
from types import CellType, CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from shapetrace.recorder.callsite import EVALUATION, FORWARD, PROGRAM, Activation
from shapetrace.recorder.records import ModuleVariant
from shapetrace.recorder.standing import module_call_of

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.thread_state import ThreadState

NAME: Final = "<evaluated>"
"""What the function is called that an evaluated expression stands in."""


class CannotEvaluate(Exception):
    """Nothing was run, for the reason that it says."""


@dataclass(slots=True)
class Evaluation:
    """An expression that was evaluated in a place, with what it has called."""

    code: CodeType
    module: ModuleVariant | None
    """The module call that it is a part of."""
    callees: dict[int, Activation]
    """The expression itself, once it has called something."""


def evaluate(recorder: Recorder, frame: FrameType, text: str) -> Any:
    """What an expression is worth in a frame of this thread; raises what it raises."""
    recorder.kinds.mark(RUN, EVALUATION)
    state, evaluation, undo = _begin(recorder, frame, text)
    try:
        return _run(_function(evaluation.code, frame))
    finally:
        state.evaluation = None
        undo()


def _run(function: Callable[[], Any]) -> Any:
    """Where this runs on a stack, nothing of the program's own is looked for further out."""
    return function()


RUN: Final = _run.__code__


def origin_of(recorder: Recorder, error: BaseException) -> tuple[str, int] | None:
    """The file and line of the innermost function of the program's that an error came from."""
    found: tuple[str, int] | None = None
    for frame, line in walk_tb(error.__traceback__):
        code = frame.f_code
        is_own = recorder.kinds.of(code) in (PROGRAM, FORWARD) and not recorder.kinds.is_torch(code)
        if is_own and not code.co_filename.startswith("<"):
            found = (os.path.abspath(code.co_filename), line)
    return found


def _begin(
    recorder: Recorder, frame: FrameType, text: str
) -> tuple[ThreadState, Evaluation, Callable[[], None]]:
    """Have this thread watched; the last is how to leave it as it was."""
    if not recorder.active:
        raise CannotEvaluate("nothing is being recorded any more")
    known = recorder.states.get(get_ident())
    module = module_call_of(recorder, known, frame)
    reason = None if module is None else module.note
    if reason is not None or (known is not None and known.aside):
        raise CannotEvaluate(f"nothing is recorded in a {reason or 'region that is left out'}")
    code = compile_expression(text, frame)
    if known is not None and known.entered:
        state, undo = known, recorder.modes_again() or _nothing
    else:
        state = recorder.adopt_thread(known)
        undo = partial(_unwatch, recorder, state, known is not None)
    key = (text, frame.f_code, frame.f_lineno, None if module is None else module.id)
    state.evaluation = state.evaluations.setdefault(key, Evaluation(code, module, {}))
    return state, state.evaluation, undo


def _unwatch(recorder: Recorder, state: ThreadState, was_known: bool) -> None:
    """Leave a thread that was not being watched."""
    if was_known:
        recorder.leave_modes(state)  # It may be in the middle of a pass that is not looked at.
    else:
        recorder.release_thread(state, over=True)


def _nothing() -> None:
    """Where a thread is being watched anyway."""


def _function(code: CodeType, frame: FrameType) -> Callable[[], Any]:
    """An expression as a function without arguments, for which all names are global ones.

    The debugger, which has us run in the frame, has read its variables just before.
    """
    names = {**frame.f_globals, **frame.f_locals}
    cells = tuple(CellType(names.get(name)) for name in code.co_freevars)
    return FunctionType(code, names, NAME, None, cells)


def compile_expression(text: str, frame: FrameType) -> CodeType:
    """An expression's code; names that begin with two underscores are the frame's class's own."""
    place = f"<evaluated at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}>"
    # In a class of that name, the compiler knows what such names are.
    tree = ast.parse(f"class {_class_around(frame.f_code.co_qualname)}: lambda: 0", place)
    holder = next(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))
    holder.body = _Supers(frame.f_code).visit(_parse(text, place))
    ast.fix_missing_locations(tree)
    code = compile(tree, place, "exec", dont_inherit=True)
    for _ in range(2):
        code = next(each for each in code.co_consts if isinstance(each, CodeType))
    return code.replace(co_name=NAME, co_qualname=NAME)


def _parse(text: str, place: str) -> ast.expr:
    text = text.strip()
    try:
        return ast.parse(text, place, "eval").body
    except SyntaxError:
        if "\n" not in text:
            raise
        return ast.parse(f"({text}\n)", place, "eval").body


class _Supers(ast.NodeTransformer):
    """Says to ``super()`` what it would know by itself in the function that stands still."""

    def __init__(self, code: CodeType) -> None:
        self._names = ("__class__", *code.co_varnames[:1])
        self._is_method = "__class__" in code.co_freevars and code.co_argcount > 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Fill in a call without arguments."""
        self.generic_visit(node)
        if self._is_method and isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = node.args or [ast.Name(name, ast.Load()) for name in self._names]
        return node


def _class_around(name: str) -> str:
    """The class in whose text a function of this qualified name stands; ``_`` for none."""
    for part in reversed(name.split(".<locals>.")):
        owner, dot, _ = part.rpartition(".")
        if dot:
            return owner.rpartition(".")[2]
    return "_"
