from __future__ import annotations

import asyncio
import logging
import socket
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapetrace.server import listener as listener_module
from shapetrace.server.listener import MOST_WAITING, ProcessKey
from shapetrace.server.message_journal import Journal
from tests.python.unit.server_transport.clients import SESSION, Client, run, served, until
from tests.support import handshakes

PROCESS = ProcessKey(SESSION, 12)


def row(number: int, size: int = 0) -> dict[str, Any]:
    return {"type": "rows", "number": number, "text": "x" * size}


def test_a_process_joins_says_something_and_goes() -> None:
    async def scenario() -> None:
        async with served() as case:
            client = await case.join()
            client.send(row(1))
            client.send(row(2))
            client.close()
            await case.until_told("hello 12", (12, 1), (12, 2), "gone 12: ended")

    run(scenario)


def test_many_processes_at_once() -> None:
    async def scenario() -> None:
        async with served() as case:
            clients = [await case.join(pid) for pid in range(1, 9)]
            for number in range(50):
                for client in clients:
                    client.send(row(number, 3000))
            await until(lambda: len(case.notes.told) == 8 + 8 * 50)
            for pid in range(1, 9):
                numbers = [told[1] for told in case.notes.told if told[0] == pid]
                assert numbers == list(range(50))

    run(scenario)


def test_commands_reach_one_process() -> None:
    async def scenario() -> None:
        async with served() as case:
            first, second = await case.join(1), await case.join(2)
            assert case.listener.processes(SESSION) == [
                ProcessKey(SESSION, 1),
                ProcessKey(SESSION, 2),
            ]
            assert case.listener.send(ProcessKey(SESSION, 2), {"type": "wake"})
            assert await second.receive() == {"type": "wake"}
            assert case.listener.send(ProcessKey(SESSION, 1), {"type": "finish"})
            assert await first.receive() == {"type": "finish"}
            assert not case.listener.send(ProcessKey(SESSION, 3), {"type": "wake"})

    run(scenario)


@pytest.mark.slow
def test_a_process_that_reads_no_commands_is_not_sent_any_number_of_them() -> None:
    async def scenario() -> None:
        async with served() as case:
            await case.join()
            await until(lambda: not case.listener.send(PROCESS, {"type": "wake", "x": "y" * 5000}))

    run(scenario)


WRONG: list[tuple[Any, str]] = [
    (lambda client, token: client.say_hello("0" * len(token)), "not open here, or its token"),
    (lambda client, token: client.say_hello(token, session="else"), "not open here, or its token"),
    (lambda client, token: client.say_hello(token + "0"), "not open here, or its token"),
    (lambda client, token: client.say_hello(token, proof="0" * 64), "not open here, or its token"),
    (lambda client, token: client.say_hello(token, proof=token), "not open here, or its token"),
    (lambda client, token: client.say_hello(token, proof=None), "proof is missing"),
    (lambda client, token: client.say_hello(token, pid=-1), "pid is no number"),
    (lambda client, token: client.say_hello(token, process=None), "process should be an object"),
    (lambda client, token: client.say_hello(token, type="rows"), "the second frame is no hello"),
    (lambda client, token: client.say_connect(protocol=3), "speaks protocol 3"),
    (lambda client, token: client.say_connect(nonce="short"), "nonce is not 64"),
    (lambda client, token: client.send({"type": "rows"}), "the first frame does not ask to"),
    (lambda client, token: client.send_payload(b"[]"), "does not hold an object with a type"),
    (lambda client, token: client.send_payload(b"\xff\xfe"), "does not hold JSON"),
    (lambda client, token: client.send_payload(b""), "does not hold JSON"),
    (lambda client, token: client.writer.write(b"GET / HTTP/1.1\r\n\r\n"), "is too long"),
    (lambda client, token: client.writer.write(b"\x00\x01\x00\x01"), "65537 bytes is too long"),
    (lambda client, token: client.writer.write(b"\x00\x00"), "no proof of the token came in time"),
    (lambda client, token: client.writer.write_eof(), "the connection ended before its proof"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_whoever_has_no_business_here_is_refused(
    wrong: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with served(proven_within=0.3) as case:
            client = await case.connect()
            saying = wrong(client, case.token)
            if asyncio.iscoroutine(saying):
                await saying
            answer = await client.receive()
            assert answer is not None
            assert answer["type"] == "refused"
            assert said in answer["reason"]
            assert await client.receive() is None
            assert case.notes.told == []
            await case.join()

    run(scenario)
    assert said in caplog.text


def test_no_token_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        async with served() as case:
            await (await case.connect()).say_hello("the wrong token")
            client = await case.join()
            client.send_payload(b"[]")
            await until(lambda: any("gone" in str(told) for told in case.notes.told))
            assert case.token not in caplog.text

    run(scenario)
    assert "the wrong token" not in caplog.text


def test_somebody_who_proves_himself_very_slowly_is_refused() -> None:
    async def scenario() -> None:
        async with served(proven_within=0.3) as case:
            client = await case.connect()
            answer = asyncio.ensure_future(client.receive())
            client.writer.write(b"\x00\x00\xff\x00")
            while not answer.done():
                # A byte now and then keeps a connection alive that a pause would end.
                client.writer.write(b"{")
                await asyncio.sleep(0.001)
            assert await answer in (
                None,
                {"type": "refused", "reason": "no proof of the token came in time"},
            )
            assert case.notes.told == []
            await case.join()

    run(scenario)


def test_a_reflection_proves_nothing() -> None:
    """Whoever sends the server's own words back, or has another connection say them, is refused."""

    async def scenario() -> None:
        async with served() as case:
            first, second = await case.connect(), await case.connect()
            first.say_connect()
            challenged = await first.receive()
            assert challenged is not None
            hello = {"type": "hello", "proof": challenged["proof"], "session": SESSION}
            first.send(hello)
            # The server's proof for the nonce that it has given to somebody else.
            second.say_connect(nonce=challenged["nonce"])
            reflected = await second.receive()
            assert reflected is not None
            second.send({**hello, "proof": reflected["proof"]})
            for client in (first, second):
                answer = await client.receive()
                assert answer is not None
                assert answer["type"] == "refused"
            assert case.notes.told == []

    run(scenario)


def test_an_agent_of_another_port_cannot_be_handed_on() -> None:
    """Somebody who holds the port that an agent knows cannot have the server answer for him."""

    async def scenario() -> None:
        async with served() as case:
            with socket.create_server(("127.0.0.1", 0)) as taken:
                port = taken.getsockname()[1]
                client = await case.connect()
                client.say_connect()
                challenged = await client.receive()
                assert challenged is not None
                about = (SESSION, case.token, port, handshakes.NONCE, challenged["nonce"])
                assert challenged["proof"] != handshakes.proof_of("server", *about)
                proof = handshakes.proof_of("agent", *about)
                client.send({"type": "hello", "proof": proof, "session": SESSION})
                answer = await client.receive()
                assert answer is not None
                assert answer["type"] == "refused"

    run(scenario)


def test_the_answer_does_not_tell_which_sessions_there_are() -> None:
    async def scenario() -> None:
        async with served() as case:
            for session in (SESSION, "none such"):
                client = await case.connect()
                client.say_connect(session)
                challenged = await client.receive()
                assert challenged is not None
                assert challenged.keys() == {"type", "protocol", "nonce", "proof"}

    run(scenario)


def test_a_flood_of_silent_connections_keeps_no_agent_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with served(proven_within=3600) as case:
            staying = await case.join(1)
            flood = [await case.connect() for _ in range(MOST_WAITING)]
            half = flood[-1]
            half.writer.write(b"\x00\x00")
            # Of any more, each takes the place of the oldest.
            more = [await case.connect() for _ in range(30)]
            for number in range(30):
                assert await flood[number].receive() is None
            agents = [await case.join(pid) for pid in range(2, 12)]
            for pid, agent in enumerate(agents, 2):
                agent.send(row(pid))
                await case.until_told((pid, pid))
            staying.send(row(1))
            await case.until_told((1, 1))
            assert len(case.listener._waiting) <= MOST_WAITING
            for client in (*flood, *more):
                client.reset()
            await until(lambda: not case.listener._waiting)
            await case.join(12)

    run(scenario)
    assert caplog.text.count("the oldest are closed") == 1
    assert "31 connections without proof of the token were closed" in caplog.text


def test_a_connection_that_is_reset_before_it_proved_itself() -> None:
    async def scenario() -> None:
        async with served() as case:
            for data in (b"", b"\x00", b"\x00\x00\x00\x10{"):
                client = await case.connect()
                client.writer.write(data)
                client.reset()
            await case.join()

    run(scenario)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda client: client.close(), "ended"),
        (lambda client: client.reset(), "the connection broke: Connection reset by peer"),
        (
            lambda client: (client.writer.write(b"\x00\x00\x01"), client.close()),
            "cut off in the middle of a frame",
        ),
        (
            lambda client: (client.writer.write(b"\x00\x00\x01\x00{"), client.close()),
            "cut off in the middle of a frame",
        ),
        (
            lambda client: client.writer.write(b"\x01\x00\x00\x01"),
            "a frame of 16777217 bytes is too long; 16777216 are allowed",
        ),
        (
            lambda client: client.send_payload(b'{"type":3}'),
            "a frame does not hold an object with a type",
        ),
    ],
)
def test_how_a_process_can_go(end: Any, reason: str) -> None:
    async def scenario() -> None:
        async with served() as case:
            client = await case.join()
            client.send(row(1))
            await case.until_told("hello 12", (12, 1))
            end(client)
            await case.until_told((12, 1), f"gone 12: {reason}")
            assert case.listener.processes(SESSION) == []
            await case.join(13)

    run(scenario)


def test_a_large_frame_after_the_hello_is_taken() -> None:
    async def scenario() -> None:
        async with served() as case:
            client = await case.join()
            client.send(row(1, 10_000_000))
            await case.until_told((12, 1))

    run(scenario)


def test_rows_sent_before_the_welcome_was_read_are_taken() -> None:
    async def scenario() -> None:
        async with served() as case:
            client = await case.connect()
            await client.say_hello(case.token)
            client.send(row(1, 100_000))
            client.close()
            await case.until_told("hello 12", (12, 1), "gone 12: ended")

    run(scenario)


def test_a_process_that_connects_anew_takes_its_own_place() -> None:
    async def scenario() -> None:
        async with served() as case:
            former = await case.join()
            former.send(row(1))
            await case.until_told("hello 12", (12, 1))
            newer = await case.join()
            assert await former.receive() is None
            newer.send(row(2))
            await case.until_told("hello 12", (12, 1), "hello 12", (12, 2))
            assert case.listener.processes(SESSION) == [PROCESS]
            newer.close()
            await case.until_told((12, 2), "gone 12: ended")
            assert [told for told in case.notes.told if "gone" in str(told)] == ["gone 12: ended"]

    run(scenario)


def test_nothing_of_a_former_connection_comes_after_the_new_hello() -> None:
    async def scenario() -> None:
        async with served() as case:
            former = await case.join()
            for number in range(20_000):
                former.send(row(number))
            newer = await case.connect()
            await newer.say_hello(case.token)
            newer.send({"type": "rows", "number": "new"})
            await until(lambda: (12, "new") in case.notes.told)
            newer.close()
            await case.until_told("hello 12", (12, "new"), "gone 12: ended")

    run(scenario)


def test_a_fault_in_the_handler_ends_no_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with served() as case:
            case.notes.fails = True
            client = await case.join()
            client.send(row(1))
            client.send(row(2))
            client.close()
            await case.until_told("hello 12", (12, 1), (12, 2), "gone 12: ended")

    run(scenario)
    assert "a fault in the handler" in caplog.text


def test_one_port_serves_all_sessions_and_the_token_tells_them_apart() -> None:
    async def scenario() -> None:
        async with served() as case:
            port, token = await case.listener.open_session("other", "Other", "forwardPass")
            assert port == case.port
            assert token != case.token
            assert len(token) >= 32
            client = await case.connect()
            await client.say_hello(token, session=SESSION)
            answer = await client.receive()
            assert answer is not None
            assert answer["type"] == "refused"
            client = await case.connect()
            await client.say_hello(token, session="other")
            assert await client.receive() == {"type": "welcome"}
            assert case.listener.processes("other") == [ProcessKey("other", 12)]

    run(scenario)


def test_sessions_that_are_opened_at_the_same_time_share_the_port() -> None:
    async def scenario() -> None:
        async with served() as case:
            opened = await asyncio.gather(
                *(case.listener.open_session(f"s{number}", "", "debug") for number in range(5))
            )
            assert {port for port, _ in opened} == {case.port}
            assert len({token for _, token in opened}) == 5

    run(scenario)


def test_opening_a_session_again_changes_nothing() -> None:
    async def scenario() -> None:
        async with served() as case:
            again = await case.listener.open_session(SESSION, "Python: train", "debug")
            assert again == (case.port, case.token)

    run(scenario)


def test_sessions_come_back_after_a_restart_where_they_were() -> None:
    async def scenario() -> None:
        async with served() as former:
            _, other_token = await former.listener.open_session("other", "", "debug")
            port, token = former.port, former.token
            client = await former.join()
            await former.listener.stop()
            assert await client.receive() is None
            async with served() as case:
                # A session that began meanwhile has a port of its own.
                assert case.port != port
                listener = case.listener
                assert await listener.open_session("again", "", "debug", token, port) == (
                    port,
                    token,
                )
                assert await listener.open_session("other", "", "debug", other_token, port) == (
                    port,
                    other_token,
                )
                for session, its_token in (("again", token), ("other", other_token)):
                    client = await case.connect(port)
                    await client.say_hello(its_token, session=session)
                    assert await client.receive() == {"type": "welcome"}

    run(scenario)


def test_a_port_that_somebody_else_has_taken_is_not_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with served() as case:
            with socket.create_server(("127.0.0.1", 0)) as taken:
                wanted = taken.getsockname()[1]
                port, token = await case.listener.open_session("b", "", "debug", "token", wanted)
                assert (port, token) == (case.port, "token")
            port, _ = await case.listener.open_session("c", "", "debug", "token", 70_000)
            assert port == case.port

    run(scenario)
    assert "cannot be listened on again" in caplog.text


def test_a_token_of_no_use_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with served() as case:
            for number, token in enumerate(("", "x" * 1000)):
                _, given_token = await case.listener.open_session(f"s{number}", "", "debug", token)
                assert len(given_token) == 64

    run(scenario)
    assert caplog.text.count("it gets a new one") == 2


def test_processes_of_a_closed_session_may_finish_what_they_say() -> None:
    async def scenario() -> None:
        async with served() as case:
            client = await case.join()
            late = await case.connect()
            await case.listener.close_session(SESSION)
            assert await client.receive() == {"type": "finish"}
            client.send(row(1))
            client.close()
            await case.until_told("hello 12", (12, 1), "gone 12: ended")
            await late.say_hello(case.token, 13)
            assert await late.receive() == {"type": "welcome"}

    run(scenario)


def test_a_closed_session_is_over_after_a_while() -> None:
    async def scenario() -> None:
        async with served(grace=0.05) as case:
            client = await case.join()
            await case.listener.close_session(SESSION)
            await case.listener.close_session(SESSION)
            await case.listener.close_session("one that never was")
            await case.until_told("hello 12", "gone 12: the debug session is over")
            assert await client.receive() == {"type": "finish"}
            assert await client.receive() is None
            with pytest.raises(ConnectionRefusedError):
                await case.connect()
            await case.listener.open_session("next", "", "debug")

    run(scenario)


def test_a_closed_session_waits_for_a_process_that_is_still_sending() -> None:
    async def scenario() -> None:
        async with served(grace=0.1) as case:
            sending, silent = await case.join(1), await case.join(2)
            await case.listener.close_session(SESSION)
            ending = case.listener._sessions[SESSION].ending
            number = 0
            while case.listener._sessions[SESSION].ending is ending or number < 20:
                number += 1
                sending.send(row(number))
                await case.until_told((1, number))
            assert case.listener.processes(SESSION) == [ProcessKey(SESSION, pid) for pid in (1, 2)]
            # When nothing more comes it is over, and a process that goes on for ever is cut off.
            reason = "the debug session is over"
            await until(lambda: case.notes.told[-1] == f"gone 2: {reason}")
            assert f"gone 1: {reason}" in case.notes.told
            assert await silent.receive() == {"type": "finish"}

    run(scenario)


def test_a_process_that_goes_on_for_ever_after_its_session_is_cut_off() -> None:
    async def scenario() -> None:
        async with served(grace=0.01) as case:
            client = await case.join()
            await case.listener.close_session(SESSION)
            while "gone 12: the debug session is over" not in case.notes.told:
                client.send(row(1))
                await asyncio.sleep(0)

    run(scenario)


def test_a_flood_of_refusals_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with served() as case:
            for _ in range(60):
                client = await case.connect()
                await client.say_hello("wrong")
                assert await client.receive() == {
                    "type": "refused",
                    "reason": "this session is not open here, or its token differs",
                }

    run(scenario)
    assert caplog.text.count("is refused") == 20


def test_a_port_stays_open_as_long_as_a_session_needs_it() -> None:
    async def scenario() -> None:
        async with served(grace=0.0) as case:
            _, token = await case.listener.open_session("other", "", "debug")
            await case.listener.close_session(SESSION)
            await until(lambda: SESSION not in case.listener._sessions)
            client = await case.connect()
            await client.say_hello(token, session="other")
            assert await client.receive() == {"type": "welcome"}

    run(scenario)


def test_a_session_that_is_opened_again_while_it_ends_goes_on() -> None:
    async def scenario() -> None:
        async with served(grace=0.05) as case:
            await case.listener.close_session(SESSION)
            assert await case.listener.open_session(SESSION, "", "debug") == (case.port, case.token)
            await case.listener.open_session("other", "", "debug")
            await case.listener.close_session("other")
            await until(lambda: "other" not in case.listener._sessions)
            await case.join()

    run(scenario)


def test_the_editor_has_its_turn_while_a_process_sends_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_module, "_TURN", 0.0)

    async def scenario() -> None:
        async with served() as case:
            clients = [await case.join(pid) for pid in (1, 2, 3)]
            seen: list[int] = []
            for client in clients:
                for number in range(500):
                    client.send(row(number))

            def is_complete() -> bool:
                seen.append(len(case.notes.told))
                return seen[-1] == 3 + 3 * 500

            while not is_complete():
                await asyncio.sleep(0)
            # In every turn of the loop at most one frame was handled, whoever had sent it.
            assert max(after - before for before, after in pairwise(seen)) <= 1

    run(scenario)


def test_stopping_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with served() as case:
            joined, waiting = await case.join(), await case.connect()
            await case.listener.close_session(SESSION)
            await case.listener.stop()
            assert await joined.receive() == {"type": "finish"}
            assert [await joined.receive(), await waiting.receive()] == [None, None]
            assert [task for task in asyncio.all_tasks() if "_serve" in repr(task)] == []
            assert case.notes.told == ["hello 12"]

    run(scenario)


def test_what_is_said_gets_into_the_journal(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(Journal(tmp_path)) as case:
            first, second = await case.join(1), await case.join(2)
            first.send(row(1))
            second.send(row(2))
            await until(lambda: len(case.notes.told) == 4)
            await until(lambda: len(said(tmp_path)) == 2)
            assert said(tmp_path) == {1: [row(1)], 2: [row(2)]}
            newer = await case.join(1)
            newer.send(row(3))
            newer.close()
            await case.until_told("hello 1", (1, 3), "gone 1: ended")
            assert said(tmp_path) == {1: [row(3)], 2: [row(2)]}

    run(scenario)


def said(storage: Path) -> dict[int, list[Any]]:
    return {
        replayed.hello.process.pid: list(replayed.messages)
        for replayed in Journal(storage).replay()
    }


def test_a_disk_that_takes_nothing_is_no_reason_to_refuse(tmp_path: Path) -> None:
    async def scenario() -> None:
        storage = tmp_path / "a file"
        storage.write_text("in the way")
        async with served(Journal(storage)) as case:
            client = await case.join()
            client.send(row(1))
            await case.until_told("hello 12", (12, 1))

    run(scenario)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=200) | st.sampled_from(["hello", "frame"]), max_size=6))
def test_whatever_arrives_the_server_lives_on(pieces: list[bytes | str]) -> None:
    async def scenario() -> None:
        async with served() as case:
            client: Client = await case.connect()
            for piece in pieces:
                if piece == "hello":
                    client.say_connect()
                elif piece == "frame":
                    client.send({"type": "rows", "number": 1})
                else:
                    client.writer.write(piece)  # type: ignore[arg-type]
            client.writer.write_eof()
            while await client.receive() is not None:
                pass
            await case.join(1)

    run(scenario)
