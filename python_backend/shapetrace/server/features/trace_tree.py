"""The trace tree: modules and ops in the order in which they ran, opened bit by bit.

GPT                     f32[8,32,65] ← i64[8,32]
├─ token_embedding      f32[8,32,48] ← i64[8,32]  Embedding
├─ blocks.0             f32[8,32,48] ← f32[8,32,48]  Block
└─ 140 ops inside torch mul_, add_, sqrt, …

Where there are several processes, they are the outermost nodes. Nothing here is made before it is
asked for, so that a node of a large trace opens as fast as one of a small one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from shapetrace.events.call_tree import Node
from shapetrace.events.model import ModuleCall, Op
from shapetrace.server.features.tree_search import Search
from shapetrace.server.file_records import Call, Key
from shapetrace.server.messages.tree import NodeKind, TreeNode
from shapetrace.server.processes import Process
from shapetrace.server.store import TraceStore
from shapetrace.views.folding import Entry, Fold, Folding
from shapetrace.views.outline import module_label, module_row, op_label, op_row
from shapetrace.views.owners import CallInModule
from shapetrace.views.place_text import short_path
from shapetrace.views.styled import printable
from shapetrace.views.summary import SEPARATOR
from shapetrace.views.tooltips import calls_story

Called = TypeVar("Called", bound=Call)

_FEW = 8
"""So many things in a module may turn out to be nothing that is to be shown."""


class _Listed:
    """The children of one node, as far as they were requested."""

    def __init__(self, changes: int, entries: Iterator[Entry]) -> None:
        self.changes = changes
        self._entries = entries
        self._known: list[Entry] = []

    def up_to(self, count: int) -> Sequence[Entry]:
        """The first entries, made now if they were not before."""
        while len(self._known) < count:
            entry = next(self._entries, None)
            if entry is None:
                break
            self._known.append(entry)
        return self._known

    def index(self, identity: int) -> int | None:
        """The index of a call among them, alone or in a fold."""
        position = 0
        while position < len(self.up_to(position + 1)):
            if identity in _calls_in(self._known[position]):
                return position
            position += 1
        return None


class _Keys:
    """Names of nodes that are equal in every run: the path, with a number if it is not unique.

    What has been named keeps its name, whatever may come in between later.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._keys: dict[int, str] = {}
        self._named: Counter[str] = Counter()

    def key(self, entry: Entry, parent: int | None) -> str:
        """The name of something below a call, with those of all that it is below."""
        # The first op of a fold may be a row of its own, too.
        identity = -1 - entry.ops[0].id if isinstance(entry, Fold) else entry.event.id
        known = self._keys.get(identity)
        if known is None:
            enclosing = None if parent is None else self._process.modules.get(parent)
            above = "" if parent is None else self._keys.get(parent, str(parent))
            known = _numbered(f"{above}/{_name(entry, enclosing)}", self._named)
            self._keys[identity] = known
        return known


class _Outline:
    """The tree of one process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.search = Search(process)
        self._folding = Folding(process.frames, verbose=False)
        self._listed: dict[int | None, _Listed] = {}
        self._found: dict[int | None, _Listed] = {}
        self._text = ""
        self._keys = _Keys(process)
        self._found_keys = _Keys(process)

    def keys(self, entries: Sequence[Entry], parent: int | None, text: str) -> list[str]:
        """The names of the first children of a call, equal in every run."""
        keys = self._found_keys if text else self._keys
        return [keys.key(entry, parent) for entry in entries]

    def below(self, parent: int | None, text: str) -> _Listed:
        """The children of a call that contain the text."""
        if text and not self.search.shows_all_below(parent, text):
            return self._below_found(parent, text)
        changes = self.process.nesting.changes(parent)
        known = self._listed.get(parent)
        if known is None or known.changes != changes:
            module = None if parent is None else self.process.modules.get(parent)
            # Further calls may come while only the first have been asked for.
            children = list(self.process.nesting.children(parent))
            nodes = (self._node(child) for child in children if self._is_there(child))
            if parent in self.process.ops:
                entries: Iterator[Entry] = nodes
            else:
                entries = self._folding.stream(nodes, module)
            known = self._listed[parent] = _Listed(changes, entries)
        return known

    def _below_found(self, parent: int | None, text: str) -> _Listed:
        """Each match is a row of its own; nothing is folded."""
        if self._text != text:
            self._found.clear()
            self._found_keys = _Keys(self.process)
            self._text = text
        version = self.process.nesting.version
        known = self._found.get(parent)
        if known is None or known.changes != version:
            shown = self.search.shown(text)
            children = list(self.process.nesting.children(parent))
            nodes = (self._node(child) for child in children if child in shown)
            known = self._found[parent] = _Listed(version, nodes)
        return known

    def has_children(self, call: Call, text: str) -> bool:
        """Return whether there is anything to show below a call."""
        inside = self.process.nesting.children(call.id)
        if not inside:
            return False
        if len(inside) > _FEW and not text:
            return True
        return bool(self.below(call.id, text).up_to(1))

    def _is_there(self, identity: int) -> bool:
        # A kernel that turned out to be another call's is counted as none.
        return self.process.counts.get(identity) != 0

    def _node(self, identity: int) -> Node:
        call = self.process.call(identity)
        assert call is not None
        inside = self.process.nesting.children(identity) if isinstance(call, Op) else ()
        return Node(call, tuple(self._node(child) for child in inside if self._is_there(child)))


class TraceTree:
    """Answers what is below which node. Nodes are named by the numbers of process and call."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._outlines: dict[int, _Outline] = {}

    def page(
        self, parent: str | None, text: str, offset: int, limit: int, pinned: Key | None
    ) -> tuple[list[TreeNode], bool]:
        """Some of the nodes below one, or the outermost, and whether there are more."""
        text = text.strip().lower()
        processes = self._processes()
        places = self._places(processes)
        if parent is None and len(processes) != 1:
            nodes = [
                self._process_node(each, text, pinned, places[each.number]) for each in processes
            ]
            shown = [node for node in nodes if not text or node.has_children]
            return shown[offset : offset + limit], len(shown) > offset + limit
        if parent is None:
            outline, identity, fold = self._outline(processes[0]), None, None
        else:
            found = self._find(parent)
            if found is None:
                return [], False
            outline, identity, fold = found
        if fold is not None:
            # With a text nothing is folded, so that none of these is looked for.
            entries: Sequence[Entry] = [Node(op) for op in fold.ops]
        else:
            entries = outline.below(identity, text).up_to(offset + limit + 1)
        place = places.get(outline.process.number, "")
        # Those before this page come first, so that they are numbered in order.
        keys = outline.keys(entries[: offset + limit], identity, text)
        nodes = [
            self._node(outline, entry, place + key, identity, text, pinned)
            for entry, key in zip(entries[offset : offset + limit], keys[offset:], strict=True)
        ]
        return nodes, len(entries) > offset + limit

    def path(self, key: Key, text: str) -> list[tuple[str, int]] | None:
        """The nodes from the outermost to a call, each with its position below the one before."""
        text = text.strip().lower()
        processes = self._processes()
        process = self._store.process(key[0])
        if process is None or process not in processes or key[1] not in process.nesting:
            return None
        path: list[tuple[str, int]] = []
        if len(processes) > 1:
            path.append((node_id(process, None), processes.index(process)))
        outline = self._outline(process)
        chain = [*reversed([*process.nesting.above(key[1])]), key[1]]
        parent: int | None = None
        for identity in chain:
            listed = outline.below(parent, text)
            position = listed.index(identity)
            if position is None:
                # Nothing is shown of it but the node above.
                return path or None
            entry = listed.up_to(position + 1)[position]
            if isinstance(entry, Fold):
                path.append((fold_id(process, entry), position))
                position = next(index for index, op in enumerate(entry.ops) if op.id == identity)
            path.append((node_id(process, identity), position))
            parent = identity
        return path

    def call_of(self, node: str) -> Key | None:
        """The process and the call of a node; 0 for a whole process."""
        found = self._find(node)
        if found is None:
            return None
        outline, identity, fold = found
        if fold is not None:
            identity = fold.ops[0].id
        return outline.process.number, identity or 0

    def story(self, node: str) -> str:
        """The tooltip of a node's call, as Markdown; empty for a whole process."""
        found = self._find(node)
        call = None if found is None else found[0].process.call(found[1] or 0)
        if found is None or found[2] is not None or call is None:
            return ""
        process = found[0].process
        module = process.modules.get(call.module or 0) if isinstance(call, Op) else None
        return calls_story([CallInModule(_counted(call, process), process.count(call), module)])

    @staticmethod
    def _places(processes: Sequence[Process]) -> dict[int, str]:
        """The names of processes, equal in every run: their ranks, or their order of arrival."""
        sessions = list(dict.fromkeys(process.session.identity for process in processes))
        named: Counter[str] = Counter()
        places: dict[int, str] = {}
        for process in processes:
            own = "" if process.rank is None else f"rank{process.rank}"
            place = f"{sessions.index(process.session.identity)}.{own}"
            places[process.number] = _numbered(place, named)
        return places

    def _processes(self) -> list[Process]:
        processes = self._store.shown_processes()
        numbers = {process.number for process in processes}
        for number in [number for number in self._outlines if number not in numbers]:
            del self._outlines[number]
        return processes

    def _outline(self, process: Process) -> _Outline:
        known = self._outlines.get(process.number)
        if known is None:
            known = self._outlines[process.number] = _Outline(process)
        return known

    def _find(self, node: str) -> tuple[_Outline, int | None, Fold | None] | None:
        number, _, rest = node.partition(".")
        process = self._store.process(int(number)) if number.isdecimal() else None
        if process is None:
            return None
        outline = self._outline(process)
        if not rest:
            return outline, None, None
        is_fold = rest.startswith("fold")
        digits = rest.removeprefix("fold")
        identity = int(digits) if digits.isdecimal() else None
        if identity is None or identity not in process.nesting:
            return None
        if not is_fold:
            return outline, identity, None
        parent = next(iter(process.nesting.above(identity)), None)
        listed = outline.below(parent, "")
        position = listed.index(identity)
        entry = None if position is None else listed.up_to(position + 1)[position]
        return (outline, parent, entry) if isinstance(entry, Fold) else None

    def _process_node(
        self, process: Process, text: str, pinned: Key | None, place: str
    ) -> TreeNode:
        run = process.run
        program = short_path(run.argv[0], None).rpartition("/")[2] if run.argv else ""
        pid = f"process {run.pid}"
        rank = "" if process.rank is None else f"rank {process.rank}"
        return TreeNode(
            id=node_id(process, None),
            key=place,
            kind="process",
            label=printable(rank or program or pid),
            description=SEPARATOR.join(filter(None, [program if rank else "", pid])),
            has_children=bool(self._outline(process).below(None, text).up_to(1)),
            is_pinned=pinned == (process.number, 0),
        )

    def _node(
        self,
        outline: _Outline,
        entry: Entry,
        key: str,
        parent: int | None,
        text: str,
        pinned: Key | None,
    ) -> TreeNode:
        process = outline.process
        enclosing = None if parent is None else process.modules.get(parent)
        if isinstance(entry, Fold):
            ops = tuple(_counted(op, process) for op in entry.ops)
            return TreeNode(
                id=fold_id(process, entry),
                key=key,
                kind="fold",
                label=replace(entry, ops=ops).title,
                description=entry.names,
                has_children=True,
            )
        call = _counted(entry.event, process)
        if isinstance(call, ModuleCall):
            kind: NodeKind = "module"
            label, row = module_label(call, enclosing), module_row(call, enclosing)
        else:
            kind = "op" if call.level == "torch" else "kernel"
            label, row = op_label(call), op_row(call, call.count)
        has_children = outline.has_children(call, text)
        return TreeNode(
            id=node_id(process, call.id),
            key=key,
            kind=kind,
            label=label,
            description=row,
            has_children=has_children,
            is_expanded=has_children and bool(text) and outline.search.is_above(call.id, text),
            is_pinned=pinned == (process.number, call.id),
            is_failed=call.error is not None,
        )


def node_id(process: Process, call: int | None) -> str:
    """The id of a node between editor and server."""
    return str(process.number) if call is None else f"{process.number}.{call}"


def fold_id(process: Process, fold: Fold) -> str:
    """The id of a node that stands for several ops in a row."""
    return f"{process.number}.fold{fold.ops[0].id}"


def _name(entry: Entry, enclosing: ModuleCall | None) -> str:
    """The name of an entry among its siblings, which does not depend on shapes."""
    if isinstance(entry, Fold):
        return f"({entry.library})"
    call = entry.event
    if isinstance(call, Op):
        return call.name
    number = "" if call.call == 1 else f":{call.call}"
    return f"{module_label(call, enclosing)}:{call.class_name}{number}"


def _numbered(name: str, named: Counter[str]) -> str:
    """A name that nothing else has got."""
    named[name] += 1
    return name if named[name] == 1 else f"{name}#{named[name]}"


def _counted(call: Called, process: Process) -> Called:
    """A call with its current count."""
    count = process.counts.get(call.id)
    return call if count is None or count == call.count else replace(call, count=count)


def _calls_in(entry: Entry) -> Iterator[int]:
    if isinstance(entry, Fold):
        yield from (op.id for op in entry.ops)
    else:
        yield entry.event.id
