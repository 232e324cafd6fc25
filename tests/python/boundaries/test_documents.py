from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.python.boundaries.rule import BACKEND

ROOT = BACKEND.parent
LONGEST_README = 8 * 1024

CODE = re.compile(r"^( *)(`{3,}|~{3,}).*?^ *\2`*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
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


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= LONGEST_README


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
