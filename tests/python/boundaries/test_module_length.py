from __future__ import annotations

from pathlib import Path

from tests.python.boundaries.rule import BACKEND

LONGEST = 500


def too_long(folder: Path) -> list[str]:
    lengths = {
        path.relative_to(folder).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in folder.rglob("*.py")
    }
    return sorted(f"{name}: {length} lines" for name, length in lengths.items() if length > LONGEST)


def test_no_module_is_too_long() -> None:
    assert too_long(BACKEND) == []


def test_a_module_that_is_too_long_is_found(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "short.py").write_text("\n" * LONGEST)
    (tmp_path / "inside" / "long.py").write_text("\n" * (LONGEST + 1))
    assert too_long(tmp_path) == ["inside/long.py: 501 lines"]
