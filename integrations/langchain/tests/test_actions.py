"""Test that what an agent says that it did is held against its calls of tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, ConfigDict

from agent_server import LETTERS, THREAD, Calls, checker, make_agent, record_of, serving
from demur import Cite, Evaluation, RefChecker, Sample, ScoreCallbackHandler
from demur.guard import REFUSAL, Budget
from demur.shapes import status_of_call
from langchain_demur import HallucinationMiddleware, guarded_node
from support.openai_server import OpenAIServer, openai_server
from support.rag import FACTS, QUESTION, RIGHT, application, make_retriever

pytest.importorskip("demur_judge")

ASKED: Any = {"messages": [HumanMessage("Please send the report to dana@acme.example.")]}
TWICE: Any = {"messages": [HumanMessage("Did you send it? If so, please send it again.")]}
MODES: Any = ["values", "updates", "messages", "debug", "tasks", "checkpoints"]
FALSE = "I have sent the report to Dana ЖЩЮ."
"""A report with letters that nothing else in these tests has."""
TRUE = "I have sent the report to dana@acme.example."
FULL = "552 mailbox is full"
FAILED = "I tried to send the report to dana@acme.example, but it failed."
WAITS = "The report is queued and has not been sent yet."
NOTHING = "I have not sent anything."
OK = '{"ok": true}'
SEND = "send_email(to=dana@acme.example, subject=Report)"
MAIL = Calls((("send_email", {"to": "dana@acme.example", "subject": "Report"}),))


def mailer(returned: str, *, raises: bool = False) -> BaseTool:
    """Return a tool that sends no mail, and says what a real one may say."""

    @tool
    def send_email(to: str, subject: str, api_key: str = "") -> str:
        """Send a mail."""
        if raises:
            raise ToolException(returned)
        return returned

    send_email.handle_tool_error = True
    return send_email


JUDGE = RefChecker("small")


class Knowing(RunnableLambda[Any, Any]):
    """Represent a judge that knows an agent's calls."""

    reads_calls = True


CASES: Any = {
    "failed": ([MAIL], mailer(FULL, raises=True), FAILED, ["the call failed", SEND, FULL]),
    "error as a result": (
        *([MAIL], mailer(json.dumps({"error": FULL})), FAILED),
        ["the call failed", SEND, FULL],
    ),
    "pending": (
        *([MAIL], mailer('{"status": "queued"}'), WAITS),
        ["the call has not finished", SEND, "queued"],
    ),
    "never": ([], mailer(OK), NOTHING, ["no such call was made", "called no tool"]),
}
"""The agent's steps, its tool, an honest answer, and what the model is told, by what was done."""
false_reports = pytest.mark.parametrize("done", CASES)


def said(found: Any) -> str:
    return str(found["messages"][-1].text)


def run(agent: Any, way: str, given: Any = ASKED) -> tuple[str, str]:
    """Run an agent; return its answer, and all that a client heard."""

    async def asynchronously() -> Any:
        if way == "ainvoke":
            return [("values", await agent.ainvoke(given, THREAD))]
        return [chunk async for chunk in agent.astream(given, THREAD, stream_mode=MODES)]

    if way == "invoke":
        heard = [("values", agent.invoke(given, THREAD))]
    elif way == "stream":
        heard = list(agent.stream(given, THREAD, stream_mode=MODES))
    else:
        heard = asyncio.run(asynchronously())
    return said([state for mode, state in heard if mode == "values"][-1]), repr(heard)


ways = pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])


def calling(server: OpenAIServer, *tools: BaseTool) -> Callable[[Any], Any]:
    model = server.model().bind_tools(tools)

    def call(state: Any) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    return call


def graph_of(node: Any, *tools: BaseTool, **options: Any) -> Any:
    """Return a graph whose node is guarded, with a node of its own for tools if there are any."""
    graph = StateGraph(MessagesState)
    graph.add_node("answer", guarded_node(node, JUDGE, **options))
    graph.set_entry_point("answer")
    if tools:
        graph.add_node("tools", ToolNode([*tools], handle_tool_errors=True))
        graph.add_edge("tools", "answer")
        graph.add_conditional_edges("answer", tools_condition, {"tools": "tools", END: END})
    return graph.compile(checkpointer=InMemorySaver())


def guarded_agent(server: OpenAIServer, mail: BaseTool) -> Any:
    checks = HallucinationMiddleware(JUDGE)
    return make_agent(server, [mail], checks, checkpointer=InMemorySaver())


AROUND: dict[str, Callable[[OpenAIServer, BaseTool], Any]] = {
    "an agent": guarded_agent,
    "a node that calls tools": lambda server, mail: graph_of(calling(server, mail), mail),
    "an agent as a node": lambda server, mail: graph_of(make_agent(server, [mail])),
}
TOLD = [("an agent", "never"), *product(AROUND, [*CASES][:-1])]
"""A node may act without a call, so only an agent's middleware knows that there was none."""


class TestAFalseReport:
    @ways
    @pytest.mark.parametrize(("around", "done"), TOLD)
    def test_is_told_to_the_model_and_reaches_no_client(
        self, way: str, around: str, done: str
    ) -> None:
        steps, mail, honest, told = CASES[done]
        with openai_server(serving(*steps, FALSE, honest)) as server:
            graph = AROUND[around](server, mail)
            answer, heard = run(graph, way)
            kept = repr(graph.get_state(THREAD))
            asked = server.prompts()[-1]
        assert answer == honest
        assert not LETTERS & set(heard + kept)
        assert [words for words in (FALSE.rstrip("."), *told) if words not in asked] == []

    @false_reports
    def test_is_refused_if_the_model_insists(self, done: str) -> None:
        steps, mail, _, _ = CASES[done]
        with openai_server(serving(*steps, FALSE)) as server:
            checks = HallucinationMiddleware(JUDGE, budget=Budget(attempts=2))
            found = make_agent(server, [mail], checks).invoke(ASKED)
        assert said(found) == REFUSAL
        assert found["messages"][-1].response_metadata["demur"]["outcome"] == "abstained"

    @pytest.mark.parametrize(
        "told", ["I've sent it.", "I have e-mailed the report to Dana.", "We have re-sent it."]
    )
    def test_is_no_question_of_sources(self, told: str) -> None:
        with openai_server(serving(told)) as server:
            checks = HallucinationMiddleware(JUDGE, on_error="open", on_fail="abstain")
            assert said(make_agent(server, [mailer(OK)], checks).invoke(ASKED)) == REFUSAL


class TestATrueReport:
    @pytest.mark.parametrize("result", [OK, "sent", '{"status": "sent", "error": null}'])
    def test_passes_whatever_the_tool_returned(self, result: str) -> None:
        with openai_server(serving(MAIL, TRUE)) as server:
            agent = make_agent(server, [mailer(result)], HallucinationMiddleware(JUDGE))
            found = agent.invoke(ASKED)
        with openai_server(serving(MAIL, TRUE)) as server:
            graph = graph_of(make_agent(server, [mailer(result)]))
            assert said(graph.invoke(ASKED, THREAD)) == TRUE
        assert said(found) == TRUE
        assert "demur" not in found["messages"][-1].response_metadata

    def test_of_a_failure_passes(self) -> None:
        for told in (FAILED, f"The report could not be sent, because the {FULL[4:]}."):
            with openai_server(serving(MAIL, told)) as server:
                mail = mailer(FULL, raises=True)
                found = make_agent(server, [mail], HallucinationMiddleware(JUDGE)).invoke(ASKED)
            assert said(found) == told

    def test_that_the_judge_does_not_believe_is_not_called_an_action_without_a_call(self) -> None:
        with openai_server(serving(MAIL, NOTHING)) as server:
            checks = HallucinationMiddleware(JUDGE)
            found = make_agent(server, [mailer(FULL, raises=True)], checks).invoke(ASKED)
            asked = server.prompts()[-1]
        assert said(found) == REFUSAL
        assert NOTHING[:-1] in asked
        assert "no such call" not in asked

    def test_cites_the_tool_and_its_call(self) -> None:
        with openai_server(serving(MAIL, TRUE)) as server:
            checks = HallucinationMiddleware(JUDGE, on_pass=Cite())
            found = make_agent(server, [mailer(OK)], checks).invoke(ASKED)
        (citation,) = found["messages"][-1].response_metadata["demur"]["citations"]
        (call,) = found["messages"][1].tool_calls
        assert said(found) == f"{TRUE[:-1]} [{citation['number']}]."
        assert citation["title"] == citation["metadata"]["tool"] == "send_email"
        assert citation["metadata"]["tool_call_id"] == call["id"]
        assert SEND in citation["quote"]


class TestWhatIsEvidence:
    def test_the_calls_stand_beside_the_contexts_that_the_caller_names(self) -> None:
        with openai_server(serving(MAIL, FALSE, FAILED)) as server:
            checks = HallucinationMiddleware(JUDGE, contexts=lambda state: [FACTS[0]])
            agent = make_agent(server, [mailer(FULL, raises=True)], checks)
            assert said(agent.invoke(ASKED)) == FAILED
        with openai_server(serving(RIGHT)) as server:
            assert said(make_agent(server, [], checks).invoke(ASKED)) == RIGHT

    @pytest.mark.parametrize("name", ["search", "save_note"])
    def test_what_a_model_wrote_into_a_call_supports_no_fact(self, name: str) -> None:
        @tool(name)
        def nothing(query: str) -> str:
            """Return nothing of use."""
            return OK

        with openai_server(serving(Calls(((name, {"query": RIGHT}),)), RIGHT)) as server:
            agent = make_agent(server, [nothing], HallucinationMiddleware(JUDGE))
            assert said(agent.invoke({"messages": [HumanMessage(QUESTION)]})) == REFUSAL

    def test_retrievers_are_found_where_no_tool_was_called(self) -> None:
        retriever = make_retriever()

        class Augment(AgentMiddleware[Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                retriever.invoke(QUESTION)
                return handler(request)

        with openai_server(serving(RIGHT)) as server:
            agent = make_agent(server, [], HallucinationMiddleware(JUDGE), Augment())
            assert said(agent.invoke({"messages": [HumanMessage(QUESTION)]})) == RIGHT

    def test_an_evaluator_that_does_not_know_calls_is_given_none(self) -> None:
        seen: list[Sample] = []

        def judge(sample: Sample) -> Evaluation:
            seen.append(sample)
            return Evaluation(name="judge", passed=True)

        with openai_server(serving(MAIL, TRUE)) as server:
            checks = HallucinationMiddleware(judge, JUDGE)
            make_agent(server, [mailer("sent")], checks).invoke(ASKED)
        assert [[one.page_content for one in sample.contexts] for sample in seen] == [["sent"]]

    def test_what_a_graph_did_without_calls_is_judged_by_its_documents(self) -> None:
        def send(state: Any) -> Any:
            return {"messages": [AIMessage(TRUE)]}

        without = graph_of(send).invoke(ASKED, THREAD)["messages"][-1]
        assert without.response_metadata["demur"]["outcome"] == "evaluator_failed"
        log = Document("The assistant has sent the report to dana@acme.example.")
        logged = graph_of(send, contexts=lambda state: [log]).invoke(ASKED, THREAD)
        assert said(logged) == TRUE


class TestSeveralTurns:
    @pytest.mark.parametrize("how", ["an agent", "a node"])
    def test_what_was_done_before_stays_done_and_is_not_done_again(self, how: str) -> None:
        again = "I have sent the report to dana@acme.example again."
        with openai_server(serving(MAIL, TRUE, again, TRUE)) as server:
            if how == "an agent":
                checks = HallucinationMiddleware(JUDGE)
                saver = InMemorySaver()
                agent = make_agent(server, [mailer(OK)], checks, checkpointer=saver)
            else:
                agent = graph_of(calling(server, mailer(OK)), mailer(OK))
            assert said(agent.invoke(ASKED, THREAD)) == TRUE
            found = agent.invoke(TWICE, THREAD)
            asked = server.prompts()[-1]
        assert said(found) == TRUE
        assert "no such call was made" in asked
        assert "again" not in repr(found["messages"][-1])

    def test_a_call_that_nobody_answered_is_not_finished(self) -> None:
        call = {"name": "send_email", "args": {"to": "dana@acme.example"}, "id": "c"}
        begun = [*ASKED["messages"], AIMessage("", tool_calls=[call]), HumanMessage("And?")]
        with openai_server(serving(FALSE, WAITS)) as server:
            agent = make_agent(server, [mailer(OK)], HallucinationMiddleware(JUDGE))
            agent.invoke({"messages": begun})
            assert "the call has not finished" in server.prompts()[-1]


class Told(BaseModel):
    """What is told to the user."""

    model_config = ConfigDict(extra="forbid")
    text: str


class TestAStructuredResponse:
    @staticmethod
    def reply(text: str, **more: str) -> Calls:
        return Calls((("Told", {"text": text, **more}),))

    def test_is_held_against_the_calls(self) -> None:
        replies = [MAIL, self.reply(FALSE), self.reply(FAILED)]
        with openai_server(serving(*replies)) as server:
            checks = HallucinationMiddleware(JUDGE)
            mail = mailer(FULL, raises=True)
            agent = make_agent(server, [mail], checks, response_format=ToolStrategy(Told))
            found = agent.invoke(ASKED)
        assert found["structured_response"] == Told(text=FAILED)
        assert not LETTERS & set(repr(found))

    @pytest.mark.parametrize("form", [ToolStrategy(Told), Told])
    def test_is_no_call_itself(self, form: Any) -> None:
        """Have one corrected, and another one given in the next turn."""
        seen: list[Sample] = []

        def judge(sample: Sample) -> Evaluation:
            seen.append(sample)
            return JUDGE.invoke(sample)

        replies = [MAIL, self.reply(TRUE, note=""), self.reply(TRUE)]
        with openai_server(serving(*replies)) as server:
            checks = HallucinationMiddleware(Knowing(judge))
            options = {"response_format": form, "checkpointer": InMemorySaver()}
            agent = make_agent(server, [mailer(OK)], checks, **options)
            for _ in range(2):
                found = agent.invoke(ASKED, THREAD)
                assert found["structured_response"] == Told(text=TRUE)
        contexts = [document for sample in seen for document in sample.contexts]
        assert {document.metadata["tool"] for document in contexts} == {"send_email"}
        assert [one for one in map(status_of_call, contexts) if one] == ["done"] * len(seen)
        assert len(seen) == 3


class TestRecords:
    @pytest.mark.parametrize("done", [*CASES][:-1])
    def test_of_a_handler_have_the_calls_and_a_verdict_by_them(self, done: str) -> None:
        steps, mail, honest, _ = CASES[done]
        for answer, verdict in ((FALSE, "failed"), (honest, "passed")):
            with openai_server(serving(*steps, answer)) as server:
                record = record_of("invoke", make_agent(server, [mail]), ASKED, JUDGE)
            calls = [one.page_content for one in record.contexts if status_of_call(one)]
            assert (record.answer, record.verdict) == (answer, verdict)
            assert [SEND in call for call in calls] == [True]

    def test_of_the_middleware_say_what_came_of_the_call(self) -> None:
        steps, mail, honest, _ = CASES["failed"]
        with openai_server(serving(*steps, FALSE, honest)) as server:
            agent = make_agent(server, [mail], HallucinationMiddleware(JUDGE))
            record = record_of("invoke", agent, ASKED)
        first, second = record.attempts
        assert (first.verdict, second.verdict) == ("failed", "passed")
        assert [claim.action for claim in first.evaluations[0].claims] == ["failed"]
        assert [claim.reason for claim in first.evaluations[0].claims] == ["the call failed"]

    def test_of_an_agent_without_calls_do_not_say_that_it_did_nothing(self) -> None:
        with openai_server(serving(TRUE)) as server:
            record = record_of("invoke", make_agent(server, []), ASKED, JUDGE)
        assert (record.verdict, record.contexts) == ("undetermined", ())


@pytest.mark.parametrize("guarded", [True, False])
def test_secrets_in_arguments_reach_neither_judges_nor_logs(guarded: bool, tmp_path: Path) -> None:
    secret, log = "swordfish-4711", tmp_path / "log.jsonl"
    (call,) = MAIL.calls
    mail = Calls(((call[0], {**call[1], "api_key": secret}),))
    with openai_server(application("")) as judge, openai_server(serving(mail, TRUE)) as server:
        evaluator = checker(judge)
        checks = [HallucinationMiddleware(evaluator)] if guarded else []
        agent = make_agent(server, [mailer("Message 84 was sent.")], *checks)
        handler = ScoreCallbackHandler(*[] if guarded else [evaluator], sink=str(log))
        found = agent.invoke(ASKED, {"callbacks": [handler]})
        assert handler.close(60)
        asked = "".join(judge.prompts())
    assert found["messages"][1].tool_calls[0]["args"]["api_key"] == secret
    written = log.read_text("utf-8")
    for text in (asked, written):
        assert "subject=Report, api_key=[secret]" in text
        assert secret not in text
