"""LangChain's clients keep their connections from one event loop to the next."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from demur import CallPolicy, Evaluation, RefChecker
from support import facts
from support.openai_server import Answer, openai_server
from support.waiting import PATIENCE

MANY = 8


def test_a_new_event_loop_gets_past_the_connections_of_an_old_one() -> None:
    all_there = threading.Barrier(MANY)

    def script(request: dict[str, Any], number: int) -> Answer:
        if number < MANY:
            all_there.wait(PATIENCE)  # each has a connection of its own
        return facts.serve(request, number)

    with openai_server(script) as server:
        policy = CallPolicy(attempts=2, first_delay=0)
        checker = RefChecker(server.model(), checker="joint", call_policy=policy)

        async def evaluate(*numbers: int) -> list[Evaluation]:
            return await checker.abatch([facts.sample(number) for number in numbers])

        asyncio.run(evaluate(*range(MANY)))
        (found,) = asyncio.run(evaluate(3))
    assert facts.grade(3, found) == "right", found.error
