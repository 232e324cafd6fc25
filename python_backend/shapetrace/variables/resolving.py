"""Resolves a followed name in a variable's value, without running code of the program's.

Attributes are those that an object has by itself: no property, ``__getattr__`` or ``__getitem__``
is asked. Modules' parameters, buffers and submodules are found, gradients of tensors, and what a
``UserDict`` holds.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, UserDict, UserList, deque
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.attributes import own_attributes, tuple_fields
from shapetrace.variables.followed_names import Step
from shapetrace.variables.loaded import Tensors, loaded_tensors

MISSING: Final = object()
"""Stands for what is not there."""

_OF_MODULES: Final = ("_parameters", "_buffers", "_modules")
_ROWS: Final = (list, tuple, deque)


def resolve(value: Any, steps: tuple[Step, ...]) -> Any:
    """The value that steps lead to, or ``MISSING``."""
    for is_item, name in steps:
        value = _item(value, name) if is_item else _attribute(value, str(name))
        if value is MISSING:
            return MISSING
    return value


def _item(value: Any, key: Any) -> Any:
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        return value.get(key, MISSING)
    classes = classes_of(kind)
    if dict in classes:
        return dict.get(value, key, MISSING)
    for row in _ROWS:
        if row in classes:
            if type(key) is not int:
                return MISSING
            try:
                return row.__getitem__(value, key)
            except IndexError as error:
                if is_asynchronous(error):
                    raise
                return MISSING
    if UserDict in classes or UserList in classes:
        data = own_attributes(value, classes).get("data", MISSING)
        return MISSING if type(data) not in (dict, list) else _item(data, key)
    return _module_item(value, key, classes)


def _module_item(value: Any, key: Any, classes: tuple[type, ...]) -> Any:
    """One of the modules in a ``ModuleList``, ``ModuleDict`` or ``Sequential``."""
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    if module not in classes:
        return MISSING
    children: Any = own_attributes(value, classes).get("_modules")
    if type(children) not in (dict, OrderedDict):  # the second before torch 2.5
        return MISSING
    if type(key) is int:
        key = str(key if key >= 0 else len(children) + key)
    return children.get(key, MISSING)


def _attribute(value: Any, name: str) -> Any:
    kind = type(value)
    classes = classes_of(kind)
    if type in classes:
        for each in classes_of(value):
            if name in each.__dict__:
                return each.__dict__[name]
        return MISSING
    if tuple in classes:
        fields = tuple_fields(kind)
        if fields is not None and name in fields:
            return tuple.__getitem__(value, fields.index(name))
    tensors = loaded_tensors()
    if name == "grad" and tensors is not None and kind in tensors.plain:
        return _gradient(value, tensors)
    attributes = own_attributes(value, classes)
    found = attributes.get(name, MISSING)
    if found is not MISSING:
        return found
    for table in _OF_MODULES:
        held: Any = attributes.get(table)
        if type(held) in (dict, OrderedDict) and name in held:
            return held[name]
    data = attributes.get("data") if UserDict in classes else None
    if type(data) is dict and name in data:  # transformers' BatchEncoding has them both ways
        return data[name]
    return _of_class(classes, name)


@leaving_surely
def _gradient(tensor: Any, tensors: Tensors) -> Any:
    """The gradient of a tensor that keeps one; reading others makes torch warn."""
    with tensors.as_is():
        return tensor.grad if tensor.is_leaf or tensor.retains_grad else MISSING


def _of_class(classes: tuple[type, ...], name: str) -> Any:
    """A class attribute that is a plain value and no descriptor."""
    for each in classes:
        if name in each.__dict__:
            found = each.__dict__[name]
            return MISSING if hasattr(type(found), "__get__") else found
    return MISSING
