from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.python.boundaries.rule import BACKEND
from tests.python.boundaries.swallowing import superfluous, swallowing, unjustified

ROOT = BACKEND / "shapetrace"


@pytest.mark.slow
def test_no_clause_swallows_what_may_be_the_programs_own() -> None:
    assert unjustified(swallowing(ROOT)) == []


@pytest.mark.slow
def test_all_that_is_listed_is_there() -> None:
    assert superfluous(swallowing(ROOT)) == []


OTHERS = """
def fail(self, error):
    if is_asynchronous(error):
        raise error
def note(self, error):
    print(error)
def pass_on(error):
    fail(None, error)
def asks_of_another(error):
    try:
        print(error)
    except ValueError as error:
        is_asynchronous(error)
class One:
    def both(self, error):
        fail(self, error)
class Other:
    def both(self, error):
        print(error)
"""


def found_in(folder: Path, clause: str) -> list[str]:
    statement = textwrap.indent(f"try:\n    do()\n{clause}\n", " " * 8)
    work = f"    def work(self):\n{statement}"
    (folder / "planted.py").write_text(f"class Kind:\n{work}\n{OTHERS}")
    return unjustified(swallowing(folder))


@pytest.mark.parametrize(
    "clause",
    [
        "except:\n    pass",
        "except Exception:\n    pass",
        "except BaseException as error:\n    note(error)",
        "except OSError:\n    return None",
        "except (ValueError, TimeoutError):\n    return None",
        "except RuntimeError as error:\n    raise ValueError from error",
        "except Exception as error:\n    if isinstance(error, ValueError):\n        raise",
        "except Exception as error:\n    both(error)",
        "except Exception as error:\n    asks_of_another(error)",
        "except Exception as error:\n    is_asynchronous(other)",
        "except ValueError:\n    with contextlib.suppress(OSError):\n        do()",
        "except ValueError:\n    with suppress(ValueError, Exception):\n        do()",
    ],
)
def test_a_clause_that_swallows_is_found(tmp_path: Path, clause: str) -> None:
    (line,) = found_in(tmp_path, clause)
    assert line.startswith("planted:Kind.work, line ")


@pytest.mark.parametrize(
    "clause",
    [
        "except ValueError:\n    pass",
        "except (RecursionError, KeyError):\n    pass",
        "except BaseException:\n    undo()\n    raise",
        "except BaseException as error:\n    clean(error)\n    raise error",
        "except Exception as it:\n    if is_asynchronous(it):\n        raise\n    note(it)",
        "except Exception as error:\n    if not self.recorder.swallows(error):\n        raise",
        "except Exception as error:\n    self.fail(error)",
        "except Exception as error:\n    pass_on(error)",
        "except ValueError:\n    with suppressing(OSError):\n        do()",
    ],
)
def test_a_clause_that_asks_or_raises_again_is_not(tmp_path: Path, clause: str) -> None:
    assert found_in(tmp_path, clause) == []
