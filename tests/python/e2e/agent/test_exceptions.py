"""An exception stops in the program's frame, with the stack and the text that it has without us."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Drive, Watched, same_as_without_us
from tests.support.debug_client import Launch

pytestmark = pytest.mark.e2e

MODEL = """
import torch
from torch import nn
import torch.nn.functional as F

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        try:
            x @ torch.ones(3, 3)  # @caught
        except RuntimeError as error:
            pass
        try:
            next(iter([]))
        except StopIteration:
            pass
        for i in (1, 2):
            y = x + i
        return self.fc(y[:, :3])  # @raised

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x * 1)  # @call

def main():
    model = Outer()
    model  # @begin
    try:
        model(torch.ones(2, 4))
    except RuntimeError as error:
        print("caught", error)
    model(torch.ones(2, 4))  # @second

"""

FOUR_TIMES = """
for _ in range(3):
    try:
        main()
    except RuntimeError as error:
        print("left by", error)
main()
"""


def at_each_exception(*filters: Sequence[str]) -> Drive:
    """Stop at other exceptions each time that the line ``begin`` is reached."""

    def drive(watched: Watched) -> None:
        session = watched.session
        following = iter(filters)
        session.break_at("begin")
        session.go()
        for stop in watched.stops():
            if stop.reason == "exception":
                watched.see(stop.description)
                watched.see(session.connection.request("exceptionInfo", threadId=stop.thread))
                watched.see(list(session.variables(stop.top)))
            else:
                session.break_on_exceptions(*next(following))
        assert next(following, None) is None

    return drive


@pytest.mark.parametrize("just_my_code", [True, False])
def test_stops_at_exceptions(just_my_code: bool, tmp_path: Path) -> None:
    drive = at_each_exception((), ("userUnhandled",), ("raised",), ("uncaught",))
    how = Launch(just_my_code=just_my_code)
    same_as_without_us(MODEL + FOUR_TIMES, drive, tmp_path, how)


def test_an_uncaught_shape_error_stops_in_the_program(tmp_path: Path) -> None:
    drive = at_each_exception(("raised", "uncaught"))
    heard, script = same_as_without_us(MODEL + "main()\n", drive, tmp_path)
    failed = [op for op in heard.ops.values() if op.error]
    assert {op.line for op in failed} == {script.marks["caught"], script.marks["raised"]}


def test_what_a_function_of_torchs_raised_outside_of_modules_is_shown_as_ever(
    tmp_path: Path,
) -> None:
    same_as_without_us(
        """
        import sys
        import threading
        import torch
        import torch.nn.functional as F

        def loss():
            return F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]))

        thread = threading.Thread(target=loss, name="other")
        thread.start()
        thread.join()
        try:
            loss()
        except IndexError as error:
            caught = error
        hook = sys.excepthook
        def own(*arguments):
            print("shown")
            hook(*arguments)
        sys.excepthook = own
        loss()
        """,
        Watched.run,
        tmp_path,
    )


def test_an_uncaught_exception_in_a_thread(tmp_path: Path) -> None:
    def drive(watched: Watched) -> None:
        session = watched.session
        session.break_on_exceptions("uncaught")
        session.break_at("op")
        session.go()
        stop = watched.stop()
        for how in ("stepIn", "stepIn"):
            watched.step(how, stop.thread)
        session.resume(stop.thread)
        for after in watched.stops():
            watched.see(after.description)

    same_as_without_us(
        """
        import threading
        import torch
        from torch import nn

        def work(model):
            y = model(torch.ones(2, 4))
            z = y * 2  # @op
            return model(z[:, :2])  # @raised

        model = nn.Linear(4, 4)
        for number in range(2):
            thread = threading.Thread(target=work, args=(model,), name=f"worker {number}")
            thread.start()
            thread.join()
        print("main goes on")
        """,
        drive,
        tmp_path,
    )
