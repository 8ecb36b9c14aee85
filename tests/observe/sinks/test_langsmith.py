"""Test LangSmithSink with LangSmith's own client and tracer, and a service that talks to them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.utils import get_env_var, get_tracer_project
from urllib3 import Retry

from demur import (
    Guard,
    ScoreCallbackHandler,
    cli,
)
from demur.observe import LangSmithSink, Record, TraceLink
from demur.observe.log import find, open_log
from support import records
from support.handlers import Records, rag, run
from support.spawned import Spawned
from support.trace_servers import (
    KEY,
    PROJECT,
    SECRET,
    TENANT,
    LangSmith,
    link,
    refuting,
    serving,
    telling,
)

NAME = "our project"


@pytest.fixture
def service() -> Iterator[LangSmith]:
    with serving(LangSmith()) as running:
        yield running


@pytest.fixture
def client(service: LangSmith) -> Iterator[Client]:
    made = Client(service.url, api_key=KEY, retry_config=Retry(0))
    yield made
    made.cleanup()


@pytest.fixture(autouse=True)
def project(at_once: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test a project."""
    monkeypatch.setenv("LANGSMITH_PROJECT", NAME)
    # LangSmith reads the environment once in a process, perhaps for a test before this one.
    for remembered in (get_env_var, get_tracer_project):
        remembered.cache_clear()
    yield
    for remembered in (get_env_var, get_tracer_project):
        remembered.cache_clear()


def judged(
    client: Client, *evaluators: Any, sinks: tuple[Any, ...] = (), **options: Any
) -> tuple[ScoreCallbackHandler, Records]:
    """Return a handler that writes to LangSmith and to these sinks, and the records of its runs."""
    kept = Records()
    judges = evaluators or (refuting,)
    sink = [LangSmithSink(client), kept, *sinks]
    return ScoreCallbackHandler(*judges, sink=sink, **options), kept


def traced(record: Record) -> Record:
    """Return a record that names its run in LangSmith."""
    found = TraceLink(system="langsmith", trace_id=record.root, span_id=record.id, project=NAME)
    return record.model_copy(update={"traces": (found,)})


def known(service: LangSmith, record: Record) -> Record:
    """Return a record whose run the service has already."""
    service.runs[record.id] = {}
    service.projects[NAME] = PROJECT
    return traced(record)


# --- Where feedback lands -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("first", ["tracer", "handler"])
@pytest.mark.parametrize(
    "chain", [rag(), RunnableLambda(lambda asked: "yes"), FakeListChatModel(responses=["yes"])]
)
def test_feedback_lands_on_the_run_that_the_tracer_posts(
    service: LangSmith, client: Client, mode: str, first: str, chain: Runnable[Any, Any]
) -> None:
    handler, kept = judged(client)
    both = [LangChainTracer(client=client), handler]
    run(mode, chain, "Why?", handler, callbacks=both if first == "tracer" else both[::-1])
    client.flush()

    [outermost] = [one for one in service.runs.values() if not one.get("parent_run_id")]
    [feedback] = service.feedback.values()
    assert feedback["run_id"] == outermost["id"] == kept.one.id
    assert link(kept.one) == TraceLink(
        system="langsmith",
        trace_id=outermost["trace_id"],
        span_id=outermost["id"],
        project=NAME,
        address=f"http://localhost/o/{TENANT}/projects/p/{PROJECT}/r/{outermost['id']}",
    )


def test_the_tracer_names_the_project(service: LangSmith, client: Client) -> None:
    handler, kept = judged(client)
    tracer = LangChainTracer(client=client, project_name="another")
    run("invoke", rag(), "Why?", handler, callbacks=[tracer, handler])
    assert link(kept.one).project == "another"
    assert len(service.feedback) == 1


def test_feedback_of_a_guard_lands_on_the_guards_run(service: LangSmith, client: Client) -> None:
    handler, kept = judged(client)
    guard = Guard(rag().with_config(run_name="inner"), refuting).with_config(run_name="guard")
    chain = RunnableLambda(str) | guard
    run("invoke", chain, "Why?", handler, callbacks=[LangChainTracer(client=client), handler])
    client.flush()

    [feedback] = service.feedback.values()
    posted = service.runs[feedback["run_id"]]
    assert posted["name"] == "guard"
    assert link(kept.one).trace_id == kept.one.root == posted["trace_id"] != posted["id"]


def test_feedback_of_a_chosen_run_lands_on_this_run(service: LangSmith, client: Client) -> None:
    handler, _ = judged(client, names="step")
    chain = RunnableLambda(str) | RunnableLambda(lambda asked: "yes").with_config(run_name="step")
    run("invoke", chain, "Why?", handler, callbacks=[LangChainTracer(client=client), handler])
    client.flush()
    [feedback] = service.feedback.values()
    assert service.runs[feedback["run_id"]]["name"] == "step"


BY_NAME = """
import sys
from langchain_core.runnables import RunnableLambda
from demur import Evaluation, ScoreCallbackHandler

handler = ScoreCallbackHandler(
    lambda sample: Evaluation(name="judge", score=0.5), sink=[sys.argv[1], "langsmith"]
)
RunnableLambda(lambda asked: "yes").invoke("Why?", {"callbacks": [handler]})
handler.close()
"""


@pytest.mark.slow
def test_the_name_of_the_system_takes_what_the_environment_says(
    service: LangSmith, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"API_KEY": KEY, "ENDPOINT": service.url, "TRACING": "true", "PROJECT": NAME}
    environment = {f"LANGSMITH_{name}": value for name, value in given.items()}
    log = tmp_path / "scores.sqlite"
    spawned = Spawned(BY_NAME, tmp_path, log, **environment)
    assert spawned.end() == 0, spawned.err
    [feedback] = service.feedback.values()
    assert service.runs[feedback["run_id"]]["name"] == "RunnableLambda"
    assert cli.run(["log", "show", str(log), feedback["run_id"]]) == 0
    page = f"http://localhost/o/{TENANT}/projects/p/{PROJECT}/r/{feedback['run_id']}"
    assert f"trace langsmith {page}" in " ".join(capsys.readouterr().out.split())


# --- What is sent ---------------------------------------------------------------------------------


def test_feedback_has_the_score_the_finding_and_the_claims_that_do_not_hold(
    service: LangSmith, client: Client
) -> None:
    record = known(
        service, records.guarded(records.found("judge"), records.refuted("judge", 1 / 3))
    )
    LangSmithSink(client).write(record)
    feedback = service.by_key["judge"]
    assert (feedback["score"], feedback["value"]) == (0.3333, "failed")
    assert feedback["comment"] == (
        "judge: failed, Contradiction, score 0.33\n"
        "  1 of 3 claims holds.\n"
        "  1. Neutral: The mayor of Ulm says so\n"
        "  2. Contradiction: The Danube is 4,000 km long\n"
        f'     reference 1: "{records.PASSAGE}"'
    )
    assert feedback["feedback_source"] == {
        "type": "model",
        "metadata": {
            "run": record.id,
            "attempt": 2,
            "outcome": "recovered",
            "label": "Contradiction",
            "failures": ["contradiction", "neutral"],
        },
    }
    assert feedback["extend_trace_retention"] is False


def test_an_undetermined_evaluation_has_a_reason_and_no_number(
    service: LangSmith, client: Client
) -> None:
    record = known(service, records.scored(records.undetermined("lost", "the model was away")))
    LangSmithSink(client).write(record)
    feedback = service.by_key["lost"]
    assert "score" not in feedback
    assert feedback["value"] == "undetermined"
    assert feedback["error"] is True
    assert "the model was away" in feedback["comment"]


def test_the_worst_sentence_counts(service: LangSmith, client: Client) -> None:
    parts = (records.found("judge"), records.refuted("judge"), records.undetermined("judge"))
    LangSmithSink(client).write(known(service, records.scored(*parts)))
    assert (service.by_key["judge"]["score"], service.by_key["judge"]["value"]) == (0.25, "failed")


def test_a_long_comment_is_cut(service: LangSmith, client: Client) -> None:
    record = known(service, records.scored(records.found("judge", explanation="x" * 5000)))
    LangSmithSink(client).write(record)
    comment = service.by_key["judge"]["comment"]
    assert len(comment) == 2000
    assert comment.endswith("x…")


@pytest.mark.parametrize("replaces", [True, False])
def test_a_record_that_comes_again_takes_the_place_of_the_first(
    service: LangSmith, client: Client, replaces: bool
) -> None:
    service.replaces = replaces
    record = known(service, records.scored(records.found("judge", 0.9)))
    sink = LangSmithSink(client)
    sink.write(record)
    sink.write(record)
    again = record.attempts[0].model_copy(update={"evaluations": (records.undetermined("judge"),)})
    sink.write(record.model_copy(update={"attempts": (again,)}))
    assert service.by_key["judge"].get("score") is None
    assert service.by_key["judge"]["value"] == "undetermined"


def test_a_client_with_a_queue_sends_before_write_returns(
    service: LangSmith, client: Client
) -> None:
    """The client queues feedback when it may, and logs what it loses then."""
    assert client.tracing_queue is not None
    LangSmithSink(client).write(known(service, records.scored(records.found("judge"))))
    assert service.count("POST /feedback") == 1
    assert service.count("POST /runs/multipart") == 0


def test_nothing_secret_and_nothing_redacted_is_sent(
    service: LangSmith, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_API_KEY", SECRET)
    handler, kept = judged(client, telling, redact="remove")
    run("invoke", rag("The answer of Mary."), "Who is Mary?", handler)
    LangSmithSink(client).write(known(service, kept.one))
    assert b"[removed: " in b"".join(service.bodies)
    assert service.knows_no_text()


# --- What becomes of the record -------------------------------------------------------------------


def test_a_server_that_recovers_gets_the_feedback_once(service: LangSmith, client: Client) -> None:
    service.fail = {"/feedback": 2}
    handler, _ = judged(client)
    run("invoke", rag(), "Why?", handler, callbacks=[LangChainTracer(client=client), handler])
    assert len(service.feedback) == 1
    assert service.count("POST /feedback") == 3
    assert handler.counts.to_fallback == 0


def test_a_run_that_is_not_stored_yet_gets_its_feedback(service: LangSmith, client: Client) -> None:
    service.slow = True
    LangSmithSink(client).write(known(service, records.scored(records.found("judge"))))
    assert len(service.feedback) == 1
    assert service.count("POST /feedback") == 2


def test_the_fallback_file_has_the_records_while_the_server_is_away_and_can_be_written_again(
    tmp_path: Path, client: Client, service: LangSmith
) -> None:
    away = Client("http://127.0.0.1:9", api_key=KEY, retry_config=Retry(0))
    fallback = tmp_path / "missed.jsonl"
    handler, kept = judged(away, fallback=fallback, sinks=(tmp_path / "scores.sqlite",))
    callbacks = [LangChainTracer(client=client), handler]
    run("invoke", rag(), "Why?", handler, callbacks=callbacks)
    run("invoke", rag(), "When?", handler, callbacks=callbacks)
    client.flush()

    assert (handler.counts.to_fallback, handler.counts.recorded) == (2, 2)
    missed = [Record.model_validate_json(line) for line in fallback.read_bytes().splitlines()]
    assert [record.id for record in missed] == [record.id for record in kept.all]
    with open_log(tmp_path / "scores.sqlite") as log:
        assert find(log, missed[0].id) == missed[0]
    assert KEY not in fallback.read_text()
    for record in missed:
        LangSmithSink(client).write(record)
    assert {one["run_id"] for one in service.feedback.values()} == {one.id for one in missed}


def test_a_run_without_a_tracer_is_no_failure_and_is_told_once_a_minute(
    service: LangSmith, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "demur")
    handler, kept = judged(client)
    run("invoke", rag(), "Why?", handler)
    run("ainvoke", rag(), "When?", handler)
    assert (handler.counts.to_fallback, handler.counts.recorded) == (0, 2)
    assert [record.traces for record in kept.all] == [(), ()]
    assert [one.getMessage() for one in caplog.records] == [
        "LangSmithSink(): a run has no trace there, so its scores are not sent: set "
        "LANGSMITH_TRACING=true, or attach a LangChainTracer"
    ]
    assert not service.count("POST /feedback")


def test_the_project_is_asked_for_once(service: LangSmith, client: Client) -> None:
    service.projects[NAME] = PROJECT
    handler, kept = judged(client)
    for _ in range(3):
        run("invoke", rag(), "Why?", handler, callbacks=[LangChainTracer(client=client), handler])
    assert len({link(record).address for record in kept.all}) == 3
    assert service.count("GET /sessions") == 1


def test_a_record_without_an_address_is_recorded_and_the_server_is_left_alone_for_a_minute(
    service: LangSmith, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.fail = {"/sessions": 2}
    sink = LangSmithSink(client)
    asked = link(traced(records.scored()))
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("demur.observe.sinks.traces.time", clock)
    service.projects[NAME] = PROJECT
    assert sink.addressed(asked) == sink.addressed(asked) == asked
    assert service.count("GET /sessions") == 1
    now[0] += 61
    assert sink.addressed(asked) == asked
    now[0] += 61
    assert sink.addressed(asked).address is not None
