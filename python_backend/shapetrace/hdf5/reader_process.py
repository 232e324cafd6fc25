"""Reading a file of captured values in a process of its own.

libhdf5 crashes on some damaged files, hangs on others, or takes any amount of memory. So an
expendable process reads the file, within limits, and reports what is in it.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import IO, Any, Final

from shapetrace._errors import CaptureFileError, ShapetraceError
from shapetrace.events import captured, model

_SECONDS: Final = 5
"""Seconds of CPU time within which there has to be progress."""

_QUIET_SECONDS: Final = 60
"""Seconds of wall time, for a disk that does not answer."""

_MEMORY: Final = 2 << 30
"""Bytes of memory for reading, besides the libraries' own."""

_OFTEN: Final = 0.2
"""Seconds between signs of life."""

_ALIVE, _ANSWER = b".", b"="

_PROGRAM: Final = "import sys; sys.path[:] = {path}; from {module} import main; main()"

_CLASSES: Final = {
    each.__name__: each
    for each in (
        *(captured.CapturedFile, captured.CapturedName, captured.CapturedPart),
        *(captured.CapturedLeaf, captured.Statistics, captured.Histogram),
        *(model.Tensor, model.Container, model.Other, model.DimensionRange),
    )
}


def summary_of(path: str, content: bytes | None = None) -> captured.CapturedFile:
    """The summary of a file, or of a file's content; changes nothing."""
    answer = _asked("summary", path, content)
    if not isinstance(answer, captured.CapturedFile):
        raise CaptureFileError(f"cannot read {_shown(path)}: it is damaged")
    return answer


def join(path: str) -> None:
    """Make the file that joins files of single ranks; raises an error that prevents it."""
    _asked("join", path, None)


def main() -> None:
    """Run in the other process: the arguments are task and path, and stdin the content, if any."""
    task, path, has_content = sys.argv[1:]
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    alive = _Alive(out)
    try:
        if task == "join":
            from shapetrace.hdf5.shards import join_shards

            join_shards(path)
            answer: dict[str, Any] = {"answer": None}
        else:
            from shapetrace.hdf5.file_summary import read_summary
            from shapetrace.hdf5.library import library

            library()
            content = BytesIO(sys.stdin.buffer.read()) if has_content == "yes" else None
            alive.limit()
            summary = read_summary(path, content=content, on_progress=alive.tell)
            answer = {"answer": _plain(summary)}
    except ShapetraceError as error:
        answer = {"error": str(error)}
    out.write(_ANSWER + json.dumps(answer).encode("ascii") + b"\n")
    out.flush()
    # HDF5 may crash when it closes a damaged file.
    os._exit(0)


class _Alive:
    """Reports progress now and then, which renews its time limit."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._next = 0.0

    def limit(self) -> None:
        """Limit memory from now on, and leave no core dump after a crash."""
        with suppress(ImportError, OSError, ValueError):
            import resource

            with open("/proc/self/statm", "rb") as stream:
                pages = int(stream.read().split()[0])
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            most = pages * resource.getpagesize() + _MEMORY
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        self.tell()

    def tell(self) -> None:
        """Report progress."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _OFTEN
        self._out.write(_ALIVE + b"\n")
        with suppress(ImportError, OSError, ValueError):
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            soft = int(time.process_time()) + _SECONDS
            if hard == resource.RLIM_INFINITY or soft < hard:
                resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _asked(task: str, path: str, content: bytes | None) -> object:
    if importlib.util.find_spec("h5py") is None:
        raise CaptureFileError(
            "HDF5 files need h5py, which is not installed here; `pip install h5py`"
        )
    with _started(task, path, content) as (process, lines):
        answer = _heard(process, lines)
        code = process.wait()
    if answer is None:
        raise CaptureFileError(f"cannot read {_shown(path)}: {_reason(code)}")
    document = json.loads(answer)
    if "error" in document:
        raise CaptureFileError(document["error"])
    return _restored(document["answer"])


@contextmanager
def _started(
    task: str, path: str, content: bytes | None
) -> Iterator[tuple[subprocess.Popen[bytes], queue.Queue[bytes | None]]]:
    program = _PROGRAM.format(path=ascii(sys.path), module=__name__)
    has_content = "no" if content is None else "yes"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program, task, path, has_content],
        stdin=subprocess.DEVNULL if content is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Their threads would take memory, and are not needed.
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    lines: queue.Queue[bytes | None] = queue.Queue()
    threads = [_thread(lambda: _pass_on(process, lines))]
    if content is not None:
        threads.append(_thread(lambda: _hand_over(process, content)))
    try:
        yield process, lines
    finally:
        process.kill()
        process.wait()
        for thread in threads:
            thread.join()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _heard(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> bytes | None:
    """The answer; None if there is none."""
    quiet = 0
    while quiet < _QUIET_SECONDS:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            # Not wall time: both processes may have been suspended.
            quiet += 1
            continue
        quiet = 0
        if line is None:
            return None
        if line.startswith(_ANSWER):
            return line[len(_ANSWER) :]
    process.kill()
    return None


def _thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _pass_on(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
    assert process.stdout is not None
    with suppress(OSError, ValueError):
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _hand_over(process: subprocess.Popen[bytes], content: bytes) -> None:
    assert process.stdin is not None
    with suppress(OSError, ValueError):
        process.stdin.write(content)
        process.stdin.close()


def _reason(code: int) -> str:
    if code == -getattr(signal, "SIGXCPU", 0) or code == -getattr(signal, "SIGKILL", 0):
        return "reading it comes to no end; it is damaged"
    if code < 0:
        return f"HDF5 crashes on it ({signal.Signals(-code).name}); it is damaged"
    return "the process that was to read it ended early; it is damaged"


def _shown(path: str) -> str:
    name = os.path.basename(path)
    return name if name.isprintable() else repr(name)


def _plain(value: Any) -> object:
    """A value of these classes as plain JSON data."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if type(value) in _CLASSES.values():
        fields = (field.name for field in dataclasses.fields(value) if field.name != "extra")
        return {
            "class": type(value).__name__,
            **{name: _plain(getattr(value, name)) for name in fields},
        }
    return value


def _restored(document: Any) -> Any:
    if isinstance(document, list):
        return tuple(map(_restored, document))
    if isinstance(document, dict):
        made = _CLASSES[document.pop("class")]
        return made(**{name: _restored(each) for name, each in document.items()})
    return document
