"""Test what LangSmith's own client sends of an agent with the middleware."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain.agents import middleware
from langsmith import Client, tracing_context
from urllib3 import Retry

from agent_server import ASKED, checker, make_agent, search, serving, small_search
from demur import AnswerRejected
from demur.guard import Block
from langchain_demur import HallucinationMiddleware
from support.openai_server import openai_server
from support.rag import FACTS, QUESTION, RIGHT, WRONG
from support.trace_servers import KEY, LangSmith, Reply, _parts
from support.trace_servers import serving as tracing

if not hasattr(middleware, "TracePolicy"):
    pytest.skip("trace policies came with langchain 1.5", allow_module_level=True)

TEXTS = (QUESTION, FACTS[0], "84 metres", RIGHT, WRONG)


@dataclass
class Runs(LangSmith):
    """Keep all that the client sends of each run, too."""

    sent: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each run's id, the parts that were sent, such as "inputs"; later ones replace earlier."""

    def reply(self, method: str, path: str, query: dict[str, str], body: bytes, kind: str) -> Reply:
        if path == "/runs/multipart":
            for name, part in _parts(kind, body):
                _, run, *rest = name.split(".")
                self.sent.setdefault(run, {})["".join(rest) or "run"] = part.decode()
        return super().reply(method, path, query, body, kind)

    def named(self, name: str) -> list[dict[str, str]]:
        """Return what was sent of the runs with this name, in the order in which they started."""
        runs = sorted(self.runs.values(), key=lambda run: str(run["start_time"]))
        return [self.sent[run["id"]] for run in runs if run["name"].endswith(name)]


@pytest.fixture
def service() -> Iterator[Runs]:
    with tracing(Runs()) as running:
        yield running


def traced(
    service: Runs, mode: str = "invoke", policy: Any = ..., on_fail: Any = None, **options: Any
) -> None:
    """Run an agent whose model searches, is wrong, and then right, while LangSmith listens."""
    with openai_server(serving(search(), WRONG, RIGHT)) as server, ExitStack() as stack:
        client = Client(service.url, api_key=KEY, retry_config=Retry(0), **options)
        stack.callback(client.cleanup)
        stack.callback(client.flush)
        checks = HallucinationMiddleware(checker(server), on_fail=on_fail)
        if policy is not ...:
            checks.trace_policy = policy
        agent = make_agent(server, [small_search], checks)
        with tracing_context(enabled=True, client=client):
            if mode == "invoke":
                agent.invoke(ASKED)
            else:
                asyncio.run(agent.ainvoke(ASKED))


def told(sent: Any) -> set[str]:
    return {text for text in TEXTS if text in json.dumps(sent, ensure_ascii=False)}


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_the_span_of_the_middleware_holds_the_outcome_and_no_text(service: Runs, mode: str) -> None:
    traced(service, mode)
    step, answer = service.named("wrap_model_call")
    assert told([step, answer]) == set()
    assert json.loads(answer["outputs"])["outcome"] == "recovered"
    assert {*json.loads(answer["outputs"])} <= {"outcome", "reason", "rejected"}
    assert told(service.named("model")) > {QUESTION, RIGHT}  # else this would show nothing


def test_a_rejection_is_an_error_of_the_span_without_text(service: Runs) -> None:
    with pytest.raises(AnswerRejected):
        traced(service, on_fail=Block())
    _, answer = service.named("wrap_model_call")
    assert "AnswerRejected" in answer["error"]
    assert json.loads(answer["outputs"]) == {}
    assert told(answer) == set()


def test_another_policy_takes_the_place_of_demurs(service: Runs) -> None:
    traced(service, policy=middleware.TracePolicy())
    _, answer = service.named("wrap_model_call")
    assert told(answer) > {QUESTION, RIGHT}


def test_the_runs_below_hold_texts_unless_the_client_hides_them(service: Runs) -> None:
    traced(service)
    for name in ("demur:guard", "demur:answer", "RefChecker", "checking", "ChatOpenAI"):
        assert told(service.named(name)), name
    with tracing(Runs()) as hiding:
        traced(hiding, hide_inputs=True, hide_outputs=True)
        assert {*hiding.named("RefChecker")[0]} > {"run"}
        assert told(hiding.sent) == set()
