"""Test that an agent's call with an argument that nobody gave does not run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from typing import Any

import pytest
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from pydantic import BaseModel

from agent_server import TASKS_HAVE_CONTEXT, THREAD, Calls, make_agent, serving
from demur import AnswerRejected
from langchain_demur import GroundedCalls, HallucinationMiddleware
from support.handlers import handler_for
from support.openai_server import openai_server

ASKED: Any = {"messages": [HumanMessage("Refund my order, please. I am ann@shop.example.")]}
FOUND = '{"order": {"id": "ORD-48231", "total": 31.20}}'
LOOKED = Calls((("get_order", {"email": "ann@shop.example"}),))
DONE = "I have refunded 31.20."
WHICH = "Which order do you mean?"
MODES: Any = ["values", "updates", "messages", "debug", "tasks", "checkpoints"]


def refunding(order_id: str, amount: float = 31.2) -> tuple[str, dict[str, Any]]:
    return "refund_order", {"order_id": order_id, "amount": amount, "reason": "It is broken."}


WRONG = Calls((refunding("ORD-48213"),))
RIGHT = Calls((refunding("ORD-48231"),))


class Shop:
    """Keep what ran of a shop's tools."""

    def __init__(self, *, fails: int = 0) -> None:
        self.refunded: list[str] = []
        self.tries = 0
        self._fails = fails

    @property
    def tools(self) -> list[BaseTool]:
        @tool
        def get_order(email: str) -> str:
            """Find the order of a customer."""
            return FOUND if email == "ann@shop.example" else f'No order for "{email}".'

        @tool
        def refund_order(order_id: str, amount: float, reason: str = "") -> str:
            """Refund an order."""
            self.tries += 1
            if self.tries <= self._fails:
                raise TimeoutError("the bank is busy")
            self.refunded.append(order_id)
            return '{"ok": true}'

        return [get_order, refund_order]


def run(shop: Shop, *replies: Any, checks: Any = None, given: Any = ASKED, **options: Any) -> Any:
    """Run an agent of the shop; return its messages."""
    with openai_server(serving(*replies)) as server:
        middleware = checks if isinstance(checks, list) else [checks or GroundedCalls()]
        agent = make_agent(server, shop.tools, *middleware)
        return agent.invoke(given, **options)["messages"]


def stopped(messages: Any) -> list[str]:
    """Return what the model was told of calls that did not run."""
    tools = (one for one in messages if isinstance(one, ToolMessage))
    return [str(one.text) for one in tools if "was not run" in str(one.text)]


def in_turns(agent: Any, way: str, *given: Any) -> Iterator[dict[str, Any]]:
    """Yield the agent's state after each input."""
    with closing(asyncio.new_event_loop()) as loop:
        for one in given:
            if way == "ainvoke":
                yield loop.run_until_complete(agent.ainvoke(one, THREAD))
            elif way == "astream":
                yield loop.run_until_complete(_streamed(agent, one))
            elif way == "stream":
                yield list(agent.stream(one, THREAD, stream_mode="values"))[-1]
            else:
                yield agent.invoke(one, THREAD)


async def _streamed(agent: Any, given: Any) -> Any:
    heard = [chunk async for chunk in agent.astream(given, THREAD, stream_mode=MODES)]
    return [state for mode, state in heard if mode == "values"][-1]


class TestAStoppedCall:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
    def test_does_not_run_and_the_agent_asks_and_goes_on(self, way: str) -> None:
        shop = Shop()
        refunded: list[list[str]] = []
        asked: Any = {"messages": [HumanMessage("Refund my last order, 31.20.")]}
        answered: Any = {"messages": [HumanMessage("It is ORD-48231.")]}
        with openai_server(serving(WRONG, WHICH, RIGHT, DONE)) as server:
            agent = make_agent(server, shop.tools, GroundedCalls(), checkpointer=InMemorySaver())
            said = []
            for state in in_turns(agent, way, asked, answered):
                said.append(state["messages"][-1].text)
                refunded.append([*shop.refunded])
        assert said == [WHICH, DONE]
        assert refunded == [[], ["ORD-48231"]]

    def test_tells_the_model_what_nobody_gave_and_what_is_near_it(self) -> None:
        shop = Shop()
        (told,) = stopped(run(shop, LOOKED, WRONG, RIGHT, DONE))
        assert "order_id: nobody gave 'ORD-48213'" in told
        assert "ORD-48231" in told
        assert "ask the user" in told
        assert "amount" not in told
        assert shop.refunded == ["ORD-48231"]

    def test_gives_no_value_to_the_next_call(self) -> None:
        shop = Shop()
        told = stopped(run(shop, LOOKED, WRONG, WRONG, DONE))
        assert len(told) == 2
        assert shop.refunded == []

    def test_leaves_the_calls_beside_it_alone(self) -> None:
        shop = Shop()
        both = Calls((refunding("ORD-48213"), refunding("ORD-48231")))
        assert len(stopped(run(shop, LOOKED, both, DONE))) == 1
        assert shop.refunded == ["ORD-48231"]

    def test_is_not_retried_but_one_that_fails_is(self) -> None:
        shop = Shop(fails=1)
        again = ToolRetryMiddleware(max_retries=2, initial_delay=0)
        for checks in ([GroundedCalls(), again], [again, GroundedCalls()]):
            run(shop, LOOKED, WRONG, RIGHT, DONE, checks=checks)
        assert shop.refunded == ["ORD-48231", "ORD-48231"]
        assert shop.tries == 3

    def test_stands_beside_the_check_of_answers(self) -> None:
        shop = Shop()
        seen: list[str] = []

        def judge(sample: Any) -> bool:
            seen.append(sample.answer)
            return True

        checks = [HallucinationMiddleware(judge), GroundedCalls()]
        assert run(shop, LOOKED, WRONG, RIGHT, DONE, checks=checks)[-1].text == DONE
        assert seen == [DONE]


class TestTheLastTry:
    @pytest.mark.parametrize("tries", [1, 3])
    def test_ends_with_a_refusal(self, tries: int) -> None:
        shop = Shop()
        messages = run(shop, WRONG, checks=GroundedCalls(tries=tries, refusal="Which one?"))
        assert len(stopped(messages)) == tries
        assert messages[-1].text == "Which one?"
        assert "missing" in run(shop, WRONG)[-1].text
        assert messages[-1].response_metadata["demur"]["outcome"] == "abstained"

    def test_counts_steps_of_this_turn_and_not_calls(self) -> None:
        both = Calls((refunding("ORD-48213"), refunding("ORD-48214")))
        messages = run(Shop(), both, WHICH, checks=GroundedCalls(tries=2))
        assert messages[-1].text == WHICH
        given = {"messages": [*messages, HumanMessage("The last one.")]}
        again = run(Shop(), WRONG, WHICH, given=given, checks=GroundedCalls(tries=2))
        assert again[-1].text == WHICH

    def test_raises_if_it_is_to_block(self) -> None:
        with pytest.raises(AnswerRejected) as rejected:
            run(Shop(), WRONG, checks=GroundedCalls(tries=2, on_fail="block"))
        assert "ORD-48213" in rejected.value.trace.attempts[0].answer
        assert "ORD" not in str(rejected.value)

    @pytest.mark.parametrize("way", ["invoke", "ainvoke"])
    @pytest.mark.parametrize(
        ("decision", "refunded"),
        [
            ({"type": "approve"}, ["ORD-48213"]),
            ({"type": "reject"}, []),
            (
                {
                    "type": "edit",
                    "edited_action": dict(zip(("name", "args"), refunding("ORD-7"), strict=True)),
                },
                ["ORD-7"],
            ),
        ],
        ids=["approve", "reject", "edit"],
    )
    def test_asks_a_person(self, way: str, decision: Any, refunded: list[str]) -> None:
        if way == "ainvoke" and not TASKS_HAVE_CONTEXT:
            pytest.skip("langgraph interrupts no asynchronous task before Python 3.11")
        shop = Shop()
        checks = GroundedCalls(tries=1, on_fail="interrupt")
        with openai_server(serving(WRONG, WHICH)) as server:
            agent = make_agent(server, shop.tools, checks, checkpointer=InMemorySaver())

            states = in_turns(agent, way, ASKED, Command(resume={"decisions": [decision]}))
            (asked,) = next(states)["__interrupt__"]
            (action,) = asked.value["action_requests"]
            assert action["args"]["order_id"] == "ORD-48213"
            assert "nobody gave" in action["description"]
            assert shop.refunded == []
            messages = next(states)["messages"]
            states.close()
        assert shop.refunded == refunded
        assert len(stopped(messages)) == (not refunded)


@pytest.mark.parametrize("as_list", [True, False])
def test_a_node_of_tools_takes_it_too(as_list: bool) -> None:
    shop, calls = Shop(), GroundedCalls()
    node = ToolNode(
        shop.tools, wrap_tool_call=calls.wrap_tool_call, awrap_tool_call=calls.awrap_tool_call
    )
    graph = StateGraph(MessagesState)
    of_list = RunnableLambda(lambda state: {"messages": node.invoke(state["messages"])})
    graph.add_node("tools", of_list if as_list else node)
    graph.set_entry_point("tools")
    calling = [
        {"name": name, "args": args, "id": str(at), "type": "tool_call"}
        for at, (name, args) in enumerate([*WRONG.calls, *RIGHT.calls])
    ]
    said = HumanMessage("Refund ORD-48231, please: 31.20.")
    found = graph.compile().invoke({"messages": [said, AIMessage("", tool_calls=calling)]})
    assert len(stopped(found["messages"])) == 1
    assert shop.refunded == ["ORD-48231"]


def test_an_agent_without_messages_runs() -> None:
    assert run(Shop(), WHICH, given={"messages": []})[-1].text == WHICH


class TestWhatCounts:
    def test_known_texts_and_those_of_the_runtime_do(self) -> None:
        class User(BaseModel):
            order: str

        for known in (["ORD-48213"], lambda request: [request.runtime.context.order]):
            shop = Shop()
            with openai_server(serving(LOOKED, WRONG, DONE)) as server:
                checks = GroundedCalls(known=known)
                agent = make_agent(server, shop.tools, checks, context_schema=User)
                agent.invoke(ASKED, context=User(order="ORD-48213"))
            assert shop.refunded == ["ORD-48213"]

    def test_results_of_untrusted_tools_do_not(self) -> None:
        shop = Shop()
        run(shop, LOOKED, RIGHT, WHICH, checks=GroundedCalls(untrusted=["get_order"]))
        assert shop.refunded == []

    def test_what_the_model_said_and_what_a_search_repeats_do_not(self) -> None:
        shop = Shop()
        guess = Calls((("get_order", {"email": "ORD-48213"}),), "It must be ORD-48213.")
        checks = GroundedCalls(checked={"get_order": False})
        run(shop, guess, Calls((refunding("ORD-48213", 0),)), WHICH, checks=checks)
        assert shop.refunded == []

    def test_settings_overrule_what_is_known_of_an_argument(self) -> None:
        shop = Shop()
        free = GroundedCalls(checked={"refund_order.order_id": False})
        run(shop, LOOKED, WRONG, DONE, checks=free)
        assert shop.refunded == ["ORD-48213"]
        strict = GroundedCalls(checked={"refund_order.reason": True})
        run(shop, LOOKED, RIGHT, DONE, checks=strict)
        assert shop.refunded == ["ORD-48213"]

    def test_the_date_is_that_of_the_user(self) -> None:
        ran: list[str] = []

        @tool
        def book(day: str) -> str:
            """Book a table."""
            ran.append(day)
            return "booked"

        given: Any = {"messages": [HumanMessage("A table next Friday.")]}
        for today in (date(2031, 5, 2), date(2033, 1, 1)):
            with openai_server(serving(Calls((("book", {"day": "2031-05-09"}),)), DONE)) as server:
                checks = GroundedCalls(today=lambda today=today: today)
                make_agent(server, [book], checks).invoke(given)
        assert ran == ["2031-05-09"]


class TestCallbacks:
    def test_a_handler_records_a_stopped_call_beside_the_answer(self) -> None:
        handler, records = handler_for(lambda sample: True)
        run(Shop(), LOOKED, WRONG, RIGHT, DONE, config={"callbacks": [handler]})
        assert handler.close(30)
        call, answer = records.all
        assert (call.name, call.outcome, call.verdict) == ("demur:call", "blocked", "failed")
        (claim,) = call.evaluations[0].claims
        assert (claim.path, claim.text) == ("$.args.order_id", "order_id = ORD-48213")
        assert (answer.answer, answer.verdict) == (DONE, "passed")
        assert call.root == answer.id

    def test_events_have_no_value_of_the_call(self) -> None:
        heard: list[tuple[str, str]] = []

        class Listener(BaseCallbackHandler):
            def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
                heard.append((name, repr(data)))

        run(Shop(), LOOKED, WRONG, RIGHT, DONE, config={"callbacks": [Listener()]})
        names = [name for name, _ in heard]
        assert names == ["demur.evaluation", "demur.outcome"]
        assert not [data for _, data in heard if "ORD" in data]


@pytest.mark.parametrize(
    ("options", "told"),
    [({"tries": 0}, "tries"), ({"on_fail": "regenerate"}, "'abstain', 'interrupt' or 'block'")],
)
def test_a_wrong_option_is_refused(options: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        GroundedCalls(**options)
