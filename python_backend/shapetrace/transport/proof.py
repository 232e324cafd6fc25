"""Proofs that both ends of a connection know the session's token, which is never sent.

A proof is the HMAC-SHA256, under the token, of who gives it, the protocol's version, the port that
was connected to, the nonces of both sides and the session. The port is in it so that a
process that listens on one port cannot pass an agent's proof on to a server at another.
"""

from __future__ import annotations

import importlib
import os
from _operator import _compare_digest
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

PROTOCOL = 5
"""Changes when an older side could no longer understand the newer one."""

Side: TypeAlias = Literal["agent", "server"]

NONCE_LENGTH: Final = 64
"""Hexadecimal digits in a nonce, and in a proof."""

_BLOCK: Final = 64
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


def _sha256_without_openssl() -> Callable[[bytes], Any]:
    """Python's own SHA-256: ``hashlib`` and ``hmac`` load OpenSSL into the user's process."""
    for name in ("_sha2", "_sha256"):
        try:
            found: Callable[[bytes], Any] = importlib.import_module(name).sha256
        except ImportError:
            continue
        return found
    from hashlib import sha256

    return sha256


class _System:
    """Taken before the program runs, and kept where it does not look (see ``originals``)."""

    sha256 = staticmethod(_sha256_without_openssl())
    random_bytes = staticmethod(os.urandom)
    # What ``hmac.compare_digest`` is where there is no OpenSSL.
    compare_digest = staticmethod(_compare_digest)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The values that the proofs of one connection cover."""

    session: str
    token: str = field(repr=False)
    port: int
    """The server's address, as each side knows it without the other."""
    agent_nonce: str
    server_nonce: str

    def proof(self, side: Side) -> str:
        """The proof that one side sends."""
        # All but the last are of known length or digits only, so no two exchanges read alike.
        said = "\n".join(
            (
                f"shapetrace {side}",
                str(PROTOCOL),
                str(self.port),
                self.agent_nonce,
                self.server_nonce,
                self.session,
            )
        )
        return _hmac_sha256(_bytes(self.token), _bytes(said)).hex()

    def is_proof(self, side: Side, proof: str) -> bool:
        """Return whether this is the proof, in a time that does not depend on where it differs."""
        return _System.compare_digest(_bytes(self.proof(side)), _bytes(proof))


def new_nonce() -> str:
    """A number that is used once."""
    return _System.random_bytes(NONCE_LENGTH // 2).hex()


def is_nonce(text: object) -> bool:
    """Return whether this has the form of a nonce, or of a proof."""
    return isinstance(text, str) and len(text) == NONCE_LENGTH and _HEXADECIMAL.issuperset(text)


def _hmac_sha256(key: bytes, message: bytes) -> bytes:
    if len(key) > _BLOCK:
        key = _System.sha256(key).digest()
    key = key.ljust(_BLOCK, b"\0")
    inner = _System.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    digest: bytes = _System.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()
    return digest


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
