"""Explains, at the end of a tracer's run, why a path captured nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shapetrace._dynamo import TO_SEE_IT_ALL
from shapetrace.capture.listeners import Capture
from shapetrace.capture.paths import nearest
from shapetrace.capture.plan import Plan, Subject, Want
from shapetrace.capture.problems import CaptureIssue
from shapetrace.capture.results import Mode


def silent_paths(plan: Plan, capture: Capture, ran: Mapping[Mode, int]) -> Iterator[CaptureIssue]:
    """One issue for each path that matches the model but captured no value."""
    captured = {name for receiver in capture.receivers for name in receiver.captured}
    silent = {
        text: wants
        for text, wants in plan.wants.items()
        if wants and not any(_is_captured(want, captured) for want in wants)
    }
    if silent and not any(ran.values()):
        where = "within the tracer's block"
        if capture.regions:
            where = f"outside of what torch.compile has compiled; {TO_SEE_IT_ALL}"
        yield CaptureIssue("silent", f"nothing was captured: the model was not called {where}")
        return
    if capture.regions and not capture.lost:
        count = f"{capture.regions:,} calls of it"
        line = f"stepped around what torch.compile has compiled ({count}); {TO_SEE_IT_ALL}"
        yield CaptureIssue("lost", line)
    refused = capture.refused
    subjects = {want: subject for subject in plan.subjects for want in subject.wants}
    for text, wants in silent.items():
        concerned = [subjects[want] for want in wants if want in subjects]
        is_known = any(subject in capture.lost for subject in concerned)
        if is_known or any(_is_captured(want, refused) for want in wants):
            continue  # The reason was reported before.
        reason = _reason(text, wants, concerned, plan, capture, ran)
        yield CaptureIssue("silent", f"captured nothing: {reason}", text)


def _is_captured(want: Want, captured: set[str]) -> bool:
    if want.whole and want.name in captured:
        return True
    return bool(want.routes) and any(name.startswith(f"{want.name}.") for name in captured)


def _reason(
    text: str,
    wants: list[Want],
    subjects: list[Subject],
    plan: Plan,
    capture: Capture,
    ran: Mapping[Mode, int],
) -> str:
    traced = [capture.receivers[want.receiver] for want in wants]
    modes = {receiver.mode for receiver in traced}
    if len(modes) == 1 and (mode := modes.pop()) is not None and not ran[mode]:
        return f"the model was not in {mode} mode"
    if all(receiver.trace_interval > max(ran.values()) for receiver in traced):
        return f"there were fewer than {traced[0].trace_interval} iterations"
    if not any(subject.was_entered for subject in subjects):
        shown = subjects[0].full_name if subjects else text
        if any(subject in capture.outside for subject in subjects):
            return f"{shown} was called, but not by the model"
        if any(_is_in_fused(subject, plan.fused) for subject in subjects) and ran["eval"]:
            return (
                f"{shown} did not run; in evaluation torch computes a TransformerEncoder in one "
                "fused step (torch.backends.mha.set_fastpath_enabled(False) turns that off)"
            )
        if any(subject.is_scripted for subject in subjects):
            return f"{shown} was not called from Python; TorchScript's own calls are not seen"
        if capture.regions:
            return f"{shown} did not run outside of what torch.compile has compiled"
        return f"{shown} did not run"
    if text in capture.dead_ends:
        where, wanted, names = capture.dead_ends[text]
        there = ", ".join(nearest(wanted, names))
        return f"{where} has no {wanted!r}; " + (
            f"nearest there: {there}" if there else "it is empty"
        )
    returned = {want for subject in subjects for want in subject.returns}
    return f"{wants[0].name} {'never returned' if wants[0] in returned else 'was never set'}"


def _is_in_fused(subject: Subject, fused: set[str]) -> bool:
    """Return whether a module has a fused path in torch, or lies in one that has."""
    names = subject.path.split(".")
    return "" in fused or any(".".join(names[: end + 1]) in fused for end in range(len(names)))
