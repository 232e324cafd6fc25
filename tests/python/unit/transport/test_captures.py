"""What is told of captured values, on its way between agent and server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport.framing import HEADER_LENGTH, decode, encode
from shapetrace.transport.messages import read_from_agent, write
from shapetrace.transport.requested import (
    CapturedValue,
    CaptureNews,
    RequestedName,
    Statistics,
)

NEWS = CaptureNews(
    requests=("layers.*.forward", "forward.mask"),
    problems={"forward.mask": "nothing has this path"},
    names=(RequestedName(1, "layers.0.forward", "layers.*.forward", "Net"),),
    items=(
        CapturedValue(
            *(1, 3, 12, "train", "Tensor", "float32", (2, 4)),
            statistics=Statistics(8, 4, -1.5, 3.0, 0.25, 1, 2, (1, 0, 3)),
        ),
        CapturedValue(1, 4, 13, "eval", "Tensor", "float32", (0,), "cuda:0"),
        CapturedValue(1, 5, 13, "eval", "str", text="'yes'"),
    ),
)


def sent(news: CaptureNews) -> CaptureNews:
    read, refused = read_from_agent(decode(bytes(encode(write(news)))[HEADER_LENGTH:]))
    assert refused == []
    assert isinstance(read, CaptureNews)
    return read


@pytest.mark.parametrize("news", [NEWS, CaptureNews(), CaptureNews(requests=(), problems={})])
def test_a_message_is_read_as_it_was_written(news: CaptureNews) -> None:
    assert sent(news) == news


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, 2**64 - 1])
def test_every_number_that_a_tensor_holds_can_be_told(number: int) -> None:
    statistics = Statistics(1, 1, number, number, float(number))
    value = CapturedValue(1, 1, 1, "train", "Tensor", "int64", (1,), statistics=statistics)
    assert sent(CaptureNews(items=(value,))).items == (value,)


def test_what_is_wrong_is_left_out() -> None:
    message = write(NEWS)
    rows = message["items"]
    message["items"] = [None, [], rows[0][:5], ["1", *rows[0][1:]], [*rows[0][:9], [1]], rows[2]]
    message["names"] = [[1, 2, 3, 4], "ab", message["names"][0]]
    message["problems"] = [["a"], "ab", [1, 2], ["a", "b"]]
    message["requests"] = ["forward", 3]
    news, refused = read_from_agent(message)
    assert news == CaptureNews(("forward",), {"a": "b"}, NEWS.names, NEWS.items[2:])
    assert len(refused) == 1 + 3 + 2 + 5
    assert "a row of items ('1'): name should be a whole number, not text" in refused


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=11),
    max_leaves=30,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["requests", "problems", "names", "items"]), plain))
def test_any_message_is_read(message: dict[str, Any]) -> None:
    news, _ = read_from_agent({"type": "captures", **message})
    assert isinstance(news, CaptureNews)
