"""The user's requests beside shapes: captured values and watched variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shapetrace.agent.captures import Captures
from shapetrace.agent.watches import Watches
from shapetrace.transport.messages import write
from shapetrace.transport.originals import System

if TYPE_CHECKING:
    from shapetrace.transport.sender import Sender
    from shapetrace.transport.session_address import SessionAddress

MESSAGES: Final = 10
"""So many in a row, before it is something else's turn."""


class Requests:
    """Both, for one process."""

    def __init__(
        self, address: SessionAddress, began_at: float | None, former: Requests | None
    ) -> None:
        """``former`` is that of the process that this one was forked from."""
        self.captures: Final = Captures(address.captures, System.now)
        # Functions with hooks go on reporting to this object, which is another one in a child.
        self.watches: Final[Watches] = (
            Watches(address.watches, began_at)
            if former is None
            else former.watches.after_fork_in_child()
        )

    def tell(self, sender: Sender) -> None:
        """Send what has not been sent yet."""
        for each in (self.captures, self.watches):
            for _ in range(MESSAGES):
                news = each.news() if sender.has_room() else None
                if news is None:
                    break
                if not sender.offer(write(news)):
                    each.begin_anew()
                    break

    def begin_anew(self) -> None:
        """Tell everything once more, as far as it is kept."""
        self.captures.begin_anew()
        self.watches.begin_anew()

    def end(self) -> None:
        """Detach: restore everything we replaced. Values seen so far can still be sent."""
        self.captures.end()
        self.watches.end()
