"""A comparison the other way round."""

from __future__ import annotations

from dataclasses import replace

from shapetrace.comparing.comparison import Aspect, Comparison, Difference, Throughout


def swapped(comparison: Comparison) -> Comparison:
    """A comparison with A and B exchanged."""
    differences = tuple(map(_swapped_difference, comparison.differences))
    first = None
    for before, after in zip(comparison.differences, differences, strict=True):
        if before is comparison.first:
            first = after
    return replace(
        comparison,
        a=comparison.b,
        b=comparison.a,
        throughout=tuple(map(_turned_throughout, comparison.throughout)),
        differences=differences,
        first=first,
        steps=tuple(replace(step, a=step.b, b=step.a) for step in comparison.steps),
    )


def _turned_throughout(item: Throughout) -> Throughout:
    return replace(item, a=item.b, b=item.a)


def _swapped_difference(difference: Difference) -> Difference:
    return replace(
        difference,
        a=difference.b,
        b=difference.a,
        module_a=difference.module_b,
        module_b=difference.module_a,
        aspects=tuple(map(_turned_aspect, difference.aspects)),
    )


def _turned_aspect(aspect: Aspect) -> Aspect:
    return replace(aspect, a=aspect.b, b=aspect.a)
