"""What following variables costs: time of a forward pass that is followed and printed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from torch import nn

from shapetrace.variables.followed_names import parse_name
from shapetrace.variables.outlets import Printing
from shapetrace.variables.tracking import Request, track
from shapetrace.variables.variable_listener import Followed
from tests.bench.contenders import PLAIN, PLAIN_AGAIN, Contender, Forward
from tests.bench.results import Bar, Comparison, Line, Result
from tests.bench.speed import steady_turns
from tests.bench.timing import Turns, ratio
from tests.bench.workloads import tiny_encoder

NAMES = ("output", "src", "mask")


def speed(quick: bool) -> Turns[Result]:
    """The work that Tensor Tracker was measured at, and a call of which no variable is followed."""
    followed = Contender("**shapetrace**, variables output, src, mask", _following(NAMES))
    unnamed = Contender("**shapetrace**, followed without a variable", _calling)
    contenders = (PLAIN, PLAIN_AGAIN, followed, unnamed)
    # A training loop runs for long: CPython has adapted itself to the code that is followed.
    rounds = 6 if quick else 24
    seconds = yield from steady_turns(contenders, tiny_encoder("train"), rounds, warm=64)
    plain = seconds[PLAIN.name]
    lines = tuple(Line(item.title, ratio(seconds[item.name], plain)) for item in contenders)
    bars = []
    for item, case, most in (
        (followed, "var_tracker of output, src and mask, printed (Tensor Tracker: 5.2 ×)", 1.1),
        (unnamed, "a followed function without a followed variable, printed", 1.02),
    ):
        figure = ratio(seconds[item.name], plain)
        bars.append(
            Bar(
                "following variables",
                f"{case}, tiny encoder, train",
                f"≤ {most} × plain",
                f"{figure.middle:.2f} × ({figure.low:.2f} – {figure.high:.2f})",
                figure.middle <= most,
            )
        )
    return Result(tuple(bars), (Comparison("following variables, tiny encoder, train", lines),))


def _following(names: tuple[str, ...]) -> Callable[[nn.Module], AbstractContextManager[Forward]]:
    everything = tuple(Followed(parse_name(name)) for name in names)

    @contextmanager
    def watching(model: nn.Module) -> Iterator[Forward]:
        with open(os.devnull, "w") as nowhere:
            request = Request(everything, (Printing(nowhere),))
            with track(type(model).forward, request):
                yield model

    return watching


@contextmanager
def _calling(model: nn.Module) -> Iterator[Forward]:
    def step(x: object) -> object:
        result = model(x)
        return result

    with open(os.devnull, "w") as nowhere, track(step, Request((), (Printing(nowhere),))):
        yield step
