"""``ModelTracer``: the values of a model's outputs, arguments and variables, by path.

    with ModelTracer(model, ["forward", "layers.*.attn.forward.scores"]) as tracer:
        train(model)
    tracer.results["forward"].values, .iterations, .ranks

A value is captured when it has changed since the last capture: another tensor, or one changed in
place; another number or text. Copies are on the CPU, detached. Modules and other objects are kept
as a short text, ``<Linear>``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from torch.nn import Module

from shapetrace._asynchronous import (
    called_by_program,
    clean_if_asynchronous,
    is_asynchronous,
    surely,
)
from shapetrace._errors import CaptureError
from shapetrace._exception_table import catching_everywhere
from shapetrace.capture.capture_session import CaptureSession
from shapetrace.capture.iterations import Iteration
from shapetrace.capture.listeners import RootListener
from shapetrace.capture.problems import CaptureIssue, say
from shapetrace.capture.receivers import interval
from shapetrace.capture.results import Mode, ResultEntry, Round
from shapetrace.ranks.gathering import Gathered, Gathering, gathering_for_this_process
from shapetrace.saving.variable import Callbacks, Variable

_MODES: tuple[Mode, Mode] = ("train", "eval")
_OF_VARIABLE = "\0"
"""In keys of gathered values, separates a name from the index of its variable."""


class ModelTracer:
    """Captures values of a model while its ``with`` block runs, and keeps them.

    Args:
        model: the module that paths begin at; in ``DistributedDataParallel`` and the like or not.
        variables: a list of paths, of ``Variable``s for settings of their own, or of both.
        trace_interval: capture in every so many iterations.
        gathering_interval: gather on rank 0 after every so many iterations.
        pre_save_callbacks: as for ``Variable``, and so on for the next three.
        pre_gather_callbacks: see there.
        post_gather_callbacks: see there.
        post_trace_callbacks: see there.
        eval_only: capture in evaluation only; else both there and in training.
        train_only: capture in training only.

    """

    @called_by_program
    def __init__(
        self,
        model: Module,
        variables: Sequence[str | Variable] | Variable,
        trace_interval: int = 1,
        gathering_interval: int = 1,
        pre_save_callbacks: Callbacks = (),
        pre_gather_callbacks: Callbacks = (),
        post_gather_callbacks: Callbacks = (),
        post_trace_callbacks: Callbacks = (),
        eval_only: bool = False,
        train_only: bool = False,
    ) -> None:
        if not isinstance(model, Module):
            raise CaptureError(f"the model must be an nn.Module, not {type(model).__name__}")
        if isinstance(variables, str):
            raise CaptureError(f"variables are a list: write [{variables!r}], not {variables!r}")
        if not isinstance(variables, (Variable, Iterable)):
            raise CaptureError(f"variables are a list of paths, not {variables!r}")
        # As a Variable, but by the name that it has here.
        interval("gathering_interval", gathering_interval)
        if eval_only and train_only:
            raise CaptureError("eval_only and train_only leave nothing to capture; choose one")
        self.model = model
        given = [variables] if isinstance(variables, Variable) else list(variables)
        own = [each for each in given if isinstance(each, Variable)]
        paths = [each for each in given if not isinstance(each, Variable)]
        mode: Mode | None = "eval" if eval_only else "train" if train_only else None
        common = Variable(
            paths,
            trace_interval,
            gathering_interval,
            pre_save_callbacks,
            pre_gather_callbacks,
            post_gather_callbacks,
            post_trace_callbacks,
            mode,
        )
        self.variables: list[Variable] = [common, *own] if paths or not own else own
        self._problems: list[str] = []
        self._counts: dict[Mode, int] = {"train": 0, "eval": 0}
        self.say: Callable[[str], None] = say
        """Reports problems at once, on stderr."""
        self._running: _Running | None = None
        self._changing: _Running | None = None
        """The run that is just starting or stopping."""
        self._gathering: Gathering | None = None

    @property
    def results(self) -> dict[str, ResultEntry]:
        """The gathered values by name; on rank 0 only."""
        found: dict[str, ResultEntry] = {}
        for variable in self.variables:
            for name, entry in variable.results.items():
                found.setdefault(name, entry)
        return found

    @property
    def local_results(self) -> dict[str, ResultEntry]:
        """The values that this process has captured and not handed over yet, by name."""
        found: dict[str, ResultEntry] = {}
        for variable in self.variables:
            for name, entry in variable.local_results.items():
                found.setdefault(name, entry)
        return found

    @property
    def current_training_iteration(self) -> int:
        """The number of the training iteration that runs or ran last; the first is 1."""
        return self._counts["train"]

    @property
    def current_evaluation_iteration(self) -> int:
        """The number of the evaluation iteration that runs or ran last; the first is 1."""
        return self._counts["eval"]

    @property
    def problems(self) -> list[str]:
        """One line for each thing that could not be captured, and why."""
        gathering = [] if self._gathering is None else self._gathering.problems
        return [*self._problems, *gathering]

    @catching_everywhere
    def __enter__(self) -> Self:
        try:
            if self._running is not None:
                raise CaptureError("this tracer is running already; leave its `with` block first")
            label = ", ".join(path.text for each in self.variables for path in each.paths)
            self._gathering = gathering_for_this_process(label)
            running = self._changing = _Running(self, self._gathering, self._counts)
            running.start()
            self._running, self._changing = running, None
            return self
        except BaseException as error:
            surely(self._give_up)
            clean_if_asynchronous(error)
            raise

    @catching_everywhere
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._changing, self._running = self._running, None
            if self._changing is not None:
                self._stop(self._changing, error)
                self._changing = None
        except BaseException as another:
            surely(self._give_up, True)
            clean_if_asynchronous(another)
            raise

    def _stop(self, running: _Running, error: BaseException | None) -> None:
        try:
            running.stop(has_failed=error is not None)
        except BaseException as failure:
            if error is None or is_asynchronous(failure):
                raise
            # The program's own error is raised; this one is reported.
            text = f"what was captured could not be handed over: {failure!r}"
            self.note(CaptureIssue("lost", text))

    def _give_up(self, is_ending: bool = False) -> None:
        """Remove all listeners after a start or stop that failed."""
        if is_ending and self._changing is None:
            self._changing, self._running = self._running, None
        if self._changing is not None:
            self._changing.stop_watching()
            self._changing = None

    def root_listener(self) -> RootListener:
        """For a call of the model that was under way when the block was entered."""
        if self._running is None:
            raise CaptureError("this tracer is not running")
        return self._running.root_listener()

    def let_model_go(self) -> None:
        """Drop the reference to the model after the last block, so that it can be freed."""
        vars(self).pop("model", None)

    def note(self, issue: CaptureIssue) -> None:
        """Report something that is not captured, once."""
        line = str(issue)
        if line not in self._problems:
            self._problems.append(line)
            self.say(line)


class _Running:
    """A tracer within its block."""

    def __init__(self, tracer: ModelTracer, gathering: Gathering, counts: dict[Mode, int]) -> None:
        self._tracer = tracer
        self._variables = tracer.variables
        self._gathering = gathering
        for variable in self._variables:
            variable.rank = gathering.rank
        self._counts = counts
        self._session = CaptureSession(
            tracer.model, self._variables, counts, tracer.note, self._iteration_ended
        )

    def start(self) -> None:
        """Begin to listen."""
        self._session.start(self._tracer.model)

    def stop_watching(self) -> None:
        """Restore everything that was replaced. Can be repeated after an interruption."""
        self._session.stop()

    def root_listener(self) -> RootListener:
        """Counts calls of the model."""
        return self._session.root_listener()

    def stop(self, *, has_failed: bool) -> None:
        """Stop listening, gather what is left, and call the last callbacks."""
        surely(self.stop_watching)
        if self._session.is_forked:
            return
        try:
            for mode in _MODES:
                self._gather_leftovers(mode)
            self._take_in(self._gathering.finish())
            if self._gathering.is_main:
                for variable in self._variables:
                    variable.finish()
        finally:
            if not has_failed:
                self._session.tell_of_silence()
        if self._session.deferred is not None:
            raise self._session.deferred

    def _iteration_ended(self, iteration: Iteration) -> None:
        mode, number = iteration.mode, iteration.number
        due = [each for each in self._variables if each.is_due(mode, number)]
        if due:
            try:
                self._gather(mode, number, due)
            except BaseException as error:
                if is_asynchronous(error):
                    what = type(error).__name__
                    text = f"values may be missing: {what} came while they were saved"
                    self._tracer.note(CaptureIssue("lost", text))
                raise

    def _gather_leftovers(self, mode: Mode) -> None:
        left: dict[int, list[Variable]] = {}
        for variable in self._variables:
            if variable.has_local(mode):
                number = variable.next_gather(mode, self._counts[mode])
                left.setdefault(number, []).append(variable)
        for number in sorted(left):
            self._gather(mode, number, left[number])

    def _gather(self, mode: Mode, number: int, variables: Iterable[Variable]) -> None:
        rank = self._gathering.rank
        if len(self._variables) == 1:
            entries = self._variables[0].hand_over(mode, number, rank)
            self._take_in(self._gathering.hand_in(Round(number, rank, mode, entries)))
            return
        entries = {}
        for variable in variables:
            handed_over = variable.hand_over(mode, number, rank)
            index = self._variables.index(variable)
            if index:
                # Others may have values of the same name.
                handed_over = {
                    f"{name}{_OF_VARIABLE}{index}": handed_over[name] for name in handed_over
                }
            entries.update(handed_over)
        self._take_in(self._gathering.hand_in(Round(number, rank, mode, entries)))

    def _take_in(self, complete: Iterable[Gathered]) -> None:
        for gathered in complete:
            if len(self._variables) == 1:
                self._variables[0].take_in(gathered)
                continue
            parts: dict[int, dict[str, Any]] = {}
            for key, entry in gathered.items():
                name, _, index = key.partition(_OF_VARIABLE)
                parts.setdefault(int(index or 0), {})[name] = entry
            for position, entries in parts.items():
                self._variables[position].take_in(entries)
