"""What messages about captured values and watched variables are made of."""

from dataclasses import dataclass

from shapetrace.server.messages.declarations import NonEmptyStr


@dataclass(frozen=True, slots=True)
class WantedRequests:
    """The paths to capture from the next session on, or the variables to watch; no others."""

    requests: tuple[NonEmptyStr, ...]


@dataclass(frozen=True, slots=True)
class RequestToCheck:
    """A path or variable that is being typed."""

    request: str


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """The problem of a request, and where it is; None where it is right."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class RequestProblem:
    """Why nothing came of a request."""

    session: str
    request: str
    """Empty where the problem is not about a single one."""
    message: str
