"""Values as plain arrays, and a description by which ``decoding`` makes the same values of them.

A value is a tree: tensors, arrays and plain Python values are its leaves, each of which becomes one
array, and tuples, lists, dicts and the like hold leaves. Its structure says all but sizes: values
with equal structures can be stored in the same datasets, one below the other.

    tensor          its numbers; where NumPy has no such type, their bits (bf16, float8)
    sparse, nested  a node with the tensors that it consists of; so for quantized tensors
    int, float ...  an array without dimensions; a list of nothing but these is one leaf as well
    str             text; what HDF5 cannot have as text (NUL, lone surrogates) is bytes
    None            a byte that means nothing
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.memory import ARRAY_GONE, lost_memory_of, may_be_read
from shapetrace.inspecting.stable_reads import MemoryGoneError, steady_of

Structure: TypeAlias = dict[str, Any]
"""A leaf: ``kind``, ``dtype``, ``ndim``. A node: ``kind``, ``items``, maybe ``keys``."""

_DEEPEST: Final = 16
_MOST_LEAVES: Final = 512
_LONGEST_STRUCTURE: Final = 60_000
"""Characters; an attribute of an HDF5 object has 64 KB at most."""

_NATIVE: Final = frozenset(
    (
        *("float64", "float32", "float16", "bool", "complex64", "complex128"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)
"""What torch and NumPy both have."""

_BITS: Final = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


class UnstorableError(Exception):
    """A value cannot be stored; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value ready to be stored."""

    structure: str
    """As JSON; equal for values that can share datasets."""
    leaves: tuple[Any, ...]
    """NumPy arrays, in the order of the structure's leaves."""


@dataclass(frozen=True, slots=True)
class Conversions:
    """Types to store numbers as; None leaves them unchanged."""

    floats: Any = None
    """A NumPy dtype, or one of torch's."""
    integers: Any = None


class Encoder:
    """Turns values into arrays; to be called in a context that the program does not notice."""

    def __init__(self, conversions: Conversions, note: Callable[[str], object]) -> None:
        """``note`` is called with reasons why values were stored differently than asked for."""
        import numpy

        self._numpy = numpy
        self._note = note
        self._floats = conversions.floats
        self._integers = conversions.integers

    def encode(self, value: object) -> Encoded:
        """A value as arrays; raises UnstorableError, and no other exception."""
        leaves: list[Any] = []
        try:
            structure = _text(_frozen(self._node(value, leaves, 0)))
        except UnstorableError:
            raise
        except Exception as error:
            if is_asynchronous(error):
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UnstorableError(f"{_class_name(value)} could not be read ({reason})") from None
        if len(structure) > _LONGEST_STRUCTURE:
            raise UnstorableError(f"{_class_name(value)} has too many different things in it")
        return Encoded(structure, tuple(leaves))

    def _node(self, value: Any, leaves: list[Any], depth: int) -> Structure:
        if len(leaves) >= _MOST_LEAVES:
            raise UnstorableError(f"it has more than {_MOST_LEAVES} values in it")
        if depth > _DEEPEST:
            raise UnstorableError("it is nested too deeply, or holds itself")
        torch: Any = sys.modules.get("torch")
        tensor_type = getattr(torch, "Tensor", None)
        if tensor_type is not None and isinstance(value, tensor_type):
            return self._tensor(torch, value, leaves)
        numpy = self._numpy
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._array(value, leaves)
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, bytearray)):
            return self._plain(value, leaves)
        if torch is not None:
            if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                raise UnstorableError(f"{_class_name(value)} has no value yet")
            if isinstance(value, (torch.dtype, torch.device)):
                return self._leaf(leaves, type(value).__name__, self._text_array(str(value)))
        return self._container(value, leaves, depth)

    # Tensors.

    def _tensor(self, torch: Any, value: Any, leaves: list[Any]) -> Structure:
        if lost := lost_memory_of(torch)(value):
            raise UnstorableError(lost)
        if hasattr(value, "to_local") and hasattr(value, "placements"):
            value = value.to_local()
        value = value.detach()
        if value.device.type == "meta":
            raise UnstorableError("a tensor on the device meta has no values")
        if value.is_nested:
            parts = [part.detach() for part in value.unbind()]
            sizes = self._numpy.array([part.shape for part in parts], "int64")
            sizes = sizes.reshape(len(parts), value.dim() - 1)
            flat = torch.cat([part.reshape(-1) for part in parts]) if parts else value.values()
            layout = str(value.layout).removeprefix("torch.")
            return self._parts(torch, f"nested {layout}", {"values": flat, "sizes": sizes}, leaves)
        if value.is_quantized:
            return self._parts(torch, "quantized", _quantized(torch, value), leaves)
        if value.layout is not torch.strided:
            layout = str(value.layout).removeprefix("torch.")
            if layout == "_mkldnn":
                return self._tensor(torch, value.to_dense(), leaves)
            return self._parts(torch, layout, _sparse(torch, value, layout), leaves)
        return self._strided(torch, value, leaves)

    def _parts(
        self, torch: Any, kind: str, parts: Mapping[str, Any], leaves: list[Any]
    ) -> Structure:
        items = [self._node(part, leaves, 0) for part in parts.values()]
        return {"kind": kind, "keys": list(parts), "items": items}

    def _strided(self, torch: Any, value: Any, leaves: list[Any]) -> Structure:
        numpy = self._numpy
        try:
            value = steady_of(torch)(value)
        except MemoryGoneError as error:
            raise UnstorableError(str(error)) from None
        value = value.resolve_conj().resolve_neg().cpu()
        floats = self._floats
        if floats is not None and value.is_floating_point():
            if not isinstance(floats, numpy.dtype):
                value = value.to(floats)
            elif _name(value.dtype) not in _NATIVE:
                value = value.to(torch.float32)
        name = _name(value.dtype)
        if name in _NATIVE:
            array = self._converted(value.numpy())
            return self._leaf(leaves, "tensor", array)
        bits = _BITS.get(value.dtype.itemsize)
        if bits is None:
            raise UnstorableError(f"torch has no way to look at {name}")
        # A view as integers needs no element of the type to be understood.
        array = value.contiguous().view(getattr(torch, bits)).numpy()
        return self._leaf(leaves, "tensor", array.view(f"u{array.dtype.itemsize}"), name)

    # Everything else.

    def _array(self, value: Any, leaves: list[Any]) -> Structure:
        numpy = self._numpy
        kind = "ndarray" if isinstance(value, numpy.ndarray) else "scalar"
        if not may_be_read(value, numpy.ndarray):
            raise UnstorableError(ARRAY_GONE)
        array = numpy.asarray(numpy.ma.getdata(value))
        if isinstance(value, numpy.ma.MaskedArray):
            raise UnstorableError("a masked array cannot be stored")
        match array.dtype.kind:
            case "U":
                texts = self._texts(array)
                return self._leaf(leaves, kind, texts, array.dtype.str)
            case "S":
                # HDF5 cuts NULs off at the end of texts.
                length = array.dtype.itemsize
                flat = numpy.ascontiguousarray(array).reshape(array.shape + (1,) * bool(length))
                octets = flat.view("u1") if length else numpy.zeros((*array.shape, 0), "u1")
                return self._leaf(leaves, kind, octets, array.dtype.str)
            case "m" | "M":
                return self._leaf(leaves, kind, array.view("i8"), array.dtype.str)
            case "O":
                raise UnstorableError("an array of objects cannot be stored")
            case "V" if array.dtype.names is None or array.dtype.hasobject:
                raise UnstorableError(f"an array of {array.dtype} cannot be stored")
        array = self._converted(array)
        name = array.dtype.name if array.dtype.isnative else array.dtype.str
        return self._leaf(leaves, kind, array, "record" if array.dtype.names else name)

    def _plain(self, value: Any, leaves: list[Any]) -> Structure:
        numpy = self._numpy
        if value is None:
            return self._leaf(leaves, "NoneType", numpy.zeros((), "u1"))
        if isinstance(value, (bytes, bytearray)):
            octets = numpy.frombuffer(bytes(value), "u1")
            return self._leaf(leaves, "bytes", octets)
        if isinstance(value, str):
            text = str.__str__(value)
            if _is_text(text):
                return self._leaf(leaves, "str", self._text_array(text))
            octets = numpy.frombuffer(text.encode("utf-8", "surrogatepass"), "u1")
            return self._leaf(leaves, "str", octets)
        if isinstance(value, bool):
            return self._leaf(leaves, "bool", numpy.array(value))
        if isinstance(value, int):
            number = int(value)
            if -(2**63) <= number < 2**63:
                return self._leaf(leaves, "int", self._converted(numpy.array(number, "i8")))
            if 0 <= number < 2**64:
                return self._leaf(leaves, "int", self._converted(numpy.array(number, "u8")))
            return self._leaf(leaves, "int", self._text_array(hex(number)))
        dtype = "f8" if isinstance(value, float) else "c16"
        kind = "float" if isinstance(value, float) else "complex"
        return self._leaf(leaves, kind, self._converted(numpy.array(value, dtype)))

    def _container(self, value: Any, leaves: list[Any], depth: int) -> Structure:
        fields = getattr(value, "_fields", None)
        if isinstance(value, tuple) and isinstance(fields, tuple):
            return self._fields(value, "namedtuple", fields, tuple(value), leaves, depth)
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            as_one = self._scalars(value)
            if as_one is not None:
                of, array = as_one
                structure = self._leaf(leaves, kind, array)
                return {**structure, "of": of}
            items = [self._node(item, leaves, depth + 1) for item in value]
            return {"kind": kind, "items": items}
        if isinstance(value, Mapping):
            keys, values = list(value.keys()), list(value.values())
            items = [self._node(item, leaves, depth + 1) for item in values]
            if type(value) is dict and all(type(key) is str for key in keys):
                return {"kind": "dict", "keys": keys, "items": items}
            texts = [[type(key).__name__, str(key)] for key in keys]
            structure = {"kind": "dict", "keys": texts, "items": items}
            return structure if type(value) is dict else {**structure, "class": _class_name(value)}
        if isinstance(value, (set, frozenset)):
            ordered = sorted(value, key=lambda item: (type(item).__name__, repr(item)))
            return {**self._container(ordered, leaves, depth), "kind": type(value).__name__}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = tuple(field.name for field in dataclasses.fields(value))
            parts = tuple(getattr(value, name) for name in names)
            return self._fields(value, "dataclass", names, parts, leaves, depth)
        raise UnstorableError(f"objects of {_class_name(value)} cannot be stored")

    def _fields(
        self,
        value: object,
        kind: str,
        names: Sequence[str],
        parts: Sequence[Any],
        leaves: list[Any],
        depth: int,
    ) -> Structure:
        items = [self._node(part, leaves, depth + 1) for part in parts]
        return {"kind": kind, "class": _class_name(value), "keys": list(names), "items": items}

    def _scalars(self, value: Sequence[Any]) -> tuple[str, Any] | None:
        """A list of nothing but numbers or nothing but texts, as one array."""
        kinds = set(map(type, value))
        if len(kinds) != 1 or len(value) < 2:
            return None
        kind = kinds.pop()
        if kind is str and all(map(_is_text, value)):
            return "str", self._texts(self._numpy.array(list(value), object))
        if kind is bool or kind is float or kind is complex:
            return kind.__name__, self._converted(self._numpy.array(list(value)))
        if kind is int and all(-(2**63) <= item < 2**63 for item in value):
            return "int", self._converted(self._numpy.array(list(value), "i8"))
        return None

    @leaving_surely
    def _converted(self, array: Any) -> Any:
        numpy = self._numpy
        kind = array.dtype.kind
        if kind == "f" and isinstance(self._floats, numpy.dtype):
            with numpy.errstate(all="ignore"):
                return array.astype(self._floats, copy=False)
        target = self._integers
        if kind in "iu" and target is not None and array.dtype != target:
            if not numpy.can_cast(array.dtype, target, "safe") and array.size:
                limits = numpy.iinfo(target)
                if array.min() < limits.min or array.max() > limits.max:
                    self._note(f"holds integers that {target} cannot; these are kept as they are")
                    return array
            return array.astype(target, copy=False)
        return array

    def _text_array(self, text: str) -> Any:
        return self._texts(self._numpy.array(text, object))

    def _texts(self, array: Any) -> Any:
        """Texts in h5py's form; raises UnstorableError for texts that HDF5 cannot store."""
        array = array.astype(object)
        if not all(map(_is_text, array.reshape(-1).tolist())):
            raise UnstorableError("texts with NUL or half characters can only be stored singly")
        return array

    def _leaf(
        self, leaves: list[Any], kind: str, array: Any, dtype: str | None = None
    ) -> Structure:
        leaves.append(array)
        name = _dtype_name(array.dtype)
        leaf = {"kind": kind, "dtype": dtype or name, "ndim": array.ndim}
        if dtype is not None and dtype != name:
            leaf["stored"] = json.dumps(array.dtype.descr) if array.dtype.names else name
        return leaf


def leaves_of(structure: Structure) -> list[Structure]:
    """The leaves of a structure, in the order of their arrays."""
    if "items" not in structure:
        return [structure]
    return [leaf for item in structure["items"] for leaf in leaves_of(item)]


def _frozen(structure: Structure) -> tuple[Any, ...]:
    """A hashable form of a structure, with shared leaves."""
    if "items" in structure:
        return (json.dumps(structure, ensure_ascii=True, separators=(",", ":")),)
    return tuple(structure.items())


@lru_cache(maxsize=1024)
def _text(structure: tuple[Any, ...]) -> str:
    if len(structure) == 1:
        text: str = structure[0]
        return text
    return json.dumps(dict(structure), ensure_ascii=True, separators=(",", ":"))


@lru_cache(maxsize=256)
def _name(dtype: object) -> str:
    """``torch.bfloat16`` → ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


@lru_cache(maxsize=256)
def _dtype_name(dtype: Any) -> str:
    """A word for the dtype of a NumPy array."""
    if dtype.kind == "O":
        return "str"
    name: str = dtype.str if dtype.names else dtype.name
    return name


def _quantized(torch: Any, value: Any) -> dict[str, Any]:
    parts = {"integers": value.int_repr(), "dtype": value.dtype}
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return {**parts, "scale": value.q_scale(), "zero_point": value.q_zero_point()}
    scales, zero_points = value.q_per_channel_scales(), value.q_per_channel_zero_points()
    axis = value.q_per_channel_axis()
    return {**parts, "scales": scales, "zero_points": zero_points, "axis": axis}


def _sparse(torch: Any, value: Any, layout: str) -> dict[str, Any]:
    size = torch.tensor(value.shape, dtype=torch.int64)
    if layout == "sparse_coo":
        parts = {"indices": value._indices(), "values": value._values()}
        return {**parts, "size": size, "is_coalesced": value.is_coalesced()}
    if layout in ("sparse_csr", "sparse_bsr"):
        parts = {"crow_indices": value.crow_indices(), "col_indices": value.col_indices()}
    elif layout in ("sparse_csc", "sparse_bsc"):
        parts = {"ccol_indices": value.ccol_indices(), "row_indices": value.row_indices()}
    else:
        raise UnstorableError(f"tensors of layout {layout} cannot be stored")
    return {**parts, "values": value.values(), "size": size}


def _is_text(value: str) -> bool:
    """Return whether HDF5 can store this as a text."""
    return "\0" not in value and (value.isascii() or not _has_surrogates(value))


def _has_surrogates(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _class_name(value: object) -> str:
    kind = type(value)
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
