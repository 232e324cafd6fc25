"""The largest number of each floating dtype, by which programs mean infinity.

``torch.finfo(x.dtype).min`` fills masks: of another dtype it is another number, and means the same.
"""

from __future__ import annotations

import re
from typing import Final

LIMITS: Final = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}

_NUMBERS: Final = "|".join(re.escape(repr(limit)) for limit in LIMITS.values())
_IN_TEXT: Final = re.compile(rf"(?<![\w.])-?(?:{_NUMBERS})(?![\w.])")


def without_limits(text: str) -> str:
    """A call's text with one sign for each of these numbers."""
    return _IN_TEXT.sub(lambda found: "-max" if found[0].startswith("-") else "max", text)
