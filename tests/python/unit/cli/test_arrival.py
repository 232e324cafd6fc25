"""Being told that a module has been imported leaves everything about its import as it is."""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from shapetrace.recorder import arrival
from shapetrace.recorder.arrival import when_imported
from tests.support.interrupting import SIGNAL, Interrupter, signals

NAME = "module_that_arrives"
OURS = "shapetrace.recorder.arrival"


class Place:
    """A folder on the import path, and what happened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[object] = []

    def write(self, source: str, name: str = NAME) -> None:
        (self.folder / f"{name}.py").write_text(source)
        importlib.invalidate_caches()

    def arrived(self) -> None:
        module = sys.modules[NAME]
        spec = module.__spec__
        assert spec is not None
        # Fully imported: nobody has to wait for it any more.
        is_initializing = getattr(spec, "_initializing", False)
        self.events.append(("arrived", getattr(module, "last", None), is_initializing))


ARRIVED = ("arrived", 1, False)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield Place(tmp_path)
    sys.modules.pop(NAME, None)
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == OURS]


def assert_untouched(spec: ModuleSpec | None) -> None:
    assert spec is not None
    assert type(spec) is ModuleSpec
    assert type(spec.loader) is SourceFileLoader
    assert set(vars(spec.loader)) == {"name", "path"}


def test_called_when_the_last_line_has_run(place: Place) -> None:
    place.write("last = 0\nimport sys\nlast = 1\n")
    finders, before = sys.meta_path, list(sys.meta_path)
    when_imported(NAME, place.arrived)
    assert place.events == []
    module = importlib.import_module(NAME)
    assert place.events == [ARRIVED]
    assert sys.meta_path is finders
    assert finders == before
    assert_untouched(module.__spec__)
    assert getattr(module.__spec__, "loader", None) is module.__loader__


def test_called_once(place: Place) -> None:
    place.write("last = 1\n")
    when_imported(NAME, place.arrived)
    module = importlib.import_module(NAME)
    importlib.reload(module)
    del sys.modules[NAME]
    importlib.import_module(NAME)
    assert place.events == [ARRIVED]


def test_called_at_once_for_a_module_that_is_there(place: Place) -> None:
    place.write("last = 1\n")
    module = importlib.import_module(NAME)
    when_imported(NAME, place.arrived)
    assert place.events == [ARRIVED]
    assert_untouched(module.__spec__)


def test_a_module_that_is_being_imported_is_waited_for(place: Place) -> None:
    place.write("import from_within\nlast = 1\n")
    place.write(
        "import sys\nfrom shapetrace.recorder.arrival import when_imported\n"
        "def start(name, callback): when_imported(name, callback)\n",
        "helper_of_arrival",
    )
    helper = importlib.import_module("helper_of_arrival")
    place.write("import helper_of_arrival as h\nh.begin()\n", "from_within")
    helper.begin = lambda: helper.start(NAME, place.arrived)  # type: ignore[attr-defined]
    try:
        module = importlib.import_module(NAME)
    finally:
        for name in ("from_within", "helper_of_arrival"):
            sys.modules.pop(name, None)
    assert place.events == [ARRIVED]
    assert_untouched(module.__spec__)


def test_a_callback_can_import_the_module(place: Place) -> None:
    place.write("last = 1\n")

    def callback() -> None:
        place.events.append(importlib.import_module(NAME).last)

    when_imported(NAME, callback)
    importlib.import_module(NAME)
    assert place.events == [1]


def test_an_error_of_the_callback_is_not_the_programs(place: Place) -> None:
    place.write("last = 1\n")

    def callback() -> None:
        place.events.append("called")
        raise ValueError("not the program's")

    when_imported(NAME, callback)
    assert importlib.import_module(NAME).last == 1
    assert place.events == ["called"]


def test_cancelled(place: Place) -> None:
    place.write("last = 1\n")
    cancel = when_imported(NAME, place.arrived)
    cancel()
    cancel()
    importlib.import_module(NAME)
    assert place.events == []


@pytest.mark.parametrize("error", ["ImportError('no library')", "1 / 0", "KeyboardInterrupt()"])
def test_an_import_that_fails_is_not_an_arrival(place: Place, error: str) -> None:
    place.write(f"raise {error}\n" if error != "1 / 0" else "1 / 0\n")
    plain = failure()
    cancel = when_imported(NAME, place.arrived)
    assert failure() == plain
    assert place.events == []
    place.write("last = 1\n# changed\n")
    importlib.import_module(NAME)
    assert place.events == [ARRIVED]
    cancel()


def test_a_module_that_is_not_there(place: Place) -> None:
    plain = failure()
    cancel = when_imported(NAME, place.arrived)
    assert failure() == plain
    cancel()


def failure() -> list[str]:
    """The traceback of importing the module."""
    try:
        __import__(NAME)
    except BaseException as error:
        return traceback.format_exception(error)
    raise AssertionError("the import should have failed")


def test_looking_for_the_module_is_not_importing_it(place: Place) -> None:
    place.write("last = 1\n")
    cancel = when_imported(NAME, place.arrived)
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert isinstance(spec, ModuleSpec)
    assert spec.origin == str(place.folder / f"{NAME}.py")
    assert type(spec.loader) is SourceFileLoader
    assert repr(spec).startswith(f"ModuleSpec(name='{NAME}', loader=<")
    assert place.events == []
    importlib.import_module(NAME)
    assert place.events == [ARRIVED]
    cancel()


def test_other_finders_keep_their_turn(place: Place) -> None:
    asked: list[str] = []

    class Asked:
        def __init__(self, name: str) -> None:
            self.name = name

        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            if fullname == NAME:
                asked.append(self.name)

    place.write("last = 1\n")
    sys.meta_path.insert(0, Asked("after"))
    when_imported(NAME, place.arrived)
    sys.meta_path.insert(0, Asked("before"))
    importlib.import_module(NAME)
    assert asked == ["before", "after"]
    assert place.events == [ARRIVED]


def test_a_finder_that_forbids_the_import_says_so_itself(place: Place) -> None:
    class Forbids:
        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            if fullname == NAME:
                raise ImportError(f"{fullname} is forbidden")

    place.write("last = 1\n")
    sys.meta_path.insert(0, Forbids())
    plain = failure()
    cancel = when_imported(NAME, place.arrived)
    assert failure() == plain
    cancel()


def test_a_blocked_module_has_not_arrived(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, NAME, None)
    cancel = when_imported(NAME, place.arrived)
    assert place.events == []
    cancel()


def test_a_list_of_finders_that_the_program_puts_back(place: Place) -> None:
    place.write("last = 1\n")
    cancel = when_imported(NAME, place.arrived)
    with_ours, sys.meta_path = sys.meta_path, sys.meta_path[1:]
    cancel()
    sys.meta_path = with_ours
    importlib.import_module(NAME)
    assert place.events == []
    del with_ours[0]


def test_many_threads_that_import_at_once(place: Place) -> None:
    place.write("import time\ntime.sleep(0.05)\nlast = 1\n")
    when_imported(NAME, place.arrived)
    seen: list[object] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        seen.append(importlib.import_module(NAME).last)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 8
    assert place.events == [ARRIVED]


class Late(Exception):
    """What the program has raised in between."""


def raise_late(signum: int, frame: object) -> None:
    raise Late


def is_ours(code: CodeType) -> bool:
    return code.co_filename == arrival.__file__


def test_what_the_program_has_raised_meanwhile_reaches_it(place: Place) -> None:
    # The import system asks whether it is initialized, each time.
    place.write(f"import {NAME}\n" * 20 + "last = 1")
    heard: list[str] = []

    def arrived() -> None:
        heard.append(NAME)
        place.arrived()

    def run(at: int | None) -> None:
        heard.clear()
        sys.modules.pop(NAME, None)
        cancel = when_imported(NAME, arrived)
        try:
            interrupter.run(lambda: importlib.import_module(NAME), at)
        except Late as late:
            shown = [frame.filename for frame in traceback.extract_tb(late.__traceback__)]
            assert arrival.__file__ not in shown, interrupter.place
        else:
            assert at is None, f"lost at {interrupter.place}"
        if not heard:  # It came while the module was being found, and nothing was imported.
            assert NAME not in sys.modules, interrupter.place
            importlib.import_module(NAME)
        assert heard, interrupter.place
        assert_untouched(sys.modules[NAME].__spec__)
        cancel()

    former = signal.signal(SIGNAL, raise_late)
    interrupter = Interrupter(signals(), is_ours)
    try:
        run(None)  # which also compiles it
        run(None)
        count = interrupter.count
        assert count > 100
        for at in range(1, count + 1):
            run(at)
            assert interrupter.place
    finally:
        signal.signal(SIGNAL, former)
