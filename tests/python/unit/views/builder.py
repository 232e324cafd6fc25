"""Builds traces for view tests: programs as text, and what they did as nested calls.

Places are given by the expression itself, which must stand in its source once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from shapetrace.events.model import (
    Coverage,
    ErrorInfo,
    Frame,
    ModuleCall,
    Op,
    Tensor,
    Trace,
    Value,
)
from tests.support.runs import made_run

FOLDER = "/home/ada/project"


def f32(*shape: int, name: str | None = None) -> Tensor:
    return Tensor(shape=shape, dtype="float32", name=name)


def i64(*shape: int, name: str | None = None) -> Tensor:
    return Tensor(shape=shape, dtype="int64", name=name)


class Recording:
    """What a program did, in the order in which it is told."""

    def __init__(
        self, sources: Mapping[str, str], *, argv: Sequence[str] = ("train.py",), passes: int = 1
    ) -> None:
        self._sources = {f"{FOLDER}/{name}": text for name, text in sources.items()}
        self._argv = (f"{FOLDER}/{argv[0]}", *argv[1:]) if argv else ()
        self._passes = passes
        self._frames: list[Frame] = []
        self._modules: list[ModuleCall] = []
        self._ops: list[Op] = []
        self._stack: list[int] = []
        self._inside: list[int] = []
        self._next_id = 1
        self.coverage: list[Coverage] = []

    def read_source(self, path: str) -> bytes | None:
        text = self._sources.get(path)
        return None if text is None else text.encode()

    def trace(self) -> Trace:
        files = {
            path: hashlib.sha256(text.encode()).hexdigest() for path, text in self._sources.items()
        }
        return Trace(
            run=made_run(self._argv, files, self._passes),
            modules=tuple(self._modules),
            ops=tuple(self._ops),
            frames=tuple(self._frames),
            coverage=tuple(self.coverage),
        )

    @contextmanager
    def module(
        self,
        path: str,
        class_name: str,
        at: tuple[str, str],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        *,
        detail: str = "",
        names: Sequence[str] = (),
        count: int | None = 1,
        call: int = 1,
        parameters: int = 0,
        result: str | None = None,
        error: ErrorInfo | None = None,
        note: str | None = None,
        in_library: bool = False,
    ) -> Iterator[None]:
        """A module call; with ``in_library`` it has no frame of its own."""
        frame = self._frame(at)
        stack = (*self._stack,) if in_library else (*self._stack, frame.id)
        call_id = self._new_id()
        self._modules.append(
            ModuleCall(
                id=call_id,
                parent=self._inside[-1] if self._inside else None,
                path=path,
                class_name=class_name,
                detail=detail,
                call=call,
                count=count,
                file=frame.file,
                line=frame.line,
                column=frame.column,
                end_line=frame.end_line,
                end_column=frame.end_column,
                function=frame.function,
                stack=stack,
                inputs=tuple(inputs),
                input_names=tuple(names),
                outputs=tuple(outputs),
                result=result,
                parameters=parameters,
                error=error,
                note=note,
            )
        )
        before = list(self._stack)
        self._stack[:] = stack
        self._inside.append(call_id)
        yield
        self._inside.pop()
        self._stack[:] = before

    @contextmanager
    def function(self, at: tuple[str, str]) -> Iterator[None]:
        """A plain function that the program calls."""
        self._stack.append(self._frame(at).id)
        yield
        self._stack.pop()

    def op(
        self,
        name: str,
        form: str,
        at: tuple[str, str],
        inputs: Sequence[Tensor],
        outputs: Sequence[Value],
        *,
        label: str | None = None,
        result: str | None = None,
        direct: bool = True,
        count: int = 1,
        error: ErrorInfo | None = None,
        parent: int | None = None,
        thread: str | None = None,
    ) -> int:
        """One op; one that is not direct stands where its module or function was called."""
        frame = self._frame(at)
        stack = (*self._stack, frame.id)
        if not direct and self._stack and self._frame_of(self._stack[-1]) == frame:
            stack = (*self._stack,)
        op_id = self._new_id()
        self._ops.append(
            Op(
                id=op_id,
                name=name,
                label=label or form,
                form=form,
                module=self._inside[-1] if self._inside else None,
                function=frame.function,
                file=frame.file,
                line=frame.line,
                column=frame.column,
                end_line=frame.end_line,
                end_column=frame.end_column,
                direct=direct,
                stack=stack,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                result=result,
                count=count,
                level="torch" if parent is None else "aten",
                parent=parent,
                error=error,
                thread=thread,
            )
        )
        return op_id

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _frame_of(self, identity: int) -> Frame:
        return self._frames[identity]

    def _frame(self, at: tuple[str, str]) -> Frame:
        """The frame that was at an expression: ``("MHA.forward", "self.query(x)")``."""
        function, expression = at
        path, text, start = self._find(expression)
        end = start + len(expression)
        line = text.count("\n", 0, start) + 1
        end_line = text.count("\n", 0, end) + 1
        column = len(text[text.rfind("\n", 0, start) + 1 : start].encode())
        end_column = len(text[text.rfind("\n", 0, end) + 1 : end].encode())
        for frame in self._frames:
            place = (frame.file, frame.line, frame.column, frame.end_line, frame.end_column)
            if place == (path, line, column, end_line, end_column) and frame.function == function:
                return frame
        frame = Frame(len(self._frames), path, line, function, column, end_line, end_column)
        self._frames.append(frame)
        return frame

    def _find(self, expression: str) -> tuple[str, str, int]:
        found = [
            (path, text, text.index(expression))
            for path, text in self._sources.items()
            for _ in range(text.count(expression))
        ]
        if len(found) != 1:
            raise ValueError(f"{expression!r} stands {len(found)} times in the sources")
        return found[0]
