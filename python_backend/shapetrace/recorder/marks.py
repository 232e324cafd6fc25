"""What a call has done so far: how often each place had been at work when the call began.

All calls of a function from one place share their records, which count. So a debugger that stops in
the middle of one call could not tell what this call has recorded from what earlier ones have. When
the first op or module call of a module call is seen, the counts are noted of all places where its
functions can be; what differs from that later was done since. Nothing is noted where no debugger
could ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from shapetrace.recorder.callsite import Activation, Site
    from shapetrace.recorder.records import ModuleVariant, OpVariant

Mark: TypeAlias = "tuple[OpVariant | None, int, ModuleVariant | None, int] | None"
"""What was called last from a site, each with its count; None where nothing had been."""

Marks: TypeAlias = "dict[Activation, list[Mark] | None]"
"""For each function of a module call the marks of its sites, in the order in which these were
found; None where there were too many to note. Functions that are absent have run only since."""

MOST_SITES: Final = 2048
"""Sites that are marked for one call. Where it may run more functions than that, it runs few."""


def take_marks(activation: Activation, marks: Marks) -> None:
    """Note the counts of a function that begins, and of all that it may call but modules."""
    if activation in marks:
        return
    room = MOST_SITES
    pending = [activation]
    for each in pending:
        if room <= 0:
            marks[each] = None
        else:
            noted: list[Mark] = []
            marks[each] = noted
            for site in each.sites.values():
                last, called = site.last, site.called
                if called is not None:
                    mark = (last, 0 if last is None else last.count, called, called.count)
                    noted.append(mark)
                else:
                    noted.append(None if last is None else (last, last.count, None, 0))
            room -= len(noted)
        for site in each.sites.values():
            if site.callees is not None:
                pending.extend(site.callees.values())
            if site.modules is not None:
                for record in site.modules.values():
                    # Whose forward is called directly begins no call of its own.
                    if record.last is not None and record.last.implicit and record.last.callees:
                        pending.extend(record.last.callees.values())


def op_since(site: Site, mark: Mark) -> OpVariant | None:
    """The op that a site made last, if that was after it was marked."""
    last = site.last
    if last is None or not last.count:
        return None
    return None if mark is not None and mark[0] is last and mark[1] == last.count else last


def module_since(site: Site, mark: Mark) -> ModuleVariant | None:
    """The module call that a site made last, if that was after it was marked."""
    called = site.called
    if called is None or not called.count:
        return None
    return None if mark is not None and mark[2] is called and mark[3] == called.count else called
