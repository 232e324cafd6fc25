"""How messages are declared: how one is sent, and which values its fields accept.

OPEN_SESSION = Request("shapetrace/openSession", OpenSession, OpenedSession)
STATUS = ServerNotification("shapetrace/status", Status)

The modules beside this one do not postpone the evaluation of annotations: of those that are
postponed cattrs does not see what ``Annotated`` adds.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

Params = TypeVar("Params")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Request(Generic[Params, Result]):
    """A request of the extension, which the server answers."""

    method: str
    params: type[Params]
    result: type[Result]


@dataclass(frozen=True, slots=True)
class ClientNotification(Generic[Params]):
    """A notification from the extension to the server."""

    method: str
    params: type[Params]


@dataclass(frozen=True, slots=True)
class ServerNotification(Generic[Params]):
    """A notification from the server to the extension."""

    method: str
    params: type[Params]


Declaration: TypeAlias = Request[Any, Any] | ClientNotification[Any] | ServerNotification[Any]


@dataclass(frozen=True, slots=True)
class Empty:
    """The parameters of a message that has none."""


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """Restricts a text to those with at least one character."""

    expected = "a text that is not empty"

    def allows(self, value: str) -> bool:
        """Return whether a text has any characters."""
        return value != ""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Restricts a whole number to those from a lowest one on."""

    lowest: int

    @property
    def expected(self) -> str:
        """The condition on the number, for messages."""
        return f"a whole number from {self.lowest} on"

    def allows(self, value: int) -> bool:
        """Return whether a number is large enough."""
        return value >= self.lowest


@dataclass(frozen=True, slots=True)
class Unread:
    """Marks a field whose JSON is passed on as it is, for the one that knows its type to read."""

    kind: Any = Any
    """The type that the sender gives it."""


NonEmptyStr: TypeAlias = Annotated[str, NotEmpty()]
"""A text that is not empty."""

NonNegativeInt: TypeAlias = Annotated[int, AtLeast(0)]
"""A whole number that is not negative."""
