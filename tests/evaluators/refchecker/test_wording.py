"""Test what the words of a claim, and texts about other things, do beside the small judge."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from demur import Evaluation, RefChecker
from demur.evaluators.refchecker.wording import counted
from demur.local import SmallJudge, word_fit
from demur.schema import ClaimLabel

pytest.importorskip("demur_judge")

POOL = "The pool is open from 8 am to 9 pm. Children under six swim for free with an adult."
MOORING = "Boats may moor at the north quay for three nights. Water and power are in the price."
FERRY = "The ferry leaves the island every two hours. Dogs travel for free, bicycles cost 4 euros."
NEAR = "Children under six swim for free with an adult."
FAR = "Members borrow skates and helmets at the counter without paying a deposit."
TABLE = "| plan | seats | price |\n|---|---|---|\n| Basic | 3 | 9 |\n| Team | 20 | 49 |"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that the judge reads; it supports each claim by each text alike."""
    texts: list[str] = []

    def predict(
        judge: SmallJudge, pairs: Sequence[tuple[str, str]]
    ) -> list[dict[ClaimLabel, float]]:
        texts.extend(reference for reference, _ in pairs)
        shares = {ClaimLabel.ENTAILMENT: 0.85, ClaimLabel.NEUTRAL: 0.1}
        return [{**shares, ClaimLabel.CONTRADICTION: 0.05} for _ in pairs]

    monkeypatch.setattr(SmallJudge, "predict", predict)
    return texts


def check(claim: str, *contexts: str, question: str | None = None) -> Evaluation:
    sample = {"answer": claim, "contexts": [*contexts], "question": question}
    return RefChecker("small").invoke(sample)


def support(claim: str, *contexts: str, question: str | None = None) -> float:
    (found,) = check(claim, *contexts, question=question).claims
    assert found.support is not None
    return found.support


# -- Words -----------------------------------------------------------------------------------------


def test_a_claim_that_shares_no_words_with_its_text_is_not_supported(asked: list[str]) -> None:
    assert check(NEAR, POOL).passed
    found = check(FAR, POOL)
    assert found.passed is False
    assert found.claims[0].label is ClaimLabel.NEUTRAL
    assert sum(dict(found.claims[0].probabilities or {}).values()) == pytest.approx(1)


def test_each_further_word_that_the_text_lacks_lowers_the_support(asked: list[str]) -> None:
    more = (" and", " lifeguards", " sell", " lemonade", " cakes", " towels", " sunscreen")
    claims = [f"{NEAR[:-1]}{''.join(more[:count])}." for count in range(len(more) + 1)]
    found = [support(claim, POOL) for claim in claims]
    assert found == sorted(found, reverse=True)
    free = int(word_fit().free)
    assert found[0] == found[1 + free] > found[2 + free] > found[-1]


@pytest.mark.parametrize(
    ("claim", "text", "question"),
    [
        ("Sunday.", POOL, "On which day do members borrow skates and helmets?"),
        ("Mitglieder leihen Schlittschuhe und Helme am Schalter.", POOL, None),
        (
            "会員は窓口でスケート靴とヘルメットを借りられます。",
            "プールは午前八時から開いています。",
            None,
        ),
        (FAR, TABLE, None),
    ],
    ids=["a bare value", "another language", "no spaces", "a table"],
)
def test_where_words_say_nothing_the_judge_alone_decides(
    claim: str, text: str, question: str | None, asked: list[str]
) -> None:
    assert support(claim, text, question=question) == support(NEAR, POOL)


def test_a_report_of_an_agent_in_its_own_words_is_left_to_the_judge(asked: list[str]) -> None:
    call = {"name": "send_email", "args": {"to": "dana@acme.example"}, "id": "c"}
    report = "Your quarterly figures are on their way to accounting."
    messages = [
        HumanMessage("Please mail the figures."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("queued", tool_call_id="c"),
        AIMessage(report),
    ]
    (found,) = RefChecker("small").invoke({"messages": messages}).claims
    assert found.support == support(NEAR, POOL)


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=3))
def test_any_texts_can_be_counted(claim: str, texts: list[str]) -> None:
    found = counted(claim, texts)
    assert found is None or min(found) >= 0


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5))
def test_a_penalty_falls_with_shared_words_and_rises_with_missing_ones(
    shared: int, missing: int, more: int
) -> None:
    fit = word_fit()
    assert fit.penalty(shared, missing) >= 0
    assert fit.penalty(shared + more, missing) <= fit.penalty(shared, missing)
    assert fit.penalty(shared, missing + more) >= fit.penalty(shared, missing)


def test_what_is_made_of_the_words_is_in_the_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    import demur_judge

    before = RefChecker("small").fingerprints
    monkeypatch.setitem(demur_judge.WORDS, "missing", 1.0)
    assert RefChecker("small").fingerprints["checker"] != before["checker"]


# -- Texts about other things ----------------------------------------------------------------------


def test_texts_that_are_far_from_a_claim_are_not_read(asked: list[str]) -> None:
    alone = support(NEAR, POOL)
    read = {*asked}
    asked.clear()
    assert support(NEAR, MOORING, POOL, FERRY) == alone
    assert {*asked} == read


def test_a_text_that_is_nearly_as_near_as_another_is_not_read(asked: list[str]) -> None:
    shared = "On Sunday mornings children under six swim for free in the heated outdoor pool"
    nearly, nearest = f"{shared} with a grandparent.", f"{shared} with an adult."
    check(nearest, nearly, nearest)
    assert {*asked} == {nearest}


def test_a_text_in_other_letters_is_not_the_nearest_though_it_has_the_numbers(
    asked: list[str],
) -> None:
    latin = "On 10 August 1793 at 9, the Louvre opened its doors."
    cyrillic = "Лувр впервые принял посетителей летом."
    check("Лувр открылся 10 августа 1793 года в 9 часов.", latin, cyrillic)
    assert cyrillic in asked
    assert latin not in asked


def test_a_claim_that_no_text_is_near_to_is_held_against_all(asked: list[str]) -> None:
    check("Zzyzx quuxed the frobnicator.", MOORING, POOL)
    assert {MOORING, POOL} <= {*asked}


def test_texts_that_are_equally_near_are_all_read_and_no_sentences_of_them(
    asked: list[str],
) -> None:
    other = POOL.replace("9 pm", "7 pm")
    check(NEAR, MOORING, POOL, other)
    assert {*asked} == {POOL, other}


def test_the_nearest_text_is_read_and_its_sentences_that_decide(asked: list[str]) -> None:
    check(NEAR, MOORING, POOL)
    assert {*asked} == {POOL, NEAR}


@pytest.mark.parametrize("others", [[], [MOORING], [MOORING, FERRY]])
def test_the_real_judge_says_the_same_with_other_texts_beside(others: list[str]) -> None:
    alone, beside = (
        {claim: check(claim, POOL, *texts).passed for claim in (NEAR, FAR)}
        for texts in ([], others)
    )
    assert alone == beside == {NEAR: True, FAR: False}
