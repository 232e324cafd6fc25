"""How values look at a stop: in Variables, Watch, the debug console and the hover.

    x       f32[2,16,64] · requires grad
    layers  ModuleList(Block ×12) 85.1M params
    batch   {input_ids: i64[2,7], attention_mask: i64[2,7]}

``presentation`` and ``children`` are plain functions that know no debugger; ``agent.panes`` hands
them to debugpy's. The standard library is all they need: what torch and NumPy brought along is
looked up in ``sys.modules``.

Modules:

- ``presentation``: the text of a value, or None where the debugger's own is right
- ``tensors``: tensors, storages and arrays in a few characters
- ``module_text``: modules in a few characters
- ``texts``: numbers, strings and keys in a few characters
- ``holders``: containers and objects, by the tensors in them
- ``contents``: the children of an opened value
- ``child_entries``: one child: its name, value and expression
- ``fields``: the children of dataclasses, named tuples and dictionaries
- ``tensor_contents``: statistics and first values of an opened tensor
- ``origin``: where a variable's tensor was assigned, by the bytecode
"""

from __future__ import annotations

from shapetrace.panes.child_entries import ChildEntry
from shapetrace.panes.contents import children, may_open, opens
from shapetrace.panes.fields import own_entries
from shapetrace.panes.presentation import is_leaf, presentation

__all__ = ["ChildEntry", "children", "is_leaf", "may_open", "opens", "own_entries", "presentation"]
