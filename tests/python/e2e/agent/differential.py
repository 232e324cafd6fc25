"""Debugs a program twice, without us and with the agent in it, and compares what the user sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from tests.support.debug_client import DebugSession, Launch, Script, Stop, launch
from tests.support.session_server import Heard, SessionServer


@dataclass
class Watched:
    """A debug session, and everything of it that a user could see."""

    session: DebugSession
    seen: list[str] = field(default_factory=list)

    def see(self, what: object) -> None:
        """Note something that is to be the same without us."""
        self.seen.append(str(what))

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
        session = self.session
        session.break_at(mark)
        session.go()
        stop: Stop | None = self.stop()
        session.clear_breakpoints()
        for how in hows:
            assert stop is not None
            stop = self.step(how, stop.thread)
            if stop is None:
                break
        if stop is not None:
            session.resume(stop.thread)
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
    without = debug(script, drive, how)
    with SessionServer(captures=captures, watches=watches) as server:
        with_us = debug(script, drive, how, server)
        heard = server.process()
        heard.wait_for_end()
    differences = unified_diff(without, with_us, "without us", "with us", lineterm="", n=2)
    assert without == with_us, "\n".join(differences)
    assert [note for note in heard.coverage if "fault" in note.reason] == []
    return heard, script
