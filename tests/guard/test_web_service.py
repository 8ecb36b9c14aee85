"""Test the web service of docs/web-service.md over HTTP."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever

from demur import Guard
from demur.guard import REFUSAL
from support.fakes import ScriptedModel, isolated
from support.streams import Telling
from support.waiting import until
from support.web import (
    DOCUMENTS,
    TOWER,
    Quoting,
    asked,
    client,
    ending,
    quoting,
    read,
    served,
    service,
    text_of,
)

GOOD = f"{TOWER} It was opened in 1911."
BAD = f"{TOWER} It is red. A bad end."


class Shelf(BaseRetriever):
    """Retrieve `DOCUMENTS` for every query."""

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return DOCUMENTS


def make_app(folder: Path, guard: Guard[Any, Any]) -> Any:
    return service(folder)["make_app"](guard)


def test_each_sentence_is_an_event_and_the_last_one_has_claims_and_evidence(tmp_path: Path) -> None:
    with served(make_app(tmp_path, quoting(Telling(GOOD)))) as url:
        events = asked(url)
    assert [name for name, _ in events] == ["text", "text", "done"]
    assert text_of(events) == GOOD
    last = ending(events)
    assert last["outcome"] == "passed"
    assert [GOOD[claim["start"] : claim["end"]] for claim in last["claims"]] == [
        claim["text"] for claim in last["claims"]
    ]
    assert [(quote["claim"], quote["source"]) for quote in last["evidence"]] == [
        (claim["text"], "tower.md") for claim in last["claims"]
    ]


def test_a_corrected_answer_comes_with_a_cut_and_with_its_own_claims_only(tmp_path: Path) -> None:
    left = threading.Event()
    judge = Quoting(hold=lambda answer: left if "bad" in answer else None)
    with served(make_app(tmp_path, quoting(Telling(BAD, GOOD), judge))) as url:
        events = asked(url, left=left)
    assert ("replace", {"keep": len(TOWER)}) in events
    assert text_of(events) == GOOD
    assert "bad" not in str(events)
    last = ending(events)
    assert last["outcome"] == "recovered"
    assert [claim["text"] for claim in last["claims"]] == [GOOD]


def test_a_refusal_is_text_without_claims(tmp_path: Path) -> None:
    with served(make_app(tmp_path, quoting(Telling(BAD)))) as url:
        events = asked(url)
    assert text_of(events) == REFUSAL
    assert ending(events) == {"outcome": "abstained", "claims": [], "evidence": []}


@pytest.mark.parametrize(
    ("bad", "options", "outcome"),
    [
        ("A bad end.", {"on_fail": "block"}, "blocked"),
        ("An odd end.", {"on_error": "raise"}, "evaluator_failed"),
    ],
)
def test_what_the_guard_raises_is_an_error_without_text(
    bad: str, options: dict[str, Any], outcome: str, tmp_path: Path, caplog: Any
) -> None:
    left = threading.Event()
    judge = Quoting(hold=lambda answer: left if answer.startswith("A") else None)
    with served(make_app(tmp_path, quoting(Telling(f"{TOWER} {bad}"), judge, **options))) as url:
        assert asked(url, left=left) == [("text", TOWER), ("error", {"outcome": outcome})]
        with client(url) as http:
            whole = http.post("/answer", json={"question": "How tall is it?"})
    assert (whole.status_code, whole.json()) == (503, {"detail": outcome})
    assert not [one for one in caplog.records if one.exc_info]


def test_a_chain_that_raises_is_an_error_too_and_is_logged(tmp_path: Path, caplog: Any) -> None:
    chain = Telling([f"{TOWER} ", ValueError("the key is sk-secret")])
    with served(make_app(tmp_path, quoting(chain))) as url:
        events = asked(url)
    assert events[-1] == ("error", {"outcome": "failed"})
    assert "secret" not in str(events)
    assert "the chain failed" in [record.message for record in caplog.records]


def test_a_sentence_comes_while_the_next_one_waits_for_its_verdict(tmp_path: Path) -> None:
    verdict = threading.Event()
    judge = Quoting(hold=lambda answer: verdict if "1911" in answer else None)
    with (
        served(make_app(tmp_path, quoting(Telling(GOOD), judge))) as url,
        client(url) as http,
        http.stream("POST", "/ask", json={"question": "why?"}) as response,
    ):
        events = read(response.iter_lines())
        assert next(events) == ("text", TOWER)
        assert not verdict.is_set()
        verdict.set()
        assert next(events) == ("text", " It was opened in 1911.")


def test_a_client_that_leaves_ends_the_chain(tmp_path: Path, caplog: Any) -> None:
    more, chain = threading.Event(), Telling(f"{GOOD} More.")
    chain.hold = lambda chunk: more if "More" in chunk else None
    with served(make_app(tmp_path, quoting(chain))) as url:
        _leave(url)
        until(lambda: chain.under_way == 0)
        more.set()
        asked(url)
    assert chain.told.count(" More.") == 1
    assert not caplog.records  # The chain was ended without a timeout.


def _leave(url: str) -> None:
    """Ask a question, and leave after the first sentence."""
    with (
        client(url) as http,
        http.stream("POST", "/ask", json={"question": "why?"}) as response,
    ):
        assert next(read(response.iter_lines())) == ("text", TOWER)


def test_the_whole_answer_comes_as_json_and_shows_no_claim_of_a_rejected_one(
    tmp_path: Path,
) -> None:
    with (
        served(make_app(tmp_path, quoting(Telling(BAD, GOOD, BAD)))) as url,
        client(url) as http,
    ):
        right, refused = (http.post("/answer", json={"question": "why?"}).json() for _ in range(2))
    assert right["answer"] == GOOD
    assert right["outcome"] == "recovered"
    assert [claim["text"] for claim in right["claims"]] == [GOOD]
    nothing: dict[str, Any] = {"claims": [], "evidence": []}
    assert refused == {"answer": REFUSAL, "outcome": "abstained", **nothing}


def test_a_question_that_is_none_is_refused(tmp_path: Path) -> None:
    chain = Telling(GOOD)
    with served(make_app(tmp_path, quoting(chain))) as url, client(url) as http:
        for question in ("", "  ", "why?" * 1000, None):
            assert http.post("/ask", json={"question": question}).status_code == 422
    assert not chain.inputs


def test_the_guard_of_the_page_checks_a_chain_with_a_retriever(tmp_path: Path) -> None:
    def speak(stage: str, messages: Any) -> str:
        if stage == "extraction":
            return '("tower", "is", "84 metres tall")'
        if stage != "joint":
            return GOOD
        claims = isolated("claims", messages).splitlines()
        return "\n".join(f"{at}. Entailment" for at in range(1, len(claims) + 1))

    model = ScriptedModel(script=speak)
    prompt = ChatPromptTemplate.from_template("{context}")
    chain = {"context": Shelf() | str} | prompt | model | StrOutputParser()
    with served(service(tmp_path, chain=chain, model=model)["app"]) as url:
        events = asked(url)
    assert text_of(events) == GOOD
    last = ending(events)
    assert last["outcome"] == "passed"
    assert "tower is 84 metres tall" in [claim["text"] for claim in last["claims"]]
    assert {(quote["id"], quote["source"]) for quote in last["evidence"]} == {("d-1", "tower.md")}
