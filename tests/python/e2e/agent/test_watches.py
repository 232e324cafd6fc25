"""Variables that are watched in a debug session, and that the session is as it would be without."""

from __future__ import annotations

import random
import re
from functools import partial
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.support.debug_client import Launch, Script, launch
from tests.support.running import enter, running
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e

PIPELINE = '''
import numpy as np
import sys

def resize(video, size):
    video = video[:, :size, :size]  # @resize
    return video  # @resized

class Dataset:
    def transform(self, sample):
        """What it does."""
        sample["video"] = resize(sample["video"], 4)  # @first
        sample["video"] = sample["video"].astype(
            np.float32  # @spread
        )
        for index in range(2):
            mask = sample["video"] > index  # @loop
        try:
            {}["missing"]
        except KeyError as error:
            kept = str(error)  # @caught
        finally:
            last = 1  # @finally
        return sample, mask  # @return

def pieces(video):
    for video in video:
        yield video  # @yield

if __name__ == "__main__":
    video = np.zeros((73, 8, 8), dtype=np.uint8)  # @begin
    sample, mask = Dataset().transform({"video": video})  # @call
    video = sample["video"].transpose(2, 0, 1)  # @after
    print(len(list(pieces(video[:2]))))
    print("torch" in sys.modules)
'''
NAMES = ("video", "sample['video']", "transform:mask", "vidoe", "f(x)")


def test_the_history_of_a_pipeline_without_torch(tmp_path: Path) -> None:
    heard, script = same_as_without_us(PIPELINE, Watched.run, tmp_path, watches=NAMES)
    line = script.marks
    assert heard.changes("video") == [
        f"<module> {line['begin']} u8[73,8,8]",
        f"resize {line['resize'] - 1} u8[73,8,8]",
        f"resize {line['resize']} u8[73,8,8] → u8[73,4,4]",
        f"<module> {line['after']} u8[73,8,8] → f32[4,73,4]",
        f"pieces {line['yield'] - 2} f32[2,73,4]",
        f"pieces {line['yield'] - 1} f32[2,73,4] → f32[73,4]",
        f"pieces {line['yield'] - 1} f32[73,4] → f32[73,4]",
    ]
    assert (
        heard.changes("transform:mask")
        == [
            f"Dataset.transform {line['loop']} bool[73,4,4]",
            f"Dataset.transform {line['loop']} bool[73,4,4] → bool[73,4,4]",
        ][:1]
    )
    assert heard.changes("sample['video']")[:3] == [
        f"Dataset.transform {line['first'] - 2} u8[73,8,8]",
        f"Dataset.transform {line['first']} u8[73,8,8] → u8[73,4,4]",
        f"Dataset.transform {line['spread'] - 1} u8[73,4,4] → f32[73,4,4]",
    ]
    assert heard.watched.requests == NAMES
    assert set(heard.watched.problems) == {"vidoe", "f(x)"}
    assert "did you mean video" in heard.watched.problems["vidoe"]
    assert heard.watched_calls == {}
    assert heard.states[-1] == "complete"
    assert heard.sources[str(script.path)] is not None


MARKS = re.findall(r"# @(\w+)", PIPELINE)


def test_breakpoints_in_watched_functions(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_at(*MARKS)
        session.go()
        for stop in watched.stops():
            watched.see(sorted(each for each in session.variables(stop.top) if each.isidentifier()))

    heard, _ = same_as_without_us(PIPELINE, drive, tmp_path, watches=NAMES)
    assert len(heard.changes("video")) == 7


@pytest.mark.parametrize("how", ["stepIn", "next"])
@pytest.mark.parametrize("just_my_code", [True, False])
def test_steps_end_where_they_would(how: str, just_my_code: bool, tmp_path: Path) -> None:
    number = 40 if just_my_code else 12
    drive = partial(Watched.steps, hows=[how] * number, mark="begin")
    launched = Launch(just_my_code=just_my_code)
    heard, _ = same_as_without_us(PIPELINE, drive, tmp_path, launched, watches=NAMES)
    assert heard.changes("video")


@pytest.mark.parametrize("seed", range(3))
def test_steps_of_all_kinds(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed).choices(["stepIn", "next", "stepOut"], [5, 4, 1], k=40)
    drive = partial(Watched.steps, hows=chosen, mark="call")
    heard, _ = same_as_without_us(PIPELINE, drive, tmp_path, watches=NAMES)
    assert heard.changes("sample['video']")


@pytest.mark.parametrize("just_my_code", [True, False])
def test_errors_that_are_raised_and_caught(just_my_code: bool, tmp_path: Path) -> None:
    launched = Launch(just_my_code=just_my_code)
    same_as_without_us(PIPELINE, Watched.raised_exceptions, tmp_path, launched, watches=NAMES)


def test_a_module_that_is_run_by_its_name_and_what_it_imports(tmp_path: Path) -> None:
    Script.write(PIPELINE, tmp_path, "package/pipeline.py")
    (tmp_path / "package" / "__init__.py").touch()
    text = """
    from package.pipeline import Dataset
    import numpy as np
    def start():
        mask = Dataset().transform({"video": np.zeros((2, 8, 8))})[1]  # @start
        return mask
    start()
    """
    heard, _ = same_as_without_us(text, Watched.run, tmp_path, watches=["mask"])
    assert [each.split()[0] for each in heard.changes("mask")] == ["Dataset.transform", "start"]


LASTING = """
import os, time

def work(number):
    value = [number]  # @value
    other = tuple(value)  # @other
    return other

def long():
    value = 0
    print("ready", flush=True)
    while not os.path.exists("stop"):
        work(3)  # @work
        time.sleep(0.01)
    value = 1
codes = work.__code__, long.__code__
long()
print("over", flush=True)
"""


def test_what_is_watched_and_no_longer_in_a_program_that_runs(tmp_path: Path) -> None:
    script = Script.write(LASTING, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        session.wait_for_output("ready")
        heard = server.process()
        server.send(heard, {"type": "watch", "names": ["value", "1x", "nothing"]})
        heard.wait_for(lambda it: len(it.changes("value")) >= 3)
        server.send(heard, {"type": "watch", "names": ["value", "work:other"]})
        heard.wait_for(lambda it: len(it.changes("work:other")) >= 3)
        before = len(heard.changes("value"))
        heard.wait_for(lambda it: len(it.changes("value")) > before)
        server.send(heard, {"type": "watch", "names": ["other"]})
        heard.wait_for(lambda it: len(it.changes("other")) >= 3)
        number = len(heard.changes("value"))
        last = max(
            each.last for each in heard.watched.names.values() if each.about.request == "value"
        )
        heard.wait_for(lambda it: len(it.changes("other")) >= 20)
        (tmp_path / "stop").touch()
        assert session.end().stdout.endswith("over\n")
        heard.wait_for_end()
    line = script.marks
    assert heard.changes("value")[:2] == [f"work {line['value']} [3]"] * 2
    assert heard.changes("other")[:2] == [f"work {line['other']} (3,)"] * 2
    assert len(heard.changes("value")) - number <= 1
    assert last >= 3
    assert "1x" in heard.watched.problems


def test_a_function_that_is_watched_while_it_stands_still(tmp_path: Path) -> None:
    script = Script.write(LASTING, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at("value")
        session.go()
        stop = session.stop()
        heard = server.process()
        server.send(heard, {"type": "watch", "names": ["value"]})
        heard.wait_for(lambda it: it.watched.requests == ("value",))
        session.resume(stop.thread)
        # The call that stood there is as it was; the next one is watched, and stops there too.
        stop = session.stop()
        assert str(stop.top).startswith("work")
        session.clear_breakpoints()
        session.resume(stop.thread)
        heard.wait_for(lambda it: it.changes("value"))
        (tmp_path / "stop").touch()
        session.end()
        heard.wait_for_end()
    assert heard.changes("value")[0] == f"work {script.marks['value']} [3]"


def test_a_program_that_runs_already(tmp_path: Path) -> None:
    text = LASTING.replace(
        'print("over"', 'assert codes == (work.__code__, long.__code__)\nprint("as before"'
    )
    script = Script.write(text, tmp_path)
    with running(script) as program, SessionServer(watches=["value"]) as server:
        program.wait_for("ready")
        with program.attached() as session:
            enter(session, server)
            heard = server.process()
            heard.wait_for(lambda it: len(it.changes("value")) > 3)
            server.send(heard, {"type": "finish"})
            heard.wait_for_end()
        (tmp_path / "stop").touch()
        assert program.wait_for_end() == 0
    assert "as before" in program.output


def test_another_server_is_told_what_is_kept(tmp_path: Path) -> None:
    script = Script.write(LASTING, tmp_path)
    names = ["value", "other"]
    with SessionServer(watches=names) as server, launch(script, server.launch()) as session:
        session.go()
        session.wait_for_output("ready")
        heard = server.process()
        heard.wait_for(lambda it: len(it.changes("other")) > 2)
        port, token = server.port, server.token
        server.stop()
        with SessionServer(port, token, watches=names) as other:
            heard = other.process()
            heard.wait_for(lambda it: len(it.changes("other")) > 4)
            (tmp_path / "stop").touch()
            session.end()
            heard.wait_for_end()
    assert heard.changes("value")[0] == f"long {script.marks['work'] - 3} 0"
    assert heard.sources[str(script.path)] is not None
    for timeline in heard.watched.names.values():
        numbers = [change.ordinal for change in timeline]
        assert numbers == list(range(1, len(numbers) + 1))


CHILDREN = """
import multiprocessing, sys
def work(number):
    value = [number]  # @value
    return value
if __name__ == "__main__":
    value = 1  # @main
    process = multiprocessing.get_context({method!r}).Process(target=work, args=(5,))
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_the_program(method: str, tmp_path: Path) -> None:
    script = Script.write(CHILDREN.format(method=method), tmp_path)
    with SessionServer(watches=["value"]) as server:
        how = server.launch(how=Launch(more={"subProcess": method == "spawn"}))
        with launch(script, how) as session, session.subprocesses():
            session.go()
            assert session.end().stdout == "0\n"
        # One more watches over what spawned processes share.
        heard = server.processes(2 if method == "fork" else 3)
        for each in heard:
            each.wait_for_end()
    changes = [change for each in heard for change in each.changes("value")]
    line = script.marks
    assert sorted(changes) == [f"<module> {line['main']} 1", f"work {line['value']} [5]"]
