"""Test over all answers of `demur_research.texts.answers` that nothing passes unchecked.

The scripted judge finds Entailment for the statements that the extractor gave, and Neutral for any
other claim. So an answer that is let through although it states more was never wholly checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from demur import Evaluation, Guard, RefChecker
from demur.evaluators import RefCheckerPrompts
from demur.guard import AnswerRejected, Block
from demur_research.texts.answers import ANSWERS, STATING, Answer, let_through
from support.fakes import ScriptedModel, isolated
from support.streams import Telling

NONE = "No claims"
WHOLE = "a whole list"
"""The one extractor without a fault; its judge supports everything."""
PROSE = "Let me read that message with care, line by line:"
DENYING = ("no claims", "prose, then no claims", "foreign claims, then no claims", "half a list")
"""The extractors that report no claims for an answer that states nothing."""
EXTRACTORS = (*DENYING, "prose twice", "our own example", "empty reply")
SOME = [STATING[at * len(STATING) // 20] for at in range(20)]


def _said(text: str) -> str:
    """Reduce a text to its letters; a triplet and its statement differ in signs and spaces."""
    return "".join(re.findall(r"\w", text.casefold()))


def _line(statement: str) -> str:
    """Return a statement as a triplet."""
    words = statement.replace('"', "").split()
    text = " ".join(words)
    if len(words) < 3 and len(text) > 5 and re.search(r"[\u3040-\u9fff]", text):
        third = len(text) // 3
        words = [text[:third], text[third : 2 * third], text[2 * third :]]
    if len(words) < 3:
        return f'("the answer", "is", "{text}")'
    return f'("{words[0]}", "{" ".join(words[1:-1])}", "{words[-1]}")'


class Extractor:
    """Play an extractor with one fault, and a judge that supports only what the extractor gave."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.given: set[str] = set()
        """The statements that the extractor gave."""
        self._believed: set[str] = set()
        self.statements: Sequence[str] = ()
        """The statements of the answer under judgement."""
        self.checker = RefChecker(ScriptedModel(script=self._reply))

    def judge(self, one: Answer) -> Evaluation:
        self.begin(one)
        return self.checker.invoke(one.sample)

    def begin(self, one: Answer) -> None:
        self.given.clear()
        self._believed.clear()
        self.statements = one.statements

    def _reply(self, stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            return self._extraction(messages)
        assert stage == "joint", stage
        claims = re.findall(r"^(\d+)\. (.*)$", isolated("claims", messages), re.MULTILINE)
        believed = [_said(claim) in self._believed or self.how == WHOLE for _, claim in claims]
        return "\n".join(
            f"{number}. {'Entailment' if held else 'Neutral'}"
            for (number, _), held in zip(claims, believed, strict=True)
        )

    def _extraction(self, messages: Sequence[BaseMessage]) -> str:
        again = "<answer-" not in str(messages[-1].content)
        if self.how == "half a list":
            return self._give(messages, 1)
        if self.how == WHOLE:
            return self._give(messages, len(self.statements))
        if self.how == "our own example":
            return RefCheckerPrompts().triplets.examples[-1].reply
        first, second = {
            "no claims": (NONE, NONE),
            "prose, then no claims": (PROSE, NONE),
            "foreign claims, then no claims": (_line("purple zeppelins yodel"), NONE),
            "prose twice": (PROSE, PROSE),
            "empty reply": ("", ""),
        }[self.how]
        return second if again else first

    def _give(self, messages: Sequence[BaseMessage], most: int) -> str:
        """Return the first of the statements that the request shows."""
        shown = _said(isolated("answer", messages))
        chosen = [one for one in self.statements if _said(one) in shown][:most]
        lines = [_line(one) for one in chosen]
        self.given.update(chosen)
        self._believed.update(map(_said, lines))
        return "\n".join(lines) or NONE


@dataclass(frozen=True)
class Judged:
    """Hold one answer with its evaluation."""

    one: Answer
    found: Evaluation
    hidden: tuple[str, ...]
    """The statements of the answer that the extractor left out."""

    @property
    def misplaced(self) -> bool:
        """Return whether the place of a claim is outside the answer."""
        spans = [claim.span for claim in self.found.claims if claim.span is not None]
        return not all(span.start < span.end <= len(self.one.answer) for span in spans)


def _hidden(extractor: Extractor, one: Answer, until: int | None = None) -> tuple[str, ...]:
    """Return the statements of the answer, up to a place in it, that the extractor left out."""
    last = len(one.answer) if until is None else until
    ended = (said for said, (_, end) in zip(one.statements, one.places, strict=True) if end <= last)
    return tuple(said for said in ended if said not in extractor.given)


def _judged(how: str) -> tuple[Judged, ...]:
    """Judge all answers, or a third of them."""
    extractor = Extractor(how)
    judged = ANSWERS if how in ("no claims", "half a list", WHOLE) else ANSWERS[::3]
    return tuple(Judged(one, extractor.judge(one), _hidden(extractor, one)) for one in judged)


def _silent(judged: Sequence[Judged]) -> list[str]:
    """Return the answers that were let through although a statement of theirs was not checked."""
    return [each.one.id for each in judged if each.hidden and let_through(each.found)]


def _misplaced(judged: Sequence[Judged]) -> list[str]:
    return [each.one.id for each in judged if each.misplaced]


@pytest.mark.slow
@pytest.mark.parametrize("how", EXTRACTORS)
def test_what_is_stated_is_let_through_only_when_checked_and_what_states_nothing_is_no_claim(
    how: str,
) -> None:
    judged = _judged(how)
    assert _silent(judged) == []
    assert _misplaced(judged) == []
    found = {each.one.id: each.found for each in judged if not each.one.states}
    wrong = [
        key
        for key, one in found.items()
        # If the extractor's reply cannot be read at all, the answer may also be undetermined.
        if one.label != "Abstain" and (how in DENYING or not one.undetermined)
    ]
    assert len(wrong) <= max(2, len(found) // 20), wrong


@pytest.mark.slow
def test_a_whole_list_that_the_judge_believes_passes() -> None:
    judged = _judged(WHOLE)
    assert _misplaced(judged) == []
    right = [each for each in judged if each.one.supported]
    wrong = [each.one.id for each in right if each.found.passed is not True]
    assert len(wrong) <= len(right) // 20, wrong
    # Of the others, only those fail that have a string that stands nowhere.
    failed = [each.found for each in judged if each.found.passed is False]
    assert all(any(claim.missing_strings for claim in found.claims) for found in failed)


# --- Without an extractor ------------------------------------------------------------------------


def _denying(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Give Neutral for every number that a request shows."""
    numbers = re.findall(r"^\W*(\d+)[.:)\]]", str(messages[-1].content), re.MULTILINE)
    return "\n".join(f"{number}. Neutral" for number in dict.fromkeys(numbers)) or "Neutral"


@pytest.mark.smoke
@pytest.mark.slow
def test_a_judge_of_sentences_that_denies_all_lets_nothing_through_that_states_something() -> None:
    checker = RefChecker(ScriptedModel(script=_denying), claims="sentences")
    judged = [Judged(one, checker.invoke(one.sample), one.statements) for one in ANSWERS]
    assert _silent([each for each in judged if each.one.states]) == []
    assert _misplaced(judged) == []
    empty = [each for each in judged if not each.one.states]
    wrong = [each.one.id for each in empty if each.found.label != "Abstain"]
    assert len(wrong) <= 5, wrong


# --- Through a guard -----------------------------------------------------------------------------

Guarded = Callable[[Extractor, Answer], str]


def _guard(extractor: Extractor, one: Answer, **options: Any) -> Guard[Any, Any]:
    """Return a guard around a chain that gives this answer."""
    extractor.begin(one)
    documents = [Document(page_content=text) for text in one.contexts]
    options = {"on_fail": Block(), "contexts": lambda output: documents, **options}
    return Guard(Telling(one.answer), extractor.checker, **options)


def _invoked(extractor: Extractor, one: Answer) -> str:
    """Return the part of the answer that a guard lets out."""
    with suppress(AnswerRejected):
        return str(_guard(extractor, one).invoke(one.question or ""))
    return ""


def _streamed(extractor: Extractor, one: Answer) -> str:
    """Return the part of the answer that a guard lets out sentence by sentence."""
    chunks = []
    with suppress(AnswerRejected):
        for chunk in _guard(extractor, one, streaming="sentence").stream(one.question or ""):
            chunks.append(chunk)
    return "".join(chunks)


GUARDED = (_invoked, _streamed)


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("how", EXTRACTORS)
@pytest.mark.parametrize("guarded", GUARDED)
def test_a_guard_lets_nothing_unchecked_out(how: str, guarded: Guarded) -> None:
    extractor = Extractor(how)
    silent = []
    for one in SOME:
        out = guarded(extractor, one)
        assert one.answer.startswith(out)
        silent += [one.id] if _hidden(extractor, one, len(out)) else []
    assert silent == []


@pytest.mark.slow
@pytest.mark.parametrize("guarded", GUARDED)
def test_a_guard_lets_out_what_the_judge_believes(guarded: Guarded) -> None:
    extractor = Extractor(WHOLE)
    right = [one for one in SOME if one.supported]
    held = [one.id for one in right if guarded(extractor, one) != one.answer]
    assert len(held) <= len(right) // 10, held
