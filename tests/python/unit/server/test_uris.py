from __future__ import annotations

import os
from pathlib import Path

import pytest

from shapetrace.server.uris import file_key, path_of_uri


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///home/ada/model.py", "/home/ada/model.py"),
        ("file:///home/ada/gr%C3%B6%C3%9Fe%202.py", "/home/ada/größe 2.py"),
        ("file:///home/ada/größe 2.py", "/home/ada/größe 2.py"),
        ("file:///a%23b%3Fc%25.py", "/a#b?c%.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file://server/share/a.py", "//server/share/a.py"),
        ("file:///c%3A/Users/Ada/a.py", "c:/Users/Ada/a.py"),
        ("file:///C:/Users/Ada/a.py", "C:/Users/Ada/a.py"),
        ("untitled:Untitled-1", None),
        ("vscode-notebook-cell:/home/ada/book.ipynb#W0", None),
        ("git:/home/ada/model.py?%7B%7D", None),
        ("", None),
    ],
)
def test_a_file_has_a_path(uri: str, expected: str | None) -> None:
    assert path_of_uri(uri) == expected


def test_windows_has_its_own_separators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sep", "\\")
    assert path_of_uri("file:///c%3A/Users/Ada/a.py") == "c:\\Users\\Ada\\a.py"
    assert path_of_uri("file://server/share/a.py") == "\\\\server\\share\\a.py"


def test_links_lead_to_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "model.py").touch()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    keys = {
        file_key(os.fspath(tmp_path / "real" / "model.py")),
        file_key(os.fspath(tmp_path / "linked" / "model.py")),
        file_key(os.fspath(tmp_path / "linked" / ".." / "real" / "model.py")),
    }
    assert len(keys) == 1


def test_names_that_mac_os_takes_for_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    file_key.cache_clear()
    composed, apart = tmp_path / "Gr\u00f6.py", tmp_path / "gro\u0308.py"
    assert file_key(os.fspath(composed)) == file_key(os.fspath(apart))
    file_key.cache_clear()
