"""Test RefChecker with scripted models: every input ends in a result or an explanation."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableLambda

from demur import CallPolicy, ClaimLabel, Evaluation, RefChecker, Sample
from demur.evaluators import RefCheckerPrompts
from demur.evaluators.refchecker import Prompt
from support.fakes import ScriptedModel, isolated, labelled, scripted

E, N, C = "Entailment", "Neutral", "Contradiction"

TWO = '("Oslo", "is the capital of", "Norway")\n("Oslo", "has", "two rivers")'
SAMPLE = Sample(
    question="What is Oslo?",
    answer="Oslo is the capital of Norway. It has two rivers.",
    contexts=["Norway is a kingdom.", "Its capital is Oslo, where the Akerselva runs."],
)


def labels(*given: str) -> str:
    return "\n".join(f"{at}. {label}" for at, label in enumerate(given, 1))


def things(count: int) -> str:
    return " ".join(f"Oslo has thing {at}." for at in range(count))


def check(model: ScriptedModel, sample: Any = SAMPLE, **options: Any) -> Evaluation:
    found = RefChecker(model, call_policy=CallPolicy(attempts=1), **options).invoke(sample)
    assert Evaluation.model_validate_json(found.model_dump_json()) == found
    return found


# --- A plain evaluation --------------------------------------------------------------------------


def test_claims_come_with_labels_places_and_evidence() -> None:
    model = scripted(TWO, joint=labels(E, C))
    found = check(model)
    assert (found.label, found.passed, found.score, found.error) == (C, False, 0.5, None)
    assert model.stages == ["extraction", "joint"]
    capital, rivers = found.claims
    assert capital.triplet == ("Oslo", "is the capital of", "Norway")
    assert capital.label is ClaimLabel.ENTAILMENT
    assert SAMPLE.answer[capital.span.start : capital.span.end] == "Oslo is the capital of Norway"
    assert SAMPLE.answer[rivers.span.start : rivers.span.end] == "has two rivers"
    (evidence,) = capital.evidence
    text = SAMPLE.contexts[evidence.context].page_content
    assert text[evidence.span.start : evidence.span.end] == evidence.text
    assert evidence.text == "Its capital is Oslo, where the Akerselva runs."
    assert found.details["counts"] == {E: 1, N: 0, C: 1}
    assert found.usage.calls == 2
    assert set(found.details["usage_by_stage"]) == {"extraction", "checking"}


def test_an_input_that_is_no_sample_is_refused_by_its_fields_and_not_quoted() -> None:
    with pytest.raises(
        ValueError, match=r"^expected a Sample, or .*metadata: .*; other: "
    ) as refused:
        RefChecker(scripted(TWO)).invoke(
            {"answer": "x", "metadata": "sk-secret", "other": "sk-secret"}
        )
    assert "sk-secret" not in str(refused.value)


def test_the_reference_is_checked_against_as_well() -> None:
    sample = Sample(answer="Oslo is in Norway.", reference="Oslo lies in Norway.")
    found = check(scripted('("Oslo", "is in", "Norway")', joint="1. Entailment"), sample)
    assert found.passed is True
    assert found.claims[0].evidence[0].context is None
    assert found.claims[0].evidence[0].text == "Oslo lies in Norway."


# --- The three settings --------------------------------------------------------------------------


def test_claims_without_references_and_retriever_are_undetermined() -> None:
    model = scripted(TWO)
    found = check(model, {"question": "x", "answer": "Oslo is in Norway."})
    assert found.undetermined
    assert found.passed is None
    assert "retriever" in found.error
    assert model.stages == []


def test_an_answer_that_states_nothing_needs_no_references() -> None:
    def never(query: str) -> list[Document]:
        raise AssertionError(query)

    for options in ({}, {"retriever": RunnableLambda(never)}):
        found = check(scripted("No claims"), {"answer": "Good morning!"}, **options)
        assert found.nothing_to_check
        assert found.error is None


def test_without_references_a_retriever_finds_them_by_the_question() -> None:
    asked = []

    def retrieve(query: str) -> list[Document]:
        asked.append(query)
        return [Document(page_content="Oslo is in Norway.", id="d1")]

    model = scripted('("Oslo", "is in", "Norway")', joint="1. Entailment")
    sample = {"question": "Where is Oslo?", "answer": "Oslo is in Norway."}
    found = check(model, sample, retriever=RunnableLambda(retrieve))
    assert found.passed is True
    assert asked == ["Where is Oslo?"]
    assert found.details["retrieved"][0]["page_content"] == "Oslo is in Norway."
    assert found.claims[0].evidence[0].context == 0


@pytest.mark.parametrize(
    ("retrieve", "why"), [(lambda _: [], "found no text"), (lambda _: 1 / 0, "ZeroDivisionError")]
)
def test_a_retriever_that_finds_nothing_or_fails_leaves_it_undetermined(
    retrieve: Any, why: str
) -> None:
    sample = {"question": "x", "answer": "Oslo is in Norway."}
    model = scripted(TWO)
    found = check(model, sample, retriever=RunnableLambda(retrieve))
    assert found.undetermined
    assert why in found.error
    assert model.stages == []


def test_contexts_are_not_replaced_by_the_retriever() -> None:
    def retrieve(query: str) -> list[Document]:
        raise AssertionError("must not be asked")

    found = check(scripted(TWO, joint=labels(E, E)), retriever=RunnableLambda(retrieve))
    assert found.passed is True


# --- Long references and long answers ------------------------------------------------------------


def test_a_long_answer_is_extracted_stretch_by_stretch_and_all_of_it_is_checked() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            numbers = [int(n) for n in isolated("answer", messages).split() if n.isdigit()]
            return "\n".join(f'("Item", "has the number", "{n}")' for n in numbers)
        return labelled(messages, lambda claim: E)

    answer = " ".join(f"Item has the number {at} ." for at in range(300))
    model = ScriptedModel(script=script)
    found = check(model, Sample(answer=answer, contexts=[answer]))
    assert (len(found.claims), found.passed) == (300, True)
    assert model.stages.count("extraction") > 1
    assert model.stages.count("joint") == 15


# --- Bad replies of the extractor ----------------------------------------------------------------


SENTENCES = ["Oslo is the capital of Norway.", "It has two rivers."]
"""The sentences of the answer."""


@pytest.mark.parametrize(
    "reply", ["No claims", "", "The answer says that Oslo is a capital.", '("Oslo", "is the']
)
def test_what_the_extractor_does_not_nominate_is_a_claim_as_it_stands(reply: str) -> None:
    model = scripted(reply, joint=labels(E, N))
    found = check(model)
    assert [claim.text for claim in found.claims] == SENTENCES == found.details["fallback_claims"]
    assert [SAMPLE.answer[c.span.start : c.span.end] for c in found.claims] == SENTENCES
    assert (found.passed, found.label) == (False, N)
    assert found.details["coverage"] == 0
    assert model.stages.count("extraction") == (1 if reply == "No claims" else 2)


def test_a_readable_second_reply_is_taken() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            repairing = "could not be read" in str(messages[-1].content)
            return TWO if repairing else "Well, Oslo."
        return labels(E, E)

    assert check(ScriptedModel(script=script)).passed is True


def test_half_a_line_at_the_token_limit_makes_it_ask_for_the_halves() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        if stage == "joint":
            return labels(E, E)
        stretch = isolated("answer", messages)
        if "capital" in stretch and "rivers" in stretch:
            cut = '("Oslo", "is the capital of", "Norway")\n("Oslo", "ha'
            return AIMessage(cut, response_metadata={"finish_reason": "length"})
        return TWO.splitlines()[0 if "capital" in stretch else 1]

    found = check(ScriptedModel(script=script))
    assert [claim.text for claim in found.claims] == [
        "Oslo is the capital of Norway",
        "Oslo has two rivers",
    ]
    assert found.passed is True


@pytest.mark.parametrize(
    "first",
    [
        '("Oslo", "is the capital',
        "This is a refusal, it states no facts.",
        '("Bergen", "sells", "umbrellas")',
    ],
)
def test_a_no_claims_after_claims_or_prose_is_not_believed(first: str) -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "joint":
            return labels(N, N)
        repairing = "could not be read" in str(messages[-1].content)
        return "No claims" if repairing else first

    found = check(ScriptedModel(script=script))
    assert found.passed is False
    assert [claim.text for claim in found.claims if claim.label] == SENTENCES


def test_the_local_model_is_kept_to_the_form_and_to_a_length() -> None:
    options = []

    class Local(ScriptedModel):
        @property
        def _llm_type(self) -> str:
            return "demur-local"

        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            options.append(kwargs)
            return super()._generate(*args)

    model = Local(script=scripted(TWO, joint=labels(E, E)).script)
    check(model, checker="joint", claims="triplets")
    check(scripted(TWO, joint=labels(E, E)))
    first, second = options
    assert 0 < first["max_tokens"] <= 1024
    assert "{0,7}" in first["extra_body"]["grammar"]
    assert not second.keys() & {"max_tokens", "extra_body"}


def test_an_echo_of_the_prompts_example_is_dropped_and_said() -> None:
    echo = '("Ilse Korn", "made", "the clock")'
    found = check(scripted(f"{echo}\n{TWO}", joint=labels(E, E)))
    assert len(found.claims) == 2
    assert found.details["dropped_claims"] == ["Ilse Korn made the clock"]
    assert [claim.text for claim in check(scripted(echo, joint=labels(N, N))).claims] == SENTENCES


def test_a_claim_no_word_of_which_stands_in_the_answer_stays_without_a_label() -> None:
    found = check(scripted(f'("Zwartkop", "sells", "umbrellas")\n{TWO}', joint=labels(E, E)))
    assert [claim.label for claim in found.claims] == [E, E, None]
    assert "no word of this claim" in found.claims[-1].error
    assert found.undetermined


def test_a_paraphrase_that_shares_no_word_with_the_answer_hides_nothing() -> None:
    sample = Sample(
        question="How do I get there?",
        answer="There are no subway stations nearby.",
        contexts=["The line 4 stops in front of the house."],
    )
    found = check(
        scripted('("metro", "absent from", "district")', joint="1. Contradiction"), sample
    )
    assert [claim.text for claim in found.claims] == [sample.answer, "metro absent from district"]
    assert found.passed is False


# --- Bad replies of the checker ------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["1. Entailment", "Entailment", "", "1. Entailment\n2. Maybe"])
def test_a_missing_label_that_could_change_the_decision_leaves_it_undetermined(reply: str) -> None:
    found = check(scripted(TWO, joint=reply))
    assert found.undetermined
    assert (found.score, found.label, found.passed) == (None, None, None)
    missing = [claim for claim in found.claims if claim.label is None]
    assert missing
    assert all(claim.error for claim in missing)


def test_a_missing_label_that_changes_nothing_leaves_the_decision() -> None:
    three = f'{TWO}\n("rivers", "are", "two")'
    found = check(scripted(three, joint="1. Entailment\n2. Contradiction"))
    assert (found.label, found.passed, found.error) == (C, False, None)
    assert found.claims[2].label is None
    assert found.score is None
    assert found.details["score_bounds"] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]


def test_claims_without_a_label_are_asked_for_again_in_smaller_groups() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            return "\n".join(f'("Oslo", "has", "thing {at}")' for at in range(8))
        asked = isolated("claims", messages).splitlines()
        return "\n".join(f"{line.partition('.')[0]}. Entailment" for line in asked[:2])

    model = ScriptedModel(script=script)
    found = check(model, Sample(answer=things(8), contexts=["Oslo has things."]))
    assert found.passed is True
    assert model.stages.count("joint") > 1


@pytest.mark.parametrize(("stage", "claims"), [("extraction", 0), ("joint", 2)])
def test_a_stage_that_fails_leaves_it_undetermined(stage: str, claims: int) -> None:
    def script(asked: str, messages: Sequence[BaseMessage]) -> str:
        if asked == stage:
            raise RuntimeError("the model is on fire")
        return TWO

    found = check(ScriptedModel(script=script))
    assert found.undetermined
    assert "the model is on fire" in found.error
    assert len(found.claims) == claims


# --- Strange text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "triplet", "context"),
    [
        ("Oslo \ud800is old.", '("Oslo", "is", "old")', "Oslo\udfff is \ud83d\ude00 old."),
        ("אוסלו היא בירת נורווגיה.", '("אוסלו", "בירת", "נורווגיה")', "נורווגיה: אוסלו היא הבירה."),
        (
            "奥斯陆是挪威的首都。",
            '("奥斯陆", "是", "挪威的首都")',
            "挪威的首都是奥斯陆。人口七十万。",
        ),
        (
            "{curly} Oslo is {0} %s",
            '("{curly} Oslo", "is", "{0} %s")',
            "Oslo {curly} is {reference}",
        ),
    ],
    ids=["surrogates", "right to left", "unspaced", "braces"],
)
def test_strange_text_is_checked_like_any_other(answer: str, triplet: str, context: str) -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "joint":
            return labels(*[E] * len(re.findall(r"(?m)^\d+\. ", isolated("claims", messages))))
        return triplet

    found = check(ScriptedModel(script=script), {"answer": answer, "contexts": [context]})
    assert found.passed is True, found.error
    claim = found.claims[0]
    assert claim.span is not None
    assert 0 <= claim.span.start < claim.span.end <= len(answer)
    (evidence,) = claim.evidence
    assert len(context[evidence.span.start : evidence.span.end]) == len(evidence.text)


# --- Construction --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"checker": "perclaim"}, "unknown checker 'perclaim'"),
        ({"checker": 3}, "CrossEncoder"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(options: dict[str, Any], match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        RefChecker(scripted(TWO), **{"aggregation": "soft", **options})


def test_other_prompts_take_the_place_of_ours_and_need_its_fields() -> None:
    prompt = Prompt(system="Judge.", fields=("claims", "reference"))
    model = scripted(TWO, joint=labels(E, E))
    check(model, prompts=RefCheckerPrompts(joint=prompt))
    assert model.requests[-1][0].content == "Judge."
    with pytest.raises(ValueError, match="'joint' has the fields"):
        RefCheckerPrompts(joint=Prompt(system="Judge.", fields=("reference",)))


def test_one_named_by_its_model_survives_pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    checker = RefChecker("openai:gpt-4o-mini", aggregation="soft", threshold=0.5)
    pickled = pickle.dumps(checker)
    assert b"sk-secret" not in pickled
    restored = pickle.loads(pickled)
    assert restored.model_dump(exclude={"call_policy"}) == checker.model_dump(
        exclude={"call_policy"}
    )
    assert restored.call_policy == checker.call_policy
    assert restored.aggregation == "soft"
