"""The measurement of speed against the peers, with demur in every peer's place."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from peers.adapters import AdapterError
from peers.speed import tables
from peers.speed.replies import UnknownPromptError, holds, reply_to, statements
from peers.speed.rows import ROWS, Row, ideal
from peers.speed.running import (
    Measured,
    Run,
    Server,
    adapter,
    ask,
    grade,
    measure,
    serving,
)
from peers.speed.texts import texts

LATENCY = 0.05
OURS = [
    row
    for row in ROWS
    if row.peer == "demur"
    and row.way in ("sentences, sync", "sentences, async", "triplets, per claim, async")
]
CALLS = {"sentences": 1, "triplets, per claim": 6}
"""The number of calls for an answer, by the way without its driver."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(LATENCY) as running:
        yield running


def answered(server: Server, *messages: str, **more: object) -> dict:
    told = [{"role": "user", "content": message} for message in messages]
    body = json.dumps({"model": "any", "messages": told, **more}).encode()
    with urllib.request.urlopen(f"{server.url}/chat/completions", body) as response:
        return dict(json.loads(response.read()))


def self_check(sentence: str, context: str) -> str:
    asked = "Is the sentence supported by the context above? Answer Yes or No."
    return f"Context: {context}\n\nSentence: {sentence}\n\n{asked}\n\nAnswer: "


@pytest.mark.slow
@pytest.mark.parametrize("row", OURS, ids=lambda row: row.name)
def test_demur_scores_every_answer_right_and_none_wrong_while_requests_are_spoiled(
    row: Row, server: Server
) -> None:
    found = measure(row, server, [16], 16)
    assert [(run.answers, run.grades) for run in found.clean] == [(16, {"right": 16})]
    assert found.per_answer("requests") == CALLS[row.way.rpartition(", ")[0]]
    assert all(run.counts["unknown"] == 0 for run in found.clean)
    # No schedule is faster than the requests that wait for one another.
    assert all(run.wall >= ideal(16, run.at_once, row.depth, LATENCY) for run in found.clean)
    assert found.spoiled is not None
    assert found.spoiled.counts["spoiled"] > 0
    assert not found.spoiled.grades.keys() & {"wrong", "lost"}
    assert found.spoiled.grades["right"] >= 8


@pytest.mark.slow
def test_what_is_not_done_in_time_is_lost(server: Server) -> None:
    # The 40 answers come one after another, so that they take 2 seconds on any machine.
    (row,) = (row for row in OURS if row.way == "sentences, async")
    with adapter(row, server.url) as running:
        running.told(60)
        came = ask(running, texts(40), 1, 1.0)
    assert [grade(result, 1.0) for result in came["results"]] == ["lost"] * 40


@pytest.mark.slow
def test_an_adapter_that_ends_says_why(server: Server) -> None:
    row = Row("demur", "demur", "none", "demur_refchecker", ("none", "async"), 1, "claims")
    with (
        pytest.raises(AdapterError, match=r"(?s)exit code 1.*KeyError: 'none'"),
        adapter(row, server.url) as running,
    ):
        running.told(60)


@pytest.mark.slow
def test_the_server_counts_requests_tokens_and_how_many_are_under_way(server: Server) -> None:
    server.reset()
    first = answered(server, self_check("It has 12 rooms.", "There are 12 rooms."))
    again = answered(server, self_check("It has 13 rooms.", "There are 12 rooms."), n=3)
    assert [choice["message"]["content"] for choice in first["choices"]] == ["Yes"]
    assert [choice["message"]["content"] for choice in again["choices"]] == ["No"] * 3
    usages = [one["usage"] for one in (first, again)]
    counts = server.counts()
    assert counts["requests"] == 2
    assert counts["most_at_once"] == 1
    assert counts["prompt_tokens"] == sum(usage["prompt_tokens"] for usage in usages)
    assert counts["completion_tokens"] == sum(usage["completion_tokens"] for usage in usages)
    assert usages[1]["completion_tokens"] == 3 * usages[0]["completion_tokens"]
    server.reset()
    assert server.counts()["requests"] == 0


@pytest.mark.slow
def test_the_server_spoils_each_request_that_it_is_told_to(server: Server) -> None:
    server.reset(share=1.0)
    prompts = [self_check("It has 12 rooms.", f"House {at} has 12 rooms.") for at in range(20)]
    assert not any(is_right(server, prompt) for prompt in prompts)
    assert server.counts()["spoiled"] == server.counts()["requests"] == len(prompts)
    server.reset()
    assert all(is_right(server, prompt) for prompt in prompts)


def is_right(server: Server, prompt: str) -> bool:
    try:
        return answered(server, prompt)["choices"][0]["message"]["content"] == "Yes"
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return False


def test_a_statement_holds_where_all_its_numbers_and_names_stand() -> None:
    for text in texts(9):
        reference = " ".join(text.contexts)
        told = statements(text.answer)
        assert len(told) == 5
        held = sum(holds(statement, reference) for statement in told)
        assert held / len(told) == text.score("claims")


def test_each_peer_gets_the_format_that_it_asks_for() -> None:
    text = texts(2)[1]  # one of five facts is wrong
    passages = "\n\n".join(text.contexts)
    told = statements(text.answer)

    def reply(prompt: str, **more: object) -> str:
        return reply_to({"messages": [{"role": "user", "content": prompt}], **more})

    def of(*properties: str) -> dict:
        schema = {"properties": {name: {} for name in properties}}
        return {"response_format": {"json_schema": {"schema": schema}}}

    listed = "\n".join(told)
    asked = f"\n### Reference:\n{passages}\n### Claims:\n{listed}\nYour answer should"
    labels = reply(f"I have a list of claims that made by {asked}").splitlines()
    assert labels == ["Entailment", "Entailment", "Entailment", "Contradiction", "Entailment"]
    judged = json.dumps({"context": passages, "statements": told})
    asked = f"judge the faithfulness of a series of statements\ninput: {judged}\nOutput: "
    verdicts = json.loads(reply(asked))["statements"]
    assert [one["verdict"] for one in verdicts] == [1, 1, 1, 0, 1]
    asked = f"\nRetrieval Contexts:\n{passages}\n\nClaims:\n{told}\n\nJSON:"
    verdicts = json.loads(reply(asked, **of("verdicts")))["verdicts"]
    assert [one["verdict"] for one in verdicts] == ["yes", "yes", "yes", "no", "yes"]
    asked = f"\nContexts:\n{[*text.contexts]}\n\nActual Output:\n{text.answer}\n\nJSON:"
    verdicts = json.loads(reply(asked, **of("verdicts")))["verdicts"]
    assert [one["verdict"] for one in verdicts] == ["yes", "no", "yes"]
    with pytest.raises(UnknownPromptError, match="one of the peers"):
        reply("Good morning")


def test_an_answer_without_a_score_is_no_wrong_one() -> None:
    assert grade({"score": 0.8}, 0.8) == "right"
    assert grade({"score": 0.75}, 0.8) == "wrong"
    assert grade({"error": "None"}, 0.8) == "none"
    assert grade({"lost": "ValueError"}, 0.8) == "lost"


def test_the_tables_show_what_was_measured() -> None:
    counts = {"prompt_tokens": 900, "completion_tokens": 100, "most_at_once": 4}
    counts |= {"requests": 20, "spoiled": 4, "latest_ms": 2.0, "unknown": 0}
    run = Run(4, 10, 1.5, 0.1, 100.0, {"right": 9, "lost": 1}, counts, ["ValueError: no"])
    row = Row("ragas", "ragas", "faithfulness", "ragas_faithfulness", (), 2, "claims")
    found = [Measured(row, "0.4.3", 2.0, [run], run)]
    # Three rounds of two requests take 0.6 s at least.
    costs = "| ragas, faithfulness | 0.4.3 | 2.0 | 100 | 2 | 2.50 | 10.0 | 100 | 2.0 |"
    assert costs in tables.cost(found, 0.1)
    assert "| ragas, faithfulness | 5.00 | 4 |" in tables.against_one_call(found, 0.1)
    assert "| ragas, faithfulness | 9 | 0 | 0 | 1 | 20 | 4 | 2 |" in tables.spoiled(found)
    notes = tables.notes(found, [])
    assert "ragas, faithfulness: lost with requests spoiled: ['ValueError: no']" in notes
