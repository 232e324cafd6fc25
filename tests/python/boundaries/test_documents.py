from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.python.boundaries.rule import BACKEND

ROOT = BACKEND.parent
LONGEST = {"README.md": 8 * 1024, "ARCHITECTURE.md": 15 * 1024}
"""Bytes that a document may have."""

SOURCES = (ROOT, BACKEND, BACKEND / "shapetrace", ROOT / "extension" / "src")
"""The folders from which documents for contributors name files and folders."""

BUILT = "build/"
"""The folder that commands write to."""

CODE = re.compile(r"^( *)(`{3,}|~{3,}).*?^ *\2`*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
LISTED = re.compile(r"^- ``(\w+)``: ", re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def documents() -> list[Path]:
    names = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"]
    return [*(ROOT / name for name in names), *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(markdown: str) -> Iterator[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    in_code = [(block.start(), block.end()) for block in CODE.finditer(markdown)]
    for heading in HEADING.finditer(markdown):
        if any(start <= heading.start() < end for start, end in in_code):
            continue
        text = re.sub(r"[^\w -]", "", LINK.sub("", heading[1]).lower()).replace(" ", "-")
        yield f"{text}-{seen[text]}" if seen[text] else text
        seen[text] += 1


def broken_links(document: Path) -> list[str]:
    broken = []
    for target in LINK.findall(CODE.sub("", document.read_text("utf-8"))):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document
        if not file.exists():
            broken.append(f"{document.name}: there is no {target}")
        elif anchor and anchor not in anchors(file.read_text("utf-8")):
            broken.append(f"{document.name}: there is no heading for {target}")
    return broken


def wrong_paths(document: Path) -> list[str]:
    """The paths in a document of which there is no file, folder, or name in a module."""
    paths = dict.fromkeys(PATH.findall(document.read_text("utf-8")))
    return [
        f"{document.name}: there is no {path}"
        for path in paths
        if not path.startswith(BUILT) and not any(is_there(folder, path) for folder in SOURCES)
    ]


def is_there(folder: Path, path: str) -> bool:
    """Whether a file, with or without its suffix, a folder, or a name in a module is there."""
    module, _, name = path.rpartition(".")
    module_file = folder / f"{module}.py"
    return any((folder / f"{path}{suffix}").exists() for suffix in ("", ".py", ".ts")) or (
        module_file.exists()
        and re.search(rf"\b{name}\b", module_file.read_text("utf-8")) is not None
    )


def packages(root: Path) -> list[str]:
    """The packages below a package, as paths from there."""
    folders = (file.parent.relative_to(root) for file in sorted(root.rglob("__init__.py")))
    return [folder.as_posix() for folder in folders if folder.parts]


def wrong_lists(root: Path) -> list[str]:
    """Modules that the docstring of their package does not list, and lists of what is not there."""
    wrong = []
    for package in ["", *packages(root)]:
        folder = root / package
        docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
        listed = Counter(LISTED.findall(docstring))
        there = {file.stem for file in folder.glob("*.py")} - {"__init__"}
        there |= {file.parent.name for file in folder.glob("*/__init__.py")}
        name = package or root.name
        wrong += [f"{name}: {module} is not listed" for module in sorted(there - set(listed))]
        wrong += [f"{name}: there is no {module}" for module in sorted(set(listed) - there)]
        wrong += [f"{name}: {module} is listed twice" for module in listed if listed[module] > 1]
    return wrong


@pytest.mark.parametrize("name", LONGEST)
def test_documents_to_begin_with_are_short(name: str) -> None:
    assert (ROOT / name).stat().st_size <= LONGEST[name]


def test_architecture_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    all_of_them = packages(BACKEND / "shapetrace")
    assert len(all_of_them) > 20
    assert [package for package in all_of_them if f"`{package}/`" not in text] == []


def test_paths_in_documents_for_contributors_exist() -> None:
    internals = sorted((ROOT / "docs" / "internals").glob("*.md"))
    for_contributors = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *internals]
    assert [path for document in for_contributors for path in wrong_paths(document)] == []


def test_each_package_lists_its_modules() -> None:
    assert wrong_lists(BACKEND / "shapetrace") == []


def test_links_and_pictures_of_documents_exist() -> None:
    assert [link for document in documents() for link in broken_links(document)] == []


def linked_files(document: Path) -> set[Path]:
    """The files that a document links to or shows."""
    links = LINK.findall(CODE.sub("", document.read_text("utf-8")))
    return {(document.parent / link.partition("#")[0]).resolve() for link in links}


def test_links_lead_from_the_readme_to_every_page_and_picture() -> None:
    found, new = set[Path](), {(ROOT / "README.md").resolve()}
    while new:
        found |= new
        new = {file for page in new if page.suffix == ".md" for file in linked_files(page)} - found
    pictures = (ROOT / "docs" / "screenshots").iterdir()
    assert {file.resolve() for file in [*documents(), *pictures]} - found == set()


def test_every_setting_is_documented() -> None:
    package = json.loads((ROOT / "package.json").read_text("utf-8"))
    settings = set(package["contributes"]["configuration"]["properties"])
    text = (ROOT / "docs" / "editor.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(shapetrace\.[\w.]+)`", text, re.MULTILINE))
    assert documented == settings


DOCUMENT = """\
# One `two`, three
[a](#one-two-three) [b](other.md) ![c](c.png) [d](other.md#part-1) [e](https://example.org)

```sh
# no heading
[f](nothing.md)
```

`[g](nothing.md)`
"""


def test_what_is_there_is_not_reported(tmp_path: Path) -> None:
    (tmp_path / "document.md").write_text(DOCUMENT)
    (tmp_path / "other.md").write_text("## Part\n## Part\n")
    (tmp_path / "c.png").touch()
    assert broken_links(tmp_path / "document.md") == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    text = DOCUMENT.replace("#one", "#no").replace("part-1", "part-2") + "[h](#no-heading)\n"
    (tmp_path / "document.md").write_text(text)
    (tmp_path / "other.md").write_text("## Part\n## Part\n")
    assert broken_links(tmp_path / "document.md") == [
        "document.md: there is no heading for #no-two-three",
        "document.md: there is no c.png",
        "document.md: there is no heading for other.md#part-2",
        "document.md: there is no heading for #no-heading",
    ]


def test_wrong_paths_are_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(
        "`events/rows` `events/` `extension/src/extension.ts` `views/stoppedEditor` `build/e2e` "
        "`events/rows.RowReader` `x / y` `a/<name>` `recorder/values/` "
        "`events/rose` `events/rows.RowWriter` `tests/nothing/` `extension.js/x`"
    )
    assert wrong_paths(document) == [
        "document.md: there is no events/rose",
        "document.md: there is no events/rows.RowWriter",
        "document.md: there is no tests/nothing/",
        "document.md: there is no extension.js/x",
    ]


def test_wrong_lists_of_modules_are_found(tmp_path: Path) -> None:
    root = tmp_path / "ours"
    (root / "inner").mkdir(parents=True)
    for name in ("one", "two", "inner/deep"):
        (root / f"{name}.py").touch()
    lines = '"""Text about ``two``.\n\n- ``one``: a\n- ``one``: b\n- ``three``: c\n"""\n'
    (root / "__init__.py").write_text(lines)
    (root / "inner" / "__init__.py").write_text('"""No list."""\n')
    assert wrong_lists(root) == [
        "ours: inner is not listed",
        "ours: two is not listed",
        "ours: there is no three",
        "ours: one is listed twice",
        "inner: deep is not listed",
    ]
