"""One row for each module call: what the table and the report both list."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.events.call_tree import Node, Tree, walk
from shapetrace.events.model import ModuleCall, Op
from shapetrace.views.call_text import total_calls
from shapetrace.views.styled import printable


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A module call with what a table says of it beside the call itself."""

    call: ModuleCall
    depth: int
    """How many module calls it is in."""
    name: str
    """Its path from the module it was called in."""
    ops: int
    """How many ops ran in it and in the modules below it."""


def module_rows(tree: Tree) -> list[ModuleRow]:
    """All module calls, each before those it made."""
    order = list(walk(tree.roots))
    ops = _ops_inside(order)
    rows: list[ModuleRow] = []
    above: list[ModuleCall] = []
    for depth, node in order:
        if isinstance(node.event, ModuleCall):
            del above[depth:]
            enclosing = above[-1] if above else None
            above.append(node.event)
            rows.append(ModuleRow(node.event, depth, _name(node.event, enclosing), ops[node]))
    return rows


def total_parameters(rows: list[ModuleRow]) -> int:
    """The parameters of the outermost modules, each module counted once."""
    outermost = {
        (row.call.class_name, row.call.detail, row.call.parameters)
        for row in rows
        if row.depth == 0
    }
    return sum(parameters for _, _, parameters in outermost)


def ops_outside(tree: Tree) -> int:
    """How many ops ran in no module."""
    return total_calls(
        node.event
        for node in tree.roots
        if isinstance(node.event, Op) and node.event.level == "torch"
    )


def _ops_inside(order: list[tuple[int, Node]]) -> dict[Node, int]:
    """The number of torch-level ops in each module call, from a walk through all nodes."""
    ops: dict[Node, int] = {}
    for _, node in reversed(order):
        if isinstance(node.event, ModuleCall):
            ops[node] = sum(ops[child] for child in node.children)
        else:
            ops[node] = node.event.count if node.event.level == "torch" else 0
    return ops


def _name(call: ModuleCall, enclosing: ModuleCall | None) -> str:
    name = call.path
    if enclosing is not None and enclosing.path:
        name = name.removeprefix(f"{enclosing.path}.")
    # A call number that the enclosing call has too is not repeated.
    told = call.call == 1 or (enclosing is not None and enclosing.call == call.call)
    number = "" if told else f" (call {call.call})"
    return printable((name or call.class_name) + number)
