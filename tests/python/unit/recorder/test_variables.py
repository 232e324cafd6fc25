"""Looking at the variables of running functions: what is found, and that nothing is left behind."""

from __future__ import annotations

from types import FrameType
from typing import Any

import pytest

from shapetrace.events.model import Trace
from shapetrace.recorder.frames import read_locals
from shapetrace.recorder.thread_state import LAST_LOOK
from shapetrace.views.shapes import value_text
from tests.support.recorder import Harmless, Traced

MODEL = """
    class Layer(nn.Module):
        def forward(self, t, mask=None):
            pair = stretch(t)
            long, short = pair
            kept = long
            if mask is not None:
                kept = mask
            result = same(stretch(kept)[0])
            return result

    def stretch(t):
        return torch.cat([t, t]), t[:1]

    def same(t):
        return t

    layer, x = Layer(), torch.ones(3)
"""


def variables_of(trace: Trace) -> str:
    """The variables line by line, a parameter in the line of its function."""
    rows = {(each.line, each.name, value_text(each.tensor)) for each in trace.variables}
    return "".join(f"{line}: {name} {text}\n" for line, name, text in sorted(rows))


def test_what_plain_functions_returned_is_known_when_it_is_used(traced: Traced) -> None:
    trace = traced(MODEL + "\n    def main():\n        return layer(x)\n")
    assert variables_of(trace) == (
        "3: t f32[3]\n"
        "4: pair (f32[6], f32[1])\n"
        "5: long f32[6]\n"
        "5: short f32[1]\n"
        "6: kept f32[6]\n"
        "9: result f32[12]\n"
        "12: t f32[3]\n"
        "12: t f32[6]\n"
    )


def test_calls_that_repeat_are_looked_at_ever_more_rarely(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def read_and_count(frame: FrameType) -> Any:
        looks.append(frame.f_code.co_name)
        return read_locals(frame)

    monkeypatch.setattr("shapetrace.recorder.variables.read_locals", read_and_count)
    text = MODEL + "\n    def main():\n        for turn in range({}):\n            layer(x)\n"

    def looks_of(turns: int) -> int:
        looks.clear()
        traced(text.format(turns))
        assert "forward" in looks
        return len(looks)

    few, some, many = looks_of(8), looks_of(15), looks_of(LAST_LOOK)
    assert few == some < many
    assert looks_of(LAST_LOOK * 4) == many


@pytest.mark.parametrize("call", ["sys.settrace", "sys.setprofile"])
def test_functions_keep_their_variables_while_a_tracer_computes(
    call: str, harmless: Harmless
) -> None:
    harmless(
        f"""
        def watch(frame, event, argument):
            if frame.f_code.co_name in ("inner", "outer"):
                stretch(torch.ones(2))
            return watch if frame.f_code.co_name == "outer" else None

        def stretch(t):
            return torch.cat([t, t])

        def inner(p, q):
            r = p + q
            return r

        def outer(p, q):
            r = p * q
            s = inner(p, r)
            return r, s

        def main():
            {call}(watch)
            try:
                return outer(torch.ones(3), torch.ones(3))
            finally:
                {call}(None)
        """
    )


def test_variables_that_the_program_reads_by_itself_are_as_it_left_them(
    harmless: Harmless,
) -> None:
    harmless(
        """
        import sys

        def stretch(t):
            return torch.cat([t, t])

        def main():
            x = torch.ones(2)
            here = locals()
            here["more"] = 1
            x = stretch(x)
            exec("made = 3")
            y = stretch(x)
            # From 3.13 on each look at the variables has a dictionary of its own.
            more = eval("made + 1") if sys.version_info < (3, 13) else eval("y + 1")
            return sorted(here), here["x"], more, y
        """
    )


def test_variables_around_a_call_die_when_they_would(harmless: Harmless) -> None:
    harmless(
        """
        import weakref

        class Layer(nn.Module):
            def forward(self, t):
                u = t * 2
                alive = weakref.ref(u)
                stretch(t)
                del u
                return torch.tensor(alive() is None), stretch(t)

        def stretch(t):
            return torch.cat([t, t])

        def main():
            x = torch.ones(2)
            alive = weakref.ref(x)
            results = Layer()(torch.ones(3))
            stretch(torch.ones(3))
            del x
            return results, alive() is None
        """
    )


def test_evaluating_a_model_is_no_reason_to_look_away(traced: Traced) -> None:
    trace = traced(
        """
        def same(t):
            return t

        def main():
            model = nn.Linear(2, 3).eval()
            z = same(torch.ones(2))
            return model(z)
        """
    )
    assert "7: z f32[2]\n" in variables_of(trace)
