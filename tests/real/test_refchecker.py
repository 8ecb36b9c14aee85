"""Test RefChecker with the real local model: each checker, and a verdict from end to end."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import Claim, ClaimLabel, RefChecker, Sample
from demur.evaluators import YesNoJudge
from demur_research.tables.checkers import GivenClaims

pytestmark = pytest.mark.real


@pytest.mark.smoke
def test_an_answer_is_split_and_checked(model: BaseChatModel) -> None:
    context = (
        "Mont Aiguille stands in the Vercors, 58 km south of Grenoble. It is 2,087 metres high. "
        "It was first climbed in 1492 by Antoine de Ville, on the order of King Charles VIII."
    )
    checker = RefChecker(model)
    good = checker.invoke(
        Sample(
            question="What is Mont Aiguille?",
            answer="Mont Aiguille is 2,087 metres high. It was first climbed in 1492.",
            contexts=[context],
        )
    )
    bad = checker.invoke(
        Sample(
            question="What is Mont Aiguille?",
            answer="Mont Aiguille was first climbed in 1950 by Edmund Hillary, on a scooter.",
            contexts=[context],
        )
    )
    assert good.error is None
    assert bad.error is None
    assert good.details["checker"] == "adapter"
    assert good.score > bad.score
    assert bad.passed is False
    assert all(claim.span is not None for claim in (*good.claims, *bad.claims))
    assert good.usage.input_tokens > 0


@pytest.mark.smoke
def test_a_refusal_is_an_abstention(model: BaseChatModel) -> None:
    found = RefChecker(model).invoke(
        {
            "question": "Who won the match?",
            "answer": "I'm sorry, but I don't know that.",
            "contexts": ["The match was played on Sunday."],
        }
    )
    assert (found.label, found.passed) == ("Abstain", None), found


@pytest.mark.parametrize("checker", ["logprobs", "joint"])
def test_each_checker_can_be_read(model: BaseChatModel, checker: str) -> None:
    reference = (
        "Maria Lindqvist founded the bakery Kringla in Uppsala in 1987. Her son Erik took it over "
        "in 2015 and opened a second shop."
    )
    claims = (
        ("Kringla was founded by Maria Lindqvist.", True),
        ("Erik opened another shop.", True),
        ("Kringla was founded in 2001.", False),
        ("Maria Lindqvist won a prize for her bread.", False),
    )
    asked = [Claim(text=text) for text, _ in claims]
    checks = GivenClaims(model=model, checker=checker)
    found = checks.invoke(
        {"answer": "", "contexts": [reference], "metadata": {"claims": asked}}
    ).claims
    assert sum(claim.label is not None for claim in found) >= 3, found
    if checker == "logprobs":
        scores: dict[bool, list[float]] = {True: [], False: []}
        for claim, (_, held) in zip(found, claims, strict=True):
            assert claim.probabilities is not None
            scores[held].append(claim.probabilities[ClaimLabel.ENTAILMENT])
        assert min(scores[True]) > max(scores[False]), found


def test_letters_in_another_form_hide_nothing() -> None:
    bold = {ord(a): chr(0x1D41A + n) for n, a in enumerate("abcdefghijklmnopqrstuvwxyz")}
    bold |= {ord(a): chr(0x1D7CE + n) for n, a in enumerate("0123456789")} | {
        ord("I"): "\U0001d408"
    }
    hidden = "It burned down in 1851.".translate(bold)
    sample = Sample(
        question="Where is the Louvre?",
        answer=f"The Louvre is in Paris. {hidden}",
        contexts=["The Louvre is a museum in Paris. It was opened to the public in 1793."],
    )
    found = RefChecker("local").invoke(sample)
    assert found.passed is False
    wrong = [claim for claim in found.claims if claim.label is not ClaimLabel.ENTAILMENT]
    assert [sample.answer[c.span.start : c.span.end] for c in wrong if c.span] == [hidden]


def test_a_yes_or_no_judge_is_read_by_the_log_probabilities_of_its_words(
    model: BaseChatModel,
) -> None:
    asked = YesNoJudge(
        "Document: {document}\n\nIs the following claim supported by the document? Answer Yes or "
        "No.\nClaim: {claim}",
        supported="Yes",
        unsupported="No",
    )
    said = ("The office opens at nine.", "The office closes at noon.")
    found = RefChecker(model, checker=asked).invoke(
        Sample(answer=" ".join(said), contexts=["The office is open from nine o'clock to five."])
    )
    labels = [ClaimLabel.ENTAILMENT, ClaimLabel.UNSUPPORTED]
    assert [claim.label for claim in found.claims] == labels, found.error
    assert found.claims[0].support > found.claims[1].support > 0
