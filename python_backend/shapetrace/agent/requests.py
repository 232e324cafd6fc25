"""What the user has asked to be told of, beside shapes: captured values and watched variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shapetrace.agent.captures import Captures
from shapetrace.agent.watches import Watches
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
        # What has hooks in it goes on to tell the same object, which is another one here.
        self.watches: Final[Watches] = (
            Watches(address.watches, began_at)
            if former is None
            else former.watches.after_fork_in_child()
        )

    def tell(self, sender: Sender) -> None:
        """Send what has not been told yet."""
        for each in (self.captures, self.watches):
            for _ in range(MESSAGES):
                message = each.message() if sender.has_room() else None
                if message is None:
                    break
                if not sender.offer(message):
                    each.begin_anew()
                    break

    def begin_anew(self) -> None:
        """Tell everything once more, as far as it is kept."""
        self.captures.begin_anew()
        self.watches.begin_anew()

    def end(self) -> None:
        """Have the program run as without us; what was seen can still be told."""
        self.captures.end()
        self.watches.end()
