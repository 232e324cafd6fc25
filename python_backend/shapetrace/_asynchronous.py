"""Exceptions that the program had raised while code of ours ran, told from faults of ours.

Python raises an exception of a signal handler's, of a trace function's and of
``PyThreadState_SetAsyncExc`` in whatever frame runs, and that may be one of ours. It is the
program's: a clause that swallows faults lets it pass.

    except BaseException as error:
        if is_asynchronous(error):
            raise
        ...  # a fault of ours

A bare ``raise`` does not add the frame that raises to the traceback. So the outermost frame of ours
takes all of ours out, and raises again in this way: ``clean(error)``, then ``raise``.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any, Final, TypeVar, cast

from shapetrace._classes import classes_of, is_kind, qualified_name_of
from shapetrace._exception_table import catching_everywhere
from shapetrace._frames import OWN_DIRECTORY, is_own_file

TRAMPOLINE_NAME: Final = "<shapetrace call>"
"""The qualified name of code that makes a call in the name of one of the program's lines."""

_Function = TypeVar("_Function", bound=Callable[..., Any])

_BASE: Final[Any] = BaseException
_GROUP: Final[Any] = BaseExceptionGroup
# Always there, unlike ``signal``, which a program may not have imported.
_signal: Final[Any] = __import__("_signal")

_HEAP_TYPE: Final = 1 << 9
"""The flag of classes that are made at run time, as by a class statement."""
_TRACE_EVENTS: Final = frozenset({"call", "line", "return", "exception", "opcode"})
_PROFILE_EVENTS: Final = frozenset({"c_call", "c_return", "c_exception"})
_SET_TO_NO_CLASS: Final = "_PyErr_SetObject: exception "
_DECISIVE: Final = frozenset(
    {"JUMP_BACKWARD", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE"}
)
"""Instructions at which nothing else can be raised."""
_CALLS: Final = ("CALL", "PRECALL", "POP_JUMP_BACKWARD", "COMPARE_OP")
"""How the names of the others begin after which Python looks for what is to be raised.

Python 3.11 compares numbers and jumps back in one."""
_SNAPSHOT_STAYS: Final = sys.version_info < (3, 13)
"""Until 3.13 reading a frame's locals leaves a dictionary behind that keeps the values alive."""


def is_ours(code: CodeType) -> bool:
    """Whether a frame with this code is one of ours."""
    return is_own_file(code.co_filename) or code.co_qualname == TRAMPOLINE_NAME


_LIBRARIES: Final = sys.stdlib_module_names | {"torch", "numpy", "h5py", "shapetrace"}
"""Libraries whose C code raises exceptions of its own without a frame."""


def is_asynchronous(error: BaseException, ran_program: bool = False) -> bool:
    """Return whether an exception that a clause of ours has caught is the program's own.

    To be asked in that clause, before any frame is taken out of the traceback. A RecursionError
    because there is no room for our frames is a fault of ours; a MemoryError is not. Nor is an exit
    or an interrupt, but where we ``ran_program``, code of the program's that ran unexpectedly.
    """
    kind = type(error)
    if is_kind(kind, KeyboardInterrupt) or not (ran_program or is_kind(kind, Exception)):
        return True
    try:
        entries = list(_entries(_BASE.__traceback__.__get__(error)))
        return _comes_through_a_handler(entries) or _was_set(error, kind, entries)
    except RecursionError:
        return False


class suppressing:  # noqa: N801 (as that one)
    """``contextlib.suppress``, but for the program's own exceptions, which go on."""

    def __init__(self, *kinds: type[Exception]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        return isinstance(error, self._kinds) and not is_asynchronous(error)


@catching_everywhere
def surely(action: Callable[..., object], *arguments: Any) -> None:
    """Put something back whatever is raised meanwhile, which is raised once that is done.

    The action may be called twice, the second time where it was left the first time.
    """
    try:
        action(*arguments)
    except BaseException:
        action(*arguments)
        raise


def clean(error: BaseException) -> None:
    """Take our frames out of the traceback of one exception, and our faults out of its context."""
    _BASE.with_traceback(error, without_our_frames(_BASE.__traceback__.__get__(error)))
    drop_our_faults(error)


def clean_if_asynchronous(error: BaseException) -> None:
    """`clean` an exception if it is asynchronous: for functions of ours that the program calls."""
    if is_asynchronous(error):
        clean(error)


def called_by_program(function: _Function) -> _Function:
    """Have the program's own exceptions come out of a function without a frame of ours."""

    @functools.wraps(function)
    @catching_everywhere
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except BaseException as error:
            clean_if_asynchronous(error)
            raise

    return cast(_Function, call)


def clean_all(error: BaseException) -> None:
    """Clean an exception, those that it came from, and those that it groups."""
    for each in related(error):
        clean(each)


def related(error: BaseException) -> Iterator[BaseException]:
    """An exception, those that it came from, and those that it groups, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        # By the base class's own means: a class of the program's may answer with code of its own.
        waiting += (_BASE.__cause__.__get__(each), _BASE.__context__.__get__(each))
        if issubclass(type(each), BaseExceptionGroup):
            waiting += _GROUP.exceptions.__get__(each)


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback as it would be without us. Entries are unlinked in place."""
    return linked([each for each in _entries(traceback) if not is_ours(each.tb_frame.f_code)])


def linked(entries: list[TracebackType]) -> TracebackType | None:
    """A traceback of these entries alone, which are put together in place."""
    if not entries:
        return None
    for previous, following in pairwise(entries):
        if previous.tb_next is not following:
            previous.tb_next = following
    if entries[-1].tb_next is not None:
        entries[-1].tb_next = None
    return entries[0]


def drop_our_faults(error: BaseException) -> None:
    """Take what we were about to swallow when an exception came out of its context."""
    context = _BASE.__context__.__get__(error)
    while context is not None and _is_a_fault(context):
        context = _BASE.__context__.__get__(context)
        _BASE.__context__.__set__(error, context)


def _is_a_fault(error: BaseException) -> bool:
    """Whether an exception went through nothing but code of ours that calls nothing of others."""
    codes = [each.tb_frame.f_code for each in _entries(_BASE.__traceback__.__get__(error))]
    return bool(codes) and all(code.co_filename.startswith(OWN_DIRECTORY) for code in codes)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


# Signal handlers, trace functions


def _comes_through_a_handler(entries: list[TracebackType]) -> bool:
    """Whether the interpreter itself called one of the frames, in between two instructions."""
    frames = [each.tb_frame for each in entries if not is_ours(each.tb_frame.f_code)]
    if any(map(_was_told_its_caller, frames)):
        return True
    handlers = _codes_of_handlers() if frames else ()
    return any(frame.f_code is code for frame in frames for code in handlers)


def _was_told_its_caller(frame: FrameType) -> bool:
    """Return whether a function was called as handlers are: with the frame that they interrupt.

    handler(signal number, frame); trace(frame, event, argument); callback(code, offset)
    """
    caller = frame.f_back
    if caller is None:
        return False
    arguments = _arguments(frame)
    for index, each in enumerate(arguments):
        before = arguments[index - 1] if index else None
        after = arguments[index + 1] if index + 1 < len(arguments) else None
        if each is caller and (is_kind(type(before), int) or _is_event(after)):
            return True
        if each is caller.f_code and type(after) is int:
            return True
    return False


def _is_event(value: Any) -> bool:
    return type(value) is str and (value in _TRACE_EVENTS or value in _PROFILE_EVENTS)


def _arguments(frame: FrameType) -> list[Any]:
    """The positional arguments of a function, as far as it still has them."""
    code = frame.f_code
    names = list(code.co_varnames[: code.co_argcount])
    rest = code.co_argcount + code.co_kwonlyargcount
    has_rest = bool(code.co_flags & inspect.CO_VARARGS)
    if len(names) + 2 * has_rest < 2:
        return []
    values: Any = frame.f_locals
    arguments = [values.get(name) for name in names]
    others = values.get(code.co_varnames[rest]) if has_rest else None
    if type(others) is tuple:
        arguments += others
    # Referred to by the frame, here, and by the question itself.
    if _SNAPSHOT_STAYS and code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(values) <= 3:
        values.clear()
    return arguments


def _codes_of_handlers() -> list[Any]:
    """The code of what handles a signal now, or traces this thread."""
    return [getattr(each, "__code__", None) for each in _handlers() if type(each) is FunctionType]


def _handlers() -> Iterator[Any]:
    """Handlers of signals and the trace and profile functions, without partials and methods."""
    handlers = [_signal.getsignal(number) for number in _signal.valid_signals()]
    others: tuple[Any, ...] = (sys.gettrace(), sys.getprofile())
    for handler in (*handlers, *others):
        for _ in range(8 if callable(handler) else 0):
            kind = type(handler)
            if is_kind(kind, functools.partial):
                handler = handler.func
            elif kind is MethodType:
                handler = handler.__func__
            elif kind is not FunctionType:
                called = (vars(each).get("__call__") for each in classes_of(kind))
                of_class = next((each for each in called if each is not None), None)
                if type(of_class) is not FunctionType:
                    break
                handler = of_class
        if callable(handler):
            yield handler


# Exceptions that are set from outside


def _was_set(error: Any, kind: type, entries: list[TracebackType]) -> bool:
    """Whether another thread, or code in C, had an exception raised right in the innermost frame.

    It is one of a class that was called without arguments, and comes where Python looks for it.
    What code in C raises there on its own has a message.
    """
    arguments = _BASE.args.__get__(error)
    if not arguments and is_kind(kind, MemoryError):
        return True
    if not entries or _BASE.__cause__.__get__(error) is not None:
        return False
    code, offset = entries[-1].tb_frame.f_code, entries[-1].tb_lasti
    if offset < 0 or _is_a_label(code):
        return False
    while not code.co_code[offset]:  # Python 3.11 goes on past a call's own room to its end.
        offset -= 2
    instruction = dis.opname[code.co_code[offset]]
    if instruction in _DECISIVE:
        return True
    if instruction == "RESUME":  # where the program's generators go on, it may have thrown it
        module = str(entries[-1].tb_frame.f_globals.get("__name__")).partition(".")[0]
        return module in _LIBRARIES or not code.co_code[offset + 1] & 3
    if not instruction.startswith(_CALLS) or instruction.startswith("CALL_INTRINSIC"):
        return False
    if kind is SystemExit and not is_ours(code):
        return False  # which ``sys.exit()`` in that very place would have raised
    if not arguments:
        return kind is not StopIteration and kind.__module__ != "_queue"
    if kind is TypeError or kind is SystemError:
        return _could_not_be_raised(str(arguments[0]))
    return _is_foreign(kind)


def _is_a_label(code: CodeType) -> bool:
    """Whether nothing of this code runs: Cython's code in C names itself so in tracebacks."""
    return not code.co_flags and not code.co_consts


def _could_not_be_raised(message: str) -> bool:
    """Return whether a handler, or an exception's class, does not take what it was called with."""
    if message.startswith(_SET_TO_NO_CLASS):
        return True
    callee, _, problem = message.partition("() ")
    if not problem.startswith(("takes ", "missing ")):
        return False
    names = {each.__qualname__ for each in _handlers() if type(each) is FunctionType}
    return callee in names or _makes_an_exception(callee)


def _makes_an_exception(name: str) -> bool:
    """Return whether this is how the constructor of a class of exceptions is called in messages."""
    of_class, _, method = name.rpartition(".")
    if method not in ("__init__", "__new__"):
        return False
    seen: set[type] = set()
    waiting: list[type] = [BaseException]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += type.__subclasses__(each)
    return any(qualified_name_of(each) == of_class for each in seen)


def _is_foreign(kind: type) -> bool:
    """Return whether a class of exceptions is the program's own, or some package's that it uses."""
    if not kind.__flags__ & _HEAP_TYPE:
        return False
    module: Any = vars(kind).get("__module__")
    return type(module) is not str or module.partition(".")[0] not in _LIBRARIES
