"""Test LangfuseSink with Langfuse's own client and handler, and a service that talks to them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from demur import Evaluation, Guard, Sample, ScoreCallbackHandler
from demur.observe import LangfuseSink, Record, TraceLink
from demur.observe.log import find, open_log
from support import records
from support.handlers import Records, rag, run
from support.spawned import Spawned
from support.trace_servers import KEY, SECRET, Langfuse, link, refuting, serving, telling

if sys.version_info < (3, 11):
    pytest.skip("Langfuse has no client for this version of Python", allow_module_level=True)
import langfuse
from langfuse.langchain import CallbackHandler

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def service() -> Iterator[Langfuse]:
    with serving(Langfuse()) as running:
        yield running


@pytest.fixture
def client(service: Langfuse) -> Iterator[langfuse.Langfuse]:
    made = langfuse.Langfuse(
        public_key=service.public,
        secret_key=KEY,
        base_url=service.url,
        tracer_provider=TracerProvider(),
        environment="testing",
    )
    yield made
    made.shutdown()


@pytest.fixture
def heard(service: Langfuse, client: langfuse.Langfuse) -> CallbackHandler:
    """Return Langfuse's handler."""
    return CallbackHandler(public_key=service.public)


def judged(
    client: langfuse.Langfuse, *evaluators: Any, sinks: tuple[Any, ...] = (), **options: Any
) -> tuple[ScoreCallbackHandler, Records]:
    """Return a handler that writes to Langfuse and to these sinks, and the records of its runs."""
    kept = Records()
    sink = [LangfuseSink(client, options.pop("handler", None)), kept, *sinks]
    return ScoreCallbackHandler(*(evaluators or (refuting,)), sink=sink, **options), kept


def traced(record: Record) -> Record:
    """Return a record that names a trace in Langfuse."""
    found = TraceLink(system="langfuse", trace_id="ab" * 16, span_id="cd" * 8)
    return record.model_copy(update={"traces": (found,)})


def placed(score: dict[str, Any]) -> tuple[str, str]:
    return score["traceId"], score["observationId"]


# --- Where scores land ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("first", ["theirs", "ours"])
@pytest.mark.parametrize("own", ["root", "inside an observation"])
def test_scores_land_on_the_observation_of_the_run(
    service: Langfuse,
    client: langfuse.Langfuse,
    heard: CallbackHandler,
    mode: str,
    first: str,
    own: str,
) -> None:
    handler, kept = judged(client)
    both = [heard, handler] if first == "theirs" else [handler, heard]
    chain = rag().with_config(run_name="the chain")
    if own == "root":
        run(mode, chain, "Why?", handler, callbacks=both)
    else:
        with client.start_as_current_observation(name="request"):
            run(mode, chain, "Why?", handler, callbacks=both)
    client.flush()

    assert placed(service.by_name["judge"]) == service.span("the chain")
    trace, span = service.span("the chain")
    page = f"{service.url}/project/our-project/traces/{trace}"
    assert kept.one.traces == (
        TraceLink(system="langfuse", trace_id=trace, span_id=span, address=page),
    )


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("first", ["theirs", "ours"])
@pytest.mark.parametrize("step", [RunnableLambda(str), FakeListChatModel(responses=["yes"])])
def test_a_chain_of_one_step_is_found_by_the_handler_that_the_sink_is_given(
    service: Langfuse,
    client: langfuse.Langfuse,
    heard: CallbackHandler,
    mode: str,
    first: str,
    step: Runnable[Any, Any],
) -> None:
    handler, _ = judged(client, handler=heard)
    both = [heard, handler] if first == "theirs" else [handler, heard]
    run(mode, step.with_config(run_name="the step"), "Why?", handler, callbacks=both)
    client.flush()
    assert placed(service.by_name["judge"]) == service.span("the step")


@pytest.mark.parametrize("mode", ["invoke", "stream"])
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_a_chain_of_one_step_is_found_without_it_where_nothing_is_asynchronous(
    service: Langfuse, client: langfuse.Langfuse, heard: CallbackHandler, mode: str, first: str
) -> None:
    handler, _ = judged(client)
    both = [heard, handler] if first == "theirs" else [handler, heard]
    step = RunnableLambda(str).with_config(run_name="the step")
    run(mode, step, "Why?", handler, callbacks=both)
    client.flush()
    assert placed(service.by_name["judge"]) == service.span("the step")


def test_each_of_many_runs_at_a_time_has_its_own_scores(
    service: Langfuse, client: langfuse.Langfuse, heard: CallbackHandler
) -> None:
    def telling(sample: Sample) -> Evaluation:
        return records.found("judge", explanation=f"asked {sample.question}")

    handler, _ = judged(client, telling)
    questions = [f"number {number}" for number in range(20)]
    names = [{"run_name": f"run {asked}", "callbacks": [handler, heard]} for asked in questions]
    chain = RunnableLambda(lambda asked: rag().invoke(asked))
    chain.batch(questions, names)  # type: ignore[arg-type]  # dicts are configs
    assert handler.flush(30)
    client.flush()
    for asked in questions:
        [score] = [
            one for one in service.scores.values() if one["comment"].endswith(f"asked {asked}")
        ]
        assert placed(score) == service.span(f"run {asked}")


def test_scores_of_a_guard_land_on_the_guards_observation(
    service: Langfuse, client: langfuse.Langfuse, heard: CallbackHandler
) -> None:
    handler, _ = judged(client)
    guard = Guard(rag(), refuting).with_config(run_name="the guard")
    run("invoke", RunnableLambda(str) | guard, "Why?", handler, callbacks=[handler, heard])
    client.flush()
    assert placed(service.by_name["judge"]) == service.span("the guard")


def test_without_a_handler_scores_land_on_the_observation_around_the_run(
    service: Langfuse, client: langfuse.Langfuse
) -> None:
    handler, _ = judged(client)
    with client.start_as_current_observation(name="request"):
        run("ainvoke", rag(), "Why?", handler)
    client.flush()
    assert placed(service.by_name["judge"]) == service.span("request")


def test_a_span_that_is_not_langfuses_own_is_no_place_for_scores(
    service: Langfuse, client: langfuse.Langfuse, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "demur")
    handler, kept = judged(client)
    with TracerProvider().get_tracer("other").start_as_current_span("request"):
        run("invoke", rag(), "Why?", handler)
        run("invoke", rag(), "When?", handler)
    assert (handler.counts.to_fallback, handler.counts.recorded) == (0, 2)
    assert [record.traces for record in kept.all] == [(), ()]
    assert not service.scores
    [told] = caplog.records
    assert "attach langfuse.langchain.CallbackHandler" in told.getMessage()


def test_a_trace_that_is_not_sampled_is_no_place_for_scores(service: Langfuse) -> None:
    client = langfuse.Langfuse(
        public_key=service.public,
        secret_key=KEY,
        base_url=service.url,
        tracer_provider=TracerProvider(sampler=ALWAYS_OFF),
    )
    handler, _ = judged(client)
    heard = CallbackHandler(public_key=service.public)
    run("invoke", rag(), "Why?", handler, callbacks=[handler, heard])
    client.shutdown()
    assert handler.counts.recorded == 1
    assert not service.scores


BY_NAME = """
import sys
from langchain_core.runnables import RunnableLambda
from langfuse import get_client
from langfuse.langchain import CallbackHandler
from demur import Evaluation, ScoreCallbackHandler

handler = ScoreCallbackHandler(
    lambda sample: Evaluation(name="judge", score=0.5), sink=[sys.argv[1], "langfuse"]
)
step = RunnableLambda(lambda asked: "yes", name="the step")
step.invoke("Why?", {"callbacks": [CallbackHandler(), handler]})
handler.close()
get_client().shutdown()
"""


@pytest.mark.slow
def test_the_name_of_the_system_takes_what_the_environment_says(
    service: Langfuse, tmp_path: Path
) -> None:
    given = {"PUBLIC_KEY": service.public, "SECRET_KEY": KEY, "BASE_URL": service.url}
    environment = {f"LANGFUSE_{name}": value for name, value in given.items()}
    log = tmp_path / "scores.sqlite"
    spawned = Spawned(BY_NAME, tmp_path, log, **environment)
    assert spawned.end() == 0, spawned.err
    assert placed(service.by_name["judge"]) == service.span("the step")
    with open_log(log) as opened:
        record = find(opened, service.by_name["judge"]["metadata"]["run"])
    assert str(link(record).address).startswith(f"{service.url}/project/our-project/traces/")


# --- What is sent ---------------------------------------------------------------------------------


def test_a_score_is_a_number_or_else_the_finding_and_all_go_in_one_request(
    service: Langfuse, client: langfuse.Langfuse
) -> None:
    record = traced(records.scored(records.refuted("judge"), records.found("other", None, True)))
    LangfuseSink(client).write(record)
    scores = service.by_name
    assert {name: (one["value"], one["dataType"]) for name, one in scores.items()} == {
        "judge": (0.25, "NUMERIC"),
        "other": ("passed", "CATEGORICAL"),
    }
    assert "2. Contradiction: The Danube is 4,000 km long" in scores["judge"]["comment"]
    assert scores["judge"]["metadata"] == {
        "run": record.id,
        "attempt": 1,
        "label": "Contradiction",
        "failures": ["contradiction", "neutral"],
        "finding": "failed",
    }
    assert scores["judge"]["environment"] == "testing"
    assert service.count("POST /api/public/scores") == 1


def test_an_undetermined_evaluation_has_a_reason_and_no_number(
    service: Langfuse, client: langfuse.Langfuse
) -> None:
    LangfuseSink(client).write(traced(records.scored(records.undetermined("lost", "away"))))
    score = service.by_name["lost"]
    assert (score["value"], score["dataType"]) == ("undetermined", "CATEGORICAL")
    assert "away" in score["comment"]


def test_a_record_that_comes_again_takes_the_place_of_the_first(
    service: Langfuse, client: langfuse.Langfuse
) -> None:
    record = traced(records.scored(records.found("judge", 0.9)))
    LangfuseSink(client).write(record)
    LangfuseSink(client).write(Record.model_validate_json(record.as_json()))
    assert len(service.scores) == 1
    assert service.count("POST /api/public/scores") == 2


def test_nothing_secret_and_nothing_redacted_is_sent(
    service: Langfuse,
    client: langfuse.Langfuse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUR_API_KEY", SECRET)
    handler, kept = judged(client, telling, redact="remove")
    run("invoke", rag("The answer of Mary."), "Who is Mary?", handler)
    LangfuseSink(client).write(traced(kept.one))
    assert b"[removed: " in b"".join(service.bodies)
    assert service.knows_no_text()


def test_a_key_in_the_address_of_the_server_is_not_in_the_record(
    service: Langfuse, client: langfuse.Langfuse, heard: CallbackHandler
) -> None:
    client._base_url = service.url.replace("//", "//me:hush-hush@")
    handler, kept = judged(client)
    run("invoke", rag(), "Why?", handler, callbacks=[handler, heard])
    assert "/traces/" in str(link(kept.one).address)
    assert "hush-hush" not in kept.one.as_json()


# --- What becomes of the record -------------------------------------------------------------------


def test_a_server_that_recovers_gets_the_scores_once(
    service: Langfuse, client: langfuse.Langfuse, heard: CallbackHandler
) -> None:
    service.fail = {"/api/public/scores": 2}
    handler, _ = judged(client)
    run("invoke", rag(), "Why?", handler, callbacks=[handler, heard])
    assert len(service.scores) == 1
    assert service.count("POST /api/public/scores") == 3
    assert handler.counts.to_fallback == 0


@pytest.mark.parametrize("how", ["rejects a score", pytest.param("fails", marks=pytest.mark.slow)])
def test_the_fallback_file_has_what_the_server_does_not_take(
    service: Langfuse,
    client: langfuse.Langfuse,
    heard: CallbackHandler,
    tmp_path: Path,
    how: str,
) -> None:
    service.reject = how == "rejects a score"
    service.fail = {} if service.reject else {"/api/public/scores": 99, "/api/public/projects": 99}
    fallback = tmp_path / "missed.jsonl"
    handler, kept = judged(client, fallback=fallback, sinks=(tmp_path / "scores.sqlite",))
    run("invoke", rag(), "Why?", handler, callbacks=[handler, heard])
    [missed] = map(Record.model_validate_json, fallback.read_bytes().splitlines())
    assert missed == kept.one
    assert (link(missed).address is None) == (how == "fails")
    with open_log(tmp_path / "scores.sqlite") as log:
        assert find(log, missed.id) == missed

    service.reject, service.fail = 0, {}
    LangfuseSink(client).write(missed)
    client.flush()
    assert placed(service.by_name["judge"]) == (link(missed).trace_id, link(missed).span_id)
