"""Captured values as text: rows and tooltips.

×12  f32[2,4,9,9]  -1.2 … 3.4  mean 0.1  ▁▃▇▅▂
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shapetrace.events.model import Other, Tensor, Value
from shapetrace.transport.requested import CapturedValue, RequestedName, Statistics
from shapetrace.views.captured import number_text
from shapetrace.views.histograms import Histogram, bars, merged
from shapetrace.views.shapes import cut_end, merge_text, value_text
from shapetrace.views.styled import printable
from shapetrace.views.summary import SEPARATOR
from shapetrace.views.tooltips import code, escaped, paragraphs

_APART = "  "
_LONGEST_TEXT = 60
_LONGEST_SHAPES = 40


def iteration_text(value: CapturedValue) -> str:
    """``iteration 3``, ``evaluation 3``."""
    return f"{'evaluation' if value.mode == 'eval' else 'iteration'} {value.iteration}"


def value_row(value: CapturedValue, where: str = "") -> str:
    """The text of one value, after its iteration."""
    return _APART.join(filter(None, [where, *_facts([value])]))


def name_row(values: Sequence[CapturedValue], total: int) -> str:
    """The text of all values of one name."""
    return _APART.join([f"×{total:,}", *_facts(values)])


def value_story(name: str, value: CapturedValue, where: str) -> str:
    """The tooltip of one value, as Markdown."""
    told = value.statistics
    notes = [SEPARATOR.join(filter(None, [iteration_text(value), where]))]
    if told is not None:
        notes.append(SEPARATOR.join(_counts(told)))
    return _story(name, [value], notes)


def name_story(about: RequestedName, values: Sequence[CapturedValue], total: int) -> str:
    """The tooltip of all values of one name, as Markdown."""
    kept = f"the newest {len(values):,} of {total:,} values" if len(values) < total else ""
    unseen = any(value.statistics and _is_sampled(value.statistics) for value in values)
    notes = [
        SEPARATOR.join(filter(None, [kept, "large ones sampled" if unseen else ""])),
        SEPARATOR.join([escaped(printable(about.model)), escaped(printable(about.request))]),
    ]
    return _story(about.name, values, notes)


def histogram_of(values: Iterable[CapturedValue]) -> Histogram | None:
    """How the numbers of some values lie, each value weighing as much as it has numbers."""
    shown: list[Histogram] = []
    for value in values:
        told = value.statistics
        counted = sum(told.bins) if told is not None else 0
        if told is not None and counted and told.low is not None and told.high is not None:
            finite = told.numbers * (1 - (told.nans + told.infinities) / max(told.seen, 1))
            weight = finite / counted
            bins = tuple(weight * count for count in told.bins)
            shown.append(Histogram(told.low, told.high, bins))
    return merged(shown)


def _story(name: str, values: Sequence[CapturedValue], notes: Iterable[str]) -> str:
    facts = _facts(values, drawn=False)
    return paragraphs([code([printable(name), *facts]), *filter(None, notes)])


def _facts(values: Sequence[CapturedValue], drawn: bool = True) -> list[str]:
    """Shapes, range, mean, what is wrong, and a picture made of characters."""
    if len(values) == 1 and values[0].shape is None:
        return [value_text(_value(values[0]))]
    shapes = merge_text(map(_kind, values), _LONGEST_SHAPES) if values else ""
    told = [value.statistics for value in values if value.statistics is not None]
    finite = [each for each in told if each.low is not None and each.high is not None]
    facts = [shapes]
    if finite:
        low = min(each.low for each in finite if each.low is not None)
        high = max(each.high for each in finite if each.high is not None)
        means = [(each.mean, each.numbers) for each in finite if each.mean is not None]
        if low == high:
            facts.append(number_text(low))
        else:
            facts.append(f"{number_text(low)} … {number_text(high)}")
            numbers = sum(number for _, number in means)
            if numbers:
                mean = sum(mean * (number / numbers) for mean, number in means)
                facts.append(f"mean {number_text(mean)}")
    for word, number in (
        ("nan", sum(each.nans for each in told)),
        ("inf", sum(each.infinities for each in told)),
    ):
        if number:
            facts.append(f"{number:,} {word}")
    drawing = histogram_of(values) if drawn and facts else None
    if drawing is not None and drawing.low != drawing.high:
        facts.append(bars(drawing.bins))
    if len(values) == 1 and told and _is_sampled(told[0]):
        facts.append(f"seen {told[0].seen:,} of {told[0].numbers:,}")
    return [fact for fact in facts if fact]


def _counts(told: Statistics) -> list[str]:
    seen = f"{told.numbers:,} numbers"
    if _is_sampled(told):
        seen = f"seen {told.seen:,} of {told.numbers:,} numbers, evenly spaced"
    return [seen]


def _is_sampled(told: Statistics) -> bool:
    return told.seen < told.numbers


def _kind(value: CapturedValue) -> Value:
    """One of several values: numbers are given as a range."""
    is_number = value.shape is None and value.statistics is not None
    return Other(value.kind) if is_number else _value(value)


def _value(value: CapturedValue) -> Value:
    if value.shape is not None:
        return Tensor(value.shape, value.dtype, device=value.device)
    return Other(cut_end(printable(value.text or value.kind), _LONGEST_TEXT))
