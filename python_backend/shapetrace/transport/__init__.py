"""The connection between agent and language server, and the agent's end of it.

Standard library only, and nothing that the program could have replaced: see ``sender``.

Modules:

- ``session_address``: the address of the server: ``SHAPETRACE_SESSION``
- ``connection``: one connection to the server
- ``framing``: a message as four bytes of length and JSON
- ``proof``: proofs of knowing the token
- ``handshake``: the exchange of these proofs; ``server.listener`` refuses a wrong one
- ``sender``: the agent's end: sends frames, receives commands
- ``outbox``: its bounded queue
- ``originals``: system functions that the program cannot replace under us
- ``messages``: every message, by ``type``
- ``tables``: reader and writer of a message, made from its dataclass
- ``requested``: rows of captured values and watched variables
- ``history``: the first and last items of a name, which both ends keep
"""
