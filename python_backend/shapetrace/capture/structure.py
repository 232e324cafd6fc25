"""A model as names: its modules, the functions of each, and the variables of those.

Functions of a module are its methods, and the functions that these call by name, from the same file
or another one, directly or by way of each other. Nothing runs for it but what builds ``__dict__``.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from torch.nn import Module
from torch.nn.parallel import DataParallel, DistributedDataParallel

from shapetrace._asynchronous import is_asynchronous
from shapetrace.capture.scripted import is_scripted, parameters_of_forward

_WRAPPED_AS: Final = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_MOST_FUNCTIONS: Final = 500
"""Functions that are looked at for one module, in search of those that they call."""
_NOT_IMPLEMENTED: Final[Any] = Module.forward
_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """A function that is meant by a name."""

    function: FunctionType
    """The one whose variables are meant."""
    outer: FunctionType
    """The one whose value is what the caller gets: another one where it is decorated."""
    is_method: bool
    """Whether its first parameter is the module; else that is the one whose code calls it."""
    nested: tuple[str, ...] = ()
    """The way to a function within it, which is meant then."""

    @property
    def code(self) -> CodeType | None:
        """The code of what is meant."""
        code = self.function.__code__
        for name in self.nested:
            found = [each for each in _codes_in(code) if each.co_name == name]
            if not found:
                return None
            code = found[0]
        return code

    def nested_names(self) -> list[str]:
        """The functions that are defined in it."""
        code = self.code
        found = [] if code is None else [each.co_name for each in _codes_in(code)]
        return [name for name in dict.fromkeys(found) if not name.startswith("<")]

    def inside(self, name: str) -> CaptureTarget:
        """One of those."""
        return CaptureTarget(self.function, self.outer, False, (*self.nested, name))


class Catalogue:
    """The functions of a model's modules, asked once for each class, and their variables."""

    def __init__(self, root: Module) -> None:
        self.called = _names_called_in(root)
        """The names by which functions are called from the forward of any module."""
        self._methods: dict[type, dict[str, CaptureTarget]] = {}
        self._helpers: dict[type, dict[str, CaptureTarget]] = {}
        self._variables: dict[CodeType, list[str]] = {}

    def methods(self, module: Module) -> dict[str, CaptureTarget]:
        """The methods of a module, but for those with two underscores."""
        return self._of_kind(module, self._methods, methods_of)

    def helpers(self, module: Module) -> dict[str, CaptureTarget]:
        """The functions that are called by its methods, where they are called at all."""
        return self._of_kind(module, self._helpers, self._find_helpers)

    def _find_helpers(self, module: Module) -> dict[str, CaptureTarget]:
        methods = self.methods(module).items()
        return helpers_of([each for name, each in methods if name in self.called])

    def variables(self, target: CaptureTarget) -> list[str]:
        """The variables of a function, those of comprehensions in it too."""
        code = target.code
        if code is None:
            return []
        if code not in self._variables:
            self._variables[code] = list(dict.fromkeys(_variables(code)))
        return self._variables[code]

    @staticmethod
    def _of_kind(
        module: Module,
        known: dict[type, dict[str, CaptureTarget]],
        find: Callable[[Module], dict[str, CaptureTarget]],
    ) -> dict[str, CaptureTarget]:
        if _has_own_functions(module) or is_scripted(module):
            return find(module)
        kind = type(module)
        if kind not in known:
            known[kind] = find(module)
        return known[kind]


def _has_own_functions(module: Module) -> bool:
    own = (FunctionType, MethodType, partial)
    return any(isinstance(value, own) for value in vars(module).values())


def _names_called_in(root: Module) -> set[str]:
    """All names in the code of what can be called by a name from a forward in this model."""
    modules: dict[object, Module] = {}
    for module in root.modules():
        modules.setdefault(module if _has_own_functions(module) else type(module), module)
    by_name: dict[str, list[FunctionType]] = {}
    for module in modules.values():
        for name, target in methods_of(module).items():
            by_name.setdefault(name, []).extend({target.function, target.outer})
    names = {"forward"}
    waiting = list(by_name.get("forward", ()))
    known = set(waiting)
    while waiting:
        caller = waiting.pop()
        called = [function for _, function in _named_in(caller)]
        for name in _names(caller.__code__):
            if name not in names:
                names.add(name)
                called.extend(by_name.get(name, ()))
        for function in called:
            if function not in known and (_is_torch(caller) or not _is_torch(function)):
                known.add(function)
                waiting.append(function)
    return names


def unwrapped(module: Module) -> Module:
    """The module that paths are of, out of those that run it in parallel or compiled."""
    while (inner := _wrapped_in(module)) is not None:
        module = inner
    return module


def wrappers_of(module: Module) -> list[Module]:
    """A module and what it wraps, from the outside in."""
    chain = [module]
    while (inner := _wrapped_in(chain[-1])) is not None:
        chain.append(inner)
    return chain


def _wrapped_in(module: Module) -> Module | None:
    held = module.__dict__.get("_modules", {})
    names = ("module",) if isinstance(module, (DataParallel, DistributedDataParallel)) else ()
    for name in (*names, *_WRAPPED_AS):
        if name in held and isinstance(inner := held[name], Module):
            return inner
    return None


def children_of(module: Module) -> Iterator[tuple[str, Module]]:
    """The modules below a module by their names, without what wraps them."""
    held = module.__dict__.get("_modules", {})
    # Those of TorchScript are in a container that has items, and cannot be iterated otherwise.
    for name, child in list(held.items()):
        if isinstance(child, Module):
            yield name, unwrapped(child)


def is_compiled(module: Module) -> bool:
    """Whether calling it enters code that torch.compile made."""
    compiled = module.__dict__.get("_compiled_call_impl")
    return compiled is not None or type(module).__name__ == "OptimizedModule"


def methods_of(module: Module) -> dict[str, CaptureTarget]:
    """What ``*`` can stand for of a module's own functions: those that are not torch's own."""
    found: dict[str, CaptureTarget] = {}
    if is_scripted(module):
        target = scripted_forward(module)
        return {} if target is None else {"forward": target}
    for kind in type(module).__mro__:
        if kind is Module or kind is object:
            break
        for name in vars(kind):
            if name.startswith("__") or name in found:
                continue
            if kind.__module__ == "torch.nn.modules.container" and name != "forward":
                continue
            target = function_of(module, name)
            if target is not None:
                found[name] = target
    return found


def function_of(module: Module, name: str) -> CaptureTarget | None:
    """A method of a module by its name, also one that it inherits or that was set on it."""
    if is_scripted(module):
        return scripted_forward(module) if name == "forward" else None
    own = module.__dict__.get(name)
    if isinstance(own, partial):
        return _target_of_partial(own, module)
    attribute: Any = own
    if not isinstance(own, (FunctionType, MethodType)):
        attribute = inspect.getattr_static(type(module), name, None)
    is_method = not isinstance(attribute, (staticmethod, classmethod))
    if isinstance(attribute, (staticmethod, classmethod, MethodType)):
        attribute = attribute.__func__
    elif own is attribute:
        is_method = False  # A function set on the module itself is not given the module.
    if isinstance(attribute, property):
        attribute = attribute.fget
    return _target(attribute, is_method)


def scripted_forward(module: Module) -> CaptureTarget | None:
    """What stands for the forward of a scripted module: a function with its parameters.

    It has no source and so is not followed: the module is listened to from the outside.
    """
    if module not in _scripted:
        names = parameters_of_forward(module)
        if names is None:
            return None
        names = ["self", *names]
        code = _NOT_IMPLEMENTED.__code__.replace(
            co_filename="<TorchScript>",
            co_name="forward",
            co_varnames=tuple(names),
            co_nlocals=len(names),
            co_argcount=len(names),
            co_flags=inspect.CO_NEWLOCALS | inspect.CO_OPTIMIZED,
        )
        function = FunctionType(code, {})
        _scripted[module] = CaptureTarget(function, function, True)
    return _scripted[module]


_scripted: weakref.WeakKeyDictionary[Module, CaptureTarget] = weakref.WeakKeyDictionary()


def _target_of_partial(given: partial[Any], module: Module) -> CaptureTarget | None:
    """A function set on a module together with it, as libraries do that put hooks around it."""
    is_method = bool(given.args) and given.args[0] is module
    target = _target(given, is_method) if hasattr(given, "__wrapped__") else None
    outer = _target(given.func, is_method)
    if target is None or outer is None:
        return outer
    return CaptureTarget(target.function, outer.outer, is_method)


def _target(attribute: Any, is_method: bool) -> CaptureTarget | None:
    try:
        function = inspect.unwrap(attribute)
    except ValueError as error:  # wrapped in itself
        if is_asynchronous(error):
            raise
        return None
    if isinstance(function, MethodType):
        function = function.__func__  # A method that was replaced by a function around it.
    if not isinstance(function, FunctionType) or function is _NOT_IMPLEMENTED:
        return None
    outer = attribute if isinstance(attribute, FunctionType) else function
    code = outer.__code__
    if outer is not function and not code.co_argcount and not code.co_flags & inspect.CO_VARARGS:
        outer = function  # Which module it is called for cannot be seen in its parameters.
    return CaptureTarget(function, outer, is_method)


def helpers_of(methods: Iterable[CaptureTarget]) -> dict[str, CaptureTarget]:
    """The functions that methods call by name, also by way of each other."""
    found: dict[str, CaptureTarget] = {}
    waiting = [target.function for target in methods]
    known = set(waiting)
    while waiting and len(known) < _MOST_FUNCTIONS:
        caller = waiting.pop(0)
        for name, function in _named_in(caller):
            target = _target(function, False)
            if target is None or target.function in known:
                continue
            known.add(target.function)
            found.setdefault(name, target)
            # What torch's functions call in turn is not the program's to ask for.
            if _is_torch(caller) or not _is_torch(target.function):
                waiting.append(target.function)
    return found


def _named_in(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The functions whose names are in a function's code, with those."""
    names = list(dict.fromkeys(_names(function.__code__)))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for name in (*names, *cells):
        try:
            value = cells[name].cell_contents if name in cells else function.__globals__.get(name)
        except ValueError as error:  # not filled yet
            if is_asynchronous(error):
                raise
            continue
        if isinstance(value, FunctionType):
            yield name, value
        elif isinstance(value, ModuleType):
            for inner in names:
                attribute = vars(value).get(inner)
                if isinstance(attribute, FunctionType):
                    yield inner, attribute


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def _is_torch(thing: Any) -> bool:
    module = thing.__module__ or ""
    return bool(module == "torch" or module.startswith("torch."))


def is_torchs_own(function: FunctionType, module: Module) -> bool:
    """Whether a function of torch's is meant only by its name, being called by others' code."""
    return _is_torch(function) and not _is_torch(type(module))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """The functions that are defined directly in a function, comprehensions looked through."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_name in _COMPREHENSIONS:
                yield from _codes_in(part)
            elif not part.co_name.startswith("<"):
                yield part


def _variables(code: CodeType) -> Iterator[str]:
    for name in (*code.co_varnames, *code.co_cellvars):
        if not name.startswith("."):
            yield name
    for part in code.co_consts:
        if isinstance(part, CodeType) and part.co_name in _COMPREHENSIONS:
            yield from _variables(part)
