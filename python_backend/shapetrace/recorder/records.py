"""What has been recorded so far: op and module variants, and how they widen.

A *variant* stands for all calls from one site with one signature. Past ``MOST_VARIANTS`` of them a
site keeps one *wide* variant whose sizes are ranges, so that a shape that grows for ever (a cache,
a sequence) costs nothing.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

from torch import Tensor

from shapetrace._asynchronous import is_asynchronous
from shapetrace.recorder.callsite import Activation, Site
from shapetrace.recorder.describe import CONTAINER, OTHER, Raw, describe_value, holds_tensor

MOST_VARIANTS: Final = 16
"""Signatures a site keeps apart before it widens."""

MOST_KERNELS: Final = 64
"""Signatures of one operator under one call that are kept apart: a backward pass has many."""

ERROR: Final = "error"
"""Marks an output that is an exception: ``(ERROR, type name, message)``."""

ENDED_EARLY: Final = (OTHER, "…")
"""The output of a call that torch itself broke off."""

MOST_MESSAGE: Final = 2000
"""Characters of an error's message that are kept."""


class Range:
    """A size that was between ``low`` and ``high``."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and (self.low, self.high) == (other.low, other.high)

    def __hash__(self) -> int:
        return hash((self.low, self.high))


class OpVariant:
    """The calls of one function from one site with equal inputs and output."""

    __slots__ = (
        "arguments",
        "count",
        "function",
        "id",
        "inputs",
        "names",
        "output",
        "rare",
        "site",
    )

    def __init__(
        self,
        identifier: int,
        site: Site,
        function: Any,
        inputs: tuple[Raw, ...],
        arguments: tuple[str, ...],
        names: tuple[str | None, ...] | None,
        thread: str | None,
    ) -> None:
        self.id = identifier
        self.site = site
        self.function = function
        self.inputs = inputs
        self.arguments = arguments
        self.names = names
        self.output: Raw | None = None
        self.count = 0
        self.rare: Rare | None = None
        """Rare attributes of a variant; read only where they matter."""
        if thread is not None:
            self.rarely().thread = thread

    def rarely(self) -> Rare:
        """The place for what few variants have."""
        if self.rare is None:
            self.rare = Rare()
        return self.rare

    @property
    def wide(self) -> bool:
        """Whether it represents calls with different shapes."""
        return self.rare is not None and self.rare.wide

    @property
    def passed_on(self) -> bool:
        """Whether a mode of the program's own handed the call over, and may change its result."""
        return self.rare is not None and self.rare.passed_on

    @property
    def next(self) -> OpVariant | None:
        """Another variant with the same inputs and another output; the last one's is the first."""
        return None if self.rare is None else self.rare.next

    @property
    def thread(self) -> str | None:
        """The thread it ran in, where that was not the main one."""
        return None if self.rare is None else self.rare.thread


class Rare:
    """Rare attributes of op variants, kept apart so that variants stay small."""

    __slots__ = ("kernels", "next", "passed_on", "thread", "wide")

    def __init__(self) -> None:
        self.kernels: dict[Any, KernelVariant] | None = None
        self.next: OpVariant | None = None
        self.passed_on = False
        self.thread: str | None = None
        self.wide = False


class KernelVariant:
    """The calls of one aten operator for one op variant, with equal inputs and output."""

    __slots__ = ("arguments", "count", "function", "id", "inputs", "output", "parent", "site")

    def __init__(
        self,
        identifier: int,
        parent: OpVariant | None,
        site: Site,
        function: Any,
        inputs: tuple[Raw, ...],
        arguments: tuple[str, ...],
        output: Raw,
    ) -> None:
        self.id = identifier
        self.parent = parent
        self.site = site
        self.function = function
        self.inputs = inputs
        self.arguments = arguments
        self.output = output
        self.count = 0


class ModuleRecord:
    """One module as it is called from one site."""

    __slots__ = (
        "calls",
        "class_name",
        "detail",
        "forward_names",
        "fused",
        "kind",
        "last",
        "parameters",
        "path",
        "reference",
        "site",
        "special",
        "unfinished",
        "variants",
        "wide",
    )

    def __init__(
        self,
        site: Site,
        reference: weakref.ref[Any],
        kind: type,
        path: str,
        class_name: str,
        detail: str,
        parameters: int,
        unfinished: bool,
        forward_names: tuple[str, ...],
        calls: list[int],
        fused: Any,
    ) -> None:
        self.site = site
        self.reference = reference
        self.kind = kind
        self.path = path
        self.class_name = class_name
        self.detail = detail
        self.parameters = parameters
        self.unfinished = unfinished
        """Whether some of them get their shapes only during the first call."""
        self.forward_names = forward_names
        self.calls = calls
        """The number of calls of this module so far, in a cell that all its records share."""
        self.fused = fused
        """Tells of a call whether torch may take a fused path that a mode would close."""
        self.special = fused is not None or kind.__name__ == "OptimizedModule"
        """Whether a call may have to be stepped around."""
        self.variants: dict[Any, ModuleVariant] = {}
        self.last: ModuleVariant | None = None
        self.wide: ModuleVariant | None = None


class ModuleVariant:
    """The calls of one module from one site with equal inputs."""

    __slots__ = (
        "call",
        "callees",
        "count",
        "error",
        "id",
        "idle",
        "implicit",
        "inputs",
        "keywords",
        "names",
        "note",
        "output",
        "record",
        "wide",
    )

    def __init__(
        self,
        identifier: int,
        record: ModuleRecord,
        inputs: tuple[Raw, ...],
        keywords: tuple[str, ...],
        names: tuple[str | None, ...] | None,
    ) -> None:
        self.id = identifier
        self.record = record
        self.inputs = inputs
        self.keywords = keywords
        """Names of the last inputs, which were passed by keyword."""
        self.names = names
        self.call = record.calls[0] + 1
        self.count = 0
        self.output: Raw | None = None
        self.error: tuple[str, ...] | None = None
        self.note: str | None = None
        self.wide = False
        self.implicit = False
        """Whether forward was called directly, so that the calls were not counted."""
        self.callees: dict[int, Activation] | None = None
        self.idle: Any = None
        """A call object that is over and may be used for the next call."""

    @property
    def site(self) -> Site:
        """The site the module was called from."""
        return self.record.site

    @property
    def parent(self) -> ModuleVariant | None:
        """The module call that this one was made in."""
        return self.record.site.activation.module


class VariableNote:
    """A value that a name had from the instruction that stored it."""

    __slots__ = ("activation", "name", "offset", "raw")

    def __init__(self, activation: Activation, name: str, offset: int | None, raw: Raw) -> None:
        self.activation = activation
        self.name = name
        self.offset = offset
        """The storing instruction; None for a parameter of the function."""
        self.raw = raw


_BASE_ERROR: Final[Any] = BaseException


def describe_error(error: BaseException) -> Raw:
    """An exception as a raw output. Its class may fail to give a message.

    Checkpointing ends a recomputation with an exception as soon as it has all it needs.
    """
    kind = type(error)
    if kind.__name__ == "_StopRecomputationError" and kind.__module__.startswith("torch."):
        return ENDED_EARLY
    try:
        arguments = _BASE_ERROR.args.__get__(error)
        if any(map(holds_tensor, map(describe_value, arguments))):
            message = ", ".join(map(_without_values, arguments))
        else:
            message = str(error)
    except BaseException as another:  # code of the program's, which must not run now
        if is_asynchronous(another, ran_program=True):
            raise
        message = ""
    return (ERROR, kind.__name__, message[:MOST_MESSAGE])


def _without_values(argument: Any) -> str:
    if issubclass(type(argument), Tensor):
        shape = describe_value(argument)[0]
        return f"<{type(argument).__name__} of shape {'?' if shape is None else tuple(shape)}>"
    if holds_tensor(describe_value(argument)):
        return f"<{type(argument).__name__} of tensors>"
    return str(argument)


def widen(known: Raw, seen: Raw) -> Raw:
    """The narrowest raw value that covers both; ``known`` itself when it already does."""
    if known == seen:
        return known
    if known[0] is ERROR and seen[0] is ERROR and known[1] == seen[1]:
        return known
    if known[0] is OTHER or seen[0] is OTHER or known[0] is ERROR or seen[0] is ERROR:
        return (OTHER, "…")
    if known[0] is CONTAINER or seen[0] is CONTAINER:
        return _widen_container(known, seen)
    return _widen_tensor(known, seen)


def widen_all(known: tuple[Raw, ...], seen: tuple[Raw, ...]) -> tuple[Raw, ...]:
    """``widen`` for each of two rows of values."""
    if known == seen:
        return known
    if len(known) != len(seen):
        return known[: len(seen)] if len(seen) < len(known) else known
    return tuple(map(widen, known, seen))


def _widen_container(known: Raw, seen: Raw) -> Raw:
    if known[0] is not seen[0] or known[1] != seen[1] or len(known[3]) != len(seen[3]):
        return (OTHER, "…")
    items = tuple(map(widen, known[3], seen[3]))
    return (CONTAINER, known[1], known[2], items, known[4])


def _widen_tensor(known: Raw, seen: Raw) -> Raw:
    shape = _widen_shape(known[0], seen[0])
    if shape is known[0] and known[1:] == seen[1:]:
        return known
    return (
        shape,
        known[1] if known[1] == seen[1] else None,
        known[2] if known[2] == seen[2] else None,
        known[3] and seen[3],
        None,
        known[5],
        *known[6:],
    )


def _widen_shape(known: Any, seen: Any) -> Any:
    if known is None or seen is None or len(known) != len(seen):
        return None
    widened = tuple(map(_widen_size, known, seen))
    return known if all(map(lambda new, old: new is old, widened, known)) else widened


def _widen_size(known: Any, seen: Any) -> Any:
    if type(known) is Range:
        if type(seen) is not int or known.low <= seen <= known.high:
            return known
        return Range(min(known.low, seen), max(known.high, seen))
    if type(known) is int and type(seen) is int:
        return known if known == seen else Range(min(known, seen), max(known, seen))
    return known if known == seen else "?"
