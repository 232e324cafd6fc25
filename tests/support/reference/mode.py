"""A torch function mode that notes every call, slowly and without cleverness."""

from __future__ import annotations

import ast
import dis
import linecache
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import islice
from types import CodeType, FrameType, MethodWrapperType
from typing import Any, TypeAlias
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode, handle_torch_function, resolve_name

from tests.support.reference.callbacks import was_called_back
from tests.support.reference.calls import Call, TensorFacts

TENSOR_GETTERS = frozenset({"T", "mT", "H", "mH", "real", "imag", "data", "grad"})
"""The attributes whose value is a tensor that the program goes on to use."""

METADATA_QUERIES = frozenset(
    {
        "__hash__",
        "__len__",
        "_is_view",
        "_record_function_enter_new",
        "_record_function_exit._RecordFunction",
        "_set_grad_enabled",
        "data_ptr",
        "dense_dim",
        "device",
        "dim",
        "dim_order",
        "element_size",
        "get_device",
        "has_names",
        "is_coalesced",
        "is_complex",
        "is_conj",
        "is_contiguous",
        "is_distributed",
        "is_floating_point",
        "is_inference",
        "is_neg",
        "is_pinned",
        "is_same_size",
        "is_set_to",
        "is_shared",
        "is_signed",
        "is_storage",
        "is_tensor",
        "ndimension",
        "nelement",
        "numel",
        "q_per_channel_axis",
        "q_scale",
        "q_zero_point",
        "qscheme",
        "size",
        "sparse_dim",
        "storage",
        "storage_offset",
        "storage_type",
        "stride",
        "untyped_storage",
    }
)
"""Functions that ask or set something and neither yield a tensor nor read its numbers."""

RENDERINGS = frozenset({"__repr__", "__str__", "__format__"})
"""Functions that turn a tensor into text."""

TORCH_DIRECTORY = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
SUPPORT_DIRECTORY = os.path.dirname(os.path.realpath(__file__)) + os.sep


def _shapetrace_directory() -> str:
    specification = find_spec("shapetrace")
    assert specification is not None
    assert specification.submodule_search_locations
    return os.path.realpath(specification.submodule_search_locations[0]) + os.sep


NOT_THE_PROGRAM = (TORCH_DIRECTORY, SUPPORT_DIRECTORY, _shapetrace_directory())


class ReferenceMode(TorchFunctionMode):
    """Notes every torch call that reaches it, in the order in which they begin."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: list[Call | None] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function between two looks at its tensors."""
        kwargs = kwargs or {}
        place = len(self._notes)
        self._notes.append(None)
        inputs = tuple(facts_in((args, kwargs)))
        frame = sys._getframe(1)
        try:
            with self._also_in_backward(func):
                result = func(*args, **kwargs)
        except BaseException as error:
            kind: str | None = type(error).__name__
            if kind == "_StopRecomputationError":
                kind = None  # checkpointing has all it needs and breaks off, which is no error
            self._notes[place] = _call(func, frame, inputs, (), kind)
            raise
        self._notes[place] = _call(func, frame, inputs, result, None)
        return result

    @property
    def calls(self) -> list[Call]:
        """The recorded calls, without those that are left out on purpose."""
        return [call for call in self._notes if call is not None]

    @contextmanager
    def _also_in_backward(self, func: Callable[..., Any]) -> Iterator[None]:
        """Enter again where autograd runs: a mode is off during the calls it is handed."""
        if func not in (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad):
            yield
            return
        autograd: Any = torch.autograd
        run_engine = autograd._engine_run_backward

        def run_watched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return run_engine(*args, **kwargs)

        with mock.patch.object(autograd, "_engine_run_backward", run_watched):
            yield

    def count(self) -> Counter[Call]:
        """Count equal calls, in order of first appearance."""
        return Counter(self.calls)


def _call(
    func: Callable[..., Any],
    frame: FrameType,
    inputs: tuple[TensorFacts, ...],
    result: object,
    error: str | None,
) -> Call | None:
    if is_left_out(func, result):
        return None
    direct, program_frame = who_called(func, frame)
    if program_frame is None:
        return None
    code = program_frame.f_code
    line, end_line, column, end_column = position(code, program_frame.f_lasti)
    return Call(
        name=name_of(func),
        file=code.co_filename,
        line=line or program_frame.f_lineno,
        end_line=end_line,
        column=column,
        end_column=end_column,
        direct=direct,
        inputs=inputs,
        outputs=tuple(facts_in(result)),
        error=error,
    )


def facts_in(value: object) -> Iterator[TensorFacts]:
    """Yield the tensors in arguments or results, in order."""
    if isinstance(value, torch.Tensor):
        sizes: tuple[object, ...] = tuple(value.shape)
        shape = tuple(size if isinstance(size, int) else str(size) for size in sizes)
        yield TensorFacts(shape, str(value.dtype).removeprefix("torch."))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from facts_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from facts_in(item)
    elif isinstance(value, slice):
        yield from facts_in((value.start, value.stop, value.step))


def name_of(func: Callable[..., Any]) -> str:
    """Return the public name of a torch function, or of the attribute that a getter reads."""
    accessor = accessed_attribute(func)
    if accessor is not None:
        return f"torch.Tensor.{accessor}"
    known = resolve_name(func)
    if known is not None:
        return str(known)
    return f"{func.__module__}.{func.__qualname__}"


def accessed_attribute(func: Callable[..., Any]) -> str | None:
    """Return the attribute that a getter, setter or deleter is for; None for a function."""
    if not isinstance(func, MethodWrapperType):
        return None
    if func.__name__ not in {"__get__", "__set__", "__delete__"}:
        return None
    descriptor: Any = func.__self__
    named = getattr(descriptor, "fget", descriptor)
    return str(named.__name__)


def is_left_out(func: Callable[..., Any], result: object) -> bool:
    """Say whether a call is none that a reader of the program would call an operation."""
    attribute = accessed_attribute(func)
    if attribute is not None:
        yields_tensor = func.__name__ == "__get__" and isinstance(result, torch.Tensor)
        return not (yields_tensor and attribute in TENSOR_GETTERS)
    return func.__name__ in METADATA_QUERIES | RENDERINGS


def who_called(func: Callable[..., Any], frame: FrameType) -> tuple[bool, FrameType | None]:
    """Return whether the program itself made the call, and its innermost frame.

    ``frame`` is the one that called the mode. Between it and the program there may be torch's own
    detours, which do not make the call any less the program's: ``handle_torch_function`` under a
    torch function written in Python, and other modes that pass on the very call they were handed.
    What the program's own mode passed on is not direct: it may hand back something else. Nor is
    what ``sum`` or ``map`` called.
    """
    caller: FrameType | None = frame
    may_differ = False
    while caller is not None:
        if caller.f_code is handle_torch_function.__code__:
            caller = _caller_of_python_function(func, caller.f_back)
        elif _passes_on(caller, func):
            may_differ |= is_program(caller)
            caller = caller.f_back
        else:
            break
    direct = caller is not None and is_program(caller) and not may_differ
    direct = direct and not was_called_back(caller, func)
    while caller is not None and not is_program(caller):
        caller = caller.f_back
    return direct, caller


def _caller_of_python_function(
    func: Callable[..., Any], frame: FrameType | None
) -> FrameType | None:
    """Return the frame that called the Python function which ``frame`` is a part of.

    Some are written as several: ``meshgrid`` calls ``_meshgrid``, and ``unique`` chooses between
    variants of itself. Then the outermost is the function itself, or a ``boolean_dispatch``.
    """
    own_code = getattr(func, "__code__", None)
    choose = torch.nn.functional.max_pool2d.__code__
    function = frame
    candidate = frame
    while candidate is not None and is_torch(candidate) and not _is_module_call(candidate):
        if candidate.f_code in {own_code, choose}:
            function = candidate
            break
        candidate = candidate.f_back
    caller = None if function is None else function.f_back
    while caller is not None and caller.f_code is choose:
        caller = caller.f_back
    return caller


def _passes_on(frame: FrameType, func: Callable[..., Any]) -> bool:
    """Say whether a frame is another mode's, handed the same function as it now calls."""
    if frame.f_code.co_name != "__torch_function__":
        return False
    handed = frame.f_code.co_varnames[1]
    return frame.f_locals.get(handed) is func


def _is_module_call(frame: FrameType) -> bool:
    return frame.f_code is torch.nn.Module._call_impl.__code__


def is_torch(frame: FrameType) -> bool:
    """Say whether a frame runs code of the installed torch."""
    return os.path.realpath(frame.f_code.co_filename).startswith(TORCH_DIRECTORY)


def is_program(frame: FrameType) -> bool:
    """Return whether a frame runs code of the observed program."""
    return not os.path.realpath(frame.f_code.co_filename).startswith(NOT_THE_PROGRAM)


Place: TypeAlias = tuple[int | None, int | None, int | None, int | None]


def position(code: CodeType, instruction: int) -> Place:
    """Return line, end line, column and end column of the instruction at a byte offset."""
    place = next(islice(code.co_positions(), instruction // 2, None))
    if sys.version_info < (3, 13) and dis.opname[code.co_code[instruction]] in ITERATING:
        return _iterated(code, instruction, place)
    if sys.version_info < (3, 12) and "_IF_" in dis.opname[code.co_code[instruction]]:
        return _asked(code, instruction, place)
    return place


def _asked(code: CodeType, instruction: int, place: Place) -> Place:
    """What a jump asks about: Python 3.11 has it where the statement, or another part, stands."""
    names = [dis.opname[number] for number in code.co_code[:instruction:2]]
    while names[-1].startswith(("EXTENDED_ARG", "STORE_")):
        names.pop()
    asked = next(islice(code.co_positions(), len(names) - 1, None))
    if None in (*asked, *place):
        return place
    linecache.checkcache(code.co_filename)
    conditionals = _conditionals("".join(linecache.getlines(code.co_filename)))
    return asked if place in conditionals or not _is_within(asked, place) else place


@cache
def _conditionals(text: str) -> frozenset[Place]:
    """Where everything with a condition stands in a file."""
    nodes = ast.walk(ast.parse(text))
    kinds = (ast.If, ast.While, ast.Assert, ast.IfExp)
    filtered = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return frozenset(_place_of(node) for node in nodes if isinstance(node, kinds + filtered))


def _is_within(inner: Any, outer: Any) -> bool:
    line, end_line, column, end_column = outer
    begins_later = (line, column) <= (inner[0], inner[2])
    return begins_later and (inner[1], inner[3]) <= (end_line, end_column)


ITERATING = ("GET_ITER", "FOR_ITER")


def _iterated(code: CodeType, instruction: int, loop: Place) -> Place:
    """What is iterated over: until 3.13 the bytecode tells where the whole loop stands."""
    name = code.co_code[instruction]
    places = list(code.co_positions())
    alike = [
        offset
        for offset in range(0, len(code.co_code), 2)
        if code.co_code[offset] == name and places[offset // 2] == loop
    ]
    number = alike.index(instruction)
    if dis.opname[name] == "GET_ITER" and code.co_name.startswith("<"):
        number += any(
            dis.opname[code.co_code[offset]] == "FOR_ITER" and places[offset // 2] == loop
            for offset in range(0, alike[0], 2)
        )
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    for node in ast.walk(ast.parse(text)):
        iterables = getattr(node, "generators", [node] if isinstance(node, ast.For) else [])
        if iterables and _place_of(node) == loop:
            return _place_of(iterables[number].iter)
    return loop


def _place_of(node: Any) -> Place:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
