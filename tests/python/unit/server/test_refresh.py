from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from shapetrace.server.refresh import Reminder, Throttle


def run(scenario: Callable[[Throttle, list[float]], object], interval: float) -> list[float]:
    """The times of the calls that a scenario leads to, from its beginning."""
    times: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        throttle = Throttle(lambda: times.append(loop.time() - began), interval)
        result = scenario(throttle, times)
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(main())
    return times


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def test_the_first_wish_is_granted_at_once_and_only_once() -> None:
    async def scenario(throttle: Throttle, times: list[float]) -> None:
        for _ in range(100):
            throttle.request()
        assert times == []
        await until(lambda: bool(times))

    assert len(run(scenario, 3600.0)) == 1


def test_what_is_wished_in_the_meantime_is_granted_once_after_the_interval() -> None:
    async def scenario(throttle: Throttle, times: list[float]) -> None:
        throttle.request()
        await until(lambda: len(times) == 1)
        for _ in range(100):
            throttle.request()
        await until(lambda: len(times) == 2)

    first, second = run(scenario, 0.05)
    assert second - first >= 0.049


def test_the_first_may_wait_for_what_comes_soon_after() -> None:
    times: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        throttle = Throttle(lambda: times.append(loop.time() - began), 0.0, 0.05)
        throttle.request()
        await asyncio.sleep(0)
        throttle.request()
        await until(lambda: bool(times))

    asyncio.run(main())
    assert len(times) == 1
    assert times[0] >= 0.049


def test_a_wish_can_be_taken_back() -> None:
    async def scenario(throttle: Throttle, times: list[float]) -> None:
        throttle.request()
        throttle.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        throttle.cancel()

    assert run(scenario, 0.0) == []


def test_what_somebody_waits_for_does_not_wait() -> None:
    async def scenario(throttle: Throttle, times: list[float]) -> None:
        throttle.request()
        await until(lambda: len(times) == 1)
        throttle.request()
        throttle.request(at_once=True)
        throttle.request()
        await until(lambda: len(times) == 2)

    assert len(run(scenario, 3600.0)) == 2


def reminded(scenario: Callable[[Reminder, list[float]], Coroutine[None, None, None]]) -> int:
    """How many calls a scenario leads to."""
    times: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await scenario(Reminder(lambda: times.append(loop.time()), 3600.0, 0.01), times)

    asyncio.run(main())
    return len(times)


def test_who_was_answered_just_before_is_told_once_more() -> None:
    async def scenario(reminder: Reminder, times: list[float]) -> None:
        reminder.answered()
        reminder.call()
        assert len(times) == 1
        await until(lambda: len(times) == 2)
        assert times[1] - times[0] >= 0.009
        # An answer to that leads to no other.
        reminder.answered()
        loop = asyncio.get_running_loop()
        later = loop.time() + 0.05
        await until(lambda: loop.time() > later)

    assert reminded(scenario) == 2


def test_whoever_asked_for_nothing_is_told_once() -> None:
    async def scenario(reminder: Reminder, times: list[float]) -> None:
        reminder.call()
        loop = asyncio.get_running_loop()
        later = loop.time() + 0.05
        await until(lambda: loop.time() > later)

    assert reminded(scenario) == 1


def test_of_several_calls_only_the_last_is_followed_by_another() -> None:
    async def scenario(reminder: Reminder, times: list[float]) -> None:
        reminder.answered()
        for _ in range(5):
            reminder.call()
        await until(lambda: len(times) == 6)
        reminder.call()
        reminder.cancel()
        loop = asyncio.get_running_loop()
        later = loop.time() + 0.05
        await until(lambda: loop.time() > later)

    assert reminded(scenario) == 7
