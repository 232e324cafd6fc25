from __future__ import annotations

import errno
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapetrace.server.message_journal import SESSIONS_KEPT, Journal, JournalPart, SessionInfo
from shapetrace.transport.framing import HEADER_LENGTH, encode
from shapetrace.transport.handshake import hello_message
from shapetrace.transport.messages import Hello, ProcessInfo

SESSION = SessionInfo("5f1c36a2-0001", "Python: train", "debug")


def hello(pid: int = 12, session: str = SESSION.session) -> Hello:
    return Hello(session, ProcessInfo(pid, 1, "3.12.1", "/usr/bin/python3", ("a.py",)))


def row(number: int, size: int = 0) -> dict[str, Any]:
    return {"type": "rows", "number": number, "text": "ü" * size}


def payload(message: dict[str, Any]) -> bytes:
    return encode(message)[HEADER_LENGTH:]


def written(
    storage: Path, *messages: dict[str, Any], pid: int = 12, session: SessionInfo = SESSION
) -> JournalPart:
    part = Journal(storage).begin(session, hello(pid, session.session))
    for message in messages:
        part.write(payload(message))
    part.close()
    return part


def said(storage: Path) -> list[tuple[str, int, list[Any]]]:
    return [
        (each.session.session, each.hello.process.pid, list(each.messages))
        for each in Journal(storage).replay()
    ]


def files(storage: Path) -> list[str]:
    return sorted(
        path.relative_to(storage).as_posix() for path in storage.rglob("*") if path.is_file()
    )


def age(storage: Path, session: SessionInfo, days: float) -> None:
    then = time.time() - days * 24 * 3600
    for path in (storage / session.session).iterdir():
        os.utime(path, (then, then))


def sessions(number: int) -> list[SessionInfo]:
    return [SessionInfo(f"5f1c36a2-{index:04}", "", "debug") for index in range(number)]


def test_what_was_said_is_heard_once_more(tmp_path: Path) -> None:
    written(tmp_path, row(1), row(2, 5000))
    written(tmp_path, row(3), pid=13)
    assert files(tmp_path) == ["5f1c36a2-0001/12-1.frames", "5f1c36a2-0001/13-1.frames"]
    first, second = Journal(tmp_path).replay()
    assert first.session == second.session == SESSION
    assert first.hello.process == hello().process
    assert list(first.messages) == [row(1), row(2, 5000)]
    assert list(second.messages) == [row(3)]


def test_what_was_written_before_tokens_were_proven_is_read(tmp_path: Path) -> None:
    part = written(tmp_path, row(1))
    written_now = part._path.read_bytes()
    former = written_now.replace(
        encode(hello_message(hello(), "")),
        encode({**hello_message(hello(), ""), "protocol": 1, "token": "-"}),
    )
    assert former != written_now
    part._path.write_bytes(former)
    assert said(tmp_path) == [(SESSION.session, 12, [row(1)])]


@pytest.mark.parametrize("path", ["", "5f1c36a2-0001", "5f1c36a2-0001/12-1.frames"])
def test_nobody_else_may_read_it(tmp_path: Path, path: str) -> None:
    storage = tmp_path / "storage"
    written(storage)
    if os.name == "posix" and path:
        assert stat.S_IMODE((storage / path).stat().st_mode) & 0o077 == 0


def test_what_is_flushed_survives_this_process(tmp_path: Path) -> None:
    part = Journal(tmp_path).begin(SESSION, hello())
    part.write(payload(row(1)))
    part.flush()
    part.write(payload(row(2)))
    assert said(tmp_path) == [(SESSION.session, 12, [row(1)])]
    part.close()
    assert said(tmp_path) == [(SESSION.session, 12, [row(1), row(2)])]


def test_much_is_written_without_being_flushed(tmp_path: Path) -> None:
    part = Journal(tmp_path).begin(SESSION, hello())
    for number in range(100):
        part.write(payload(row(number, 10_000)))
    assert len(said(tmp_path)[0][2]) > 50
    part.close()
    assert said(tmp_path)[0][2] == [row(number, 10_000) for number in range(100)]


def test_a_process_that_begins_anew_doubles_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    former = journal.begin(SESSION, hello())
    former.write(payload(row(1)))
    other = journal.begin(SESSION, hello(13))
    newer = journal.begin(SESSION, hello())
    former.write(payload(row(2)))
    newer.write(payload(row(3)))
    other.write(payload(row(4)))
    for part in (former, newer, other):
        part.close()
    assert files(tmp_path) == ["5f1c36a2-0001/12-2.frames", "5f1c36a2-0001/13-1.frames"]
    assert said(tmp_path) == [(SESSION.session, 12, [row(3)]), (SESSION.session, 13, [row(4)])]


def test_of_two_parts_the_newer_counts(tmp_path: Path) -> None:
    # As where the former one could not be deleted.
    for number in (9, 10):
        written(tmp_path / "made", row(number))
        made = tmp_path / "made" / SESSION.session / "12-1.frames"
        kept = tmp_path / "kept" / SESSION.session / f"12-{number}.frames"
        kept.parent.mkdir(parents=True, exist_ok=True)
        made.rename(kept)
    assert said(tmp_path / "kept") == [(SESSION.session, 12, [row(10)])]
    written(tmp_path / "kept", row(11))
    assert files(tmp_path / "kept") == [f"{SESSION.session}/12-11.frames"]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder)
        written(storage, *(row(number) for number in range(5)))
        path = storage / files(storage)[0]
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        for _, pid, messages in said(storage):
            assert pid == 12
            assert messages == [row(number) for number in range(len(messages))]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_as_far_as_it_makes_sense(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder)
        written(storage, *(row(number) for number in range(5)))
        path = storage / files(storage)[0]
        damaged = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place : place + 4] = data.draw(st.binary(min_size=1, max_size=8))
        path.write_bytes(damaged)
        for _, _, messages in said(storage):
            assert all(isinstance(message["type"], str) for message in messages)


def test_what_is_not_ours_is_passed_over_and_left_alone(tmp_path: Path) -> None:
    written(tmp_path, row(1))
    folder = tmp_path / SESSION.session
    strangers = {
        tmp_path / "server.log": b"log",
        tmp_path / "other" / "notes.txt": b"notes",
        folder / "notes.txt": b"notes",
        folder / "12-1.frames.bak": b"copy",
        folder / "x-1.frames": b"x",
    }
    foreign = {
        folder / "14-1.frames": b"",
        folder / "15-1.frames": b"PK\x03\x04 something else",
        folder / "16-1.frames": encode({"type": "journal", "format": "shapetrace-journal/2"}),
        folder / "17-1.frames": encode({"type": "journal", "format": "shapetrace-journal/1"}),
        folder / "18-1.frames": encode(row(1)) + encode(row(2)),
    }
    for path, content in (strangers | foreign).items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (folder / "19-1.frames").mkdir()
    assert said(tmp_path) == [(SESSION.session, 12, [row(1)])]
    journal = Journal(tmp_path)
    journal.remove_old(sessions=0)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(strangers)
    assert (folder / "19-1.frames").is_dir()


@pytest.mark.parametrize(
    "name",
    [
        "../../outside",
        "/outside",
        "..",
        "a/b",
        "CON",
        "a.b",
        "",
        "x" * 200,
        "nul\0",
        "\udc80",
        "ü",
        "a\\b",
    ],
)
def test_a_session_may_be_called_anything(tmp_path: Path, name: str) -> None:
    storage = tmp_path / "inside" / "storage"
    session = SessionInfo(name, name, "debug")
    written(storage, row(1), session=session)
    (path,) = files(tmp_path)
    assert path.startswith("inside/storage/")
    assert path.count("/") == 3
    (replayed,) = Journal(storage).replay() if name else [None]
    if replayed is not None:
        assert replayed.session == session
        assert list(replayed.messages) == [row(1)]


def test_a_file_has_an_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path, most_bytes=10_000)
    part = journal.begin(SESSION, hello())
    for number in range(100):
        part.write(payload(row(number, 100)))
    part.close()
    kept = said(tmp_path)[0][2]
    assert kept == [row(number, 100) for number in range(len(kept))]
    assert 0 < len(kept) < 20
    assert (tmp_path / files(tmp_path)[0]).stat().st_size <= 10_000
    assert "is full at" in part.note
    assert caplog.text.count("is full at") == 1


def test_a_full_disk_ends_the_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) > 10:
            return real(descriptor, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    part = Journal(tmp_path).begin(SESSION, hello())
    part.write(payload(row(1)))
    part.flush()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        part.write(payload(row(2)))
        part.flush()
    part.write(payload(row(3)))
    part.flush()
    part.close()
    assert "No space left on device" in part.note
    assert caplog.text.count("cannot be written any further") == 1
    assert said(tmp_path) == [(SESSION.session, 12, [row(1)])]


def test_a_system_that_writes_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    written(tmp_path, row(1), row(2))
    assert said(tmp_path) == [(SESSION.session, 12, [row(1), row(2)])]


@pytest.mark.parametrize("in_the_way", ["storage", f"storage/{SESSION.session}"])
def test_a_folder_that_cannot_be_made(tmp_path: Path, in_the_way: str) -> None:
    path = tmp_path / in_the_way
    path.parent.mkdir(exist_ok=True)
    path.write_text("a file")
    part = written(tmp_path / "storage", row(1))
    assert "cannot be written" in part.note
    journal = Journal(tmp_path / "storage")
    assert list(journal.replay()) == []
    journal.forget()
    journal.remove_old()
    assert path.read_text() == "a file"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "nothing")
    assert list(journal.replay()) == []
    journal.forget()
    journal.remove_old()
    assert not (tmp_path / "nothing").exists()


def test_forgetting_deletes_everything(tmp_path: Path) -> None:
    for session in sessions(3):
        written(tmp_path, row(1), session=session)
    Journal(tmp_path).forget()
    assert list(tmp_path.iterdir()) == []


def test_after_forgetting_a_process_is_written_down_when_it_begins_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    part = journal.begin(SESSION, hello())
    part.write(payload(row(1)))
    journal.forget()
    part.write(payload(row(2)))
    part.flush()
    part.close()
    assert files(tmp_path) == []
    again = journal.begin(SESSION, hello())
    again.write(payload(row(3)))
    again.close()
    assert said(tmp_path) == [(SESSION.session, 12, [row(3)])]


def test_the_newest_sessions_are_kept(tmp_path: Path) -> None:
    for index, session in enumerate(sessions(5)):
        written(tmp_path, row(index), session=session)
        age(tmp_path, session, days=index)
    Journal(tmp_path).remove_old(sessions=3)
    assert [session for session, _, _ in said(tmp_path)] == [
        "5f1c36a2-0002",
        "5f1c36a2-0001",
        "5f1c36a2-0000",
    ]


def test_a_new_session_takes_the_place_of_the_oldest(tmp_path: Path) -> None:
    *former, first, new = sessions(SESSIONS_KEPT + 2)
    journal = Journal(tmp_path)
    running = journal.begin(first, hello())
    age(tmp_path, first, days=1)
    for session in (*former, new):
        journal.begin(session, hello()).close()
    running.close()
    kept = {session for session, _, _ in said(tmp_path)}
    assert {first.session, new.session} < kept
    assert len(kept) == SESSIONS_KEPT + 1


def test_nothing_is_removed_when_a_process_begins(tmp_path: Path) -> None:
    for session in sessions(SESSIONS_KEPT):
        written(tmp_path, row(1), session=session)
    last = sessions(SESSIONS_KEPT)[-1]
    Journal(tmp_path).begin(last, hello()).close()
    assert len({session for session, _, _ in said(tmp_path)}) == SESSIONS_KEPT


def test_sessions_that_are_old_are_removed(tmp_path: Path) -> None:
    old, new = sessions(2)
    for session, days in ((old, 7.1), (new, 6.9)):
        written(tmp_path, row(1), session=session)
        age(tmp_path, session, days)
    Journal(tmp_path).remove_old()
    assert [session for session, _, _ in said(tmp_path)] == [new.session]
