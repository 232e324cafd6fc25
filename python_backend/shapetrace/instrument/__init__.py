"""Follows a function: reports its calls, its variables and what it returns.

    with follow(model.forward.__func__, Interest(None, returns=True), listener):
        model(x)

The function stays the object that it was; only its `__code__` is replaced for that time.

Modules:

- ``interface``: what a listener can ask for, and how it is called
- ``following``: follows a function: gives it code with hooks, and its own code back
- ``codes``: which code a followed function has, inside and outside of compiled regions
- ``source``: a function's definition as a tree that compiles to exactly its code
- ``scopes``: the function's variables, and what each statement stores or may change
- ``rewriting``: inserts hooks into the statements of that tree
- ``expressions``: inserts hooks into expressions
- ``nodes``: builds new tree nodes
- ``fitting``: whether code with hooks can replace the function's own
- ``hooks``: what the inserted hooks call at run time
- ``hidden_twins``: hooks with code of their own, which a debugger is kept out of
- ``hooked_calls``: the listeners of a function, and the state of each call
- ``module_rewriting``: puts hooks into a whole module before it runs
"""

from shapetrace._errors import CannotFollowError
from shapetrace.instrument.following import Following, follow, own_code
from shapetrace.instrument.interface import Call, Hooks, Interest, Listener

__all__ = [
    "Call",
    "CannotFollowError",
    "Following",
    "Hooks",
    "Interest",
    "Listener",
    "follow",
    "own_code",
]
