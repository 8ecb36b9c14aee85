"""Test evaluations in a pipe and on a terminal; foreign texts cannot control the terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from rich.console import Console

from demur import Calculation, Claim, ClaimLabel, Evaluation, Evidence, MissingString, Span, Usage
from demur.guard import Attempt
from demur.guard.edits import places_of
from demur.observe import Record
from demur.views import terminal as display
from support.records import attempt, found, refuted, run

CLAIMS = (
    Claim(text="Paris is the capital of France", label=ClaimLabel.ENTAILMENT),
    Claim(text="Paris has 90 arrondissements", label=ClaimLabel.NEUTRAL),
    Claim(text="Paris is old", error="the reply had no label for it"),
)


def _evaluation(claims: tuple[Claim, ...] = CLAIMS, explanation: str = "") -> Evaluation:
    return Evaluation(
        name="RefChecker",
        score=0.5,
        label="Neutral",
        passed=False,
        explanation=explanation,
        claims=claims,
    )


def _shown(evaluation: Evaluation, *, terminal: bool, width: int = 100) -> str:
    to = io.StringIO()
    console = Console(
        file=to,
        force_terminal=terminal,
        width=width,
        color_system="standard" if terminal else None,
        highlight=False,
    )
    display.show(console, evaluation)
    return to.getvalue()


def test_long_evidence_is_whole_in_a_pipe_and_short_on_a_terminal() -> None:
    text = "word " * 400 + "end"
    span = Span(start=0, end=len(text))
    evidence = Evidence(context=None, span=span, text=text, label=ClaimLabel.CONTRADICTION)
    claim = Claim(text="x", label=ClaimLabel.CONTRADICTION, evidence=(evidence,))
    assert text in _shown(_evaluation(claims=(claim,)), terminal=False)
    shown = _shown(_evaluation(claims=(claim,)), terminal=True)
    assert "[…]" in shown
    assert shown.count("word") < 100


def test_strings_that_stand_in_no_reference_are_told() -> None:
    missing = (
        MissingString(string="ORD-48231-B", nearest="ORD-48213-B"),
        MissingString(string="3\x1b14", nearest=None),
    )
    bad = Claim(text="ORD-48231-B costs 3\x1b14", label=ClaimLabel.NEUTRAL, missing_strings=missing)
    shown = _shown(_evaluation(claims=(*CLAIMS, bad)), terminal=False, width=200)
    told = '"ORD-48231-B" stands in no reference, where "ORD-48213-B" is the most similar'
    assert f'{told}; "3␛14" stands in no reference' in shown
    assert shown.count("stands in no reference") == 2


def test_a_calculation_is_told_with_the_figure_that_it_refutes() -> None:
    one = Calculation(figure="80\x1b%", follows=False, text="252 of 360 is 70 %", operands=())
    bad = Claim(text="80 % would", label=ClaimLabel.CONTRADICTION, calculations=(one,))
    shown = _shown(_evaluation(claims=(*CLAIMS, bad)), terminal=False, width=200)
    assert shown.count("252 of 360 is 70 %, not 80␛%") == 1


def test_colour_follows_terminal_and_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[3" in _shown(_evaluation(), terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", _shown(_evaluation(), terminal=True))


@pytest.mark.parametrize("terminal", [False, True])
def test_markup_and_control_sequences_are_shown_not_obeyed(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    bad = "[red]x[/red] [/] :smile: \x1b[2J\x1b]0;title\x07 \x9b31m \u202eevil\rover\nline"
    evidence = Evidence(context=0, span=Span(start=0, end=3), text=bad, label=ClaimLabel.ENTAILMENT)
    claims = (
        Claim(text=bad, label=ClaimLabel.ENTAILMENT, evidence=(evidence,)),
        Claim(text=bad, error=bad),
    )
    out = _shown(_evaluation(claims=claims, explanation=bad), terminal=terminal, width=400)
    out = re.sub(r"\x1b\[[0-9;]*m", "", out)  # rich writes these sequences itself.
    assert out.count("[red]x[/red] [/] :smile: ␛[2J␛]0;title␇") == 5
    assert not set(out) & set("\x1b\x07\x9b\u202e\r")


@given(st.text(st.characters(exclude_categories=())))
def test_harmless_text_has_no_control_characters(text: str) -> None:
    shown = display.harmless(text)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", shown)
    shown.encode()
    assert display.harmless(shown) == shown
    assert "\n" not in display.one_line(text)


def test_what_it_cost_is_told_in_numbers_that_can_be_read() -> None:
    spent = Usage(calls=12_000, cached=1_500, input_tokens=10**6, output_tokens=999, seconds=3601)
    told = "12,000 calls (1,500 more answered from a cache), 1,000,000 + 999 tokens, 3,601.0 s"
    assert display.usage_line(spent) == told
    assert display.usage_line(Usage(calls=1)) == "1 call, 0 + 0 tokens, 0.0 s"


def _attempt(answer: str, *documents: Document, **fields: Any) -> Attempt:
    """Return an answer that passed, with each sentence supported by each whole document."""
    proofs = [
        Evidence(
            context=at,
            span=Span(start=0, end=len(one.page_content)),
            text=one.page_content,
            label=ClaimLabel.ENTAILMENT,
        )
        for at, one in enumerate(documents)
    ]
    claims = [
        Claim(
            text="x",
            span=Span(start=part.start, end=part.end),
            label=ClaimLabel.ENTAILMENT,
            evidence=tuple(proofs),
        )
        for part in places_of(answer)
    ]
    judged = attempt(found(claims=tuple(claims)), answer=answer, contexts=(), **fields)
    return judged.model_copy(update={"contexts": documents})


def _run_shown(record: Record, *, terminal: bool = False) -> str:
    to = io.StringIO()
    display.show_run(
        Console(file=to, force_terminal=terminal, width=200, color_system=None), record
    )
    return to.getvalue()


def test_a_guards_answer_is_shown_with_its_sources() -> None:
    told = {"title": "Tower", "url": "https://tower.example/"}
    documents = (Document("It opened in 1911.", metadata=told), Document("A tower, of 1911."))
    last = _attempt("It opened in 1911 [4]. It is old.", *documents, removed=("It is\x1b red.",))
    out = _run_shown(run(attempt(refuted()), last, outcome="trimmed", reason="it held"))
    assert "taken out  It is␛ red.\n" in out
    told_last = out[out.index("the guard: trimmed") :].splitlines()[1:-1]
    assert told_last == [
        "with its sources  It opened in 1911 [1][2]. It is old [1][2].",
        "[1] Tower  https://tower.example/",
        "    “It opened in 1911.”",
        "[2] document 2",
        "    “A tower, of 1911.”",
    ]
    assert "with its sources" not in _run_shown(run(last))  # No guard showed the sources.
    assert "with its sources" not in _run_shown(run(attempt(refuted()), outcome="abstained"))
    redacted = run(last, outcome="passed").model_copy(update={"redacted": True})
    assert "with its sources" not in _run_shown(redacted)


@pytest.mark.parametrize("terminal", [False, True])
def test_sources_obey_no_text(terminal: bool) -> None:
    bad = "[red]x[/red] \x1b]0;title\x07 \x9b31m \u202eevil\rover\nline"
    document = Document(bad, metadata={"title": bad, "url": f"javascript:{bad}", "source": bad})
    out = _run_shown(run(_attempt(f"It is {bad}.", document), outcome="passed"), terminal=terminal)
    out = re.sub(r"\x1b\[[0-9;]*m", "", out)  # rich writes these sequences itself.
    assert "[1] [red]x[/red] ␛]0;title␇" in out
    assert "javascript:" not in out
    assert not set(out) & set("\x1b\x07\x9b\u202e\r")
