"""Between a message of the extension as JSON and the method that handles it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, overload

from pygls.exceptions import JsonRpcInvalidParams

from shapetrace.server.messages.codec import MessageError, structure, unstructure
from shapetrace.server.messages.declarations import ClientNotification, Params, Request, Result

JsonHandler = Callable[[Any], Any]
"""Takes parameters as JSON has them, and gives the answer as JSON has it, or will have it."""


@overload
def handles(
    message: Request[Params, Result], handle: Callable[[Params], Awaitable[Result]]
) -> tuple[str, JsonHandler]: ...
@overload
def handles(
    message: Request[Params, Result], handle: Callable[[Params], Result]
) -> tuple[str, JsonHandler]: ...
@overload
def handles(
    message: ClientNotification[Params], handle: Callable[[Params], None]
) -> tuple[str, JsonHandler]: ...
def handles(
    message: Request[Any, Any] | ClientNotification[Any], handle: Callable[[Any], Any]
) -> tuple[str, JsonHandler]:
    """A row of the table that says who handles what: the method's name, and what pygls calls."""

    def structured(params: Any) -> Any:
        try:
            return structure(params, message.params)
        except MessageError as error:
            raise JsonRpcInvalidParams(f"{message.method}: {error}") from error

    async def handle_later(params: Any) -> Any:
        return unstructure(await handle(structured(params)))

    def handle_now(params: Any) -> Any:
        return unstructure(handle(structured(params)))

    # In the order in which they come; only what takes its time is handled beside the rest.
    return message.method, handle_later if iscoroutinefunction(handle) else handle_now
