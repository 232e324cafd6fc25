"""What TorchDynamo must not see: our frames, what stands in for torch's own, and code with hooks.

Dynamo compiles each Python frame that begins while its frame evaluation is on in a thread, and
guards on what it found. So a frame of ours would be compiled as well, and what was compiled with a
stand-in of ours in place would be compiled again without it. A part of ours that has put something
where Dynamo finds it is a bystander, which is notified

- of each *region*: what a thread runs from the call of something compiled until that returns,
- when torch compiles or exports, on whichever thread: the program's own is to be back meanwhile.

Our files are among those that Dynamo skips as long as there is a bystander, as torch's are.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from threading import get_ident
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Final

from shapetrace._asynchronous import clean, surely
from shapetrace._exception_table import (
    catching_everywhere,
    hear_of_codes,
    leaving_surely,
)
from shapetrace._frames import OWN_DIRECTORY, is_own_file
from shapetrace._locks import holding, module_lock
from shapetrace.recorder.arrival import when_imported

_SKIPPED: Final = OWN_DIRECTORY.replace(os.sep, "/")
_EVALUATION: Final = "torch._dynamo.eval_frame"
_CONVERTING: Final = "torch._dynamo.convert_frame"
_FUNCTIONS: Final = "torch._dynamo.variables.functions"
_EXPORTING: Final = "torch.export._trace"
TO_SEE_IT_ALL: Final = "set TORCH_COMPILE_DISABLE=1 to switch compiling off"
"""The advice to give where recording was suspended."""
_WRAPPERS: Final = ("compile_wrapper", "_fn")
"""The names of the functions that Dynamo puts in the place of compiled ones."""


class Bystander:
    """An observer: a part of ours that puts something where Dynamo finds it. It must not raise."""

    def enter(self, thread: int) -> None:
        """A thread begins to run something compiled."""

    def leave(self, thread: int) -> None:
        """It has returned."""

    def show(self) -> None:
        """Put back what the program has, until `hide_originals` is called."""

    def hide(self) -> None:
        """Put ours in its place again."""

    def original(self, value: object) -> object:
        """The original of a stand-in; the value itself if it is no stand-in of ours."""
        return value


_LOCK: Final = module_lock()
_bystanders: Final[list[Bystander]] = []
_owners: Final[dict[int, int]] = {}
"""The threads that are in a region, and what will end that: a call, or a context."""
REGIONS: Final[Collection[int]] = _owners.keys()
"""The threads that run something compiled, for those who ask at every call."""
_undo: Final[list[Callable[[], None]]] = []
_skipped: Final[set[str]] = set()
"""Modules of ours whose code Dynamo skips."""
_showing = 0
"""How many want to see what the program has."""
_begun = 0
"""How many regions there have been."""


def in_region() -> bool:
    """Return whether this thread runs something compiled."""
    return get_ident() in _owners


def regions_begun() -> int:
    """How often compiled code was called while there was an observer."""
    return _begun


@leaving_surely
def stand_by(bystander: Bystander) -> Callable[[], None]:
    """Report what Dynamo does to an observer from now on; return a function that ends this."""
    with holding(_LOCK):
        if bystander in _bystanders:
            return functools.partial(stand_aside, bystander)
        _bystanders.append(bystander)
        if len(_bystanders) == 1:
            when_imported(_EVALUATION, _follow_regions, _undo)
            when_imported(_CONVERTING, _follow_code, _undo)
            when_imported(_FUNCTIONS, _follow_inlined_code, _undo)
            when_imported(_EXPORTING, _follow_exports, _undo)
        elif _EVALUATION in sys.modules:
            _skip_our_code(sys.modules[_EVALUATION])
        for thread in list(_owners):
            bystander.enter(thread)
        if _showing:
            bystander.show()
    return functools.partial(stand_aside, bystander)


@leaving_surely
def stand_aside(bystander: Bystander) -> None:
    """Remove an observer, if it is there."""
    global _showing
    with holding(_LOCK):
        if bystander in _bystanders:
            _bystanders.remove(bystander)
        if not _bystanders:
            while _undo:  # again, where that was left halfway
                _undo[-1]()
                del _undo[-1]
            _owners.clear()
            _showing = 0


@leaving_surely
def show_originals(*_: object) -> None:
    """Have all observers put back what the program has, until `hide_originals`."""
    global _showing
    with holding(_LOCK):
        _showing += 1
        if _showing == 1:
            for each in list(_bystanders):
                each.show()


@leaving_surely
def hide_originals(*_: object) -> None:
    """As often as they were shown: have ours in their place again."""
    global _showing
    with holding(_LOCK):
        if _showing == 0:
            return  # it began before there was an observer
        _showing -= 1
        if _showing == 0:
            for each in reversed(_bystanders):
                each.hide()


@leaving_surely
def _follow_regions() -> None:
    """Dynamo has been imported."""
    with holding(_LOCK):
        evaluation: Any = sys.modules.get(_EVALUATION)
        if evaluation is None or not _bystanders:
            return
        _forget_stand_ins()
        _skip_our_code(evaluation)
        _skip_our_files()
        _follow_compilations()
        if hasattr(evaluation, "_maybe_set_eval_frame"):
            _replace(evaluation, "_maybe_set_eval_frame", _make_set)
            if hasattr(evaluation, "set_eval_frame"):
                _replace(evaluation, "set_eval_frame", _make_begin)
        elif hasattr(evaluation, "set_eval_frame"):  # torch 2.5 and before
            _replace(evaluation, "set_eval_frame", _make_set)
        for name in ("_TorchDynamoContext", "DisableContext"):
            if "__call__" in vars(getattr(evaluation, name, object)):
                _replace(getattr(evaluation, name), "__call__", _make_compile)
        for thread, owner in _owners_now(evaluation.__file__):
            _enter(thread, owner)


def _make_begin(original: Any) -> Any:
    @catching_everywhere
    def set_eval_frame(callback: Any) -> Any:
        # A compiled function begins with this, before it notes which dispatch keys are on.
        try:
            thread = get_ident()
            if callback is None and thread not in _owners:
                frame = sys._getframe(1)
                if frame.f_code.co_name == "compile_wrapper":
                    return _set_in_region(original, callback, thread, id(frame))
            return original(callback)
        except BaseException as error:
            clean(error)
            raise

    return set_eval_frame


def _make_set(original: Any) -> Any:
    @catching_everywhere
    def set_eval_frame(callback: Any) -> Any:
        try:
            thread = get_ident()
            owner = _owners.get(thread)
            if callback is not None:
                if owner is None:
                    return _set_in_region(original, callback, thread, _owner_of(sys._getframe(1)))
            elif owner is not None and owner == _owner_of(sys._getframe(1)):
                try:
                    return original(callback)
                finally:
                    surely(_leave, thread)
            return original(callback)
        except BaseException as error:
            clean(error)
            raise

    return set_eval_frame


def _set_in_region(original: Any, callback: Any, thread: int, owner: int) -> Any:
    """Begin a region; there is none where the program has had something raised meanwhile."""
    try:
        _enter(thread, owner)
        return original(callback)
    except BaseException:
        surely(_leave, thread)
        raise


def _make_compile(original: Any) -> Any:
    @functools.wraps(original)
    def __call__(self: Any, fn: Any) -> Any:  # noqa: N807 (a method)
        # Compiled code outlives us: it must not contain our stand-ins.
        return original(self, without_stand_ins(fn))

    return __call__


def without_stand_ins(function: Any) -> Any:
    """A function, a method or a code as it is without us."""
    if isinstance(function, MethodType):
        found = without_stand_ins(function.__func__)
        return function if found is function.__func__ else MethodType(found, function.__self__)
    known = None
    while known is not function:
        known = function
        for each in reversed(_bystanders):
            function = each.original(function)
    return function


def _owner_of(frame: FrameType) -> int:
    """The id of what switches frame evaluation: a call, or a context that is entered and left.

    Others turn it off and on in between, which must not look like the end.
    """
    if frame.f_code.co_name in ("__enter__", "__exit__"):
        return id(frame.f_locals.get("self"))
    return id(frame)


def _owners_now(file: str | None) -> list[tuple[int, int]]:
    """Return the threads that are in something compiled, each with the call of it."""
    # This function's own frame is among them: a variable would have it keep itself and its callers.
    return [
        (thread, owner)
        for thread, frame in sys._current_frames().items()
        if (owner := _outermost_wrapper(frame, file)) is not None
    ]


def _outermost_wrapper(frame: FrameType | None, file: str | None) -> int | None:
    """The call of something compiled that a thread is in already."""
    found = None
    while frame is not None:
        code = frame.f_code
        is_wrapper = code.co_name in _WRAPPERS and code.co_filename == file
        # Those that turn Dynamo off have no callback.
        if is_wrapper and frame.f_locals.get("callback") is not None:
            found = id(frame)
        frame = frame.f_back
    return found


def _enter(thread: int, owner: int) -> None:
    global _begun
    _begun += 1
    _owners[thread] = owner
    for each in list(_bystanders):
        each.enter(thread)


def _leave(thread: int) -> None:
    _owners.pop(thread, None)
    for each in reversed(_bystanders):
        each.leave(thread)


def _follow_compilations() -> None:
    """Show what the program has while Dynamo compiles.

    It inlines module calls and guards on what it finds.
    """
    handler: Any = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
    if handler is None:
        return

    def register() -> None:
        handler.register_start_callback(show_originals)
        handler.register_end_callback(hide_originals)

    def clear() -> None:
        # Which torch._dynamo.reset() does.
        type(handler).clear(handler)
        if _bystanders:
            register()

    def forget() -> None:
        for callbacks, callback in (
            (handler.start_callbacks, show_originals),
            (handler.end_callbacks, hide_originals),
        ):
            if callback in callbacks:
                callbacks.remove(callback)

    _undo.append(forget)  # first, whatever is raised afterwards
    register()
    _replace(handler, "clear", lambda _: clear)


@leaving_surely
def _follow_exports() -> None:
    """Show what the program has while it is exported by way of Dynamo.

    The graph names the line that each of its operators comes from.
    """

    def make(original: Any) -> Any:
        def _strict_export(*args: Any, **kwargs: Any) -> Any:
            show_originals()
            try:
                return original(*args, **kwargs)
            finally:
                hide_originals()

        return _strict_export

    exporting: Any = sys.modules.get(_EXPORTING)
    with holding(_LOCK):
        if _bystanders and hasattr(exporting, "_strict_export"):
            _replace(exporting, "_strict_export", make)


@leaving_surely
def _follow_code() -> None:
    """Have Dynamo compile the code that a function has without us."""

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def compile_code(code: Any, *args: Any, **kwargs: Any) -> Any:
            return original(without_stand_ins(code), *args, **kwargs)

        return compile_code

    converting: Any = sys.modules.get(_CONVERTING)
    with holding(_LOCK):
        for name in ("_compile", "compile_frame"):  # from outside, and what torch.export calls
            if _bystanders and hasattr(converting, name):
                _replace(converting, name, make)


@leaving_surely
def _follow_inlined_code() -> None:
    """Do what `_follow_code` does for functions that Dynamo inlines."""

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def get_code(self: Any) -> Any:
            return without_stand_ins(original(self))

        return get_code

    functions: Any = sys.modules.get(_FUNCTIONS)
    with holding(_LOCK):
        for kind in list(vars(functions).values()) if _bystanders else ():
            if isinstance(kind, type) and "get_code" in vars(kind):
                _replace(kind, "get_code", make)


def _forget_stand_ins() -> None:
    """Imported while ours were in place, Dynamo took them for torch's own."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch._dynamo."):
            for key, value in list(vars(module).items()):
                if key.startswith("unpatched_"):
                    setattr(module, key, without_stand_ins(value))


def _skip_our_code(evaluation: Any) -> None:
    """Have our frames run as they are, without Dynamo being asked."""
    skip = getattr(evaluation, "skip_code", None)
    if skip is None:
        return
    hear_of_codes(skip)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "shapetrace" and name not in _skipped:
            if not getattr(getattr(module, "__spec__", None), "_initializing", False):
                _skipped.add(name)
            for code in _codes_in(list(vars(module).values()), name):
                skip(code)


def _codes_in(values: Iterable[Any], module: str) -> Iterator[CodeType]:
    for value in values:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            yield from _codes_in((value.fget, value.fset, value.fdel), module)
        elif isinstance(value, FunctionType):
            yield from _nested_codes(value.__code__)
        elif isinstance(value, type) and value.__module__ == module:
            yield from _codes_in(list(vars(value).values()), module)


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    if not is_own_file(code.co_filename):
        return  # what a decorator of another's put around it
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _nested_codes(part)


def _skip_our_files() -> None:
    """Have Dynamo skip our files, also those that are loaded later."""
    rules: Any = sys.modules.get("torch._dynamo.trace_rules")
    if not hasattr(rules, "SKIP_DIRS") or not hasattr(rules, "_recompile_re"):
        return

    def undo() -> None:
        if _SKIPPED in rules.SKIP_DIRS:
            rules.SKIP_DIRS.remove(_SKIPPED)
            rules._recompile_re()

    _undo.append(undo)
    rules.SKIP_DIRS.append(_SKIPPED)
    rules._recompile_re()


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original, own = getattr(owner, name), name in vars(owner)
    stand_in = make(original)

    def undo() -> None:
        if vars(owner).get(name) is not stand_in:
            return  # another tool put a patch on top, and ours only passes calls on from now on
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    _undo.append(undo)
    setattr(owner, name, stand_in)


def _after_fork_in_child() -> None:
    own = _owners.get(get_ident())
    _owners.clear()
    if own is not None:
        _owners[get_ident()] = own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
