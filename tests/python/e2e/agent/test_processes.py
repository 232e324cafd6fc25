"""Programs of many threads and processes, and those that leave in unusual ways."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.support.debug_client import Launch, Script, launch
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e

CHILDREN = {"subProcess": True}


def test_threads(tmp_path: Path) -> None:
    heard, _ = same_as_without_us(
        """
        import threading, torch
        from concurrent.futures import ThreadPoolExecutor
        net = torch.nn.Linear(3, 4)
        def work(number):
            return net(torch.ones(number, 3)).shape[0]
        threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(work, range(4, 9))))
        print(threading.active_count())
        """,
        Watched.run,
        tmp_path,
    )
    assert heard.input_shapes() == {(number, 3) for number in range(1, 9)}


def test_a_daemon_thread_that_works_on_at_the_end(tmp_path: Path) -> None:
    same_as_without_us(
        """
        import threading, torch
        net = torch.nn.Linear(3, 4)
        begun = threading.Event()
        def work():
            while True:
                net(torch.ones(2, 3))
                begun.set()
        threading.Thread(target=work, daemon=True).start()
        begun.wait()
        print("over")
        """,
        Watched.run,
        tmp_path,
    )


def test_a_forked_child_is_unharmed(tmp_path: Path) -> None:
    heard, _ = same_as_without_us(
        """
        import os, sys, torch
        net = torch.nn.Linear(3, 4)
        net(torch.ones(2, 3))
        child = os.fork()
        if child == 0:
            print("child", net(torch.ones(7, 3)).shape, flush=True)
            sys.exit(5)
        print("parent", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        net(torch.ones(3, 3))
        """,
        Watched.run,
        tmp_path,
    )
    assert heard.input_shapes() == {(2, 3), (3, 3)}
    assert heard.coverage == ()


def test_workers_of_a_data_loader(tmp_path: Path) -> None:
    heard, _ = same_as_without_us(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __len__(self): return 8
            def __getitem__(self, index): return torch.ones(3) * index
        if __name__ == "__main__":
            net = torch.nn.Linear(3, 4)
            for batch in DataLoader(Data(), batch_size=4, num_workers=2):
                print(net(batch).shape)
        """,
        Watched.run,
        tmp_path,
    )
    assert heard.module_counts() == {"": 2}


SPAWNED = """
import multiprocessing, subprocess, sys, torch
def work(number):
    print("child", torch.nn.Linear(3, 4)(torch.ones(number, 3)).shape, flush=True)
if __name__ == "__main__":
    torch.nn.Linear(3, 4)(torch.ones(2, 3))
    {start}
    print("over")
"""


STARTS = {
    "spawn": """\
child = multiprocessing.get_context("spawn").Process(target=work, args=(7,))
    child.start()
    child.join()""",
    "subprocess": """\
text = "import torch; torch.nn.Linear(3, 4)(torch.ones(7, 3)); print('child')"
    subprocess.run([sys.executable, "-c", text])""",
}


@pytest.mark.parametrize("start", list(STARTS.values()), ids=list(STARTS))
def test_children_that_are_debugged_are_recorded(start: str, tmp_path: Path) -> None:
    script = Script.write(SPAWNED.format(start=start), tmp_path)
    with SessionServer() as server:
        how = replace(server.launch(), more=CHILDREN)
        with launch(script, how) as session, session.subprocesses():
            session.go()
            ended = session.end()
        for heard in server.processes(2):
            heard.wait_for_end()
        found = [heard.input_shapes() for heard in server.all.values() if heard.modules]
        parents = {heard.hello.process.parent for heard in server.all.values()}
    assert ended.exit_code == 0
    assert ended.stdout.endswith("over\n")
    assert "child" in ended.stdout
    assert sorted(found, key=str) == [{(2, 3)}, {(7, 3)}]
    assert set(server.all) & parents


def test_a_child_that_is_not_debugged_is_unharmed(tmp_path: Path) -> None:
    start = "subprocess.run([sys.executable, '-c', 'import torch; print(torch.ones(2) + 1)'])"
    heard, _ = same_as_without_us(SPAWNED.format(start=start), Watched.run, tmp_path)
    assert heard.input_shapes() == {(2, 3)}


def test_leaving_at_once(tmp_path: Path) -> None:
    """``os._exit`` is waited for, so that the last rows are not lost."""
    heard, _ = same_as_without_us(
        """
        import os, torch
        torch.nn.Linear(3, 4)(torch.ones(2, 3))
        os._exit(7)
        """,
        Watched.run,
        tmp_path,
    )
    assert heard.input_shapes() == {(2, 3)}
    assert heard.states[-1] == "complete"
    assert heard.bye == "the program has ended"


def test_becoming_another_program(tmp_path: Path) -> None:
    script = Script.write(
        """
        import os, sys, torch
        torch.nn.Linear(3, 4)(torch.ones(len(sys.argv) + 1, 3))
        print(len(sys.argv), flush=True)
        if len(sys.argv) == 1:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        """,
        tmp_path,
    )
    with SessionServer() as server:
        with launch(script, server.launch()) as session:
            session.go()
            ended = session.end()
        heard = server.process()
        heard.wait_for_end()
    assert ended.stdout == "1\n2\n"
    assert heard.input_shapes() == {(2, 3)}
    assert heard.bye == "the program has ended"


def test_being_killed(tmp_path: Path) -> None:
    script = Script.write(
        """
        import signal, torch
        torch.nn.Linear(3, 4)(torch.ones(2, 3))
        print("waiting", flush=True)
        signal.pause()
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        heard = server.process()
        heard.wait_for(lambda it: it.modules)
        os.kill(heard.hello.process.pid, signal.SIGKILL)
        session.end()
        heard.wait_for_end()
    assert heard.input_shapes() == {(2, 3)}
    assert heard.bye is None


def test_a_program_with_a_trace_function_of_its_own(tmp_path: Path) -> None:
    """It sees our calls like any others; those of the program's own are as without us."""
    heard, _ = same_as_without_us(
        """
        import sys, threading, torch
        seen = []
        def see(frame, event, argument):
            code = frame.f_code
            if code.co_filename == __file__ and code.co_name != "<shapetrace call>":
                seen.append((event, frame.f_lineno, code.co_name))
            return see
        net = torch.nn.Linear(3, 4)
        def work(number):
            y = net(torch.ones(number, 3)) + 1
            return y * 2
        def trace():
            sys.settrace(see)
        def trace_everywhere():
            threading.settrace(see); sys.settrace(see)
        def profile():
            sys.setprofile(see); threading.setprofile(see)
        for number, begin in enumerate((trace, trace_everywhere, profile)):
            begin()
            work(2 + number)
            thread = threading.Thread(target=work, args=(5 + number,))
            thread.start()
            thread.join()
            for end in sys.settrace, sys.setprofile, threading.settrace, threading.setprofile:
                end(None)
            print(begin.__name__, seen)
            assert seen
            seen.clear()
        """,
        Watched.run,
        tmp_path,
    )
    assert heard.input_shapes() == {(number, 3) for number in range(2, 8)}


def test_a_program_that_closes_all_its_files(tmp_path: Path) -> None:
    """As those do that turn into daemons: the descriptors of ours become files of the program's.

    debugpy loses its connection as well, and by chance complains of it on stderr, or does not.
    """
    script = Script.write(
        """
        import os, torch
        net = torch.nn.Linear(3, 4)
        net(torch.ones(2, 3))
        os.closerange(3, 256)
        files = [open(f"{number}.txt", "w") for number in range(60)]
        for number in range(4, 9):
            net(torch.ones(number, 3))
            for file in files:
                file.write("unharmed")
                file.flush()
        for file in files:
            file.close()
        print("over")
        """,
        tmp_path,
    )
    ended = []
    with SessionServer() as server:
        for how in (Launch(), server.launch()):
            with launch(script, how) as session:
                session.go()
                ended.append(session.end())
            written = {path.read_text() for path in tmp_path.glob("*.txt")}
            assert written == {"unharmed" * 5}
        heard = server.process()
        heard.wait_for(lambda it: it.bye)
    assert [(each.exit_code, each.stdout) for each in ended] == [(0, "over\n")] * 2
    assert heard.input_shapes() == {(number, 3) for number in (2, 4, 5, 6, 7, 8)}


@pytest.mark.parametrize(
    ("replacement", "seconds"),
    [
        ("socket.socket = None; json.dumps = None; time.monotonic = None; time.sleep = None", 0.3),
        ("threading.Thread = None; threading.Lock = None; os.getpid = lambda: 1", 0.3),
        # Without these nothing can be written down meanwhile.
        ("builtins.print = builtins.open = builtins.input = builtins.repr = None", 0),
    ],
    ids=["socket", "threads", "builtins"],
)
def test_a_program_that_replaces_what_we_use(
    replacement: str, seconds: float, tmp_path: Path
) -> None:
    """As gevent does, and worse; the agent looks every 50 milliseconds."""
    script = Script.write(
        f"""
        import builtins, json, os, socket, sys, threading, time, torch
        net = torch.nn.Linear(3, 4)
        replaced = builtins, json, os, socket, threading, time
        kept = [dict(vars(each)) for each in replaced]
        now = time.monotonic
        until = now() + {seconds}
        {replacement}
        net(torch.ones(2, 3))
        while now() < until:
            net(torch.ones(2, 3))
        for each, names in zip(replaced, kept):
            vars(each).update(names)
        print("over")
        """,
        tmp_path,
    )
    with SessionServer() as server:
        with launch(script, server.launch()) as session:
            session.go()
            ended = session.end()
        heard = server.process()
        heard.wait_for_end()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "over\n", "")
    assert heard.ops, heard.statuses
    assert sys.executable == heard.hello.process.executable
