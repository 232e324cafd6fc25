"""The frames of ours that stand on the program's stack while its own code runs.

The file is named so on purpose: the ``warnings`` and ``logging`` modules pass over frames whose
file name contains both ``importlib`` and ``_bootstrap`` when they count ``stacklevel``, as they
must for the import system. Here that keeps every warning and log record at the place the program
meant.

Each frame takes itself out of the traceback of an exception that goes through it: a bare ``raise``
does not add the frame that raises, so it is enough to drop the entries there are. And each catches
what is raised at any of its instructions, as a signal handler of the program's may be called there.

- the function mode sees a call as the program wrote it,
- the dispatch mode sees the kernels below it,
- in ``watch_modules_importlib_bootstrap``, the module call stands in for ``nn.Module.__call__``,
- in ``watch_threads_importlib_bootstrap``, the thread and engine wrappers put the modes on threads
  and into backward passes.

Nothing here may raise of its own: whatever goes wrong in a recording is noted, and the program goes
on. What the program has had raised meanwhile passes on, and leaves all as it was.
"""

from __future__ import annotations

from inspect import unwrap
from sys import _getframe
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import catching_everywhere
from shapetrace.recorder.arguments import collect
from shapetrace.recorder.call_finder import site_of
from shapetrace.recorder.callsite import (
    CHOOSE,
    HANDLE_TORCH_FUNCTION,
    OWN_DIRECTORY,
    api_caller,
)
from shapetrace.recorder.describe import CPU, describe_tensor, describe_value, device_of_plain
from shapetrace.recorder.kinds import GETTER_TYPE, TENSOR_DATA, TENSOR_GETTERS
from shapetrace.recorder.records import describe_error
from shapetrace.recorder.stacks import (
    dispatch_modes,
    enter_dispatch_mode,
    enter_function_mode,
    has_function_mode,
    leave_dispatch_mode,
    leave_function_mode,
)
from shapetrace.recorder.thread_state import ThreadState
from shapetrace.recorder.tracebacks import clean

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder

_NO_KEYWORDS: Final[dict[str, Any]] = {}
_PLAIN: Final = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device})
_STRIDED: Any = torch.strided
"""The layout of the tensors that are described here; none while sizes may be symbolic."""


class Running:
    """Says which recording is running, if any."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None


@catching_everywhere
def put_back(recorder: Recorder, action: Any, *arguments: Any) -> None:
    """Do what leaves things as they were, whatever the program has had raised meanwhile."""
    try:
        action(*arguments)
    except BaseException as error:
        if not recorder.swallows(error):
            action(*arguments)
            raise


class PassingMode(TorchFunctionMode):
    """What a function mode turns into when it may no longer be taken from its thread's stack."""

    @catching_everywhere
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return func(*args, **(kwargs or _NO_KEYWORDS))
        except BaseException as error:
            clean(error)
            raise


class FunctionMode(TorchFunctionMode):
    """Records each torch call of one thread with its place, its inputs and its output."""

    def __init__(self, state: ThreadState) -> None:
        self.state = state
        self.live = state.live
        self.quiet = state.recorder.quiet
        options = state.recorder.options
        self.only_calls = options.level != "aten" and not options.fingerprint
        """Whether nothing more is recorded of a call than the call itself."""

    # Long and flat on purpose: a call of a helper here costs every op of every program.
    @catching_everywhere
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            function = func
            if type(func) is GETTER_TYPE:
                # A getter's bound __get__ is made anew for each read; the attribute itself is not.
                function = func.__self__
                try:
                    passes_on = (
                        function.__name__ not in TENSOR_GETTERS or func.__name__ != "__get__"
                    )
                except AttributeError:
                    passes_on = True  # a property, which has no name before 3.13
                if passes_on:
                    if function is TENSOR_DATA:  # reading it does not get here
                        self.state.note_reshaped(args[0])
                    return func(*args)
            else:
                try:
                    is_quiet = func in self.quiet
                except BaseException as error:
                    if is_asynchronous(error):
                        raise
                    is_quiet = False  # a callable of the program's own that cannot be hashed
                if is_quiet:
                    return _pass_on_quietly(self.state, func, args, kwargs or _NO_KEYWORDS)
            variant = None
            site: Any = None
            trampoline = call_plainly
            try:
                frame = _getframe(1)
                if frame.f_code is HANDLE_TORCH_FUNCTION:
                    # Not None: a function of torch's asked for this, and somebody called that.
                    body: Any = frame.f_back
                    outer: Any = body.f_back
                    if (
                        body.f_code is getattr(func, "__code__", None)
                        and outer.f_code is not CHOOSE
                    ):
                        frame = outer
                    else:
                        frame = api_caller(body, func)
                activation = self.live.get(id(frame))
                if activation is None or activation.code is not frame.f_code:
                    frame, activation = self.state.find(frame, func)
                site = activation.sites.get(frame.f_lasti)
                if site is None:
                    site = site_of(activation, frame.f_lasti)
                known = site.trampoline
                if known is None:
                    known = self.state.trampoline_of(site, frame, func)
                trampoline = known
                described = []
                for value in args:
                    kind = type(value)
                    if kind is Tensor or kind is Parameter:
                        if value.layout is _STRIDED:
                            try:
                                described.append(
                                    (
                                        value.shape,
                                        value.dtype,
                                        CPU if value.is_cpu else device_of_plain(value),
                                        value.requires_grad,
                                        None if value.is_contiguous() else value.stride(),
                                        kind,
                                    )
                                )
                            except BaseException as error:
                                if is_asynchronous(error):
                                    raise
                                described.append(describe_tensor(value))
                        else:
                            described.append(describe_tensor(value))
                    elif kind is tuple or kind is list:
                        for item in value:
                            if type(item) is not int:
                                collect(value, described)
                                break
                    elif kind not in _PLAIN:
                        collect(value, described)
                if kwargs:
                    for value in kwargs.values():
                        if type(value) not in _PLAIN:
                            collect(value, described)
                inputs = tuple(described)
                variant = site.last
                if variant is None or variant.function is not function or variant.inputs != inputs:
                    variant = self.state.draft(frame, site, function, args, kwargs, inputs)
                # No frame is to be held here during the call; the types have no room for that.
                frame = body = outer = None  # type: ignore[assignment]
            except BaseException as error:
                if not self.state.recorder.swallows(error):
                    raise
            try:
                if self.only_calls:
                    result = trampoline(func, args, kwargs or _NO_KEYWORDS)
                else:
                    result = _run_and_look(self.state, variant, trampoline, func, args, kwargs)
            except BaseException as error:
                try:
                    if variant is not None:
                        _note_failure(self.state, variant, error, args, kwargs)
                except RecursionError:
                    pass  # no room
                raise
            if variant is None:
                return result
            try:
                kind = type(result)
                if kind is Tensor and result.layout is _STRIDED:
                    try:
                        output: Any = (
                            result.shape,
                            result.dtype,
                            CPU if result.is_cpu else device_of_plain(result),
                            result.requires_grad,
                            None if result.is_contiguous() else result.stride(),
                            kind,
                        )
                    except BaseException as error:
                        if is_asynchronous(error):
                            raise
                        output = describe_tensor(result)
                elif function is not func and not isinstance(result, Tensor):
                    return result  # the gradient there is none of
                else:
                    output = describe_value(result)
                if variant.output != output:
                    variant = self.state.with_output(variant, output, args, kwargs)
                variant.count += 1
                site.last = variant
            except BaseException as error:
                if not self.state.recorder.swallows(error):
                    raise
            return result
        except BaseException as error:
            try:
                clean(error)
                if not self.state.stack:
                    self.state.recorder.last_word.prepare()
            except RecursionError:
                pass  # no room; a module call further out cleans up
            raise


def _run_and_look(
    state: ThreadState, variant: Any, trampoline: Any, function: Any, args: Any, kwargs: Any
) -> Any:
    """Make a call of which more is recorded: its kernels, or what it returns."""
    if state.dispatch_mode is None:
        result = trampoline(function, args, kwargs or _NO_KEYWORDS)
    else:
        result = _run_with_kernels(state, variant, trampoline, function, args, kwargs)
    if state.looks and variant is not None:
        try:
            state.look_at(variant, result, args, kwargs)
        except BaseException as error:
            if not state.recorder.swallows(error):
                raise
    return result


def _run_with_kernels(
    state: ThreadState, variant: Any, trampoline: Any, function: Any, args: Any, kwargs: Any
) -> Any:
    """Make a call whose kernels are recorded for it."""
    outer, running = state.current, state.running
    try:
        state.current, state.running = variant, []
        return trampoline(function, args, kwargs or _NO_KEYWORDS)
    finally:
        state.current = outer
        state.ran, state.running = state.running, running


def call_plainly(function: Any, args: Any, kwargs: Any) -> Any:
    """Make a call whose place could not be found."""
    return function(*args, **kwargs)


def _note_failure(
    state: ThreadState, variant: Any, error: BaseException, args: Any, kwargs: Any
) -> None:
    try:
        failed = state.failed(variant, error, args, kwargs)
        failed.count += 1
        failed.site.last = failed
    except BaseException as fault:
        if not state.recorder.swallows(fault):
            raise


def _pass_on_quietly(state: ThreadState, function: Any, args: Any, kwargs: Any) -> Any:
    """Make a call in which nothing is recorded, kernels included, such as printing a tensor."""
    mode = state.dispatch_mode
    outer = mode is not None and mode.quiet
    try:
        if mode is not None:
            mode.quiet = True
        return function(*args, **kwargs)
    finally:
        if mode is not None:
            mode.quiet = outer


# torch has no types for what makes a mode, the class and the instance.
class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the aten operators that run below a torch call."""

    supports_higher_order_operators = True
    """Or else torch refuses to run ``cond`` and its like."""

    def __init__(self, state: ThreadState) -> None:
        # As above.
        super().__init__()  # type: ignore[no-untyped-call]
        self.state = state
        self.quiet = False
        self.retired = False
        """Whether it only passes calls on until it can be taken off."""
        self._since_inference = torch.is_inference_mode_enabled()

    def retire(self) -> None:
        """Record nothing more, and come off this thread's stack as soon as that does no harm.

        Inference mode ends by putting back the dispatch keys it began with. Where those say that a
        mode is on, there had better be one.
        """
        self.retired = self.quiet = True
        if self._since_inference or not torch.is_inference_mode_enabled():
            leave_dispatch_mode(self)

    @catching_everywhere
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            keywords = kwargs or _NO_KEYWORDS
            if self.quiet or _asked_by_us(_getframe(1).f_code):
                return func(*args, **keywords)
            # It is on in backward passes only, and is not to see the calls made here.
            function_mode = self.state.function_mode
            was_on = has_function_mode(function_mode)
            if not was_on:
                return self._record(func, args, keywords)
            try:
                leave_function_mode(function_mode)
                return self._record(func, args, keywords)
            finally:
                if self.state.entered:
                    put_back(self.state.recorder, enter_function_mode, function_mode)
        except BaseException as error:
            clean(error)
            raise

    def _record(self, func: Any, args: Any, keywords: Any) -> Any:
        """Run an operator, and note that it ran."""
        inputs: Any = None
        try:
            described: list[Any] = []
            collect(args, described)
            collect(keywords, described)
            inputs = tuple(described)
        except BaseException as error:
            if not self.state.recorder.swallows(error):
                raise
        try:
            result = func(*args, **keywords)
        except BaseException as error:
            if inputs is not None:
                self._note(func, args, keywords, inputs, describe_error, error)
            raise
        if inputs is not None:
            self._note(func, args, keywords, inputs, describe_value, result)
        return result

    def _note(
        self, func: Any, args: Any, keywords: Any, inputs: Any, describe: Any, came: Any
    ) -> None:
        state = self.state
        try:
            looks = None
            if state.looks and describe is describe_value:
                looks = state.look_at_kernel(func, came)
            state.add_kernel(func, args, keywords, inputs, describe(came), looks)
        except BaseException as error:
            if not state.recorder.swallows(error):
                raise


def make_as_subclass(original: Any) -> Any:
    """A stand-in for ``Tensor.as_subclass`` that takes our dispatch mode off for it.

    Before torch 2.6 it fails where any mode has seen the tensor that it makes.
    """

    @catching_everywhere
    def as_subclass(*args: Any, **kwargs: Any) -> Any:
        try:
            ours: Any = None
            try:
                for mode in dispatch_modes():
                    if type(mode) is DispatchMode:
                        ours = mode
                        leave_dispatch_mode(mode)
                return original(*args, **kwargs)
            finally:
                if ours is not None:
                    put_back(ours.state.recorder, enter_dispatch_mode, ours)
        except BaseException as error:
            clean(error)
            raise

    return as_subclass


# torch wraps the handler in two frames that keep Dynamo out; it is never on while ours is here.
DispatchMode.__torch_dispatch__ = unwrap(DispatchMode.__torch_dispatch__)  # type: ignore[method-assign]


def _asked_by_us(code: CodeType) -> bool:
    return code.co_filename.startswith(OWN_DIRECTORY) and code is not call_plainly.__code__
