"""A model's names: its modules, the functions of each, and their variables.

The functions of a module are its methods and the functions that these call by name, directly or
indirectly, in any file. No code of the program's runs, apart from what builds a ``__dict__``.
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
"""Limit on the functions of one module that are searched for calls."""
_NOT_IMPLEMENTED: Final[Any] = Module.forward
_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """A function that a name resolves to."""

    function: FunctionType
    """The function whose variables are captured."""
    outer: FunctionType
    """The function whose result the caller gets: the wrapper, if it is decorated."""
    is_method: bool
    """Whether its first parameter is the module; otherwise the caller's module counts."""
    nested: tuple[str, ...] = ()
    """The path to the nested function that is meant, if any."""

    @property
    def code(self) -> CodeType | None:
        """The code of the function that is meant."""
        code = self.function.__code__
        for name in self.nested:
            found = [each for each in _codes_in(code) if each.co_name == name]
            if not found:
                return None
            code = found[0]
        return code

    def nested_names(self) -> list[str]:
        """The names of the functions defined in it."""
        code = self.code
        found = [] if code is None else [each.co_name for each in _codes_in(code)]
        return [name for name in dict.fromkeys(found) if not name.startswith("<")]

    def inside(self, name: str) -> CaptureTarget:
        """The target of a function defined in it."""
        return CaptureTarget(self.function, self.outer, False, (*self.nested, name))


class Catalogue:
    """The functions of a model's modules and their variables, cached by class."""

    def __init__(self, root: Module) -> None:
        self.called = _names_called_in(root)
        """The names that code reachable from any module's ``forward`` calls functions by."""
        self._methods: dict[type, dict[str, CaptureTarget]] = {}
        self._helpers: dict[type, dict[str, CaptureTarget]] = {}
        self._variables: dict[CodeType, list[str]] = {}

    def methods(self, module: Module) -> dict[str, CaptureTarget]:
        """The methods of a module, without those whose names begin with two underscores."""
        return self._of_kind(module, self._methods, methods_of)

    def helpers(self, module: Module) -> dict[str, CaptureTarget]:
        """The functions that its methods call, where these methods are called."""
        return self._of_kind(module, self._helpers, self._find_helpers)

    def _find_helpers(self, module: Module) -> dict[str, CaptureTarget]:
        methods = self.methods(module).items()
        return helpers_of([each for name, each in methods if name in self.called])

    def variables(self, target: CaptureTarget) -> list[str]:
        """The variables of a function and of its comprehensions."""
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
    """All names in code that can be called by name from a ``forward`` of this model."""
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
    """The module that paths begin at, without wrappers such as DataParallel or torch.compile."""
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
    """The children of a module by name, unwrapped."""
    held = module.__dict__.get("_modules", {})
    # TorchScript keeps them in a container that offers only `items`.
    for name, child in list(held.items()):
        if isinstance(child, Module):
            yield name, unwrapped(child)


def is_compiled(module: Module) -> bool:
    """Return whether calling it enters code that torch.compile made."""
    compiled = module.__dict__.get("_compiled_call_impl")
    return compiled is not None or type(module).__name__ == "OptimizedModule"


def methods_of(module: Module) -> dict[str, CaptureTarget]:
    """The methods of a module that ``*`` matches: those not defined by torch."""
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
    """A method of a module by name, also an inherited one or one set on the instance."""
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
    """A stand-in for the ``forward`` of a scripted module: a function with its parameters.

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
    """The target of a ``partial`` set on a module, as libraries do that wrap ``forward``."""
    is_method = bool(given.args) and given.args[0] is module
    target = _target(given, is_method) if hasattr(given, "__wrapped__") else None
    outer = _target(given.func, is_method)
    if target is None or outer is None:
        return outer
    return CaptureTarget(target.function, outer.outer, is_method)


def _target(attribute: Any, is_method: bool) -> CaptureTarget | None:
    try:
        function = inspect.unwrap(attribute)
    except ValueError as error:  # a wrapper around itself
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
        outer = function  # Its parameters do not tell which module it is called for.
    return CaptureTarget(function, outer, is_method)


def helpers_of(methods: Iterable[CaptureTarget]) -> dict[str, CaptureTarget]:
    """The functions that methods call by name, directly or indirectly."""
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
            # Functions that torch's own functions call are left out.
            if _is_torch(caller) or not _is_torch(target.function):
                waiting.append(target.function)
    return found


def _named_in(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The functions whose names occur in a function's code, by name."""
    names = list(dict.fromkeys(_names(function.__code__)))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for name in (*names, *cells):
        try:
            value = cells[name].cell_contents if name in cells else function.__globals__.get(name)
        except ValueError as error:  # cell without a value
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
    """Return whether a function is torch's, which only its plain name matches."""
    return _is_torch(function) and not _is_torch(type(module))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of functions defined directly in a function, or in its comprehensions."""
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
