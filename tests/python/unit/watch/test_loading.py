"""What python loads passes by, and its loaders are as they were."""

from __future__ import annotations

import importlib
import importlib.machinery
import multiprocessing.spawn
import pickle
import runpy
import sys
import traceback
import zipfile
import zipimport
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

import pytest

from shapetrace.instrument.interface import Listener
from shapetrace.watch.children import Children
from shapetrace.watch.existing import functions_in
from shapetrace.watch.loading import Loading, text_of
from shapetrace.watch.territory import Territory
from shapetrace.watch.unseen_names import Place
from shapetrace.watch.wanted import Wanted, wanted_from
from shapetrace.watch.watched_functions import Watching
from tests.python.unit.instrument.listening import Heard

began: list[tuple[object, ...]] = []


def begin(*given: object) -> None:
    began.append(given)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_modules_of_files_and_archives_and_scripts_pass_by(folder: Path) -> None:
    (folder / "plain_module.py").write_text("# é\nvalue = 1000\n", "utf-8")
    (folder / "package_of_it").mkdir()
    (folder / "package_of_it" / "inner.py").write_text("value = 2\n")
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("zipped_module.py", "value = 3\n")
    sys.path.insert(0, str(folder / "archive.zip"))
    seen: dict[str, str | None] = {}

    def prepare(code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        seen[module] = text()
        return code.replace(
            co_consts=tuple(9000 if each == 1000 else each for each in code.co_consts)
        )

    before = importlib.machinery.SourceFileLoader.get_code, zipimport.zipimporter.get_code
    loading = Loading(prepare)
    loading.begin()
    try:
        values = [
            importlib.import_module(name).value
            for name in ("plain_module", "package_of_it.inner", "zipped_module")
        ]
        values.append(runpy.run_path(str(folder / "plain_module.py"))["value"])
        values.append(runpy.run_module("plain_module")["value"])
    finally:
        loading.end()
        sys.path.remove(str(folder / "archive.zip"))
    assert values == [9000, 2, 3, 9000, 9000]
    assert seen["plain_module"] == "# é\nvalue = 1000\n"
    assert seen["zipped_module"] == "value = 3\n"
    assert seen["__main__"] == "# é\nvalue = 1000\n"
    assert before == (
        importlib.machinery.SourceFileLoader.get_code,
        zipimport.zipimporter.get_code,
    )


def test_an_error_of_the_loader_has_no_frame_of_ours(folder: Path) -> None:
    (folder / "broken_source.py").write_text("x = (\n")
    loading = Loading(lambda code, module, text: code)
    loading.begin()
    try:
        with pytest.raises(SyntaxError) as raised:
            importlib.import_module("broken_source")
    finally:
        loading.end()
    files = [entry.filename for entry in traceback.extract_tb(raised.value.__traceback__)]
    assert not [file for file in files if "shapetrace/watch" in file]


def test_text_of_what_is_none(tmp_path: Path) -> None:
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    assert text_of(str(tmp_path / "bytes.py")) is None
    assert text_of(str(tmp_path / "nowhere.py")) is None


def test_a_process_that_is_started_begins_with_what_it_is_told() -> None:
    children = Children(begin, ("video",), 3)
    original = multiprocessing.spawn.get_preparation_data
    starting = multiprocessing.util.spawnv_passfds
    children.loading("something.else")
    assert multiprocessing.spawn.get_preparation_data is original
    children.loading("multiprocessing.popen_spawn_posix")
    try:
        before = children.has_started
        data = multiprocessing.spawn.get_preparation_data("child")
        assert (before, children.has_started) == (False, True)
    finally:
        children.end()
    assert multiprocessing.spawn.get_preparation_data is original
    assert multiprocessing.util.spawnv_passfds is starting
    began.clear()
    path = list(sys.path)
    pickle.loads(pickle.dumps({"shapetrace": data["shapetrace"]}))
    assert began == [(None, ("video",), 3)]
    assert sys.path == path


class Listening:
    """Makes listeners, and keeps them by what they hear."""

    def __init__(self) -> None:
        self.heard: dict[tuple[str, str], Heard] = {}

    def __call__(self, place: Place, code: CodeType, wanted: tuple[Wanted, ...]) -> Listener:
        heard = Heard()
        for each in wanted:
            self.heard[each.text, place.function] = heard
        return heard

    def values(self, text: str, function: str) -> list[object]:
        return [value for _, value, _ in self.heard[text, function].assigned]


MODULE = """
def keep(function):
    return lambda *given: function(*given)

@keep
def hidden(x):
    y = x + 1
    def inner(x):
        y = x * 2
        return y
    return inner(y)

def plain(x):
    x = [x]
    return x
"""


class Only(Territory):
    """One file, as other tests have functions too."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def has(self, module: str, file: str) -> bool:
        return file == self._file


@pytest.mark.slow
def test_functions_are_watched_as_they_are_loaded(folder: Path) -> None:
    (folder / "loaded_module.py").write_text(MODULE)
    listening = Listening()
    watched = Watching(wanted_from(["y", "plain:x", "z"]), Territory(), listening)
    loading = Loading(watched.prepared)
    loading.begin()
    try:
        module = importlib.import_module("loaded_module")
    finally:
        loading.end()
    assert module.hidden(1) == 4
    assert module.plain(5) == [5]
    assert listening.values("y", "hidden") == [2]
    assert listening.values("y", "hidden.<locals>.inner") == [4]
    assert listening.values("plain:x", "plain") == [5, [5]]
    assert watched.lines() == ["nothing that was loaded assigns 'z'"]


@pytest.mark.slow
def test_functions_that_are_there_are_watched_and_dropped(folder: Path) -> None:
    (folder / "there_already.py").write_text(MODULE)
    module = importlib.import_module("there_already")
    own = module.plain.__code__
    file = str(folder / "there_already.py")
    assert module.plain in list(functions_in(lambda name, at: at == file))
    listening = Listening()
    watched = Watching((), Only(file), listening, apart=True)
    watched.add(wanted_from(["x", "y"]))
    x, y = watched.wanted
    assert module.hidden(1) == 4
    module.plain(5)
    assert listening.values("y", "hidden") == [2]
    assert listening.values("x", "hidden.<locals>.inner") == [2]
    assert listening.values("x", "plain") == [5, [5]]
    watched.add(wanted_from(["plain:x"]))
    watched.drop(x)
    module.plain(6)
    assert listening.values("x", "plain") == [5, [5]]
    assert listening.values("plain:x", "plain") == [6, [6]]
    for each in watched.wanted:
        watched.drop(each)
    assert module.plain.__code__ is own
    assert watched.problems == {}
    assert y not in watched.wanted


def test_a_fault_of_ours_leaves_the_code_as_it_is(folder: Path) -> None:
    (folder / "faulty_case.py").write_text("x = 1\n")

    def listen(place: Place, code: CodeType, wanted: tuple[Wanted, ...]) -> Listener:
        raise RuntimeError("ours")

    watched = Watching(wanted_from(["x"]), Territory(), listen)
    loading = Loading(watched.prepared)
    loading.begin()
    try:
        assert importlib.import_module("faulty_case").x == 1
    finally:
        loading.end()
    assert "faulty_case.py is not watched: RuntimeError: ours" in watched.lines()
