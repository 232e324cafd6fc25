"""Following in processes that a program starts: workers of a ``DataLoader``, of pools."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import Outcome, python
from tests.support.times import with_one_time

pytestmark = pytest.mark.e2e


def run(folder: Path, program: str, *arguments: str) -> Outcome:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program), "utf-8")
    extra = {"PYTHONUTF8": "1", "COLUMNS": "100"}
    return python("-W", "error", path.name, *arguments, cwd=folder, extra=extra)


def _plain(line: str) -> str:
    """A line without times and indices."""
    line = re.sub(r", called from .*", "", line)  # a fork has its parent's stack
    return re.sub(r"index  \d", "index  0", with_one_time(line))


LOADER = """
    import sys, threading
    import torch
    from torch.utils.data import DataLoader, Dataset
    from shapetrace import h4logger, logger, var_tracker

    @var_tracker("sample")
    def collate(samples):
        sample = torch.stack(samples)  # stacked
        return sample

    class Videos(Dataset):
        def __len__(self):
            return 4

        @var_tracker("video")
        def __getitem__(self, index):
            video = torch.full((3, 2), float(index))
            video = video.t()
            return video

    if __name__ == "__main__":
        logger.addHandler(h4logger("logs"))
        context = sys.argv[1]
        loader = DataLoader(
            Videos(), 2, num_workers=2, collate_fn=collate, multiprocessing_context=context
        )
        print(sum(batch.sum().item() for batch in loader))
        # A program that ends while one of these lets go of a semaphore is told of it as leaked.
        for thread in threading.enumerate():
            if thread.name.startswith("QueueFeeder"):
                thread.join()
"""


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_tell_of_what_they_do_in_whole_lines(context: str, tmp_path: Path) -> None:
    outcome = run(tmp_path, LOADER, context)
    assert (outcome.code, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[-1] == "36.0"
    assert all(re.match(r"\[\S*Process-[12]\] [│├└┌]", line) for line in lines[:-1])
    for process in (1, 2):
        own = [line.split("] ", 1)[1] for line in lines[:-1] if f"Process-{process}]" in line]
        assert [_plain(line) for line in own] == [
            *(
                "┌── Videos.__getitem__  program.py:17",
                "├─ in   index  0",
                "├─ program.py:18  video  f32[3,2]",
                "├─ program.py:19  video  f32[3,2] → f32[2,3]",
                "└─ out  f32[2,3]  1 ms",
            )
            * 2,
            "┌── collate  program.py:8",
            "├─ in   samples  [f32[2,3], f32[2,3]]",
            "├─ program.py:9  sample  f32[2,2,3]",
            "└─ out  f32[2,2,3]  1 ms",
        ]
    if context == "fork":
        # The handler was added by the main process; those that are spawned have none of it.
        assert len(list((tmp_path / "logs").iterdir())) == 2


def test_decorated_functions_go_through_pools(tmp_path: Path) -> None:
    outcome = run(
        tmp_path,
        """
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        from shapetrace import var_tracker

        @var_tracker("x")
        def twice(x):
            x = x * 2
            return x

        if __name__ == "__main__":
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                print([*pool.map(twice, [1, 2])])
        """,
    )
    assert (outcome.code, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[-1] == "[2, 4]"
    assert [line.split("] ", 1)[1] for line in lines if " → " in line] == [
        "├─ program.py:8  x  1 → 2",
        "├─ program.py:8  x  2 → 4",
    ]


def test_an_error_and_an_interrupt_end_as_they_would_have(tmp_path: Path) -> None:
    program = """
        import os, signal, sys
        if len(sys.argv) > 1:
            from shapetrace import var_tracker
        else:
            def var_tracker(name, file):
                return lambda function: function

        null = open(os.devnull, "w")

        @var_tracker("x", file=null)
        def work(x, kind):
            x = x + 1
            if kind:
                os.kill(os.getpid(), signal.SIGINT)
            return x["no"]

        try:
            work(1, True)
        except KeyboardInterrupt as error:
            print(error.__traceback__.tb_next.tb_next)
        null.close()
        work(1, False)
    """
    plain, followed = run(tmp_path, program), run(tmp_path, program, "followed")
    assert plain.code == followed.code == 1
    assert plain.stderr == followed.stderr
    assert plain.stdout == followed.stdout == "None\n"
