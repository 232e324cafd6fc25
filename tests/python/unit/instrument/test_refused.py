"""What cannot be followed is refused with one line that says why, and is not touched."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from shapetrace.instrument import CannotFollowError, Interest, follow
from tests.python.unit.instrument.listening import Heard, function_of

EVERYTHING = Interest(None, returns=True)


def refused(function: Any, interest: Interest = EVERYTHING) -> str:
    code = getattr(function, "__code__", None)
    with pytest.raises(CannotFollowError) as raised:
        follow(function, interest, Heard())
    assert getattr(function, "__code__", None) is code
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_lambdas_and_what_is_no_function() -> None:
    assert "is a lambda" in refused(lambda x: x)
    assert "not a function" in refused(len)
    assert "not a function" in refused(Heard)


def test_a_function_without_a_source() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def f(): pass", "<made>", "exec"), namespace)
    assert "is not there" in refused(namespace["f"])


def test_a_source_that_was_changed_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    y = x\n    return y\n")
    specification = importlib.util.spec_from_file_location("changing", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    path.write_text("def f(x):\n    y = x + 1\n    return y\n")
    assert "was the file changed" in refused(module.f)
    path.write_text("def f(x):\n  y = (\n")
    assert "was the file changed" in refused(module.f)
    path.write_text("def f(x):\n    y = x\n    return y\n\nz = 1\n")
    with follow(module.f, EVERYTHING, Heard()):
        assert module.f(1) == 1


def test_a_nested_function_that_is_not_there() -> None:
    function = function_of("def f():\n    def g(): pass\n")
    assert "no function h is defined in f" in refused(function, Interest(None, True, ("h",)))
