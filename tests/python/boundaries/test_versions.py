from __future__ import annotations

import json
import tomllib

import shapetrace
from tests.python.boundaries.rule import BACKEND


def test_both_packages_and_the_module_have_one_version() -> None:
    package = json.loads((BACKEND.parent / "package.json").read_text("utf-8"))
    project = tomllib.loads((BACKEND / "pyproject.toml").read_text("utf-8"))["project"]
    assert package["version"] == project["version"] == shapetrace.__version__
