"""What is known of a module when it is first called from a place: its path, class and detail."""

from __future__ import annotations

import inspect
import math
import weakref
from typing import Any

from torch.nn import Module

from shapetrace.recorder.callsite import Site
from shapetrace.recorder.fused import fused_path_check
from shapetrace.recorder.records import ModuleRecord


class ModuleBook:
    """Finds the record of a module for a site, and makes it where there is none."""

    def __init__(self, model: Module | None) -> None:
        self._model = None if model is None else weakref.ref(model)
        self._calls: dict[tuple[str, str], list[int]] = {}
        self.records = 0
        """How many records were made, which tells whether anything new was seen."""

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
            # A module made anew for each call, or a replica of one, is the same to the reader.
            same = record.path == path and record.kind is type(module)
            if same and (record.reference() is None or _is_temporary(path)):
                self._rebind(records, record, module)
                return record
        made = records[id(module)] = self._make(site, module, path)
        return made

    @staticmethod
    def _rebind(records: dict[int, ModuleRecord], record: ModuleRecord, module: Module) -> None:
        for identifier in [key for key, value in records.items() if value is record]:
            del records[identifier]
        record.reference = weakref.ref(module)
        records[id(module)] = record

    def _make(self, site: Site, module: Module, path: str) -> ModuleRecord:
        self.records += 1
        kind = type(module)
        name = getattr(kind, "__name__", "Module")
        original = getattr(module, "_orig_mod", None)
        if name == "OptimizedModule" and isinstance(original, Module):
            name = f"OptimizedModule[{type(original).__name__}]"
        return ModuleRecord(
            site=site,
            reference=weakref.ref(module),
            kind=kind,
            path=path,
            class_name=name,
            detail=_detail(module),
            parameters=count_parameters(module),
            forward_names=_forward_names(kind),
            calls=self._calls.setdefault((path, name), [0]),
            fused=fused_path_check(module),
        )

    def _path(self, site: Site, module: Module) -> str:
        """The dotted path from the model that was given, or from the outermost module called."""
        model = None if self._model is None else self._model()
        outermost = _outermost(site)
        for root in (model, outermost):
            if root is None:
                continue
            path = find_path(root, module)
            if path is not None:
                return path
        return "" if model is None and outermost is None else f"<{type(module).__name__}>"


def _outermost(site: Site) -> Module | None:
    """The outermost module whose call a site is in."""
    variant = site.activation.module
    if variant is None:
        return None
    while variant.parent is not None:
        variant = variant.parent
    root: Module | None = variant.record.reference()
    return root


def _is_temporary(path: str) -> bool:
    return path.endswith(">")


def find_path(root: Module, module: Module) -> str | None:
    """The dotted path of a module below another one, by identity; None where it is not there."""
    if root is module:
        return ""
    seen: set[int] = set()
    level = [("", root)]
    while level:
        below: list[tuple[str, Module]] = []
        for prefix, parent in level:
            for name, child in parent.__dict__.get("_modules", {}).items():
                if child is None or id(child) in seen:
                    continue
                seen.add(id(child))
                path = f"{prefix}{name}"
                if child is module:
                    return path
                below.append((f"{path}.", child))
        level = below
    return None


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
            total += math.prod(int(size) for size in parameter.shape)
        except Exception:  # a lazy parameter has no shape yet
            continue
    return total


def _detail(module: Module) -> str:
    """What the module says of itself. It is the module's own code, so it may fail or be long."""
    if type(module).extra_repr is Module.extra_repr:
        return ""
    try:
        text = module.extra_repr()
        return " ".join(str(text).split())[:200]
    except Exception:
        return ""


def _forward_names(kind: type) -> tuple[str, ...]:
    """The names of the positional parameters of ``forward``, without self."""
    forward = inspect.unwrap(getattr(kind, "forward", None) or Module.forward)
    code = getattr(forward, "__code__", None)
    if code is None:
        return ()
    return tuple(code.co_varnames[1 : code.co_argcount])


def is_compiled(module: Module) -> bool:
    """Whether calling this module enters code that torch.compile made."""
    return module._compiled_call_impl is not None or type(module).__name__ == "OptimizedModule"
