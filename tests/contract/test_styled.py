"""Test that every evaluator judges an answer in styled letters as it judges the plain answer."""

from __future__ import annotations

from typing import Any

import pytest

from contract.evaluators import EVALUATORS
from contract.member import Member
from demur import Evaluation, Sample
from demur._text import plain
from text.test_plain_letters import BOLD


def _styled(text: str | None) -> str:
    return (text or "").translate(BOLD)


def _in_plain(text: str) -> str:
    found = plain(text)
    return text if found is None else found.text


@pytest.mark.slow
@pytest.mark.parametrize("member", EVALUATORS, ids=lambda member: member.name)
def test_it_is_judged_as_if_it_were_plain(member: Member) -> None:
    given: Sample = member.give(3)
    documents = [
        one.model_copy(update={"page_content": _styled(one.page_content)}) for one in given.contexts
    ]
    styled = given.model_copy(
        update={
            "question": _styled(given.question),
            "answer": _styled(given.answer),
            "contexts": tuple(documents),
        }
    )
    found: Evaluation = member.make().invoke(styled)
    meant: Evaluation = member.make().invoke(given)
    assert _essence(found) == _essence(meant)
    assert member.good(3, found)
    for claim in found.claims:
        if claim.span is not None:
            said = styled.answer[claim.span.start : claim.span.end]
            assert said != _in_plain(said)
        for quote in claim.evidence:
            assert quote.context is not None
            page = documents[quote.context].page_content
            assert page[quote.span.start : quote.span.end] == quote.text


def _essence(found: Evaluation) -> Any:
    """Return the finding, the score and the claims in plain letters, without spans."""
    claims = [
        (one.text, one.label, [(quote.label, _in_plain(quote.text)) for quote in one.evidence])
        for one in found.claims
    ]
    return found.finding, found.score, found.label, claims
