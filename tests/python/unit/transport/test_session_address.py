from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport.session_address import SessionAddress, read_address, write_address

VALUE: dict[str, Any] = {
    "session": "c2a7",
    "port": 40123,
    "token": "9f0c",
    "mode": "forwardPass",
    "afterPass": "continue",
    "level": "aten",
    "showsVariables": False,
    "folder": "/home/me",
    "captures": ["layers.*.forward"],
}


def test_an_address_as_the_editor_writes_it() -> None:
    assert read_address(json.dumps(VALUE)) == (
        SessionAddress(
            *("c2a7", 40123, "9f0c", "forwardPass", "continue", "aten", False, "/home/me"),
            captures=("layers.*.forward",),
        ),
        "",
    )


def test_options_that_are_left_out_have_defaults() -> None:
    assert read_address('{"session": "a", "port": 1, "token": "t"}') == (
        SessionAddress("a", 1, "t", "debug", "stop", "torch", True),
        "",
    )


@pytest.mark.parametrize(
    ("key", "value", "used"),
    [
        ("mode", "everything", "debug"),
        ("afterPass", None, "stop"),
        ("level", ["aten"], "torch"),
        ("showsVariables", "no", True),
        ("showsVariables", 0, True),
        ("folder", None, ""),
        ("folder", "/" * 5000, ""),
        ("captures", "forward", []),
        ("captures", ["forward", 3], []),
        ("captures", ["forward", ""], []),
        ("captures", ["f" * 1000], []),
        ("captures", ["forward"] * 1000, []),
    ],
)
def test_an_option_that_is_not_known_is_told_and_its_default_used(
    key: str, value: object, used: object
) -> None:
    address, problem = read_address(json.dumps({**VALUE, key: value}))
    assert address is not None
    assert json.loads(write_address(address))[key] == used
    assert problem.startswith(f"SHAPETRACE_SESSION: {key} is ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is not set"),
        ("", "is not set"),
        (" \n", "is not set"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a JSON object"),
        ("40123", "is not a JSON object"),
        ("{}", "session is missing"),
        (json.dumps({**VALUE, "session": ""}), "session is missing"),
        (json.dumps({**VALUE, "session": 3}), "session is missing"),
        (json.dumps({**VALUE, "token": None}), "token is missing"),
        (json.dumps({**VALUE, "token": "x" * 1000}), "token is missing"),
        (json.dumps({**VALUE, "port": 0}), "port is missing"),
        (json.dumps({**VALUE, "port": 65536}), "port is missing"),
        (json.dumps({**VALUE, "port": "40123"}), "port is missing"),
        (json.dumps({**VALUE, "port": True}), "port is missing"),
        (json.dumps({**VALUE, "port": 40123.0}), "port is missing"),
    ],
)
def test_what_is_no_address_is_none_with_a_reason(text: str | None, said: str) -> None:
    address, problem = read_address(text)
    assert address is None
    assert said in problem


@given(
    st.text(max_size=60)
    | st.dictionaries(
        st.sampled_from(sorted(VALUE)),
        st.none() | st.text(max_size=5) | st.integers() | st.floats(),
    ).map(lambda value: json.dumps({**VALUE, **value}))
)
def test_anything_is_an_address_or_none(text: str) -> None:
    address, problem = read_address(text)
    assert address is not None or problem


@given(
    st.builds(
        SessionAddress,
        session=st.text(min_size=1, max_size=200),
        port=st.integers(1, 65535),
        token=st.text(min_size=1, max_size=200),
        mode=st.sampled_from(["debug", "forwardPass"]),
        after_pass=st.sampled_from(["stop", "continue"]),
        level=st.sampled_from(["torch", "aten"]),
        shows_variables=st.booleans(),
        folder=st.text(max_size=20),
        captures=st.lists(st.text(min_size=1, max_size=5), max_size=3).map(tuple),
    )
)
def test_an_address_is_read_as_it_was_written(address: SessionAddress) -> None:
    assert read_address(write_address(address)) == (address, "")


def test_no_token_is_shown_by_printing() -> None:
    assert "9f0c" not in repr(SessionAddress("a", 1, "9f0c"))
