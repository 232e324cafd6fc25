"""Following a function: hearing of its calls, its variables and what it returns.

    with follow(model.forward.__func__, Interest(None, returns=True), listener):
        model(x)

The function stays the object that it was; only its `__code__` is another one for the time being.
"""

from shapetrace._errors import CannotFollowError
from shapetrace.instrument.following import Following, follow, own_code
from shapetrace.instrument.interface import Call, Interest, Listener

__all__ = ["Call", "CannotFollowError", "Following", "Interest", "Listener", "follow", "own_code"]
