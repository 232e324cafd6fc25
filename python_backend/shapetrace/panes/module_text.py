"""Modules in a few characters.

    Linear(512 → 784) 402k params
    Conv2d(3 → 64, 3×3) 1.79k params
    Sequential(Linear, ReLU, Linear) 1.2M params
    ModuleList(Block ×12) 85.1M params
    GPT 124M params

Only what a module has in its own ``__dict__`` is looked at: what it computes is the program's code.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, TypeGuard

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind
from shapetrace._exception_table import covering_jumps, leaving_surely
from shapetrace.events.model import Container, Other, Value
from shapetrace.inspecting.torch_access import Torch
from shapetrace.panes.tensors import shape_text
from shapetrace.views.shapes import value_text
from shapetrace.views.summary import human_number

_FLOWS = (
    ("in_features", "out_features"),
    ("in_channels", "out_channels"),
    ("num_embeddings", "embedding_dim"),
    ("input_size", "hidden_size"),
)
"""Attributes that say what goes into a module and what comes out."""
_SIZES = ("normalized_shape", "num_features", "num_channels", "embed_dim", "d_model", "p")
"""Attributes that say the size of a module that changes nothing about it, or what it drops."""
_MOST_COUNTED = 20_000
"""Modules and parameters below one that are counted."""
_MOST_CHILDREN = 16
_LONGEST = 80


def module_line(module: Any, torch: Torch) -> str:
    """The text of a module: its class, its sizes, its number of parameters."""
    text = module_name(module, torch)
    try:
        count = _count_text(module, torch)
    except Exception as error:
        if is_asynchronous(error):
            raise
        count = ""
    if count:
        return f"{text} {count}"
    return text if "(" in text else f"{text}()"


def module_name(module: Any, torch: Torch) -> str:
    """A module among others: ``Linear(512 → 784)``."""
    name = type(module).__name__
    try:
        attributes = own_attributes(module)
        original = _original_name(module, torch, attributes)
        if original:
            return f"{name}[{original}]"
        if _is_container(module, torch):
            return _container_text(name, attributes["_modules"])
        if _is_list_of_parameters(module, torch):
            return _parameters_text(name, attributes["_parameters"], torch)
        sizes = _sizes(attributes)
        return f"{name}({', '.join(sizes)})" if sizes else name
    except Exception as error:
        if is_asynchronous(error):
            raise
        return name


def own_attributes(module: Any) -> dict[str, Any]:
    """The attributes in a module's own ``__dict__``."""
    attributes: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return attributes


def _original_name(module: Any, torch: Torch, attributes: dict[str, Any]) -> str | None:
    """The class of the module that a compiled or scripted one was made of."""
    if torch.script_module in classes_of(type(module)):
        inner = own_attributes(_scripted(module))
        return str(inner["_c"]._type().name()) if "_c" in inner else attributes.get("_name")
    original = attributes["_modules"].get("_orig_mod")
    is_compiled = type(module).__name__ == "OptimizedModule" and original is not None
    return type(original).__name__ if is_compiled else None


def _scripted(module: Any) -> Any:
    """The module in which a traced module keeps its parts."""
    return own_attributes(module).get("_actual_script_module", module)


def _is_list_of_parameters(module: Any, torch: Torch) -> bool:
    kinds = torch.torch.nn
    lists = (kinds.ParameterList, kinds.ParameterDict)
    return any(is_kind(type(module), each) for each in lists) and bool(own_attributes(module))


def _parameters_text(name: str, parameters: Any, torch: Torch) -> str:
    shown = list(islice(parameters.items(), 64))
    items: tuple[Value, ...] = tuple(Other(_plain_shape(each, torch)) for _, each in shown)
    keys = None if all(key.isdigit() for key, _ in shown) else tuple(key for key, _ in shown)
    return value_text(Container(name, items, keys, len(parameters)), _LONGEST)


def _plain_shape(parameter: Any, torch: Torch) -> str:
    """The shape of a parameter where all are parameters."""
    return "None" if parameter is None else shape_text(parameter, torch)


def _is_container(module: Any, torch: Torch) -> bool:
    """Return whether a module is no more than the modules in it."""
    kinds = torch.torch.nn
    containers = (kinds.Sequential, kinds.ModuleList, kinds.ModuleDict)
    kind = type(module)
    return any(is_kind(kind, each) for each in containers) and bool(own_attributes(module))


def _container_text(name: str, children: Any) -> str:
    shown = list(islice(children.items(), 64))
    items: tuple[Value, ...] = tuple(Other(type(child).__name__) for _, child in shown)
    keys = None if all(key.isdigit() for key, _ in shown) else tuple(key for key, _ in shown)
    container = Container(name, items, keys, len(children))
    return value_text(container, _LONGEST)


def _sizes(attributes: dict[str, Any]) -> list[str]:
    texts: list[str] = []
    for into, out in _FLOWS:
        if _is_size(attributes.get(into)) and _is_size(attributes.get(out)):
            # A lazy module learns what goes into it from the first tensor.
            texts.append(f"{attributes[into] or '?'} → {attributes[out]}")
            break
    else:
        for name in _SIZES:
            text = _size_text(attributes.get(name))
            if text:
                texts.append(text)
                break
    kernel = attributes.get("kernel_size")
    if _is_tuple_of_sizes(kernel):
        texts.append("×".join(map(str, kernel)))
    heads = attributes.get("num_heads")
    if _is_size(heads):
        texts.append(f"{heads} heads")
    layers = attributes.get("num_layers")
    if _is_size(layers) and layers > 1:
        texts.append(f"{layers} layers")
    return texts


def _is_size(value: Any) -> TypeGuard[int]:
    return type(value) is int


def _is_tuple_of_sizes(value: Any) -> TypeGuard[tuple[int, ...]]:
    return type(value) is tuple and 0 < len(value) <= 8 and all(map(_is_size, value))


def _size_text(value: Any) -> str:
    if type(value) in (int, float):
        return f"{value}"
    return ", ".join(map(str, value)) if _is_tuple_of_sizes(value) else ""


@leaving_surely
def _count_text(module: Any, torch: Torch) -> str:
    """``402k params``: how many numbers the parameters of a module and those below it have."""
    with torch.as_is():
        counted = _Counted(torch)
        counted.add(module)
    texts = (
        [] if not counted.numbers else [f"{counted.prefix}{human_number(counted.numbers)} params"]
    )
    if counted.has_lazy:
        texts.append("not initialized")
    return ", ".join(texts)


class _Counted:
    """The parameters below a module, each once."""

    def __init__(self, torch: Torch) -> None:
        self.numbers = 0
        self.has_lazy = False
        self.prefix = ""
        self._torch = torch
        self._seen: set[int] = set()

    def add(self, root: Any) -> None:
        stack = [root]
        seen = self._seen
        left = _MOST_COUNTED
        while stack:
            module = stack.pop()
            if module is None or id(module) in seen:
                continue
            if left <= 0:
                self.prefix = "≥ "
                return
            seen.add(id(module))
            attributes = own_attributes(module)
            if "_actual_script_module" in attributes:
                attributes = own_attributes(attributes["_actual_script_module"])
            parameters = attributes.get("_parameters")
            if parameters:
                held = list(parameters.values())
                left -= len(held)
                for parameter in held:
                    self._add_parameter(parameter)
            children = attributes.get("_modules")
            if children:
                stack.extend([child for _, child in children.items()])
            left -= 1

    @covering_jumps
    def _add_parameter(self, parameter: Any) -> None:
        if parameter is None or id(parameter) in self._seen:
            return
        self._seen.add(id(parameter))
        if type(parameter) is self._torch.parameter:
            size = self._torch.base.numel(parameter)
            if type(size) is int:  # a symbolic one must not be forced
                self.numbers += size
            return
        if "UninitializedTensorMixin" in [each.__name__ for each in classes_of(type(parameter))]:
            self.has_lazy = True
            return
        try:
            shape = self._torch.base.shape.__get__(parameter)
            if all(type(size) is int for size in shape):  # a symbolic one must not be forced
                self.numbers += math.prod(shape)
        except Exception as error:
            if is_asynchronous(error):
                raise
            self.has_lazy = True
