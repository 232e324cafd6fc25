"""A program whose variables are watched says what it says under python, beside their history."""

from __future__ import annotations

import re
import textwrap
import zipapp
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import ROOT, Outcome, python, shapetrace, without_addresses
from tests.python.e2e.cli.test_as_by_python import BROKEN_SOURCES, PROGRAMS, SURROUNDINGS

pytestmark = pytest.mark.e2e

NAMES = "error,errors,number,namespace,child,thread,kept,held,x,context,text,main,names,name,plain"
"""Variables of the programs, so that nearly all of what is in them has hooks."""

HISTORY = re.compile(r"(?m)(\[[^\]\n]+\] )?[│┌├└].*\n?")


def watched(*arguments: str, cwd: Path, **how: object) -> Outcome:
    return shapetrace("run", "--watch", NAMES, *arguments, cwd=cwd, **how)  # type: ignore[arg-type]


def same(plain: Outcome, traced: Outcome) -> None:
    assert traced.code == plain.code
    assert without_addresses(HISTORY.sub("", traced.stdout)) == without_addresses(plain.stdout)
    notes = re.compile(r"shapetrace: .*\n")
    assert without_addresses(notes.sub("", traced.stderr)) == without_addresses(plain.stderr)


@pytest.mark.parametrize("name", PROGRAMS)
def test_script(name: str, tmp_path: Path) -> None:
    source = textwrap.dedent(PROGRAMS[name])
    encoding = "latin-1" if "latin-1" in source else "utf-8"
    (tmp_path / "script.py").write_text(source, encoding=encoding)
    plain = python("script.py", "--argument", cwd=tmp_path, stdin="one\ntwo\nthree")
    traced = watched("script.py", "--argument", cwd=tmp_path, stdin="one\ntwo\nthree")
    same(plain, traced)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_script_imports(name: str, tmp_path: Path) -> None:
    """The same programs as a module, beside a function of the script that has hooks."""
    source = textwrap.dedent(PROGRAMS[name])
    encoding = "latin-1" if "latin-1" in source else "utf-8"
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(source, encoding=encoding)
    (tmp_path / "script.py").write_text(
        "def start(x):\n    x = [x]\n    import package.module\n    return x\nstart(1)\n"
    )
    plain = python("script.py", cwd=tmp_path, stdin="one\ntwo\nthree")
    traced = watched("script.py", cwd=tmp_path, stdin="one\ntwo\nthree")
    same(plain, traced)


@pytest.mark.parametrize("name", BROKEN_SOURCES)
def test_source_that_cannot_be_compiled(name: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_bytes(BROKEN_SOURCES[name])
    (tmp_path / "main.py").write_text("x = 1\nimport script\n")
    for each in ("script.py", "main.py"):
        same(python(each, cwd=tmp_path), watched(each, cwd=tmp_path))


@pytest.mark.parametrize("flags", [(), ("-P",), ("-O", "-W", "error", "-X", "dev"), ("-B", "-u")])
@pytest.mark.parametrize(
    "arguments",
    [("script.py", "a"), ("-m", "module", "a"), ("-m", "package"), ("folder",), ("archive.pyz",)],
)
def test_surroundings(arguments: tuple[str, ...], flags: tuple[str, ...], tmp_path: Path) -> None:
    source = textwrap.dedent(SURROUNDINGS)
    for file in ("script.py", "module.py"):
        (tmp_path / file).write_text(source)
    for folder, main in (("package", "__main__.py"), ("folder", "__main__.py")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / main).write_text(source)
    (tmp_path / "package" / "__init__.py").touch()
    zipapp.create_archive(tmp_path / "folder", tmp_path / "archive.pyz")
    extra = {"PYTHONPATH": f"{ROOT / 'python_backend'}:{tmp_path if '-P' in flags else ''}"}
    plain = python(*arguments, cwd=tmp_path, flags=flags, extra=extra)
    traced = watched(*arguments, cwd=tmp_path, flags=flags, extra=extra)
    assert plain.code == 0
    assert "names  " in traced.stdout
    same(plain, traced)
