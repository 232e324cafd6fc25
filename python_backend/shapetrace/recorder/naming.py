"""The names of recorded functions, and the text of their calls."""

from __future__ import annotations

from functools import lru_cache
from inspect import unwrap
from types import GetSetDescriptorType
from typing import Any, Final

from torch import overrides

# torch has it in a frame that sets the filters of warnings aside. That is for all threads: what the
# program warns of meanwhile might not be shown, and what it has shown once is shown again.
_resolve_name: Final = unwrap(overrides.resolve_name)

_COMPARISONS: Final = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge"}
"""``1 < tensor`` asks the tensor whether it is greater."""


@lru_cache(maxsize=4096)
def public_name(function: Any) -> str:
    """``torch.Tensor.view``, ``torch.nn.functional.linear``, ``aten.addmm``."""
    name = _resolve_name(function)
    if isinstance(name, str):
        return name.removesuffix(".default")
    if isinstance(function, GetSetDescriptorType) or hasattr(function, "__objclass__"):
        return f"torch.Tensor.{function.__name__}"
    module = getattr(function, "__module__", None)
    own = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if own is None:
        return type(function).__name__
    return f"{module}.{own}" if module else str(own)


def short_name(function: Any) -> str:
    """The last part of a name, as a call of it would be written."""
    name = public_name(function)
    parts = name.split(".")
    if len(parts) > 2 and parts[0] == "aten":
        return ".".join(parts[1:])
    return parts[-1]


def form_of(
    function: Any,
    arguments: tuple[str, ...],
    operator: str | None,
    constant_first: bool = False,
) -> str:
    """The call with ``{0}``, ``{1}`` where its tensors stand, in the order of the source.

    ``constant_first``: the left operand is a constant, which torch gets as the second argument.
    """
    name = short_name(function)
    if operator is not None and len(arguments) == 2:
        mirrored = name.startswith("__r") or _COMPARISONS.get(operator, name) != name
        left, right = arguments[::-1] if mirrored or constant_first else arguments
        return f"{left} {operator} {right}"
    if operator is not None and len(arguments) == 1:
        return f"{operator}{arguments[0]}"
    if name == "__getitem__" and len(arguments) == 2:
        return f"{arguments[0]}[{arguments[1]}]"
    if name == "__setitem__" and len(arguments) == 3:
        return f"{arguments[0]}[{arguments[1]}] = {arguments[2]}"
    if isinstance(function, GetSetDescriptorType):
        return f"{arguments[0]}.{name}"
    return f"{name}({', '.join(arguments)})"


def label_of(function: Any, arguments: tuple[str, ...], operator: str | None) -> str:
    """The call without its tensors."""
    if operator is not None:
        return operator
    name = short_name(function)
    if isinstance(function, GetSetDescriptorType):
        return name
    if name in ("__getitem__", "__setitem__") and len(arguments) > 1:
        index = arguments[1] if "{" not in arguments[1].replace("{{", "") else "…"
        index = index.replace("{{", "{").replace("}}", "}")
        return f"[{index}]" if name == "__getitem__" else f"[{index}] ="
    plain = [text for text in arguments if "{" not in text.replace("{{", "")]
    shown = ", ".join(plain).replace("{{", "{").replace("}}", "}")
    return f"{name}({shown})"
