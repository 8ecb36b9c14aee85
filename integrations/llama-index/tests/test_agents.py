"""Test agents of LlamaIndex whose answers, and reports of what they did, are checked."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.agent.workflow import (
    AgentOutput,
    AgentStream,
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from pydantic import BaseModel
from workflows.errors import WorkflowTimeoutError

from demur import ActionOutcome, Annotate, DemurError, Evaluation, RefChecker, Regenerate, Retrieve
from demur.guard import REFUSAL, AnswerRejected, Block
from demur.observe import Record
from fake_agents import Called, Make, Reply, asked, calling, function_agent, react_agent, run
from fake_llm import ScriptedLLM
from llama_index.evaluation.demur import (
    GuardedAgent,
    RefCheckerEvaluator,
    ScoreEventHandler,
    trace_of,
)

QUESTION = "Where is the Louvre? Then write to Ann about it."
FOUND = "The Louvre, in Paris, opened as a museum in 1793."
RIGHT = "The Louvre is in Paris."
WRONG = "The Louvre is in Rome."
REPORT = "I sent an email to Ann."
LOOK: Called = ("search", {"query": "Louvre"})
SEND: Called = ("send_email", {"to": "ann@shop.example", "body": "It is in Paris."})


class Desk:
    """Keep what ran of a desk's tools."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> list[Any]:
        def search(query: str) -> str:
            """Search the guide."""
            self.ran.append("search")
            return FOUND

        def send_email(to: str, body: str) -> str:
            """Send an email."""
            self.ran.append("send_email")
            return "Email sent."

        return [search, send_email]


def guarded_function(tools: list[Any], *replies: Reply, **options: Any) -> Any:
    agent = function_agent(tools, *replies)
    return GuardedAgent(agent, RefCheckerEvaluator("small"), **options)


def guarded_react(tools: list[Any], *replies: Reply, **options: Any) -> Any:
    return GuardedAgent(react_agent(tools, *replies), RefCheckerEvaluator("small"), **options)


def guarded_workflow(tools: list[Any], *replies: Reply, **options: Any) -> Any:
    return AgentWorkflow(agents=[guarded_function(tools, *replies, **options)])


GUARDED: Any = {
    "FunctionAgent": guarded_function,
    "ReActAgent": guarded_react,
    "workflow": guarded_workflow,
}
guarded = pytest.mark.parametrize("make", GUARDED.values(), ids=GUARDED)
three = pytest.mark.parametrize(
    "make",
    [
        function_agent,
        react_agent,
        lambda tools, *replies: AgentWorkflow(agents=[function_agent(tools, *replies)]),
    ],
    ids=GUARDED,
)


def told(agent: Any, *questions: str) -> tuple[list[AgentOutput], list[str], str]:
    """Ask an agent; return its outputs, the events as text, and its memory as text."""

    async def asking() -> tuple[list[AgentOutput], list[str], str]:
        outputs, events, memory = await asked(agent, *questions)
        kept = await memory.aget_all()
        return outputs, [f"{one!r} {one.model_dump()}" for one in events], repr(kept)

    return asyncio.run(asking())


@guarded
def test_a_wrong_answer_is_given_again_and_stands_nowhere(make: Make) -> None:
    desk = Desk()
    (output,), events, memory = told(make(desk.tools(), (LOOK,), WRONG, RIGHT), QUESTION)
    assert str(output) == RIGHT
    assert (output.demur["outcome"], output.demur["attempts"]) == ("recovered", 2)
    assert [one.answer for one in trace_of(output).attempts] == [WRONG, RIGHT]
    assert desk.ran == ["search"]
    assert "Rome" not in " ".join(events)
    assert "Rome" not in memory
    assert RIGHT in memory


@guarded
def test_the_model_is_told_what_was_wrong(make: Make) -> None:
    notes: list[str] = []

    def tell(note: str, feedback: Any) -> str:
        notes.append(feedback.text)
        return f"Wrong: {feedback.prompt}"

    run(make(Desk().tools(), (LOOK,), WRONG, RIGHT, on_fail=Regenerate(tell)), QUESTION)
    (note,) = notes
    assert WRONG.removesuffix(".") in note
    assert FOUND in note


@guarded
def test_a_refusal_takes_the_place_of_an_answer_that_never_holds(make: Make) -> None:
    agent = make(Desk().tools(), (LOOK,), WRONG, WRONG, WRONG)
    (output,), events, memory = told(agent, QUESTION)
    assert str(output) == REFUSAL
    assert output.raw is None
    assert "Rome" not in " ".join(events)
    assert "Rome" not in memory
    assert REFUSAL in memory


@guarded
def test_a_report_holds_only_if_the_call_was_made(make: Make) -> None:
    (output,), _, _ = told(make(Desk().tools(), (LOOK,), REPORT, REPORT, REPORT), QUESTION)
    assert str(output) == REFUSAL
    (claim,) = trace_of(output).attempts[0].evaluations[0].claims
    assert claim.action in (ActionOutcome.OTHERWISE, ActionOutcome.NEVER)
    (output,), _, _ = told(make(Desk().tools(), (LOOK,), (SEND,), REPORT), QUESTION)
    assert str(output) == REPORT
    (claim,) = trace_of(output).attempts[0].evaluations[0].claims
    assert claim.action is ActionOutcome.DONE


@guarded
def test_what_a_retriever_finds_for_a_failed_claim_supports_the_next_answer(make: Make) -> None:
    known = "The Prado, in Madrid, opened as a museum in 1819."
    prado = "The Prado is in Madrid."
    search = Retrieve(RunnableLambda(lambda query: [Document(known)]))
    (output,), _, _ = told(make(Desk().tools(), (LOOK,), prado, prado, on_fail=search), "?")
    assert str(output) == prado
    assert output.demur["attempts"] == 2
    assert [one["text"] for one in output.demur["evidence"]] == [known]


@guarded
def test_what_the_user_stated_supports_an_answer_if_the_conversation_counts(make: Make) -> None:
    said = "My dog is called Bruno."
    answer = "Your dog is called Bruno."
    for counts in (False, True):
        agent = make(Desk().tools(), answer, answer, answer, conversation=counts)
        (output,), _, _ = told(agent, said)
        assert (str(output) == answer) is counts


@guarded
def test_the_model_may_call_a_tool_instead_of_answering_again(make: Make) -> None:
    desk = Desk()
    (output,), _, _ = told(make(desk.tools(), (LOOK,), REPORT, (SEND,), REPORT), QUESTION)
    assert str(output) == REPORT
    assert desk.ran == ["search", "send_email"]


@guarded
def test_what_nothing_supports_does_not_leave(make: Make) -> None:
    (output,), events, memory = told(make(Desk().tools(), RIGHT, RIGHT, RIGHT), QUESTION)
    assert output.demur["outcome"] == "evaluator_failed"
    assert "Paris" not in " ".join(events) + memory


@guarded
def test_an_answer_is_judged_by_the_results_of_earlier_turns_if_there_are_no_others(
    make: Make,
) -> None:
    agent = make(Desk().tools(), (LOOK,), RIGHT, "It is in Rome.", RIGHT)
    outputs, _, memory = told(agent, QUESTION, "Where was it again?")
    assert str(outputs[0]) == RIGHT
    if make is guarded_react:  # its memory has no results
        assert outputs[1].demur["outcome"] == "evaluator_failed"
    else:
        assert str(outputs[1]) == RIGHT
    assert "Rome" not in memory


def test_text_beside_calls_is_left_out() -> None:
    call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs=LOOK[1])
    coming: list[Any] = [[TextBlock(text="It is in Rome, I think."), call], RIGHT]
    llm = calling()

    def reply(messages: Sequence[ChatMessage], **options: Any) -> ChatMessage:
        said = coming.pop(0)
        return ChatMessage(said, role="assistant")

    llm.response_generator = reply
    agent = FunctionAgent(tools=Desk().tools(), llm=llm)
    (output,), events, _ = told(GuardedAgent(agent, RefChecker("small")), QUESTION)
    assert str(output) == RIGHT
    assert "Rome" not in " ".join(events)


@guarded
def test_the_answer_is_streamed_whole_once_it_was_checked(make: Make) -> None:
    _, events = run(make(Desk().tools(), (LOOK,), WRONG, RIGHT), QUESTION)
    said = [one.delta for one in events if isinstance(one, AgentStream) and one.delta]
    assert "".join(said).removeprefix("Answer: ") == RIGHT


def test_an_agent_that_takes_over_is_judged_by_the_calls_of_both() -> None:
    desk = Desk()
    handoff: Called = ("handoff", {"to_agent": "second", "reason": "It writes."})
    first = GuardedAgent(
        FunctionAgent(
            name="first",
            description="Writes.",
            tools=desk.tools(),
            llm=calling((SEND,), (handoff,)),
            can_handoff_to=["second"],
        ),
        RefChecker("small"),
    )
    second = GuardedAgent(
        FunctionAgent(name="second", description="Reports.", tools=[], llm=calling(REPORT)),
        RefChecker("small"),
    )
    workflow = AgentWorkflow(agents=[first, second], root_agent="first")
    outputs, _ = run(workflow, QUESTION)
    assert [*map(str, outputs)] == [REPORT]


@guarded
def test_a_blocked_answer_is_not_shown_in_the_next_turn_either(make: Make) -> None:
    agent = make(Desk().tools(), (LOOK,), WRONG, (LOOK,), RIGHT, on_fail=Block())

    async def asking() -> str:
        ctx: Any = Context(agent)
        memory = ChatMemoryBuffer.from_defaults()
        with pytest.raises(AnswerRejected):
            await agent.run(QUESTION, ctx=ctx, memory=memory)
        handler = agent.run(QUESTION, ctx=ctx, memory=memory)
        shown = [repr(event) async for event in handler.stream_events()]
        return f"{await handler} {shown} {await memory.aget_all()}"

    told = asyncio.run(asking())
    assert told.startswith(RIGHT)
    assert "Rome" not in told


def test_replies_that_cannot_be_read_are_asked_for_again_out_of_sight() -> None:
    coming = [
        "Thought: It is in Rome.",
        "Thought: So.\nIt is in Rome.",
        f"Thought: So.\nAnswer: {RIGHT}",
    ]
    look = f"Thought: I look.\nAction: search\nAction Input: {json.dumps(LOOK[1])}"

    def asked(replies: list[str]) -> tuple[list[AgentOutput], list[str], str]:
        llm = ScriptedLLM(script=lambda *_: replies.pop(0))
        agent = ReActAgent(tools=Desk().tools(), llm=llm)
        return told(GuardedAgent(agent, RefCheckerEvaluator("small")), QUESTION)

    (output,), events, memory = asked([look, *coming])
    assert str(output) == RIGHT
    assert trace_of(output).attempts[0].question == QUESTION
    assert "Rome" not in " ".join(events) + memory
    with pytest.raises(DemurError, match="none of 3 replies"):
        asked([look, *coming[:1] * 3])


def test_a_handler_records_what_a_guarded_agent_found() -> None:
    records: list[Record] = []
    handler = ScoreEventHandler(sink=records.append)
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        agent = guarded_function(Desk().tools(), (LOOK,), WRONG, on_fail=Annotate(note=""))
        outputs, _ = run(agent, QUESTION)
        assert handler.close(30)
    finally:
        dispatcher.event_handlers.remove(handler)
    (record,) = records
    assert [*map(str, outputs)] == [WRONG]
    assert (record.outcome, record.verdict) == ("best_effort", "failed")
    assert record.attempts[0].answer == WRONG


def test_what_the_models_cost_is_counted() -> None:
    def judge(sample: Any) -> Evaluation:
        return Evaluation(name="judge", passed=sample.answer == RIGHT, score=0.0)

    agent = ReActAgent(
        tools=Desk().tools(), llm=ScriptedLLM(script=lambda *_: f"Thought: So.\nAnswer: {RIGHT}")
    )
    (output,), _ = run(GuardedAgent(agent, judge), QUESTION)
    assert trace_of(output).attempts[0].usage.calls == 1


class Form(BaseModel):
    """A structured answer."""

    city: str


def test_agents_whose_answers_would_leave_unchecked_are_refused() -> None:
    llm = calling(RIGHT)
    with pytest.raises(TypeError, match="expected a FunctionAgent or a ReActAgent"):
        GuardedAgent(AgentWorkflow(agents=[FunctionAgent(llm=llm)]), RefChecker("small"))  # type: ignore[arg-type]
    code = CodeActAgent(code_execute_fn=lambda code: "", llm=llm, tools=[])
    with pytest.raises(TypeError, match="CodeActAgent"):
        GuardedAgent(code, RefChecker("small"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="output_cls"):
        GuardedAgent(FunctionAgent(llm=llm, output_cls=Form), RefChecker("small"))
    plain = GuardedAgent(FunctionAgent(llm=llm), RefChecker("small"))
    ends: Any = {"early_stopping_method": "generate"}
    for agent in (
        GuardedAgent(FunctionAgent(llm=llm, **ends), RefChecker("small")),
        AgentWorkflow(agents=[plain], **ends),
    ):
        with pytest.raises(DemurError, match="early_stopping_method"):
            run(agent, QUESTION)


def test_the_time_limit_of_an_agent_holds_for_the_guarded_one() -> None:
    def search(query: str) -> str:
        """Search the guide."""
        time.sleep(0.2)
        return FOUND

    agent = FunctionAgent(tools=[search], llm=calling((LOOK,), RIGHT), timeout=0.001)
    with pytest.raises(WorkflowTimeoutError):
        run(GuardedAgent(agent, RefChecker("small")), QUESTION)


# --- Evaluators ----------------------------------------------------------------------------------


@three
def test_the_evaluator_holds_a_run_against_its_results_and_calls(make: Make) -> None:
    evaluator = RefCheckerEvaluator("small")
    (output,), _ = run(make(Desk().tools(), (LOOK,), (SEND,), f"{RIGHT} {REPORT}"), QUESTION)
    result = evaluator.evaluate_response(QUESTION, output)
    assert result.passing
    assert [claim.action for claim in result.evaluation.claims] == [None, ActionOutcome.DONE]
    (output,), _ = run(make(Desk().tools(), (LOOK,), f"{RIGHT} {REPORT}"), QUESTION)
    result = asyncio.run(evaluator.aevaluate_response(QUESTION, output))
    assert result.passing is False
    first, second = result.evaluation.claims
    assert first.action is None
    assert second.action is not ActionOutcome.DONE


@three
def test_the_evaluator_says_that_nothing_was_done(make: Make) -> None:
    (output,), _ = run(make(Desk().tools(), REPORT), QUESTION)
    result = RefCheckerEvaluator("small").evaluate_response(QUESTION, output)
    assert result.passing is False
    assert [claim.action for claim in result.evaluation.claims] == [ActionOutcome.NEVER]


def test_a_run_that_ends_with_a_tool_has_nothing_to_be_judged_by() -> None:
    def search(query: str) -> str:
        """Search the guide."""
        return FOUND

    direct = FunctionTool.from_defaults(search, return_direct=True)
    (output,), _ = run(FunctionAgent(tools=[direct], llm=calling((LOOK,))), QUESTION)
    result = RefCheckerEvaluator("small").evaluate_response(QUESTION, output)
    assert result.invalid_result
    assert result.evaluation.cause == "no contexts"
