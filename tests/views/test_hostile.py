"""Test hostile texts: the page has only demur's elements, and shows every text as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from markupsafe import Markup

from demur import Calculation, Claim, ClaimLabel, Evaluation, Evidence, MissingString, Span, Usage
from demur._text import harmless, replace_surrogates
from demur.guard import Attempt, Feedback, Guarded, Trace, feedback_on
from demur.observe import Record
from demur.views import stylesheet
from support.html import ATTACKS, page_of_own

ELEMENTS = {
    *("style", "article", "section", "div", "p", "span", "strong", "ol", "li", "blockquote"),
    *("a", "mark", "sup", "cite", "details", "summary", "dl", "dt", "dd", "time", "ul", "del"),
}
ATTRIBUTES = {
    *("class", "id", "href", "title", "dir", "role", "tabindex", "datetime"),
    *("aria-label", "aria-labelledby", "aria-hidden", "data-claim"),
}
TEXTS = st.lists(st.sampled_from(ATTACKS), min_size=1, max_size=6).map("".join)
# An application whose texts come from a template engine has such values.
MARKUP = TEXTS.map(lambda text: Markup(replace_surrogates(text)))
LABELS = st.sampled_from([None, *ClaimLabel])
SPANS = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(
    lambda pair: Span(start=min(pair), end=max(pair))
)


@st.composite
def claims(draw: Any) -> Claim:
    quotes = draw(st.lists(st.tuples(st.none() | st.integers(0, 4), SPANS, TEXTS), max_size=2))
    label = draw(LABELS)
    return Claim(
        text=draw(TEXTS),
        triplet=draw(st.none() | st.tuples(TEXTS, TEXTS, TEXTS)),
        span=draw(st.none() | SPANS),
        label=label,
        probabilities=draw(st.none() | st.just(dict.fromkeys(ClaimLabel, 1 / 3))),
        error=draw(TEXTS) if label is None else None,
        evidence=tuple(
            Evidence(context=at, span=span, text=text, label=label or ClaimLabel.NEUTRAL)
            for at, span, text in quotes
        ),
        missing_strings=tuple(
            MissingString(string=string, nearest=nearest)
            for string, nearest in draw(st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=2))
        ),
        calculations=tuple(
            Calculation(figure=figure, follows=follows, text=text, operands=())
            for figure, follows, text in draw(
                st.lists(st.tuples(TEXTS, st.booleans(), TEXTS), max_size=2)
            )
        ),
    )


@st.composite
def evaluations(draw: Any) -> Evaluation:
    if draw(st.booleans()):
        return Evaluation(name=draw(TEXTS), error=draw(TEXTS), details={"x": draw(TEXTS)})
    return Evaluation(
        name=draw(TEXTS),
        score=draw(st.none() | st.floats(-2, 2)),
        label=draw(st.none() | TEXTS),
        passed=draw(st.none() | st.booleans()),
        explanation=draw(TEXTS),
        claims=tuple(draw(st.lists(claims(), max_size=4))),
    )


@st.composite
def attempts(draw: Any) -> Attempt:
    contexts = draw(st.lists(st.tuples(TEXTS, MARKUP | TEXTS), max_size=3))
    return Attempt(
        origin=draw(st.sampled_from(("chain", "feedback", "repair", "edit"))),
        recovery=draw(st.none() | TEXTS),
        removed=tuple(draw(st.lists(TEXTS | MARKUP, max_size=2))),
        question=draw(st.none() | TEXTS),
        answer=draw(TEXTS | MARKUP),
        contexts=tuple(
            Document(page_content=text, metadata={"source": source}) for text, source in contexts
        ),
        evaluations=tuple(draw(st.lists(evaluations(), max_size=3))),
        verdict=draw(st.sampled_from(("passed", "failed", "undetermined", "scored"))),
        usage=Usage(),
    )


@st.composite
def tried(draw: Any) -> tuple[Attempt, ...]:
    first, *rest = draw(st.lists(attempts(), min_size=1, max_size=3))
    found = [first]
    for one in rest:
        told = feedback_on(found[-1], 1) if found[-1].evaluations else _told(draw)
        found.append(one.model_copy(update={"feedback": told}))
    return tuple(found)


def _told(draw: Any) -> Feedback:
    documents = (Document(page_content=draw(TEXTS), metadata={"title": draw(MARKUP)}),)
    return Feedback(
        question=None,
        answer=draw(TEXTS),
        evaluations=(draw(evaluations()),),
        documents=documents,
        errors=(draw(TEXTS),),
        instruction=draw(TEXTS),
    )


def check(html: str, texts: Iterator[str]) -> None:
    page = page_of_own(html, ELEMENTS, ATTRIBUTES)
    assert page.texts("style") == [stylesheet()]
    assert all(re.fullmatch(r"demur-[0-9a-f]{12}-([acems][0-9-]+|s)", one) for one in page.ids)
    links = [one["href"] for one in page.elements if "href" in one]
    assert {*links} <= {f"#{one}" for one in page.ids}
    shown = "".join("".join(page.texts("article")).split())
    for text in texts:
        assert "".join(harmless(text).split()) in shown


def of(evaluation: Evaluation) -> Iterator[str]:
    yield evaluation.name
    yield from filter(None, (evaluation.error, evaluation.explanation))
    if evaluation.label and not evaluation.nothing_to_check:
        yield evaluation.label
    for claim in evaluation.claims:
        yield claim.text
        yield from claim.triplet or ()
        yield from filter(None, (claim.error, *(one.text for one in claim.evidence)))


def told(attempt: Attempt) -> Iterator[str]:
    for one in attempt.evaluations:
        yield from of(one)
    for document in attempt.contexts:
        yield document.metadata["source"]
    yield from attempt.removed


@pytest.mark.slow
@settings(max_examples=20)
@given(tried(), TEXTS, MARKUP)
def test_a_trace_and_what_was_returned(
    attempts: tuple[Attempt, ...], reason: str, output: str
) -> None:
    trace = Trace(
        outcome="blocked",
        reason=reason,
        attempts=attempts,
        usage=Usage(),
        time=datetime.now(timezone.utc),
        seconds=1,
    )

    def texts() -> Iterator[str]:
        yield reason
        for attempt in attempts:
            yield from told(attempt)

    check(trace._repr_html_(), texts())
    for attempt in attempts:
        for evaluation in attempt.evaluations:
            check(evaluation._repr_html_(), of(evaluation))
    check(Guarded(output, trace)._repr_html_(), iter((output,)))


@pytest.mark.slow
@settings(max_examples=20)
@given(tried(), st.lists(TEXTS, min_size=8, max_size=8), st.booleans())
def test_a_record(attempts: tuple[Attempt, ...], said: list[str], redacted: bool) -> None:
    id, name, tag, model, response, reason, key, value = said
    record = Record(
        id=id,
        root=name,
        time=datetime.now(timezone.utc),
        name=name,
        tags=(tag,),
        metadata={key: value},
        model=model,
        response=response,
        attempts=attempts,
        reason=reason,
        seconds=1,
        redacted=redacted,
    )
    check(record._repr_html_(), iter(said))
