"""Test `demur score --method reverse-validation`: requests, entities and refusals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import convert_to_messages

from demur import Threshold, cli
from support import facts
from support.commands import flat, write_rows
from support.fakes import isolated, stage_of
from support.openai_server import OpenAIServer, openai_server

ROWS = 4
SHARES = [facts.supported(at) / len(facts.ATTRIBUTES) for at in range(ROWS)]


def _stage(request: dict[str, Any]) -> str:
    return stage_of(convert_to_messages(request["messages"]))


def _reply(request: dict[str, Any], number: int) -> str:
    if _stage(request) == "matching":
        return "Yes" if "Something else" in json.dumps(request["messages"]) else "No"
    return str(facts.serve(request, number).text)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(_reply) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [
        {"id": f"q{at}", "question": facts.question(at), "answer": facts.answer(at)}
        for at in range(ROWS)
    ]
    return write_rows(tmp_path / "rows.jsonl", rows)


def _score(file: Path, *options: object) -> int:
    command = ["score", file, "--method", "reverse-validation", "--model", "openai:x", *options]
    return cli.run([*map(str, command)])


def _findings(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    text = file.with_name(f"{file.stem}.scores.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()[1:]]
    by_key = {(line["evaluator"], line["key"]): line["evaluation"] for line in found}
    assert len(by_key) == len(found)
    return by_key


def _passed(file: Path, config: str) -> list[bool | None]:
    found = _findings(file)
    return [found[config, f"q{at}"]["passed"] for at in range(ROWS)]


def _asked(server: OpenAIServer) -> Counter[tuple[str, str]]:
    return Counter((request["model"], _stage(request)) for request in server.requests)


def test_both_variants_cost_two_calls_an_answer(
    file: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", "--method", "reverse-validation", "--list-configs"]
    assert cli.run(command) == 0
    names = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["qg", "em"]
    assert _score(file, "--config", "qg", "--config", "em", "--json") == 0
    assert _asked(server) == {("x", "construction"): 2 * ROWS, ("x", "access"): 2 * ROWS}
    figures = {one["evaluator"]: one for one in json.loads(capsys.readouterr().out)["figures"]}
    assert [figures[name]["usage"]["calls"] for name in ("qg", "em")] == [2 * ROWS] * 2
    assert figures["em"]["mean"] == pytest.approx(sum(SHARES) / ROWS)
    assert figures["qg"]["mean"] == pytest.approx(SHARES.count(1) / ROWS)
    found = _findings(file)
    for at, share in enumerate(SHARES):
        assert found["em", f"q{at}"]["score"] == share
        assert found["qg", f"q{at}"]["label"] == ("factual" if share == 1 else "non-factual")
        assert found["qg", f"q{at}"]["details"]["entity_source"] == "question"


def test_a_validator_answers_the_queries_and_does_nothing_else(
    file: Path, server: OpenAIServer
) -> None:
    assert _score(file, "--validator", "openai:y") == 0
    assert _asked(server) == {("x", "construction"): ROWS, ("y", "access"): ROWS}
    assert {config for config, _ in _findings(file)} == {"qg"}  # the cheaper variant


def _calibrated(path: Path, value: float, fingerprints: dict[str, str]) -> Path:
    Threshold(
        on_abstain="pass",
        value=value,
        method="percentile",
        percentile=10,
        evaluator="ReverseValidation",
        fingerprints=fingerprints,
        samples=20,
        passed=18,
    ).save(path)
    return path


def test_a_calibrated_threshold_is_taken_for_its_own_scores(
    file: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _score(file, "--config", "em") == 0
    assert _passed(file, "em") == [share == 1 for share in SHARES]
    assert 0 < SHARES.count(0.5) < ROWS
    fingerprints = _findings(file)["em", "q0"]["fingerprints"]
    assert fingerprints["variant"] == "em"
    at = _calibrated(file.with_name("rows.threshold.json"), 0.5, fingerprints)
    for _ in range(2):  # The same command resumes, because its settings are equal as JSON.
        asked = len(server.requests)
        assert _score(file, "--config", "em", "--threshold", at, "-o", file.with_name("b")) == 0
    assert len(server.requests) == asked
    lines = [json.loads(line) for line in file.with_name("b").read_text().splitlines()]
    # The lines come in any order.
    passed = {one["key"]: one["evaluation"]["passed"] for one in lines[1:]}
    assert passed == {f"q{at}": share >= 0.5 for at, share in enumerate(SHARES)}
    assert Threshold.model_validate(lines[0]["settings"]["threshold"]) == Threshold.load(at)
    capsys.readouterr()

    for options, said in (
        (["--config", "em", "--validator", "openai:y"], "chosen from other scores"),
        (["--config", "qg"], "does not decide with variant='qg'"),
    ):
        out = file.with_name("c")
        assert _score(file, *options, "--threshold", at, "-o", out) == 64
        assert said in flat(capsys.readouterr().err)
        assert not out.exists()
    assert len(server.requests) == asked


def test_the_matcher_decides(file: Path, server: OpenAIServer) -> None:
    assert _score(file, "--matcher", "llm") == 0
    # Where the names differ, the model was asked, and accepted the other name.
    wrong = ROWS - SHARES.count(1)
    assert _asked(server)["x", "matching"] == wrong > 0
    assert _passed(file, "qg") == [True] * ROWS
    assert {one["details"]["matcher"] for one in _findings(file).values()} == {"llm"}


def test_an_entity_from_the_file_is_what_is_asked_about(
    tmp_path: Path, server: OpenAIServer
) -> None:
    rows = [
        {"id": f"q{at}", "answer": facts.answer(at), "title": f" item {at} "} for at in range(ROWS)
    ]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    assert _score(file, "--field", "metadata.entity=title") == 0
    for (_, key), found in _findings(file).items():
        entity = f"item {key[1:]}"
        assert (found["details"]["entity"], found["details"]["entity_source"]) == (entity, "caller")
    given = [
        isolated("entity", convert_to_messages(request["messages"]))
        for request in server.requests
        if _stage(request) == "construction"
    ]
    assert sorted(given) == [f"item {at}" for at in range(ROWS)]


def test_an_entity_that_is_no_name_is_refused_before_anything_is_asked(
    tmp_path: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for entity in ("", "?!", 7, ["item 1"]):
        rows = [
            {"answer": facts.answer(0), "metadata": {"entity": None}},
            {"answer": facts.answer(1), "metadata": {"entity": entity}},
        ]
        file = write_rows(tmp_path / "rows.jsonl", rows)
        assert _score(file) == 64
        said = flat(capsys.readouterr().err)
        assert "line 2: metadata 'entity': expected the name of what the answer is about" in said
        assert repr(entity) in said
    assert server.requests == []
    assert not file.with_name("rows.scores.jsonl").exists()


def test_wrong_usage(file: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in (
        (["--matcher", "guess"], "unknown matcher 'guess': expected one of exact, published_qg"),
        (["--matcher", "published_em"], "reads replies of variant='em', but the variant is 'qg'"),
        (["--config", "ml"], "unknown config 'ml'"),
        (["--threshold", "1.5"], "less than or equal to 1"),
        (["--threshold", "nan"], "expected a finite number, or a file that demur calibrate wrote"),
        (["--threshold", "0,5"], "cannot read 0,5"),
        (["--validator", "guess"], "unknown model 'guess'"),
        (["--checker", "joint"], "has no effect with --method reverse-validation"),
        (["--reference-model", "openai:x"], "has no effect with --method reverse-validation"),
    ):
        assert _score(file, *options) == 64
        told = flat(capsys.readouterr().err)
        assert said in told
        assert "Traceback" not in told
    assert server.requests == []
    assert not file.with_name("rows.scores.jsonl").exists()
