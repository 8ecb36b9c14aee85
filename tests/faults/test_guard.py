"""A guard around a chain that fails, with a judge that fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import openai
import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from demur import AnswerRejected, Block, CallPolicy, Guard, RefChecker
from demur.guard import REFUSAL, UNCHECKED, Guarded
from support import facts
from support.faults import BROKEN, FAULTS, Faulty
from support.openai_server import OpenAIServer, openai_server

pytestmark = pytest.mark.slow

COUNT = 24

QUICK = [name for name in FAULTS if name != "hang" and not name.startswith("429 ")]
"""Those that do not take seconds."""

MODES = ("sync", "async")


async def call(runnable: Runnable[Any, Any], input: Any, mode: str) -> Any:
    # In one event loop: LangChain's clients do not outlive theirs.
    if mode == "sync":
        return await asyncio.to_thread(runnable.invoke, input)
    return await runnable.ainvoke(input)


def make_chain(server: OpenAIServer) -> Runnable[Any, str]:
    prompt = ChatPromptTemplate.from_template("From a list answer: {question}")
    return prompt | server.model() | StrOutputParser()


def make_guard(chain: Runnable[Any, str], server: OpenAIServer, **options: Any) -> Guard[Any, str]:
    policy = CallPolicy(attempts=2, first_delay=0.01)
    checker = RefChecker(server.model(), checker="joint", call_policy=policy)
    return Guard(chain, checker, contexts=lambda _: ["A list of items"], **options)


def as_data(text: str) -> dict[str, Any]:
    return {"answer": text, "also": [text]}


FORMS: dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]] = {
    "text": (str, str),
    "data": (as_data, lambda refusal: {"answer": refusal, "also": []}),
}
"""How an answer leaves, and how a refusal does."""


def asked(number: int) -> dict[str, str]:
    return {"question": facts.question(number)}


@pytest.mark.parametrize(
    ("fault", "mode"), [(one, MODES[at % 2]) for at, one in enumerate(QUICK) if one in BROKEN]
)
async def test_the_chain_s_errors_are_its_caller_s(mode: str, fault: str) -> None:
    with openai_server(Faulty(facts.serve, [fault], stage="chain")) as server:
        chain = make_chain(server)
        errors = []
        for runnable in (chain, make_guard(chain, server)):
            with pytest.raises(Exception) as caught:  # noqa: PT011  # as the chain has it
                await call(runnable, asked(2), mode)
            errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
    assert len(server.requests) == 2, "it is tried once, as by the chain alone"


async def test_so_are_those_of_another_attempt() -> None:
    served = iter(["a good reply"])

    def script(request: dict[str, Any], number: int) -> Any:
        answer = facts.serve(request, number)
        is_chain = "From a list answer" in str(request["messages"])
        return FAULTS["500"](answer) if is_chain and next(served, None) is None else answer

    with openai_server(script) as server, pytest.raises(openai.InternalServerError):
        await make_guard(make_chain(server), server).ainvoke(asked(3))


@pytest.mark.parametrize(("fault", "mode"), [(one, MODES[at % 2]) for at, one in enumerate(QUICK)])
async def test_an_answer_that_cannot_be_judged_does_not_pass(mode: str, fault: str) -> None:
    with openai_server(Faulty(facts.serve, [fault], stage="joint")) as server:
        chain = make_chain(server)
        found = await call(make_guard(chain, server).with_trace(), asked(2), mode)
        with pytest.raises(AnswerRejected) as rejected:
            await call(make_guard(chain, server, on_fail=Block()), asked(2), mode)
        assert found.trace.usage.calls + rejected.value.trace.usage.calls == len(server.requests)
    assert found.output == UNCHECKED
    for trace in (found.trace, rejected.value.trace):
        assert trace.outcome == "evaluator_failed"
        assert "could not decide about attempt 1" in trace.reason
        assert [attempt.verdict for attempt in trace.attempts] == ["undetermined"]


def run_all(guard: Runnable[Any, Any], mode: str) -> list[Any]:
    inputs: Any = [asked(number) for number in range(COUNT)]
    config: Any = {"max_concurrency": COUNT}
    if mode == "sync":
        return guard.batch(inputs, config, return_exceptions=True)
    return asyncio.run(guard.abatch(inputs, config, return_exceptions=True))


@pytest.mark.parametrize(("form", "mode"), [("text", "async"), ("data", "sync")])
def test_nothing_unchecked_leaves_and_no_call_is_lost(form: str, mode: str) -> None:
    made, refused = FORMS[form]
    script = Faulty(facts.serve, QUICK, share=0.3)
    with openai_server(facts.serve) as chains, openai_server(script) as judges:
        chain = make_chain(chains) | RunnableLambda(made)
        guard = make_guard(chain, judges, conversation=form != "text")
        found: list[Guarded[str]] = run_all(guard.with_trace(), mode)
        requests = len(chains.requests) + len(judges.requests)
    assert sum(one.trace.usage.calls for one in found) == requests
    outcomes = Counter((number % 2, one.trace.outcome) for number, one in enumerate(found))
    # What is so, passes. What is not, is asked for once more, and is the same again.
    assert {one for _, one in outcomes} == {"passed", "abstained", "evaluator_failed"}
    assert not outcomes[1, "passed"] + outcomes[0, "abstained"]
    for number, one in enumerate(found):
        left = {
            "passed": made(facts.answer(number)),
            "abstained": refused(REFUSAL),
            "evaluator_failed": refused(UNCHECKED),
        }
        assert one.output == left[one.trace.outcome]


def test_a_chain_that_fails_too_ends_in_its_own_error() -> None:
    faults = [name for name in QUICK if name in BROKEN]
    chain_script = Faulty(facts.serve, faults, share=0.2)
    judge_script = Faulty(facts.serve, QUICK, share=0.2)
    with openai_server(chain_script) as chains, openai_server(judge_script) as judges:
        found = run_all(make_guard(make_chain(chains), judges), "async")
    raised = [one for one in found if isinstance(one, Exception)]
    assert len(raised) == chain_script.met.total()
    for number, one in enumerate(found):
        allowed = (UNCHECKED, facts.answer(number) if number % 2 == 0 else REFUSAL)
        assert isinstance(one, Exception) or one in allowed
