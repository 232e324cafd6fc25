"""The columns of each kind of row in their order, and the values that they accept.

``recorder.rows`` writes such rows, ``rows`` and ``value_rows`` read them.
"""

from __future__ import annotations

from typing import Final

from shapetrace.events.checks import (
    FIGURE_OR_NONE,
    FIGURE_OR_TEXT,
    FLAG,
    LIST,
    LIST_OR_NONE,
    NUMBER,
    NUMBER_OR_NONE,
    TEXT,
    TEXT_OR_NONE,
    Columns,
    Types,
)

FRAME = Columns(
    number=NUMBER,
    file=TEXT,
    line=NUMBER,
    function=TEXT,
    column=NUMBER_OR_NONE,
    end_line=NUMBER_OR_NONE,
    end_column=NUMBER_OR_NONE,
)
STACK = Columns(number=NUMBER, below=NUMBER, frame=NUMBER)
"""A frame on the stack with the number ``below``, which is 0 where there is none."""
VALUE = Columns(number=NUMBER, value=LIST)
"""A value is a list that begins with a mark: 0 for a tensor, 1 for a container, 2 for others."""
TENSOR = Columns(
    mark=NUMBER,
    shape=LIST_OR_NONE,
    dtype=TEXT,
    device=TEXT,
    requires_grad=FLAG,
    strides=LIST_OR_NONE,
    kind=TEXT,
    layout=TEXT,
    placements=TEXT_OR_NONE,
)
CONTAINER = Columns(mark=NUMBER, kind=TEXT, items=LIST, keys=LIST_OR_NONE, length=NUMBER_OR_NONE)
OTHER = Columns(mark=NUMBER, text=TEXT)
SOURCE = Columns(path=TEXT, digest=TEXT_OR_NONE, text=TEXT_OR_NONE)
MODULE = Columns(
    number=NUMBER,
    parent=NUMBER_OR_NONE,
    path=TEXT,
    class_name=TEXT,
    detail=TEXT,
    call=NUMBER,
    count=NUMBER_OR_NONE,
    frame=NUMBER_OR_NONE,
    stack=NUMBER,
    inputs=LIST,
    names=LIST_OR_NONE,
    keywords=LIST,
    result=TEXT_OR_NONE,
    outputs=LIST,
    parameters=NUMBER,
    error=LIST_OR_NONE,
    note=TEXT_OR_NONE,
    direct=FLAG,
)
OP = Columns(
    number=NUMBER,
    name=TEXT,
    label=TEXT,
    form=TEXT,
    module=NUMBER_OR_NONE,
    frame=NUMBER,
    direct=FLAG,
    stack=NUMBER,
    inputs=LIST,
    names=LIST_OR_NONE,
    result=TEXT_OR_NONE,
    outputs=LIST,
    count=NUMBER,
    level=TEXT,
    parent=NUMBER_OR_NONE,
    error=LIST_OR_NONE,
    thread=TEXT_OR_NONE,
)
VARIABLE = Columns(
    number=NUMBER,
    name=TEXT,
    file=TEXT,
    line=NUMBER,
    column=NUMBER_OR_NONE,
    end_line=NUMBER_OR_NONE,
    end_column=NUMBER_OR_NONE,
    function=TEXT,
    module=NUMBER_OR_NONE,
    value=NUMBER,
    kind=TEXT,
)
COUNT = Columns(number=NUMBER, count=NUMBER)
"""The number is that of an op or module call."""
ERROR = Columns(type=TEXT, message=TEXT)
RANGE = Columns(low=NUMBER, high=NUMBER)
COVERAGE = Columns(reason=TEXT, where=TEXT, count=NUMBER)
RUN: Final[dict[str, Types]] = {
    "argv": LIST,
    "python": TEXT,
    "torch": TEXT_OR_NONE,
    "pid": NUMBER,
    "rank": NUMBER_OR_NONE,
    "world_size": NUMBER_OR_NONE,
    "started": TEXT,
    "passes": NUMBER,
}
"""The fields of a run."""
CALLS = Columns(first=NUMBER, last=NUMBER, outputs=LIST, inputs=LIST, digest=TEXT_OR_NONE)
FINGERPRINTS = Columns(number=NUMBER, calls=LIST)
"""The number is that of an op or module call; each of the calls is a row of ``CALLS``."""
FINGERPRINT: Final[tuple[Types, ...]] = (
    *(TEXT, NUMBER, *[FIGURE_OR_NONE] * 4, LIST),
    *(*[NUMBER] * 3, TEXT_OR_NONE, NUMBER_OR_NONE, TEXT_OR_NONE),
)
"""The fields of a fingerprint in their order; those from the eighth on may be left out."""
SAMPLE: Final[Types] = FIGURE_OR_TEXT
ROWS: Final[dict[str, Columns]] = {
    "sources": SOURCE,
    "frames": FRAME,
    "stacks": STACK,
    "values": VALUE,
    "modules": MODULE,
    "ops": OP,
    "variables": VARIABLE,
    "counts": COUNT,
    "fingerprints": FINGERPRINTS,
    "coverage": COVERAGE,
}
"""The rows of a message, by its keys."""
