"""Debugs a program twice, without us and with the agent in it, and compares what the user sees."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from pathlib import Path
from typing import ClassVar

from tests.support.debug_client import DebugSession, Launch, Script, Stop, launch
from tests.support.kept_outcomes import KeptOutcome, digest_of, digest_of_code
from tests.support.session_server import BACKEND, HIDING_RULE, Heard, SessionServer

_FOLDER = "{the program's folder}"
"""In what is kept: each run of a test has another one."""


@dataclass
class Watched:
    """A debug session, and everything of it that a user could see."""

    session: DebugSession
    seen: list[str] = field(default_factory=list)

    def see(self, what: object) -> None:
        """Note something that is to be the same without us."""
        # From Python 3.12 on, forking a process with threads warns with the number of the process.
        self.seen.append(re.sub(r"\(pid=\d+\)", "(pid=…)", str(what)))

    def stop(self) -> Stop:
        """Wait for a stop and note it."""
        stop = self.session.stop()
        self.see(stop)
        return stop

    def step(self, how: str, thread: int) -> Stop | None:
        """Make a step and note where it led."""
        stop = self.session.step(how, thread)
        self.see(f"{how} → {stop}")
        return stop

    def steps(self, hows: Sequence[str], mark: str) -> None:
        """Stop at a line, make steps from there, and run to the end."""
        self.routes([hows], mark)

    def routes(self, routes: Sequence[Sequence[str]], mark: str) -> None:
        """Make other steps each time that a line is reached, and run to the end."""
        session = self.session
        session.break_at(mark)
        session.go()
        last: Stop | None = None
        for hows in routes:
            if last is not None:
                session.break_at(mark)
                session.resume(last.thread)
            last = self.stop()
            session.clear_breakpoints()
            for how in hows:
                last = self.step(how, last.thread)
                if last is None:
                    self.end()
                    return
        if last is not None:
            session.resume(last.thread)
        self.end()

    def stops(self) -> Iterator[Stop]:
        """Note each stop up to the end and the end itself, going on from each once it was used."""
        while stop := self.session.stop_or_end():
            self.see(stop)
            yield stop
            self.session.resume(stop.thread)
        self.end()

    def breakpoints(self, marks: Sequence[str]) -> None:
        """Stop at lines, and note all variables there."""
        self.session.break_at(*marks)
        self.session.go()
        for stop in self.stops():
            self.see(self.session.variables(stop.top))

    def exceptions(self, *filters: str) -> Iterator[Stop]:
        """Go to the line ``begin``, and stop at exceptions from there on."""
        session = self.session
        session.break_at("begin")
        session.go()
        session.stop()
        # Only now: libraries raise and catch thousands while they are imported.
        session.break_on_exceptions(*filters)
        session.resume()
        for stop in self.stops():
            self.see(stop.description)
            yield stop

    def raised_exceptions(self) -> None:
        """Stop at all exceptions that are raised from the line ``begin`` on."""
        for _ in self.exceptions("raised", "uncaught"):
            pass

    def run(self) -> None:
        """Let the program run to its end."""
        self.session.go()
        self.end()

    def end(self) -> None:
        """Wait for the program's end and note it."""
        self.see(self.session.end())


Drive = Callable[[Watched], None]
"""Does with a debug session what a user would do."""


def debug(
    script: Script, drive: Drive, how: Launch, server: SessionServer | None = None
) -> list[str]:
    """Debug a program once, with the agent in it where a server is given."""
    if server is not None:
        how = server.launch(how=how)
    with launch(script, how) as session:
        watched = Watched(session)
        try:
            drive(watched)
        except BaseException as error:
            error.add_note("what was seen before:\n" + "\n".join(watched.seen))
            raise
    return watched.seen


def debug_with_helper(
    script: Script, helper: Script, drive: Drive, how: Launch | None, switch: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Debug a program without and with what a helper of its does with us.

    Args:
        script: the program, which imports the helper.
        helper: a module that uses us; it is hidden from the debugger, as we are.
        drive: what the user does.
        how: how the program is started.
        switch: the variables of the environment by which the helper knows that it is to use us.

    """
    path = {"PYTHONPATH": str(BACKEND)}
    rules = [HIDING_RULE, {"path": str(helper.path), "include": False}]
    how = replace(how or Launch(), environment=path, rules=rules)
    without = debug(script, drive, how)
    return without, debug(script, drive, replace(how, environment={**path, **switch}))


class KeptSession:
    """What a user saw of a session without us, in the test that is running."""

    _numbers: ClassVar[Counter[str]] = Counter()
    """How many sessions each test has had: what the user does differs from one to the next."""

    def __init__(self, script: Script, how: Launch) -> None:
        folder = script.path.parent
        self._folder = str(folder)
        # PyTest adds what the test is at: "(call)".
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        self._numbers[test] += 1
        configuration = json.dumps(how.configuration(script), sort_keys=True)
        path = (how.environment.get("PYTHONPATH") or "").split(os.pathsep)
        self._kept = KeptOutcome(
            f"{test} {self._numbers[test]}",
            str(how.debugpy),
            configuration.replace(self._folder, _FOLDER),
            digest_of(folder),
            *(digest_of_code(Path(each)) for each in path if each),
        )

    def read(self) -> list[str] | None:
        """Return what was seen, if that is known."""
        seen = self._kept.read()
        return None if seen is None else [line.replace(_FOLDER, self._folder) for line in seen]

    def keep(self, seen: list[str]) -> None:
        """Keep what was seen."""
        self._kept.keep([line.replace(self._folder, _FOLDER) for line in seen])


def check_same(without: list[str], with_us: list[str]) -> None:
    """Fail where a user could tell one session from the other."""
    differences = unified_diff(without, with_us, "without us", "with us", lineterm="", n=2)
    assert without == with_us, "\n".join(differences)


def same_as_without_us(
    text: str,
    drive: Drive,
    directory: Path,
    how: Launch | None = None,
    captures: Sequence[str] = (),
    watches: Sequence[str] = (),
) -> tuple[Heard, Script]:
    """Debug a program without and with us, and fail where a user could tell which is which."""
    script = Script.write(text, directory)
    how = how or Launch()
    kept = KeptSession(script, how)
    known = kept.read()
    without = known or debug(script, drive, how)
    with SessionServer(captures=captures, watches=watches) as server:
        with_us = debug(script, drive, how, server)
        heard = server.process()
        heard.wait_for_end()
    if known is not None and known != with_us:
        without = debug(script, drive, how)  # Nothing fails for what is only remembered.
    check_same(without, with_us)
    kept.keep(without)
    assert [note for note in heard.coverage if "fault" in note.reason] == []
    return heard, script
