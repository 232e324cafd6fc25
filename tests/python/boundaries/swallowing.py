"""Which clauses may swallow exceptions, and a reader of the source that tells which others do.

What is raised in a handler of signals, or set from another thread, comes in whatever code runs. So
a clause that catches what it may be either raises it again, or asks whether it is the program's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WIDE = frozenset(
    {
        *("BaseException", "Exception", "KeyboardInterrupt", "SystemExit"),
        *("OSError", "IOError", "EnvironmentError", "TimeoutError", "InterruptedError"),
        *("RuntimeError", "MemoryError"),
    }
)
"""What programs have raised from outside. Timeouts are errors of the system's to Python.

Not RecursionError: where there is no room for our frames, it is never the program's.
"""

ASKING = frozenset({"is_asynchronous", "swallows"})
"""What tells the program's own exceptions from faults of ours."""

OURS_ALONE: dict[str, str] = {
    "server": "the language server is a process of its own",
    "transport.connection": "only the sender uses it, on the agent's thread",
    "transport.framing": "only the sender uses it, on the agent's thread",
    "transport.sender": "used on the agent's thread, and after the program's end",
    "cli.show": "runs no program",
    "events.trace_loading": "only commands that run no program read traces in this way",
    "hdf5.reader_process": "runs in a process of its own, for commands that run no program",
    "ranks.mail": "used on threads of ours only",
    "ranks.collecting:Collector._run": "runs on a thread of ours",
    "ranks.sending:Sender._run": "runs on a thread of ours",
    "agent.agent:Agent._run": "runs on a thread of ours",
    "agent.debugger:has_breakpoint_in": "asked on the agent's thread",
    "cli.helper_thread:HelperThread._next_wait": "runs on a thread of ours",
    "cli.main": "before the program, or for commands that run none",
    "cli.program:PreparedProgram": "hands on how the program has ended",
    "cli.program:_read": "before the program",
    "cli.traced_run:TracedRun.finish": "after the program's end, undisturbed by its handlers",
    "cli.traced_run:TracedRun._give_out": "after the program's end, undisturbed by its handlers",
    "cli.traced_run:TracedRun._write": "after the program's end, undisturbed by its handlers",
    "cli.traced_run:TracedRun._show": "after the program's end, undisturbed by its handlers",
    "cli.traced_run:TracedRun._leave": "after the program's end",
    "cli.captured_run:CapturedRun.finish": "after the program's end",
    "cli.captured_run:CapturedRun._hand_out_values": "the same, undisturbed by its handlers",
    "cli.watched_run:WatchedRun.finish": "after the program's end, undisturbed by its handlers",
    "process.undisturbed": "after the program's end, when Python drops what its handlers raise",
    "recorder.tracebacks:LastWord": "shows the error that has ended the program",
    "cli.program:_working_directory": "before the program",
    "cli.program_end": "the program has ended; what its hook raises is shown as Python does",
    "cli.progress:Progress._write": "on a thread of ours, and after the program's end",
    "cli.terminal:Terminal.anew": "as a signal ends the process",
    "cli.terminal:_opened_anew": "as a signal ends the process",
    "process.fatal:_Handlers._handle": "as a signal ends the process",
}
"""Modules, and functions in them, whose clauses no exception of the program's can come to."""

NOT_THE_PROGRAMS: dict[str, str] = {
    "agent.bootstrap:_after_fork_in_child": "Python drops what is raised in callbacks of forks",
    "agent.in_place:_evaluate": "the debugger too shows whatever comes while it evaluates",
    "hdf5.reading:opened": "a MemoryError, of a file that claims to be too large",
    "events.codec:read_all": "a MemoryError, of a file that is too large",
    "recorder.bindings:_parsed": "a MemoryError, of the parser: too many parentheses",
}
"""Functions whose clauses catch what only code in C raises, or what the user asked for."""


@dataclass(frozen=True)
class Clause:
    """One that swallows what may be the program's."""

    place: str
    """``module:function``."""
    line: int
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}: {', '.join(self.kinds)}"


def swallowing(root: Path) -> list[Clause]:
    """All clauses below a folder that swallow without asking."""
    trees = {
        ".".join(path.relative_to(root).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in sorted(root.rglob("*.py"))
    }
    asking = _that_ask(trees.values())
    return [each for module, tree in trees.items() for each in _clauses(module, tree, asking)]


def unjustified(clauses: Iterable[Clause]) -> list[str]:
    """Those that stand in no list, each as one line."""
    return [str(each) for each in clauses if not any(_is_in(each.place, it) for it in _LISTED)]


def superfluous(clauses: Iterable[Clause]) -> list[str]:
    """What is listed, and of which no clause is left."""
    places = [each.place for each in clauses]
    return [it for it in _LISTED if not any(_is_in(place, it) for place in places)]


_LISTED = (*OURS_ALONE, *NOT_THE_PROGRAMS)


def _is_in(place: str, listed: str) -> bool:
    return place == listed or place.startswith((f"{listed}.", f"{listed}:"))


def _clauses(module: str, tree: ast.Module, asking: frozenset[str]) -> Iterator[Clause]:
    for function, node in _in_functions(tree, ""):
        match node:
            case ast.ExceptHandler(type=kind, body=body, name=name):
                kinds = _kinds(kind)
                if not _raises_again(body[-1], name) and not _asks(body, asking, name):
                    yield from _wide(f"{module}:{function}", node.lineno, kinds)
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
                kinds = tuple(map(ast.unparse, args))
                yield from _wide(f"{module}:{function}", node.lineno, kinds)


def _wide(place: str, line: int, kinds: tuple[str, ...]) -> Iterator[Clause]:
    found = tuple(each for each in kinds if each.rpartition(".")[2] in WIDE)
    if found:
        yield Clause(place, line, found)


def _kinds(kind: ast.expr | None) -> tuple[str, ...]:
    if kind is None:
        return ("BaseException",)
    parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return tuple(map(ast.unparse, parts))


def _in_functions(node: ast.AST, around: str) -> Iterator[tuple[str, ast.AST]]:
    """All nodes, each with the qualified name of the function or class it is in."""
    for child in ast.iter_child_nodes(node):
        yield around, child
        inside = around
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{around}.{child.name}".lstrip(".")
        yield from _in_functions(child, inside)


def _raises_again(last: ast.stmt, name: str | None) -> bool:
    """Whether a clause ends by raising the very exception that it has caught."""
    if not isinstance(last, ast.Raise):
        return False
    return last.exc is None or (isinstance(last.exc, ast.Name) and last.exc.id == name)


def _asks(body: Iterable[ast.AST], asking: frozenset[str], name: str | None) -> bool:
    """Whether what was caught is given to something that asks whose it is."""
    return any(called in asking and given == name for called, given in _given(body))


def _given(body: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What is called with which variables."""
    for each in body:
        for call in ast.walk(each):
            if isinstance(call, ast.Call):
                called = ast.unparse(call.func).rpartition(".")[2]
                for argument in call.args:
                    if isinstance(argument, ast.Name):
                        yield called, argument.id


def _that_ask(trees: Iterable[ast.Module]) -> frozenset[str]:
    """The names of functions that ask about a parameter; all functions of that name do so."""
    definitions: dict[str, list[set[str]]] = {}
    """For each function, what it calls with a parameter of its own."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                caught = {it.name for it in ast.walk(node) if isinstance(it, ast.ExceptHandler)}
                own = {each.arg for each in node.args.args} - caught
                called = {called for called, given in _given(node.body) if given in own}
                definitions.setdefault(node.name, []).append(called)
    asking = ASKING
    while True:
        more = {name for name, found in definitions.items() if all(each & asking for each in found)}
        if more <= asking:
            return asking
        asking |= more
