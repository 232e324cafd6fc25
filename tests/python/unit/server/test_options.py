from __future__ import annotations

import pytest

from shapetrace.server.messages.settings import (
    CodeLensOptions,
    HintOptions,
    HoverOptions,
    Options,
    read_options,
)


def test_nothing_set_means_the_defaults() -> None:
    assert read_options(None) == (Options(), [])
    assert read_options({}) == (Options(), [])
    assert read_options({"trace": {"afterPass": "stop"}, "hints": None}) == (Options(), [])


def test_all_of_them() -> None:
    settings = {
        "hints": {"position": "afterName", "maximumLength": 60, "parameters": False},
        "codeLens": {"enabled": False},
        "hover": {"enabled": False},
    }
    expected = Options(
        HintOptions("afterName", 60, False), CodeLensOptions(False), HoverOptions(False)
    )
    assert read_options(settings) == (expected, [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "shapetrace must be an object; the defaults are used"),
        ({"hints": 1}, "shapetrace.hints must be an object; the defaults are used"),
        (
            {"hints": {"position": "left"}},
            "shapetrace.hints.position must be one of lineEnd, afterName, off; lineEnd is used",
        ),
        (
            {"hints": {"position": ["off"]}},
            "shapetrace.hints.position must be one of lineEnd, afterName, off; lineEnd is used",
        ),
        (
            {"hints": {"maximumLength": 7}},
            "shapetrace.hints.maximumLength must be a whole number from 8 on; 43 is used",
        ),
        (
            {"hints": {"maximumLength": True}},
            "shapetrace.hints.maximumLength must be a whole number from 8 on; 43 is used",
        ),
        (
            {"hints": {"parameters": 1}},
            "shapetrace.hints.parameters must be true or false; true is used",
        ),
        (
            {"hover": {"enabled": "no"}},
            "shapetrace.hover.enabled must be true or false; true is used",
        ),
    ],
)
def test_what_makes_no_sense_is_told_and_the_default_used(settings: object, message: str) -> None:
    assert read_options(settings) == (Options(), [message])


def test_one_bad_value_leaves_the_others() -> None:
    settings = {"hints": {"position": "off", "maximumLength": -1}}
    options, messages = read_options(settings)
    assert options.hints == HintOptions("off", 43, True)
    assert len(messages) == 1
