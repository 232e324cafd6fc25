"""The agent under the debugger: Dynamo compiles what it would compile under the debugger alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.python.e2e.compiled.table import PROGRAMS
from tests.support.debug_client import Launch, Script, launch
from tests.support.kept_outcomes import KeptOutcome
from tests.support.session_server import BACKEND, HIDING_RULE, SessionServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

KINDS = ("compiled_parts", "breaks_in_a_loop", "disabled_without_recursion", "stance_fail")
ROOT = PROGRAMS.parents[4]


def lines_of(how: Launch, written: Path) -> list[Any]:
    how = replace(how, arguments=[str(written), *KINDS])
    with launch(Script(PROGRAMS, {}), how) as session:
        session.go()
        ended = session.end()
        assert ended.exit_code == 0, ended.stderr
    return [json.loads(line) for line in written.read_text().splitlines()]


def test_dynamo_sees_nothing_of_the_agent(tmp_path: Path) -> None:
    path = {"PYTHONPATH": f"{BACKEND}:{ROOT}"}
    # With a rule the debugger looks for files in more functions of its own, which Dynamo counts.
    by_itself = Launch(environment=path, rules=[HIDING_RULE])
    with SessionServer(captures=["forward", "part.forward.h"], watches=["h", "y"]) as server:
        how = server.launch(how=Launch(environment=path))
        with_us = lines_of(how, tmp_path / "with the agent")
        assert server.process().modules
    kept = KeptOutcome("what Dynamo makes of programs under the debugger")
    alone = kept.read()
    if alone is None or alone != with_us:
        alone = lines_of(by_itself, tmp_path / "alone")
    assert [line["kind"] for line in alone] == [*KINDS]
    assert with_us == alone
    kept.keep(alone)
