from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from shapetrace.hdf5 import journal, transactions
from shapetrace.hdf5.journal import journal_of, recover, write_at
from shapetrace.hdf5.transactions import TransactionalFile
from tests.python.unit.hdf5.forking import forked
from tests.support.interrupting import Interrupter, exceptions

IDENTITY = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    transactions.create(str(path), IDENTITY + b"." * 9000, overwrite=False)
    return path


def put(file: TransactionalFile, offset: int, content: bytes) -> None:
    file.seek(offset)
    assert file.write(content) == len(content)


def got(file: TransactionalFile, offset: int, size: int) -> bytes:
    file.seek(offset)
    buffer = bytearray(size)
    assert file.readinto(buffer) == size
    return bytes(buffer)


def test_what_is_committed_does_not_change_until_the_next_commit(path: Path) -> None:
    before = path.read_bytes()
    file = TransactionalFile(str(path), IDENTITY)
    put(file, 4000, b"within" * 50)
    put(file, len(before) - 3, b"across the end")
    put(file, len(before) + 100, b"beyond")
    assert path.read_bytes()[: len(before)] == before
    assert got(file, 4000, 12) == b"withinwithin"
    assert got(file, len(before) - 3, 14) == b"across the end"
    file.commit()
    after = path.read_bytes()
    assert after[4000:4300] == b"within" * 50
    assert after[len(before) - 3 :].startswith(b"across the end")
    assert after.endswith(b"beyond")
    assert sorted(os.listdir(path.parent)) == ["file"]


def test_random_writes_read_as_they_would_in_memory(path: Path) -> None:
    chance = random.Random(0)
    expected = bytearray(path.read_bytes())
    file = TransactionalFile(str(path), IDENTITY)
    for step in range(400):
        offset = chance.randrange(30, len(expected) + 500)
        content = chance.randbytes(chance.choice((1, 40, 5000)))
        put(file, offset, content)
        expected.extend(bytes(max(offset + len(content) - len(expected), 0)))
        expected[offset : offset + len(content)] = content
        place = chance.randrange(len(expected) - 10)
        size = min(chance.randrange(9000), len(expected) - place)
        assert got(file, place, size) == expected[place : place + size]
        if step % 37 == 0:
            file.commit()
            assert path.read_bytes() == expected
    file.commit()
    file.close()
    assert path.read_bytes() == expected


def test_a_file_can_become_shorter_and_longer_again(path: Path) -> None:
    file = TransactionalFile(str(path), IDENTITY)
    file.truncate(5000)
    assert file.seek(0, os.SEEK_END) == 5000
    put(file, 5000, b"new" * 3000)
    assert got(file, 5000, 6) == b"newnew"
    file.commit()
    assert path.read_bytes()[5000:14000] == b"new" * 3000


def test_closing_without_a_commit_leaves_the_file_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    file = TransactionalFile(str(path), IDENTITY)
    put(file, 10, b"lost")
    put(file, len(before), b"lost as well")
    file.close()
    assert path.read_bytes() == before


class Killed(BaseException):
    pass


@pytest.fixture
def kill_after(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Have the process die, as far as files go, after so many more writes to the file itself."""
    original = write_at

    def kill(writes: int) -> None:
        left = writes

        def dying(*arguments: object) -> None:
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            original(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(transactions, "write_at", dying)

    yield kill
    monkeypatch.undo()


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_commit_that_was_cut_off_is_finished(
    path: Path, kill_after: Callable[[int], None], writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(before := IDENTITY + b"." * 90_000)
    file = TransactionalFile(str(path), IDENTITY)
    for offset in (100, 50_000, 85_000):
        put(file, offset, b"changed")
    kill_after(writes)
    with pytest.raises(Killed):
        file.commit()
    monkeypatch.undo()
    assert recover(str(path))
    expected = bytearray(before)
    for offset in (100, 50_000, 85_000):
        expected[offset : offset + 7] = b"changed"
    assert path.read_bytes() == expected
    assert not recover(str(path))
    assert os.listdir(path.parent) == ["file"]


def test_what_comes_last_is_put_into_place_last(
    path: Path, kill_after: Callable[[int], None]
) -> None:
    file = TransactionalFile(str(path), IDENTITY)
    for offset in (100, 2000, 3000, 4090):
        put(file, offset, b"changed")
    kill_after(2)
    with pytest.raises(Killed):
        file.commit(last={2003, 100})
    changed = [offset for offset in (100, 2000, 3000, 4090) if path.read_bytes()[offset] == 99]
    assert changed == [3000, 4090]


def test_a_journal_that_is_not_whole_or_of_another_file_changes_nothing(
    path: Path, kill_after: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TransactionalFile(str(path), IDENTITY)
    put(file, 100, b"changed")
    kill_after(0)
    with pytest.raises(Killed):
        file.commit()
    monkeypatch.undo()
    journal = Path(journal_of(str(path)))
    whole = journal.read_bytes()
    before = path.read_bytes()
    for broken in (b"", whole[:-1], whole[:50], whole.replace(b"changed", b"altered")):
        journal.write_bytes(broken)
        assert not recover(str(path))
        assert path.read_bytes() == before
    journal.write_bytes(whole)
    path.write_bytes(b"somebody else's")
    assert not recover(str(path))
    assert path.read_bytes() == b"somebody else's"


def test_replacing_a_file_takes_its_journal_along(path: Path) -> None:
    Path(journal_of(str(path))).write_bytes(b"left over")
    with pytest.raises(FileExistsError):
        transactions.create(str(path), b"new", overwrite=False)
    transactions.create(str(path), b"new", overwrite=True)
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file"]


def test_a_full_disk_is_not_told_to_who_writes_but_at_the_commit(
    path: Path, largest_file: Callable[[int], None]
) -> None:
    before = path.read_bytes()
    file = TransactionalFile(str(path), IDENTITY)
    largest_file(12_000)
    put(file, 100, b"changed")
    put(file, len(before), b"x" * 20_000)
    put(file, len(before), b"small")
    assert got(file, len(before), 5) == b"small"
    with pytest.raises(OSError, match="File too large"):
        file.commit()
    assert path.read_bytes()[: len(before)] == before
    file.restore()
    assert path.read_bytes() == before
    put(file, len(before), b"y" * 1000)
    put(file, 100, b"changed")
    file.commit()
    assert path.read_bytes() == before[:100] + b"changed" + before[107:] + b"y" * 1000


def test_a_disk_without_room_for_the_journal_gives_up_the_transaction(
    path: Path, largest_file: Callable[[int], None]
) -> None:
    before = path.read_bytes()
    file = TransactionalFile(str(path), IDENTITY)
    put(file, 100, b"changed" * 500)
    largest_file(1000)
    with pytest.raises(OSError, match="File too large"):
        file.commit()
    largest_file(100_000)
    file.restore()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["file"]


def test_a_forked_child_writes_nothing(path: Path) -> None:
    before = path.read_bytes()
    file = TransactionalFile(str(path), IDENTITY)
    put(file, 100, b"parent")
    child = forked()
    if not child:
        put(file, 100, b"child.")
        put(file, len(before), b"child" * 100_000)
        file.commit()
        file.truncate(0)
        file.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert path.read_bytes() == before
    file.commit()
    assert path.read_bytes() == before[:100] + b"parent" + before[106:]


def test_a_file_that_was_removed_or_replaced_is_noticed(path: Path) -> None:
    file = TransactionalFile(str(path), IDENTITY)
    assert not file.is_replaced()
    transactions.create(str(path), path.read_bytes(), overwrite=True)
    assert file.is_replaced()
    path.unlink()
    assert file.is_replaced()


class Late(Exception):
    """Set from another thread."""


def files_of(error: BaseException) -> list[str]:
    return [entry.filename for entry in traceback.extract_tb(error.__traceback__)]


def test_hdf5_reads_what_it_wrote_whatever_comes_meanwhile(path: Path) -> None:
    is_ours = (transactions.__file__, journal.__file__).__contains__
    interrupter = Interrupter(
        exceptions(Late), lambda code: is_ours(code.co_filename) and code.co_name != "__del__"
    )

    def work(file: TransactionalFile, content: bytes) -> bytes:
        put(file, 4000, content)
        file.seek(0)
        return got(file, 3999, 301)

    came = 0
    through: list[str] = []
    for at in range(1, 1000):
        file = TransactionalFile(str(path), IDENTITY)
        content = bytes([at % 250]) * 300
        try:
            found = interrupter.run(partial(work, file, content), at)
        except Late as late:  # in between, where HDF5 calls nothing of ours
            through += files_of(late)
        else:
            assert found == b"." + content, interrupter.place
            if not interrupter.place:
                break
            came += isinstance(file.taken_interrupt(), Late)
        file.close()
    assert came > 50
    assert not any(map(is_ours, through))
    assert path.read_bytes() == IDENTITY + b"." * 9000
