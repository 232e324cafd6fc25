"""The properties of a module when it is first called from a place: path, class and detail."""

from __future__ import annotations

import inspect
import math
import weakref
from typing import Any, Final

import torch
from torch.nn import Module
from torch.nn.parameter import is_lazy

from shapetrace._asynchronous import is_asynchronous
from shapetrace.recorder.callsite import Site
from shapetrace.recorder.fused import fused_path_check
from shapetrace.recorder.records import ModuleRecord

_MOST_ROOTS: Final = 64
"""Modules below which paths are remembered."""


_MOST_MODULES: Final = 1 << 14
"""Modules that are remembered, so as not to be asked about themselves again."""

_MOST_MISSES: Final = 64
"""Searches in vain for a module below another one, after which only one in so many is made."""


class ModuleBook:
    """Finds the record of a module for a site, and makes it where there is none."""

    def __init__(self, model: Module | None) -> None:
        self._model = None if model is None else weakref.ref(model)
        self._root: weakref.ref[Module] | None = None
        """The outermost module called last."""
        self._paths: dict[int, _Paths] = {}
        self._facts: dict[int, _Facts] = {}
        self._calls: dict[tuple[str, str], list[int]] = {}
        self.records = 0
        """The number of records made, which shows whether anything new was recorded."""

    def record(self, site: Site, module: Module) -> ModuleRecord:
        """The record of a module called from a site."""
        records: dict[int, ModuleRecord] | None = site.modules
        if records is None:
            records = site.modules = {}
        known = records.get(id(module))
        if known is not None and known.reference() is module:
            return known
        path = self._path(site, module)
        for record in records.values():
            # A module created for each call, or a replica of one, is the same to the reader.
            same = record.path == path and record.kind is type(module)
            if same and (record.reference() is None or _is_temporary(path)):
                self._rebind(records, record, module)
                return record
        made = self._make(site, module, path)
        self._rebind(records, made, module)
        return made

    def finish(self, record: ModuleRecord, module: Module) -> None:
        """Look again at a module whose parameters got their shapes during its first call."""
        kind = type(module)
        record.kind = kind
        record.class_name = getattr(kind, "__name__", "Module")
        record.detail = _detail(module)
        record.parameters = count_parameters(module)
        record.unfinished = False
        self._facts.pop(id(module), None)

    @staticmethod
    def _rebind(records: dict[int, ModuleRecord], record: ModuleRecord, module: Module) -> None:
        for identifier in [key for key, value in records.items() if value is record]:
            del records[identifier]
        record.reference = weakref.ref(module)
        displaced = records.get(id(module))
        if displaced is not None:
            # Of a module that is gone; it will be wanted again for the next one like it.
            records[id(displaced)] = displaced
        records[id(module)] = record

    def _make(self, site: Site, module: Module, path: str) -> ModuleRecord:
        self.records += 1
        kind = type(module)
        facts = self._facts_of(module)
        name = getattr(kind, "__name__", "Module")
        original = _child(module, "_orig_mod")
        if name == "OptimizedModule" and isinstance(original, Module):
            name = f"OptimizedModule[{type(original).__name__}]"
        return ModuleRecord(
            site=site,
            reference=weakref.ref(module),
            kind=kind,
            path=path,
            class_name=name,
            detail=facts.detail,
            parameters=facts.parameters,
            unfinished=facts.unfinished,
            forward_names=_forward_names(kind),
            calls=self._calls.setdefault((path, name), [0]),
            fused=fused_path_check(module),
        )

    def _facts_of(self, module: Module) -> _Facts:
        """The ``extra_repr()`` of a module: called once, however many places call the module."""
        facts = self._facts.get(id(module))
        if facts is None or facts.reference() is not module:
            if len(self._facts) >= _MOST_MODULES:
                self._facts.clear()
            facts = self._facts[id(module)] = _Facts(module)
        return facts

    def _path(self, site: Site, module: Module) -> str:
        """The dotted path from the model that was given, or from the outermost module called."""
        model = None if self._model is None else self._model()
        callers = _callers(site)
        if model is None and not callers:
            if torch._C._current_graph_task_id() == -1:
                self._root = weakref.ref(module)
                return ""
            # A checkpoint is computed again in a backward pass, outside of all calls.
            model = None if self._root is None else self._root()
        for root, prefix in [(model, ""), *callers]:
            path = None if root is None else self._path_below(root, module)
            if path is not None:
                return f"{prefix}.{path}" if prefix and path else prefix or path
        return f"<{type(module).__name__}>"

    def _path_below(self, root: Module, module: Module) -> str | None:
        """The dotted path of a module below another one, by identity; None if it is not there."""
        paths = self._paths.get(id(root))
        if paths is None or paths.root() is not root:
            paths = self._paths[id(root)] = _Paths(root)
            if len(self._paths) > _MOST_ROOTS:
                self._paths = {id(root): paths}
        return paths.find(module)


class _Facts:
    """The properties of a module that take long to find out."""

    def __init__(self, module: Module) -> None:
        self.reference = weakref.ref(module)
        self.detail = _detail(module)
        self.parameters = count_parameters(module)
        self.unfinished = any(map(is_lazy, _parameters(module)))


def _callers(site: Site) -> list[tuple[Module | None, str]]:
    """The modules whose calls a site is in, outermost first, with their paths."""
    callers: list[tuple[Module | None, str]] = []
    variant = site.activation.module
    while variant is not None:
        callers.append((variant.record.reference(), variant.record.path))
        variant = variant.parent
    return callers[::-1]


def _is_temporary(path: str) -> bool:
    return "<" in path


class _Paths:
    """The dotted paths of all modules below one, looked up again where they turn out to be old."""

    def __init__(self, root: Module) -> None:
        self.root = weakref.ref(root)
        self._known: dict[int, str] = {}
        self._misses = 0
        """Modules in a row that turned out not to be there, such as those made for one call."""

    def find(self, module: Module) -> str | None:
        root = self.root()
        if root is None:
            return None
        path = self._known.get(id(module))
        if path is not None and _module_at(root, path) is module:
            return path
        self._misses += 1
        if self._misses > _MOST_MISSES and self._misses % _MOST_MISSES:
            return None
        self._known = _paths_below(root)
        path = self._known.get(id(module))
        if path is not None:
            self._misses = 0
        return path


def _paths_below(root: Module) -> dict[int, str]:
    """The shortest path to each module, by identity."""
    paths = {id(root): ""}
    level = [("", root)]
    while level:
        below: list[tuple[str, Module]] = []
        for prefix, parent in level:
            for name, child in parent.__dict__.get("_modules", {}).items():
                if child is not None and id(child) not in paths:
                    paths[id(child)] = f"{prefix}{name}"
                    below.append((f"{prefix}{name}.", child))
        level = below
    return paths


def _module_at(root: Module, path: str) -> Module | None:
    module: Module | None = root
    for name in path.split(".") if path else ():
        module = None if module is None else _child(module, name)
    return module


def _child(module: Module, name: str) -> Module | None:
    children = module.__dict__.get("_modules", {})
    return children[name] if name in children else None  # noqa: SIM401, a scripted module's has no get


def find_parameter(module: Module, tensor: Any) -> str | None:
    """The name under which a module itself holds a parameter or buffer."""
    for kind in ("_parameters", "_buffers"):
        for name, value in module.__dict__.get(kind, {}).items():
            if value is tensor:
                return str(name)
    return None


def _parameters(module: Module) -> Any:
    seen: set[int] = set()
    stack = [module]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for parameter in current.__dict__.get("_parameters", {}).values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter
        stack.extend(
            child for child in current.__dict__.get("_modules", {}).values() if child is not None
        )


def owns_parameters(module: Module) -> bool:
    """Whether a module or one of its children has parameters."""
    return next(_parameters(module), None) is not None


def count_parameters(module: Module) -> int:
    """How many numbers the parameters of a module and its children hold."""
    total = 0
    for parameter in _parameters(module):
        try:
            shape = parameter.shape
        except BaseException as error:  # a lazy parameter has none yet
            if is_asynchronous(error):
                raise
            continue
        if all(type(size) is int for size in shape):  # a symbolic one must not be forced
            total += math.prod(shape)
    return total


def _detail(module: Module) -> str:
    """The module's ``extra_repr()``. It is the program's code, so it may fail or be long."""
    if type(module).extra_repr is Module.extra_repr:
        return ""
    try:
        text = module.extra_repr()
        return " ".join(str(text).split())[:200]
    except BaseException as error:
        if is_asynchronous(error, ran_program=True):
            raise
        return ""


def _forward_names(kind: type) -> tuple[str, ...]:
    """The names of the positional parameters of ``forward``, without self."""
    try:
        forward = inspect.unwrap(getattr(kind, "forward", None) or Module.forward)
    except ValueError as error:  # wrapped in itself
        if is_asynchronous(error):
            raise
        return ()
    code = getattr(forward, "__code__", None)
    if code is None:
        return ()
    return tuple(code.co_varnames[1 : code.co_argcount])


def is_compiled(module: Module) -> bool:
    """Whether calling this module enters code that torch.compile made."""
    return module._compiled_call_impl is not None or type(module).__name__ == "OptimizedModule"
