from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport import proof as proof_module
from shapetrace.transport.proof import Exchange, is_nonce, new_nonce
from tests.support.handshakes import proof_of

BACKEND = Path(__file__).parents[4] / "python_backend"
EXCHANGE = Exchange("c2a7", "secret", 40123, "a" * 64, "b" * 64)
texts = st.text(min_size=1, max_size=200)
nonces = st.binary(min_size=32, max_size=32).map(bytes.hex)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_it_is_the_hmac_of_the_standard_library(key: bytes, message: bytes) -> None:
    expected = hmac.new(key, message, hashlib.sha256).digest()
    assert proof_module._hmac_sha256(key, message) == expected


@given(texts, texts, st.integers(1, 65535), nonces, nonces, st.sampled_from(["agent", "server"]))
def test_a_proof_is_what_the_other_side_expects(
    session: str, token: str, port: int, ours: str, theirs: str, side: proof_module.Side
) -> None:
    exchange = Exchange(session, token, port, ours, theirs)
    expected = proof_of(side, session, token, port, ours, theirs)
    assert exchange.proof(side) == expected
    assert exchange.is_proof(side, expected)
    assert is_nonce(expected)


@pytest.mark.parametrize(
    "other",
    [
        replace(EXCHANGE, session="c2a8"),
        replace(EXCHANGE, token="Secret"),
        replace(EXCHANGE, port=40124),
        replace(EXCHANGE, agent_nonce="c" * 64),
        replace(EXCHANGE, server_nonce="c" * 64),
        replace(EXCHANGE, agent_nonce=EXCHANGE.server_nonce, server_nonce=EXCHANGE.agent_nonce),
    ],
)
def test_a_proof_is_of_one_exchange_only(other: Exchange) -> None:
    for side in ("agent", "server"):
        assert not other.is_proof(side, EXCHANGE.proof(side))


def test_a_proof_of_one_side_is_none_of_the_other() -> None:
    assert not EXCHANGE.is_proof("server", EXCHANGE.proof("agent"))
    assert not EXCHANGE.is_proof("agent", EXCHANGE.proof("server"))


def test_a_proof_is_of_one_version_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    now = EXCHANGE.proof("server")
    monkeypatch.setattr(proof_module, "PROTOCOL", proof_module.PROTOCOL + 1)
    assert not EXCHANGE.is_proof("server", now)


@given(texts)
def test_anything_else_is_no_proof(text: str) -> None:
    assert not EXCHANGE.is_proof("agent", text)
    assert not EXCHANGE.is_proof("agent", EXCHANGE.proof("agent")[:-1])


def test_nonces_differ() -> None:
    assert len({new_nonce() for _ in range(1000)}) == 1000
    assert all(is_nonce(new_nonce()) for _ in range(10))


def test_no_token_is_shown_by_printing() -> None:
    assert "secret" not in repr(EXCHANGE)


def test_neither_openssl_nor_hashlib_comes_into_the_process() -> None:
    code = (
        "import sys; from shapetrace.transport.proof import Exchange, new_nonce\n"
        "assert Exchange('s', 't', 1, new_nonce(), new_nonce()).proof('agent')\n"
        "import shapetrace.transport.sender\n"
        "print([name for name in ('hashlib', '_hashlib', 'hmac', 'ssl') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(BACKEND)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "[]\n"
