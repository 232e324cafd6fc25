"""Warnings and log records say the same as without us: file, line, category, and how often."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pytest
import torch

import shapetrace
from tests.support.recorder import LEVELS, Harmless, Program

WARNING = {
    "from C++": "def main(): return torch.ones(2, 3, 4).T",
    "from C++ in a module": """
class Old(nn.Module):
    def forward(self, x):
        return x.T

def main():
    return nn.Sequential(Old())(torch.ones(2, 3, 4))
""",
    "from C++ on the first line of a call of several": """
def main():
    return torch.stack(
        [
            torch.ones(2, 3, 4).T,
        ]
    )
""",
    "attribute": """
def main():
    return (torch.ones(2, requires_grad=True) * 2).grad
""",
    "python function": "def main(): return F.mse_loss(torch.ones(2, 3), torch.ones(2, 1, 3))",
    "python function, a level further out": "def main(): return F.softmax(torch.ones(2, 3))",
    "python function, two levels further out": """
def main():
    return nn.Softmax()(torch.ones(2, 3)), nn.Sequential(nn.LogSoftmax())(torch.ones(2, 3))
""",
    "python function twice": """
def main():
    for _ in range(3):
        F.dropout2d(torch.ones(2, 3, 4))
    F.dropout2d(torch.ones(2, 3, 4))
""",
    "in a lambda and a comprehension": """
def main():
    return [(lambda value: value.T)(torch.ones(2, 3, 4)) for _ in range(2)]
""",
    "of the program, at several levels": """
class Deprecated(nn.Module):
    def __init__(self, level):
        super().__init__()
        self.level = level

    def forward(self, x):
        warnings.warn("old", DeprecationWarning, stacklevel=self.level)
        return x

def main():
    for level in range(1, 9):
        nn.Sequential(Deprecated(level))(torch.ones(1))
""",
    "of the program, in a hook": """
def tell(*_):
    for level in range(1, 9):
        warnings.warn(f"hook {level}", stacklevel=level)

def main():
    net = nn.Linear(1, 1)
    net.register_forward_hook(tell)
    net(torch.ones(1))
""",
    "of the program, in backward": """
class Warning(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        warnings.warn("forward", stacklevel=2)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        for level in range(1, 6):
            warnings.warn(f"backward {level}", stacklevel=level)
        return grad

def main():
    Warning.apply(torch.ones(1, requires_grad=True)).sum().backward()
""",
    "of the program, in a mode of its own": """
from torch.overrides import TorchFunctionMode

class Telling(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        warnings.warn("mode", stacklevel=2)
        return func(*args, **(kwargs or {}))

def main():
    with Telling():
        return torch.ones(2, 3, 4).T
""",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", WARNING.values(), ids=WARNING.keys())
def test_warnings_stay_where_they_were(text: str, level: str, harmless: Harmless) -> None:
    harmless(text, level=level)


FILTERED = """
def old(x):
    return x.T, F.mse_loss(x, x[:, :1])

def main():
    seen = []
    x = torch.ones(2, 3, 4)
    for action in ("default", "module", "once", "always", "ignore"):
        for category, module in ((UserWarning, "program"), (Warning, "torch"), (UserWarning, "")):
            with warnings.catch_warnings(record=True) as caught:
                warnings.resetwarnings()
                warnings.simplefilter("ignore")
                warnings.filterwarnings(action, category=category, module=module)
                for _ in range(3):
                    old(x)
                old(x)
            seen.append((action, module, [(each.lineno, str(each.message)) for each in caught]))
    return seen
"""


def test_filters_by_module_and_registries_of_what_was_shown_work_as_before(
    harmless: Harmless,
) -> None:
    harmless(FILTERED)


def test_warnings_as_errors_are_raised_in_the_same_place(harmless: Harmless) -> None:
    harmless(
        """
        def main():
            warnings.simplefilter("error")
            return torch.ones(2, 3, 4).T
        """,
        may_fail=True,
    )


def test_warning_registry_of_the_module_is_the_same(tmp_path: Path) -> None:
    program = Program.write("def main(): return torch.ones(2, 3, 4).T", tmp_path)
    registries = []
    for watched in (False, True):
        names = program.load()
        torch.set_warn_always(True)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("default")
            if watched:
                with shapetrace.trace():
                    names["main"]()
            else:
                names["main"]()
        torch.set_warn_always(False)
        shown = names["__warningregistry__"]
        registries.append([key for key in shown if key != "version"])
    assert registries[0] == registries[1]
    assert len(registries[0]) == 1


def test_log_records_name_their_caller(harmless: Harmless) -> None:
    harmless(
        """
        records = []

        class Keeping(logging.Handler):
            def emit(self, record):
                place = record.filename, record.lineno, record.funcName
                records.append((*place, record.getMessage()))

        logger = logging.getLogger("program")
        logger.propagate = False
        logger.handlers = [Keeping()]

        class Logging(nn.Module):
            def forward(self, x):
                for level in range(1, 9):
                    logger.warning("at %s %s", level, x, stacklevel=level)
                return x

        def main():
            net = nn.Sequential(Logging())
            net.register_forward_hook(lambda *_: logger.error("hook", stacklevel=2))
            net(torch.ones(2))
            return records
        """
    )


def test_recording_logs_and_warns_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
        warnings.simplefilter("error")
        with shapetrace.trace():
            torch.nn.Linear(2, 2)(torch.ones(2))
    assert caplog.records == []
