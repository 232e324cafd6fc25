"""Imports h5py when it is first needed; no other module imports it."""

from __future__ import annotations

import math
import os
import stat
from functools import cache
from typing import Any, BinaryIO

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import CaptureFileError

IDENTITY = "shapetrace_identity"
"""The attribute of a file by which its journal knows it."""

FORMAT = "shapetrace_format"
VERSION = "shapetrace-values/1"


def library() -> Any:
    """The module h5py; raises an error that says how to install it."""
    try:
        import h5py
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "h5py":
            advice = "HDF5 files need h5py, which is not installed here; `pip install h5py`"
        else:
            advice = f"h5py cannot be imported here: {' '.join(str(error).split())}"
        raise CaptureFileError(advice) from None
    return h5py


def new_image(identity: bytes, attributes: dict[str, Any]) -> bytes:
    """The bytes of a file with nothing in it but attributes."""
    import io

    h5py = library()
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver="earliest") as file:
        file.attrs[FORMAT] = VERSION
        file.attrs.create(IDENTITY, identity.decode("ascii"), dtype=f"S{len(identity)}")
        for name, value in attributes.items():
            file.attrs[name] = value
    return buffer.getvalue()


def opened_for_writing(file: Any) -> Any:
    """The HDF5 file in a file object.

    The earliest format has no flags that say whether the file was closed, so a file that was not
    opens like any other. Small blocks of metadata are put next to each other, so that a commit has
    few places to write to. The caches hold what is used once.
    """
    return library().File(
        file, "r+", libver="earliest", rdcc_nbytes=1 << 18, meta_block_size=1 << 14
    )


def close_what_is_left(file: Any) -> None:
    """Have HDF5 release a file object.

    An exception of the program's that came during opening keeps it open, as long as the program
    keeps the exception. HDF5 would write to it at exit, after the end of Python.
    """
    h5f = library().h5f
    # h5py's name of a file that is a Python object.
    name = repr(file).encode("ASCII", "replace")
    for each in h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE):
        if h5f.get_name(each) == name:
            each._close_open_objects(h5f.OBJ_LOCAL | ~h5f.OBJ_FILE)
            each._close_open_objects(h5f.OBJ_LOCAL | h5f.OBJ_FILE)


def opened_for_reading(path: str, content: BinaryIO | None = None) -> Any:
    """Open a file, also during writes, or its content; raises our own errors if unreadable."""
    h5py = library()
    shown = os.path.basename(path)
    try:
        if content is not None:
            return h5py.File(content, "r")
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            # HDF5 would wait for the writer of a pipe.
            raise CaptureFileError(f"cannot read {shown}: it is no file")
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise CaptureFileError(f"cannot read {shown}: there is no such file") from None
    except PermissionError:
        raise CaptureFileError(f"cannot read {shown}: it is not permitted") from None
    except IsADirectoryError:
        raise CaptureFileError(f"cannot read {shown}: it is a folder") from None
    except (OSError, RuntimeError, ValueError) as error:
        if is_asynchronous(error):
            raise
        reason = " ".join(str(error).split())
        raise CaptureFileError(f"cannot read {shown}: {reason}") from None


def member_of(group: Any, name: str) -> Any:
    """A group's member; raises ValueError if it leads out of the file.

    A crafted file may refer to any other file, or to a pipe that has no writer.
    """
    h5py = library()
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name!r} is in another file")
    member = group[name]
    if isinstance(member, h5py.Dataset) and (member.is_virtual or member.external):
        raise ValueError(f"the content of {name!r} is in another file")
    return member


def all_of(dataset: Any) -> Any:
    """All of a dataset of plain numbers; raises ValueError if much less of it was written.

    HDF5 fills in data that was never written, in any amount.
    """
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    if size > _PADDED * dataset.id.get_storage_size() + _LITTLE:
        raise ValueError("a size is too large")
    return dataset[:]


_PADDED = 64
_LITTLE = 1 << 26


@cache
def float_type(dtype: str) -> Any:
    """HDF5's own description of a type that NumPy does not have, or None.

    Readers of such a dataset get numbers from h5py, not bits. The other float8 types have no
    infinity where IEEE has one, which HDF5 cannot be told.
    """
    h5py = library()
    if dtype == "bfloat16":
        described = h5py.h5t.IEEE_F32LE.copy()
        described.set_fields(15, 7, 8, 0, 7)
        described.set_size(2)
        described.set_ebias(127)
    elif dtype == "float8_e5m2":
        described = h5py.h5t.IEEE_F16LE.copy()
        described.set_fields(7, 2, 5, 0, 2)
        described.set_size(1)
        described.set_ebias(15)
    else:
        return None
    return described
