"""The report view: Markdown to paste into an issue.

# Shapes of `train.py`

torch 2.13.0 · 1 forward pass · 14 module calls · 33 ops

## Error
...
## Modules
| Module | Class | Inputs | Outputs | Parameters | Ops | Calls | Where |
...
## Ops
<details><summary>layers.0 (Block)</summary>
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from shapetrace.events.call_tree import Tree, build, walk
from shapetrace.events.model import ModuleCall, Op, Trace
from shapetrace.views.call_text import (
    count_text,
    filled_form,
    module_inputs,
    module_title,
    operands,
    outcome,
)
from shapetrace.views.folding import Entry, Fold, Folding, frames_of
from shapetrace.views.markdown_text import code, fenced, plain, table_row
from shapetrace.views.module_rows import ModuleRow, module_rows
from shapetrace.views.place_text import place_text
from shapetrace.views.shapes import cut_end
from shapetrace.views.styled import StyledText, printable, unstyled
from shapetrace.views.summary import (
    SEPARATOR,
    counted,
    coverage_text,
    human_number,
    program_text,
    run_facts,
)
from shapetrace.views.view_options import ViewOptions

_MOST_CHARACTERS = 60_000
"""An issue takes some more than this; past it, rows are left out and counted."""

_LONGEST_MESSAGE = 4_000
_LONGEST_SHAPES = 120

_MODULE_TITLES = ("Module", "Class", "Inputs", "Outputs", "Parameters", "Ops", "Calls", "Where")
_OP_TITLES = ("Op", "Result", "Calls", "Where")


def render_markdown(trace: Trace, options: ViewOptions | None = None) -> StyledText:
    """A report with a summary, the error if there is one, all modules and their ops."""
    return unstyled(_Report(trace, options or ViewOptions()).text())


class _Report:
    """Writes one trace as Markdown."""

    def __init__(self, trace: Trace, options: ViewOptions) -> None:
        self._trace = trace
        self._options = options
        self._parts: list[str] = []
        self._size = 0

    def text(self) -> str:
        """The whole report."""
        tree = build(self._trace)
        program = program_text(self._trace.run, self._options.base)
        self._add(f"# Shapes of {code(program)}" if program else "# Shapes")
        self._add("")
        facts = [*run_facts(self._trace), printable(f"Python {self._trace.run.python}")]
        self._add(plain(SEPARATOR.join(facts)))
        self._add_errors(tree)
        self._add_modules(module_rows(tree))
        self._add_ops(tree)
        self._add_coverage()
        return "".join(self._parts)

    def _add(self, line: str) -> None:
        self._parts.append(f"{line}\n")
        self._size += len(line) + 1

    def _add_errors(self, tree: Tree) -> None:
        for call in _origins_of_errors(tree):
            if call.error is None:
                continue
            self._add(f"\n## {plain(call.error.type)}\n")
            self._add(fenced(cut_end(call.error.message.strip(), _LONGEST_MESSAGE)))
            self._add("")
            module = self._module_of(call)
            if isinstance(call, Op):
                self._add(f"- Op: {code(filled_form(call))}")
                for operand in operands(call):
                    named = f" {code(operand.name)}" if operand.name else ""
                    self._add(f"  - {operand.role or 'Input'}: {code(operand.text)}{named}")
            if module is not None:
                self._add(f"- Module: {code(module_title(module))}")
            where = place_text(call.file, call.line, self._options.base)
            if where:
                function = f" in {code(printable(call.function))}" if call.function else ""
                self._add(f"- Where: {code(where)}{function}")
            self._add_stack(call)

    def _add_stack(self, call: Op | ModuleCall) -> None:
        frames = {frame.id: frame for frame in self._trace.frames}
        stack = [frames[identity] for identity in call.stack if identity in frames]
        if len(stack) < 2:
            return
        self._add("- Called through, outermost first:")
        for frame in stack[:-1]:
            where = place_text(frame.file, frame.line, self._options.base)
            self._add(f"  - {code(where)} in {code(printable(frame.function))}")

    def _add_modules(self, rows: Sequence[ModuleRow]) -> None:
        if rows:
            self._add("\n## Modules\n")
            self._add_table(_MODULE_TITLES, map(self._module_cells, rows), _MOST_CHARACTERS // 2)

    def _module_cells(self, row: ModuleRow) -> list[str]:
        call = row.call
        path = call.path or call.class_name
        number = "" if call.call == 1 else f" (call {call.call})"
        return [
            code(printable(path)) + number,
            code(printable(call.class_name)),
            code(module_inputs(call, _LONGEST_SHAPES)),
            _result_cell(call),
            human_number(call.parameters) if call.parameters else "",
            str(row.ops),
            "?" if call.count is None else str(call.count),
            code(place_text(call.file, call.line, self._options.base)),
        ]

    def _add_ops(self, tree: Tree) -> None:
        sections = [
            *_sections(tree, Folding(frames_of(self._trace), verbose=self._options.verbose))
        ]
        if sections:
            self._add("\n## Ops")
        left_out = 0
        for module, ops in sections:
            if self._is_full(_MOST_CHARACTERS):
                left_out += 1
                continue
            title = "outside modules" if module is None else module_title(module)
            self._add(f"\n<details><summary>{html.escape(title)}</summary>\n")
            self._add_table(_OP_TITLES, map(self._op_cells, ops), _MOST_CHARACTERS)
            self._add("\n</details>")
        if left_out:
            self._add(f"\n… and the ops of {counted(left_out, 'more module')}.")

    def _op_cells(self, entry: Op | Fold) -> list[str]:
        if isinstance(entry, Fold):
            place = place_text(entry.at.file, entry.at.line, self._options.base)
            return [f"{entry.title}: {code(entry.names)}", "", "", code(place)]
        place = place_text(entry.file, entry.line, self._options.base)
        return [
            code(filled_form(entry)),
            _result_cell(entry),
            count_text(entry.count),
            code(place),
        ]

    def _add_table(
        self, titles: Sequence[str], rows: Iterable[Sequence[str]], most_characters: int
    ) -> None:
        """A table, whose last rows are left out where the report would become too long."""
        self._add(table_row(titles))
        self._add(table_row(["---"] * len(titles)))
        left_out = 0
        for row in rows:
            if self._is_full(most_characters):
                left_out += 1
            else:
                self._add(table_row([cell.replace("|", "\\|") for cell in row]))
        if left_out:
            self._add(f"\n… and {counted(left_out, 'more row')}.")

    def _is_full(self, most_characters: int) -> bool:
        return self._size > most_characters and not self._options.verbose

    def _add_coverage(self) -> None:
        if self._trace.coverage:
            self._add("\n## Not looked at\n")
            for entry in self._trace.coverage:
                self._add(f"- {plain(coverage_text(entry, self._options.base))}")

    def _module_of(self, call: Op | ModuleCall) -> ModuleCall | None:
        if isinstance(call, ModuleCall):
            return call
        return next((module for module in self._trace.modules if module.id == call.module), None)


def _sections(tree: Tree, folding: Folding) -> Iterator[tuple[ModuleCall | None, list[Op | Fold]]]:
    """Each module call with the ops that ran in it and in no other."""
    outside = _ops_of(folding.entries(tree.roots, None))
    if outside:
        yield None, outside
    for _, node in walk(tree.roots):
        if isinstance(node.event, ModuleCall):
            ops = _ops_of(folding.entries(node.children, node.event))
            if ops:
                yield node.event, ops


def _ops_of(shown: Sequence[Entry]) -> list[Op | Fold]:
    """The ops among some entries, each followed by its kernels."""
    ops: list[Op | Fold] = []
    for entry in shown:
        if isinstance(entry, Fold):
            ops.append(entry)
        elif isinstance(entry.event, Op):
            ops.extend(node.event for _, node in walk((entry,)) if isinstance(node.event, Op))
    return ops


def _origins_of_errors(tree: Tree) -> list[Op | ModuleCall]:
    """For each error the innermost call that it ended, which is where it arose."""
    origins: dict[tuple[str, str], Op | ModuleCall] = {}
    for _, node in walk(tree.roots):
        if node.event.error is not None:
            origins[node.event.error.type, node.event.error.message] = node.event
    return list(origins.values())


def _result_cell(call: Op | ModuleCall) -> str:
    if call.error is not None:
        return f"**{plain(call.error.type)}**"
    return code(outcome(call, _LONGEST_SHAPES))
