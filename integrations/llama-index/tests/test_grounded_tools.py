"""Test that tools of LlamaIndex's agents do not run with arguments that nobody gave."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from llama_index.core.agent.workflow import ToolCallResult
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from demur import DemurError
from demur.observe import Record
from fake_agents import Called, Make, agents, function_agent
from fake_agents import run as asked
from llama_index.evaluation.demur import ScoreEventHandler, grounded_tools

ASKED = "Please refund my order. I am ann@shop.example."
FOUND = '{"order": {"id": "ORD-48231", "total": 31.20}}'
DONE = "I have refunded 31.20."
LOOKED: Called = ("get_order", {"email": "ann@shop.example"})
WRONG: Called = ("refund_order", {"order_id": "ORD-48213", "amount": 31.2})
RIGHT: Called = ("refund_order", {"order_id": "ORD-48231", "amount": 31.2})


class Shop:
    """Keep what ran of a shop's tools."""

    def __init__(self) -> None:
        self.refunded: list[tuple[str, float]] = []

    def tools(self, **options: Any) -> list[Any]:
        def get_order(email: str) -> str:
            """Find the order of a customer."""
            return FOUND if email == "ann@shop.example" else f"No order for {email}"

        async def refund_order(ctx: Context, order_id: str, amount: float) -> str:
            """Refund an order."""
            assert await ctx.store.get("memory")
            self.refunded.append((order_id, amount))
            return "refunded"

        # LlamaIndex reads no annotations that are strings.
        refund_order.__annotations__.update(ctx=Context, order_id=str, amount=float)
        return grounded_tools([get_order, FunctionTool.from_defaults(refund_order)], **options)


def run(agent: Any, *questions: str) -> tuple[list[str], list[ToolCallResult]]:
    """Ask an agent; return its answers, and the results of its tools."""
    outputs, events = asked(agent, *questions)
    return [*map(str, outputs)], [one for one in events if isinstance(one, ToolCallResult)]


@agents
def test_a_call_with_an_invented_value_does_not_run_and_the_model_is_told(make: Make) -> None:
    shop = Shop()
    agent = make(shop.tools(), (LOOKED,), (WRONG,), (RIGHT,), DONE)
    answers, results = run(agent, ASKED)
    assert shop.refunded == [("ORD-48231", 31.2)]
    assert answers == [DONE]
    stopped = results[1].tool_output
    assert stopped.is_error
    assert "order_id: nobody gave 'ORD-48213'" in stopped.content
    assert "ORD-48231" in stopped.content
    assert not results[2].tool_output.is_error


@agents
def test_what_was_given_in_an_earlier_turn_counts(make: Make) -> None:
    shop = Shop()
    agent = make(shop.tools(), (LOOKED,), "It cost 31.20. Refund it?", (RIGHT,), DONE)
    run(agent, ASKED, "Yes, please.")
    assert shop.refunded == [("ORD-48231", 31.2)]


@agents
def test_what_is_only_echoed_and_what_an_untrusted_tool_returned_does_not_count(make: Make) -> None:
    shop = Shop()
    guessed: Called = ("get_order", {"email": "anna@shop.example"})
    looks_at_will = shop.tools(checked={"get_order": False})
    again: Called = ("refund_order", {"order_id": "anna@shop.example", "amount": 31.2})
    run(make(looks_at_will, (guessed,), (again,), "Which order?"), "Refund 31.20.")
    run(make(shop.tools(untrusted=["get_order"]), (LOOKED,), (RIGHT,), "Which order?"), ASKED)
    assert shop.refunded == []


def test_known_texts_and_the_date_count() -> None:
    ran: list[str] = []

    def book(account: str, on: str) -> str:
        """Book."""
        ran.append(on)
        return "ok"

    options: Any = {"known": ["The user's account is ACC-7781."], "today": lambda: date(2031, 5, 2)}
    booked: Called = ("book", {"account": "ACC-7781", "on": "2031-05-09"})
    run(function_agent(grounded_tools([book], **options), (booked,), "Booked."), "Next Friday.")
    run(function_agent(grounded_tools([book]), (booked,), "Booked."), "Next Friday.")
    assert ran == ["2031-05-09"]


def test_parallel_calls_are_judged_one_by_one() -> None:
    shop = Shop()
    _, results = run(function_agent(shop.tools(), (LOOKED,), (WRONG, RIGHT), DONE), ASKED)
    assert shop.refunded == [("ORD-48231", 31.2)]
    stopped = [one.tool_kwargs for one in results if one.tool_output.is_error]
    assert stopped == [WRONG[1]]


def test_a_handler_records_stopped_calls_without_what_it_redacts() -> None:
    records: list[Record] = []
    handler = ScoreEventHandler(sink=records.append, redact="remove")
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        run(function_agent(Shop().tools(), (LOOKED,), (WRONG,), DONE), ASKED)
        assert handler.close(30)
    finally:
        dispatcher.event_handlers.remove(handler)
    (record,) = records
    assert (record.outcome, record.verdict) == ("blocked", "failed")
    assert len(record.evaluations[0].claims) == 1
    assert "ORD-482" not in record.as_json()


def test_a_grounded_tool_cannot_be_run_without_its_agent() -> None:
    tool = Shop().tools()[0]
    with pytest.raises((DemurError, ValueError), match=r"[Cc]ontext"):
        tool.call(email="ann@shop.example")
