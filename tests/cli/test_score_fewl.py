"""Test `demur score --method fewl`: requests, made once for all configurations, and refusals."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from demur import cli
from demur.cli import methods
from support.commands import flat, write_rows
from support.openai_server import Answer, OpenAIServer, openai_server

pytest.importorskip("chromadb")
pytest.importorskip("rapidfuzz")

QUESTIONS = 4
CONFIGS = ("fewl", "fewl-mean-one", "multi", "single-penalty-js", "fewl-uniform-kl-random")


def _city(request: Mapping[str, Any]) -> str:
    found: list[str] = re.findall(r"City\d+", json.dumps(request["messages"]))
    return found[-1]


def _asks_pairs(request: Mapping[str, Any]) -> bool:
    return "Non-Wrong" in json.dumps(request["messages"])


def _reply(request: Mapping[str, Any]) -> str:
    city = _city(request)
    if _asks_pairs(request):
        return "\n".join(
            f"{at}. Wrong Answer: {city} has {at} people.\n"
            f"{at}. Non-Wrong Answer: {city} is larger than a village of {at}."
            for at in range(1, 5)
        )
    return f"1. {city} is in the north.\n2. People say that {city} is large."


def _rows(path: Path, count: int = QUESTIONS) -> Path:
    rows = [
        {
            "id": f"q{at}",
            "question": f"Where is City{at}?",
            "answers": {"good": f"City{at} is in the north.", "bad": "Nobody knows."},
        }
        for at in range(count)
    ]
    return write_rows(path, rows)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return _rows(tmp_path / "rows.jsonl")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    store = partial(methods.NeighborStore, embedding=DeterministicFakeEmbedding(size=16))
    monkeypatch.setattr(methods, "NeighborStore", store)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(lambda request, number: _reply(request)) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def _score(
    file: Path, *options: object, configs: tuple[str, ...] = CONFIGS, model: str = "openai:x"
) -> int:
    named = [part for name in configs for part in ("--config", name)]
    command = ["score", file, "--reference-model", model, "--similarity", "rouge", "--n-answers"]
    return cli.run([*map(str, [*command, 2, "--n-wrong", 4, *named, *options])])


def _findings(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    lines = file.with_name(f"{file.stem}.scores.jsonl").read_text().splitlines()[1:]
    found = [json.loads(line) for line in lines]
    held = [line for line in found if "key" in line]
    by_key = {(line["key"], line["evaluator"]): line["evaluation"] for line in held}
    assert len(by_key) == len(held)
    return by_key


@pytest.mark.slow
@pytest.mark.usefixtures("told_at_once")
def test_all_configurations_cost_two_calls_a_question(
    file: Path, server: OpenAIServer, capsys: Any
) -> None:
    assert _score(file, "--json", "--price-in", 1, "--price-out", 0) == 0
    out, err = capsys.readouterr()
    asked = Counter((_city(request), _asks_pairs(request)) for request in server.requests)
    assert asked == {(f"City{at}", pairs): 1 for at in range(QUESTIONS) for pairs in (True, False)}
    summary = json.loads(out)
    assert summary["spent"]["calls"] == 2 * QUESTIONS
    assert [one["usage"]["calls"] for one in summary["figures"]] == [0] * len(CONFIGS)
    assert {one["evaluator"] for one in summary["figures"]} == set(CONFIGS)
    above = {(one["evaluator"], one["other"]): one["preference"] for one in summary["above"]}
    assert above["multi", "bad"]["wins"] == QUESTIONS
    assert f"asking the references, {2 * QUESTIONS} calls" in err
    found = _findings(file)
    assert len(found) == len(CONFIGS) * 2 * QUESTIONS
    for (_, evaluator), evaluation in found.items():
        details = evaluation["details"]
        assert len(details["weights"]) == (1 if evaluator.startswith("single") else 2)
        # All other questions are in the store before the first answer is scored.
        assert details["neighbors_used"] == (0 if evaluator == "multi" else QUESTIONS - 1)
        assert details["pairs_used"] == (4 if evaluator in ("fewl", "fewl-mean-one") else 0)


@pytest.mark.slow
def test_a_second_file_with_the_same_store_asks_for_nothing_known(
    file: Path, server: OpenAIServer, tmp_path: Path, capsys: Any
) -> None:
    store = ("--neighbors", tmp_path / "store", "--neighbors-collection", "mine")
    assert _score(file, *store) == 0
    more = _rows(tmp_path / "more.jsonl", QUESTIONS + 2)
    assert _score(more, *store, "--json") == 0
    assert len(server.requests) == 2 * (QUESTIONS + 2)
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[-1])["spent"]["calls"] == 2 * 2
    assert not file.with_name("rows.scores.neighbors").exists()


@pytest.mark.slow
def test_a_restart_with_other_configurations_asks_for_nothing(
    file: Path, server: OpenAIServer, capsys: Any
) -> None:
    assert _score(file) == 0
    asked = len(server.requests)
    assert _score(file, configs=("fewl-kl",)) == 64
    assert "config fewl-kl was not given" in flat(capsys.readouterr().err)
    assert _score(file, "--restart", configs=("fewl-kl",)) == 0
    assert len(server.requests) == asked
    # Other references have a collection of their own, so their answers do not mix with the first
    # ones.
    assert _score(file, "--restart", model="openai:y") == 0
    assert len(server.requests) == 2 * asked


def test_wrong_usage(file: Path, server: OpenAIServer, capsys: Any) -> None:
    assert _score(file, "--ray", "auto") == 64  # A cluster shares no folder.
    assert "give its URL, --neighbors" in flat(capsys.readouterr().err)
    assert [*file.parent.iterdir()] == [file]
    for options, said in (
        (["--config", "fewl-tv"], "unknown config 'fewl-tv': did you mean fewl"),
        (["--similarity", "guess"], "unknown similarity 'guess'"),
        (["--model", "openai:x"], "has no effect with --method fewl"),
        (["--generator", "guess"], "unknown model 'guess'"),
        (["--reference-model", "openai:y"], "n_answers has no effect with several references"),
        (["--config", "fewl-ideal"], "line 1: a configuration with ideal weights needs a list"),
        (["--premise", "question"], "'answer' or 'reference'"),
    ):
        assert _score(file, *options, configs=()) == 64
        assert said in flat(capsys.readouterr().err)
    file.write_text('{"answer": "a"}\n')
    assert _score(file) == 64
    assert "line 1: it has no question" in capsys.readouterr().err
    assert server.requests == []


def test_ideal_weights_read_labelled_answers(file: Path, server: OpenAIServer) -> None:
    row = {"question": "Where is City1?", "answer": "North.", "right": ["In the north."]}
    file.write_text(json.dumps({**row, "metadata": {"incorrect": ["In the south."]}}) + "\n")
    options = ("--field", "metadata.correct=right")
    assert _score(file, *options, configs=("fewl-ideal",)) == 0
    assert len(server.requests) == 1  # The labelled answers make pairs unnecessary.
    (evaluation,) = _findings(file).values()
    assert evaluation["details"]["expertise"] is not None


def test_references_that_answer_nothing_end_the_run(
    file: Path, monkeypatch: pytest.MonkeyPatch, server: OpenAIServer, capsys: Any
) -> None:
    with openai_server([Answer("wrong key", status=401)]) as refusing:
        monkeypatch.setenv("OPENAI_BASE_URL", refusing.url)
        assert _score(file) == 2
    said = flat(capsys.readouterr().err)
    assert f"none of the {QUESTIONS} questions could be asked: the reference model" in said
    assert "wrong key" in said
    assert _findings(file) == {}
