from __future__ import annotations

import errno
import os
import select
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from shapetrace.transport import sender as sender_module
from shapetrace.transport.connection import Connection
from shapetrace.transport.framing import Message
from shapetrace.transport.originals import System
from tests.python.unit.transport.peers import (
    PROCESS_OBJECT,
    TOKEN,
    Agent,
    Peer,
    Server,
    served,
    until,
)
from tests.support import handshakes


def row(number: int, size: int = 0) -> dict[str, Any]:
    return {"type": "rows", "number": number, "text": "x" * size}


def test_it_says_who_it_is_to_a_server_that_knows_the_token() -> None:
    with served() as (server, agent):
        peer = server.accept(agent)
        first = peer.receive(lambda: agent.sender.step(0.01))
        assert first is not None
        assert first == handshakes.connect("c2a7", first["nonce"])
        agent.sender.step(0.01)
        assert not agent.sender.is_connected
        peer.send(handshakes.challenge(first, TOKEN, server.port))
        hello = peer.receive(lambda: agent.sender.step(0.01))
        assert hello is not None
        about = ("c2a7", TOKEN, server.port, first["nonce"], handshakes.NONCE)
        proof = handshakes.proof_of("agent", *about)
        process = PROCESS_OBJECT
        assert hello == {"type": "hello", "proof": proof, "session": "c2a7", "process": process}
        agent.sender.step(0.01)
        assert agent.connected == 0
        peer.send({"type": "welcome"})
        agent.until(lambda: agent.sender.is_connected)
        assert agent.connected == 1


def test_each_connection_has_a_nonce_of_its_own() -> None:
    with served() as (server, agent):
        nonces = set()
        for _ in range(3):
            peer = server.accept(agent)
            first = peer.receive(lambda: agent.sender.step(0.01))
            assert first is not None
            nonces.add(first["nonce"])
            peer.close()
            agent.until(lambda: agent.sender._connection is None)
        assert len(nonces) == 3


def test_messages_arrive_in_their_order() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        sent = [row(number, number * 7 % 5000) for number in range(500)]
        for message in sent:
            assert agent.sender.offer(message)
        for message in sent:
            assert peer.receive(lambda: agent.sender.step(0.01)) == message
        assert agent.sender.waiting == agent.sender.dropped == 0


def test_a_message_larger_than_what_the_system_takes_at_once() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        message = row(1, 12_000_000)
        agent.sender.offer(message)
        assert peer.receive(lambda: agent.sender.step(0.01)) == message


def test_nothing_is_taken_before_the_welcome_and_that_is_no_loss() -> None:
    with served() as (server, agent):
        assert not agent.sender.offer(row(1))
        assert not agent.sender.has_room()
        server.accept(agent)
        assert not agent.sender.offer(row(2))
        assert agent.sender.dropped == 0


def test_what_is_offered_in_the_callback_comes_first() -> None:
    with served() as (server, agent):
        agent.first_words = [row(1), row(2)]
        peer = server.welcome(agent)
        agent.sender.offer(row(3))
        assert [peer.receive(lambda: agent.sender.step(0.01)) for _ in range(3)] == [
            row(1),
            row(2),
            row(3),
        ]


def test_it_can_be_woken_by_any_thread() -> None:
    with served() as (server, agent):
        server.welcome(agent)
        thread = threading.Thread(target=agent.sender.step, args=(3600,), daemon=True)
        thread.start()
        agent.sender.wake()
        agent.sender.wake()
        thread.join(60)
        assert not thread.is_alive()


def test_commands_reach_the_agent() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        for kind in ("wake", "stop", "what a newer server may say"):
            peer.send({"type": kind})
        agent.until(lambda: len(agent.commands) == 3)
        assert [command["type"] for command in agent.commands] == [
            "wake",
            "stop",
            "what a newer server may say",
        ]


def test_a_step_ends_early_when_a_command_has_come() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        peer.send({"type": "wake"})
        agent.sender.step(3600)
        assert agent.commands


def test_commands_come_through_while_the_server_reads_nothing() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        agent.sender.offer(row(1, 15_000_000))
        peer.send({"type": "wake"})
        agent.until(lambda: agent.commands)
        assert agent.sender.waiting > 0


def test_a_slow_reader_makes_it_drop_and_count_and_never_wait() -> None:
    with served(most_bytes=1_000_000) as (server, agent):
        peer = server.welcome(agent)
        taken = [number for number in range(1000) if agent.sender.offer(row(number, 100_000))]
        assert agent.sender.dropped == 1000 - len(taken) > 900
        received = [peer.receive(lambda: agent.sender.step(0.01)) for _ in taken]
        assert received == [row(number, 100_000) for number in taken]


def test_whether_there_is_room_is_known_before_a_message_is_made() -> None:
    with served(most_frames=1) as (server, agent):
        peer = server.welcome(agent)
        assert agent.sender.has_room()
        agent.sender.offer(row(1))
        assert not agent.sender.has_room()
        peer.receive(lambda: agent.sender.step(0.01))
        assert agent.sender.has_room()


def test_what_says_how_it_goes_finds_room_when_rows_do_not() -> None:
    with served(most_bytes=1_000_000) as (server, agent):
        server.welcome(agent)
        while agent.sender.offer(row(1, 1000)):
            pass
        assert agent.sender.offer({"type": "status", "dropped": 1}, important=True)
        assert not agent.sender.offer(row(2, 1000))


def test_what_cannot_be_sent_is_dropped_and_said() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        assert not agent.sender.offer({"type": "rows", "value": float("nan")})
        assert "has no JSON" in agent.sender.trouble
        assert not agent.sender.offer(row(1, 17_000_000))
        assert "too long" in agent.sender.trouble
        assert agent.sender.dropped == 2
        agent.sender.offer(row(2))
        assert peer.receive(lambda: agent.sender.step(0.01)) == row(2)


def test_what_fails_in_the_program_while_a_message_is_read_does_not_reach_it() -> None:
    class Hostile(dict):
        def items(self) -> Any:
            raise RuntimeError("not today")

        def __bool__(self) -> bool:
            return True

    with served() as (server, agent):
        server.welcome(agent)
        assert not agent.sender.offer({"type": "rows", "value": Hostile(a=1)})
        assert agent.sender.dropped == 1


@pytest.mark.parametrize("end", [Peer.close, Peer.reset])
def test_a_server_that_comes_back_is_told_everything_anew(end: Callable[[Peer], None]) -> None:
    with served() as (server, agent):
        agent.first_words = [row(0)]
        peer = server.welcome(agent)
        agent.sender.offer(row(1, 10_000_000))
        agent.until(lambda: select.select([peer.socket], [], [], 0)[0])
        peer.socket.recv(1000)
        end(peer)
        agent.until(lambda: not agent.sender.is_connected)
        assert agent.sender.waiting == 0
        assert not agent.sender.offer(row(2))
        again = server.welcome(agent)
        assert agent.connected == 2
        agent.sender.offer(row(3))
        assert [again.receive(lambda: agent.sender.step(0.01)) for _ in range(2)] == [
            row(0),
            row(3),
        ]
        assert agent.sender.dropped == 0


def test_a_server_that_was_not_there_yet_is_found() -> None:
    with served() as (server, agent):
        server.close()
        agent.until(lambda: agent.sender.trouble)
        assert agent.sender.trouble == os.strerror(errno.ECONNREFUSED)
        back = Server(server.port)
        try:
            back.welcome(agent)
        finally:
            back.close()


def test_a_server_that_does_not_come_back_is_given_up() -> None:
    with served(patience=0.3) as (server, agent):
        peer = server.welcome(agent)
        server.close()
        peer.close()
        agent.until(lambda: agent.sender.is_over)
        assert not agent.sender.offer(row(1))
        agent.sender.step(0.01)


def test_a_server_that_comes_back_again_and_again_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, gone = System.now, 0.0
    monkeypatch.setattr(System, "now", lambda: now() + gone)
    monkeypatch.setattr(sender_module, "_LONGEST_DELAY", 0.01)
    with served(patience=30.0) as (server, agent):
        for _ in range(10):
            peer = server.welcome(agent)
            gone += 4.0
            peer.close()
            agent.until(lambda: not agent.sender.is_connected)
        assert not agent.sender.is_over


def has_refusals(agent: Agent, number: int) -> bool:
    return agent.sender._refusals == number


def test_a_server_that_refuses_is_asked_a_few_times_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "_LONGEST_DELAY", 0.01)
    with served() as (server, agent):
        asked = 0
        while not agent.sender.is_over:
            peer = server.accept(agent)
            refusal = {"type": "refused", "reason": "the session is over"}
            if asked % 2:
                peer.greet(server.port, lambda: agent.sender.step(0.01), refusal)
            else:
                peer.receive(lambda: agent.sender.step(0.01))
                peer.send(refusal)
            asked += 1
            agent.until(partial(has_refusals, agent, asked))
        assert asked == sender_module._REFUSALS
        assert agent.sender.trouble == "the language server refuses: the session is over"


WELCOME = b'\x00\x00\x00\x12{"type":"welcome"}'


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02{}",
        b'\x00\x00\x00\x0f{"type":"wake"}',
        WELCOME,
        b'\x00\x00\x00\x1f{"type":"welcome","protocol":99}',
        b"\x00\x00\xc3\x50" + b"[" * 50_000,
        b"\x00\x00\xc3\x50" + b"9" * 50_000,
    ],
)
def test_whoever_is_not_the_language_server_is_left_again(answer: bytes) -> None:
    with served() as (server, agent):
        agent.sender.offer(row(1))
        peer = server.accept(agent)
        peer.socket.sendall(answer)
        agent.until(lambda: agent.sender.trouble)
        assert not agent.sender.is_connected
        assert agent.connected == 0
        assert not agent.commands
        server.welcome(agent)


def reflected(first: dict[str, Any], port: int) -> dict[str, Any]:
    """What the agent itself would answer: its proof, with its own nonce."""
    nonce = first["nonce"]
    proof = handshakes.proof_of("agent", first["session"], TOKEN, port, nonce, nonce)
    return {"type": "challenge", "protocol": 2, "nonce": nonce, "proof": proof}


STRANGERS: dict[str, Callable[[dict[str, Any], int], dict[str, Any]]] = {
    "another token": lambda first, port: handshakes.challenge(first, "guessed", port),
    "the proof of another port": lambda first, port: handshakes.challenge(first, TOKEN, port - 1),
    "the proof of another session": lambda first, port: handshakes.challenge(
        {**first, "session": "other"}, TOKEN, port
    ),
    "the proof of an earlier connection": lambda first, port: handshakes.challenge(
        {**first, "nonce": "00" * 32}, TOKEN, port
    ),
    "a reflection": reflected,
    "what it was sent": lambda first, port: first,
    "no proof": lambda first, port: {**handshakes.challenge(first, TOKEN, port), "proof": None},
    "another version": lambda first, port: {
        **handshakes.challenge(first, TOKEN, port),
        "protocol": 3,
    },
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_server_that_does_not_know_the_token_is_told_nothing(stranger: str) -> None:
    with served() as (server, agent):
        agent.first_words = [row(0)]
        peer = server.accept(agent)
        first = peer.receive(lambda: agent.sender.step(0.01))
        assert first is not None
        assert first.keys() == {"type", "protocol", "session", "nonce"}
        peer.send(STRANGERS[stranger](first, server.port))
        # Whoever has no proof may go on as if it had one.
        peer.send({"type": "welcome"})
        peer.send({"type": "finish"})
        agent.until(lambda: agent.sender.trouble)
        assert peer.receive_all() == []
        assert agent.connected == 0
        assert not agent.commands
        again = server.welcome(agent)
        assert again.receive(lambda: agent.sender.step(0.01)) == row(0)


def test_strangers_are_given_up_after_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "_LONGEST_DELAY", 0.01)
    with served() as (server, agent):
        asked = 0
        while not agent.sender.is_over:
            peer = server.accept(agent)
            first = peer.receive(lambda: agent.sender.step(0.01))
            assert first is not None
            peer.send(handshakes.challenge(first, "guessed", server.port))
            asked += 1
            agent.until(partial(has_refusals, agent, asked))
        assert asked == sender_module._REFUSALS
        assert "does not know the session's token" in agent.sender.trouble


def test_garbage_after_the_welcome_ends_the_connection() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        peer.socket.sendall(b"\x00\x00\x00\x02[]")
        agent.until(lambda: not agent.sender.is_connected)
        assert "does not hold an object" in agent.sender.trouble
        server.welcome(agent)


def test_a_server_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "_WELCOME_WITHIN", 0.1)
    with served() as (server, agent):
        server.accept(agent)
        agent.until(lambda: agent.sender.trouble)
        assert agent.sender.trouble == "the language server does not answer"


def test_a_fault_in_the_agents_callbacks_is_kept_from_the_program() -> None:
    with served() as (server, agent):
        agent.sender._on_connected = lambda: 1 / 0
        agent.sender._on_command = lambda message: [][message["number"]]
        peer = server.welcome(agent)
        assert "ZeroDivisionError" in agent.sender.trouble
        peer.send({"type": "wake", "number": 1})
        agent.until(lambda: "IndexError" in agent.sender.trouble)
        assert agent.sender.is_connected


def test_closing_sends_the_rest() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        sent = [row(number, 10_000) for number in range(300)]
        for message in sent:
            agent.sender.offer(message)
        received: list[Any] = []
        reader = threading.Thread(target=lambda: received.extend(peer.receive_all()))
        reader.start()
        assert agent.sender.close(30.0)
        reader.join()
        assert received == sent
        assert agent.sender.is_over
        assert not agent.sender.offer(row(1))


def test_closing_before_the_first_step_connects_and_tells_everything() -> None:
    with served() as (server, agent):
        agent.first_words = [row(1), row(2)]
        received: list[Any] = []
        reader = threading.Thread(target=lambda: received.extend(_greet_and_receive_all(server)))
        reader.start()
        assert agent.sender.close(30.0)
        reader.join()
        assert received == [row(1), row(2)]


def _greet_and_receive_all(server: Server) -> list[dict[str, Any]]:
    connection, _ = server._listening.accept()
    peer = Peer(connection)
    with connection:
        peer.greet(server.port)
        return peer.receive_all()


def test_closing_without_a_server_does_not_try_for_long() -> None:
    with served() as (server, agent):
        server.close()
        assert not agent.sender.close(3600)
        assert agent.sender.is_over


def test_closing_waits_no_longer_than_told_for_a_server_that_reads_nothing() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        agent.sender.offer(row(1, 15_000_000))
        assert not agent.sender.close(0.05)
        assert agent.sender.trouble == "there was no time left to send the rest"
        with pytest.raises(AssertionError, match="within a frame"):
            peer.receive_all()


def test_closing_waits_no_longer_than_told_for_a_server_that_does_not_answer() -> None:
    with served() as (server, agent):
        server.accept(agent)
        assert not agent.sender.close(0.05)


def test_closing_does_not_wait_again_for_a_server_that_had_its_time() -> None:
    with served() as (server, agent):
        server.accept(agent)
        agent.sender._connected_at -= 3600.0
        before = agent.sender._connection
        assert not agent.sender.close(3599.0)
        assert before is not None
        assert agent.sender.trouble == "the language server does not answer"


def test_closing_while_another_thread_is_in_a_step() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        stepping = threading.Thread(target=lambda: agent.sender.step(3600))
        stepping.start()
        until(agent.sender._turn.locked, lambda: None)
        agent.sender.offer(row(1))
        assert agent.sender.close(30.0)
        stepping.join()
        assert peer.receive_all() == [row(1)]


def test_closing_gives_up_on_a_step_that_is_stuck_in_the_agent() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        is_in, may_go_on = threading.Event(), threading.Event()

        def stuck(message: Message) -> None:
            is_in.set()
            may_go_on.wait()

        agent.sender._on_command = stuck
        peer.send({"type": "wake"})
        stepping = threading.Thread(target=lambda: agent.sender.step(3600))
        stepping.start()
        is_in.wait()
        assert not agent.sender.close(0.01)
        assert agent.sender.is_over
        may_go_on.set()
        stepping.join()
        agent.sender.step(0.0)
        assert peer.receive_all() == []


def test_closing_twice_and_stepping_afterwards_do_nothing() -> None:
    with served() as (server, agent):
        server.welcome(agent)
        assert agent.sender.close()
        assert not agent.sender.close()
        agent.sender.step(0.01)
        assert agent.connected == 1


def test_a_clock_that_stands_still_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        monkeypatch.setattr(System, "now", staticmethod(lambda: 12.0))
        agent.sender.step(0.05)
        agent.sender.offer(row(1, 15_000_000))
        agent.sender.step(0.05)
        assert not agent.sender.close(0.1)
        peer.close()


def test_an_interrupt_while_closing_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> int:
        raise KeyboardInterrupt

    with served() as (server, agent):
        peer = server.welcome(agent)
        agent.sender.offer(row(1))
        monkeypatch.setattr(Connection, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.sender.close()
        assert peer.receive_all() == []


def test_a_forked_child_leaves_the_connection_to_its_parent() -> None:
    with served() as (server, agent):
        peer = server.welcome(agent)
        # What a child has: its own number of the same descriptor.
        assert agent.sender._connection is not None
        kept = socket.socket(fileno=os.dup(agent.sender._connection._socket.fileno()))
        agent.sender._turn.acquire()
        agent.sender._outbox._lock.acquire()
        agent.sender.after_fork_in_child()
        assert not agent.sender.offer(row(1))
        assert not agent.sender.close()
        agent.sender.step(0.0)
        with kept:
            kept.sendall(b'\x00\x00\x00\x0e{"type":"bye"}')
            assert peer.receive() == {"type": "bye"}


def test_a_fork_that_nobody_tells_of_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as (server, agent):
        server.welcome(agent)
        agent.sender._turn.acquire()
        agent.sender._outbox._lock.acquire()
        monkeypatch.setattr(System, "process_id", staticmethod(lambda: 0))
        assert not agent.sender.offer(row(1))
        assert agent.sender.is_over
        agent.sender.step(0.0)
        assert not agent.sender.close()


def test_a_descriptor_that_the_program_closed_and_uses_again_is_left_alone() -> None:
    with served() as (server, agent):
        server.welcome(agent)
        assert agent.sender._connection is not None
        descriptor = agent.sender._connection._socket.fileno()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            # As after os.closerange: the number is free, and the program's next file gets it.
            os.dup2(ours.fileno(), descriptor)
            agent.sender.offer(row(1))
            agent.until(lambda: not agent.sender.is_connected)
            assert "closed the connection's descriptor" in agent.sender.trouble
            os.write(descriptor, b"the program's own")
            assert theirs.recv(100) == b"the program's own"
            os.close(descriptor)
        server.welcome(agent)


def test_no_descriptor_is_left_when_a_connection_cannot_be_made() -> None:
    with served() as (server, agent):
        server.close()
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        agent.until(lambda: agent.sender._delay > 0.3)
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        assert before == after


def test_a_process_without_free_descriptors_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*arguments: object) -> Any:
        raise OSError(24, "Too many open files")

    with served() as (server, agent):
        with monkeypatch.context() as patched:
            patched.setattr(System, "Socket", none_left)
            agent.until(lambda: agent.sender.trouble)
            assert agent.sender.trouble == "Too many open files"
        server.welcome(agent)
