"""Test Reverse Validation from an answer to a verdict, with scripted models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur import Failure, ReverseValidation, Sample
from demur.evaluators.reverse_validation.matching import Decision
from support.fakes import ScriptedModel, isolated

ANSWER = "Hoy is an island of Orkney. It has the highest cliffs of Britain."
QUESTION = "Which island of Orkney has the highest cliffs of Britain?"
LIST = "1. Island of Orkney\n2. Highest cliffs of Britain"


def model(**replies: str | Sequence[str] | Exception) -> ScriptedModel:
    """Return a model that replies by stage; of several replies, the last one repeats."""
    asked: dict[str, int] = {}

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        at = asked[stage] = asked.get(stage, -1) + 1
        said = replies[stage]
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, str) else said[min(at, len(said) - 1)]

    return ScriptedModel(script=script)


def sample(entity: Any = "Hoy", question: str | None = None) -> Sample:
    return Sample(answer=ANSWER, question=question, metadata={"entity": entity} if entity else {})


# --- The variants -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "label", "score"), [("Hoy", "factual", 1.0), ("Skye", "non-factual", 0.0)]
)
def test_by_a_question(reply: str, label: str, score: float) -> None:
    chat = model(construction=QUESTION, access=reply)
    found = ReverseValidation(chat, variant="qg").invoke(sample())
    assert (found.label, found.score, found.passed) == (label, score, label == "factual")
    assert found.failure is (None if found.passed else Failure.MISMATCH)
    expected = {
        **{"entity": "Hoy", "entity_source": "caller", "query": QUESTION, "leaks": []},
        **{"reply": reply, "percentage": None, "unmet": [], "matcher": "normalized"},
    }
    assert expected.items() <= found.details.items()
    assert reply in found.explanation or "Hoy" in found.explanation
    assert chat.stages == ["construction", "access"]
    assert found.usage.calls == 2
    assert isolated("question", chat.requests[1]) == QUESTION
    assert ANSWER not in str(chat.requests[1])


@pytest.mark.parametrize(
    ("reply", "label", "score", "percentage", "unmet"),
    [
        ("Entity: Hoy\nPercentage: 100%\nNot met: none", "factual", 1.0, 100, []),
        ("Entity: Hoy\nPercentage: 80%\nNot met: none", "factual", 0.8, 80, []),
        (
            "Entity: Hoy\nPercentage: 50%\nNot met: 2",
            *("non-factual", 0.5, 50, ["Highest cliffs of Britain"]),
        ),
        ("Entity: Hoy\nNot met: none", "factual", 1.0, 100, []),
        (
            "Entity: Hoy\nPercentage: high\nNot met: 2",
            *("non-factual", 0.5, 50, ["Highest cliffs of Britain"]),
        ),
        ("Entity: Skye\nPercentage: 100%\nNot met: none", "non-factual", 0.0, 100, []),
    ],
)
def test_by_requirements(
    reply: str, label: str, score: float, percentage: float | None, unmet: list[str]
) -> None:
    chat = model(construction=LIST, access=reply)
    found = ReverseValidation(chat, variant="em").invoke(sample())
    assert (found.label, found.score) == (label, score)
    assert found.details["percentage"] == percentage
    assert found.details["unmet"] == unmet
    assert all(one in found.explanation for one in unmet)
    assert isolated("requirements", chat.requests[1]) == LIST
    assert found.usage.calls == 2


@pytest.mark.parametrize(
    ("matcher", "reply"),
    [
        ("normalized", "Entity: Hoy"),
        ("exact", "Hoy meets 100% of them."),
        ("wikibio_name", "Entity: Hoy\nPercentage: 250%"),
        ("llm", "Entity: Hoy\nPercentage: ?\nNot met: the weather"),
    ],
)
def test_a_share_that_is_not_told_is_not_taken_for_all(matcher: str, reply: str) -> None:
    for threshold in (0.8, 0.0):
        chat = model(construction=LIST, access=reply)
        made = ReverseValidation(chat, variant="em", matcher=matcher, threshold=threshold)
        found = made.invoke(sample())
        assert found.undetermined
        assert "does not say which share of the requirements it meets" in str(found.error)
        assert (found.details["reply"], found.details["percentage"]) == (reply, None)
        assert found.details["matcher"] == matcher


def test_the_published_decision_passes_what_tells_no_share_and_gives_it_no_score() -> None:
    chat = model(construction=LIST, access="Entity: Hoy")
    found = ReverseValidation(chat, variant="em", matcher="published_em").invoke(sample())
    assert (found.label, found.score, found.passed) == ("factual", None, True)


def test_another_model_may_answer_the_query() -> None:
    builder, validator = model(construction=QUESTION), model(access="Hoy")
    found = ReverseValidation(builder, validator=validator).invoke(sample())
    assert found.label == "factual"
    assert (builder.stages, validator.stages) == (["construction"], ["access"])


# --- The entity -----------------------------------------------------------------------------------


def test_the_metadata_name_the_entity_before_the_function() -> None:
    chat = model(construction=QUESTION, access="Hoy")
    made = ReverseValidation(chat, entity=lambda sample: "Skye")
    assert made.invoke(sample()).details["entity"] == "Hoy"
    other = made.invoke(sample(entity=None))
    assert (other.details["entity"], other.details["entity_source"]) == ("Skye", "caller")
    assert isolated("entity", chat.requests[2]) == "Skye"


@pytest.mark.parametrize(
    ("question", "named", "source"),
    [
        ("Tell me about Hoy.", "Hoy", "question"),
        ("Tell me about islands.", "Hoy", "answer"),
        (None, "hoy", "answer"),
    ],
)
def test_the_call_of_stage_1_finds_the_entity(
    question: str | None, named: str, source: str
) -> None:
    chat = model(construction=f"Entity: {named}\nQuestion: {QUESTION}", access="Hoy")
    made = ReverseValidation(chat, entity=lambda sample: None)
    found = made.invoke(sample(entity=None, question=question))
    assert (found.details["entity"], found.details["entity_source"]) == (named, source)
    assert (found.label, found.usage.calls) == ("factual", 2)


@pytest.mark.parametrize(
    ("variant", "said", "why"),
    [("qg", "none", "nothing that has a name"), ("em", "several", "several entities")],
)
def test_an_answer_that_is_not_about_one_entity_is_undetermined(
    variant: Any, said: str, why: str
) -> None:
    chat = model(construction=f"Entity: {said}")
    found = ReverseValidation(chat, variant=variant).invoke(sample(entity=None))
    assert found.undetermined
    assert why in str(found.error)
    assert chat.stages == ["construction"]


def test_an_entity_that_nobody_spoke_of_is_not_taken() -> None:
    chat = model(
        construction=[f"Entity: Skye\n{QUESTION}", f"Entity: Hoy\n{QUESTION}"], access="Hoy"
    )
    found = ReverseValidation(chat).invoke(sample(entity=None))
    assert (found.label, found.details["entity"]) == ("factual", "Hoy")
    assert chat.stages == ["construction", "construction", "access"]

    chat = model(construction=f"Entity: Skye\n{QUESTION}")
    found = ReverseValidation(chat).invoke(sample(entity=None))
    assert "'Skye', is neither in the question nor in the answer" in str(found.error)


@pytest.mark.parametrize("entity", [7, " ", "?!"])
def test_an_entity_that_is_no_name_is_told(entity: Any) -> None:
    chat = model()
    found = ReverseValidation(chat).invoke({"answer": ANSWER, "metadata": {"entity": entity}})
    assert found.error == f"metadata['entity']: expected the name of an entity, got {entity!r}"
    made = ReverseValidation(chat, entity=lambda sample: entity)
    assert "the function `entity`: expected" in str(made.invoke({"answer": ANSWER}).error)
    assert chat.stages == []


def test_a_function_that_cannot_name_the_entity_leaves_it_undetermined() -> None:
    def fail(sample: Sample) -> str:
        raise KeyError("title")

    found = ReverseValidation(model(), entity=fail).invoke({"answer": ANSWER})
    assert re.search("the function `entity` failed: .*title", str(found.error))


# --- Leaks ----------------------------------------------------------------------------------------


def test_a_name_in_the_query_is_masked_without_another_call() -> None:
    chat = model(construction=LIST.replace("Island", "Hoy, island"), access="Entity: Hoy")
    found = ReverseValidation(chat, variant="em").invoke(sample())
    assert found.details["leaks"] == ["Hoy"]
    assert isolated("requirements", chat.requests[1]) == LIST.replace("Island", "[hidden], island")
    assert chat.stages == ["construction", "access"]


def test_a_query_that_says_only_the_name_is_asked_for_once_more() -> None:
    chat = model(construction=["What is Hoy?", QUESTION], access="Hoy")
    found = ReverseValidation(chat).invoke(sample())
    assert (found.details["query"], found.details["leaks"]) == (QUESTION, [])
    *_, before, asked = chat.requests[1]
    assert before == AIMessage("What is Hoy?")
    assert "without the entity's name" in str(asked.content)

    chat = model(construction="What is Hoy?")
    found = ReverseValidation(chat).invoke(sample())
    assert "without the entity's name the query says nothing" in str(found.error)
    assert chat.stages == ["construction", "construction"]


@pytest.mark.parametrize("variant", ["qg", "em"])
def test_a_query_that_cannot_be_read_is_asked_for_once_more(variant: Any) -> None:
    query, reply = (QUESTION, "Hoy") if variant == "qg" else (LIST, "Entity: Hoy\nNot met: none")
    chat = model(construction=["I cannot.", query], access=reply)
    assert ReverseValidation(chat, variant=variant).invoke(sample()).label == "factual"
    chat = model(construction=["", "I cannot."])
    found = ReverseValidation(chat, variant=variant).invoke(sample())
    assert found.error == "the reply of stage 1 holds no query that can be read"


# --- Matching -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "label"), [("Yes.", "factual"), ("No, it is not.", "non-factual")]
)
def test_a_model_is_asked_where_the_names_differ(said: str, label: str) -> None:
    chat = model(construction=QUESTION, access="The island south of Mainland", matching=said)
    found = ReverseValidation(chat, matcher="llm").invoke(sample())
    assert (found.label, found.usage.calls) == (label, 3)
    asked = chat.requests[2]
    assert isolated("entity", asked) == "Hoy"
    assert isolated("reply", asked) == "The island south of Mainland"


@pytest.mark.parametrize("reply", ["Hoy", "unknown"])
def test_no_model_is_asked_where_the_names_agree_or_none_is_given(reply: str) -> None:
    chat = model(construction=QUESTION, access=reply)
    found = ReverseValidation(chat, matcher="llm").invoke(sample())
    assert (found.passed, found.usage.calls) == (reply == "Hoy", 2)


def test_a_verdict_that_cannot_be_read_decides_nothing() -> None:
    chat = model(construction=QUESTION, access="Skye", matching="Perhaps.")
    found = ReverseValidation(chat, matcher="llm").invoke(sample())
    assert found.undetermined
    assert "'Perhaps.'" in str(found.error)
    assert found.details["reply"] == "Skye"


def test_a_function_may_match() -> None:
    seen: list[tuple[str, str]] = []

    def match(entity: str, reply: str) -> Decision:
        seen.append((entity, reply))
        return Decision(True, "So it was told.")

    reply = "Entity: Skye\nPercentage: 40%"
    chat = model(construction=LIST, access=reply)
    found = ReverseValidation(chat, variant="em", matcher=match, threshold=0.5).invoke(sample())
    assert seen == [("Hoy", reply)]
    assert (found.label, found.score) == ("non-factual", 0.4)
    assert found.details["matcher"] == "a function"
    assert found.details["reason"] == "So it was told; it gives 40 percent, not 50 or more."


@pytest.mark.parametrize("returned", [True, ValueError("away")])
def test_a_function_that_decides_nothing_leaves_it_undetermined(returned: Any) -> None:
    def match(entity: str, reply: str) -> Any:
        if isinstance(returned, Exception):
            raise returned
        return returned

    chat = model(construction=QUESTION, access="Hoy")
    found = ReverseValidation(chat, matcher=match).invoke(sample())
    assert found.undetermined
    why = "away" if isinstance(returned, Exception) else f"return a Decision, got {returned!r}"
    assert "the function `matcher` failed: " in str(found.error)
    assert why in str(found.error)


# --- What goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ({"construction": ValueError("away")}, "the query could not be constructed"),
        ({"construction": QUESTION, "access": ValueError("away")}, "was not answered"),
        ({"construction": QUESTION, "access": " \n"}, "the reply to the query is empty"),
        (
            {"construction": QUESTION, "access": "Skye", "matching": ValueError("away")},
            "the names could not be compared",
        ),
    ],
    ids=["stage 1", "stage 2", "nothing said", "stage 3"],
)
def test_a_stage_that_fails_leaves_it_undetermined(replies: dict[str, Any], why: str) -> None:
    found = ReverseValidation(model(**replies), matcher="llm").invoke(sample())
    assert found.undetermined
    assert why in str(found.error)
    assert "away" in str(found.error) or "empty" in why


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"matcher": "fuzzy"}, "unknown matcher 'fuzzy'"),
        ({"matcher": "published_em"}, "reads replies of variant='em'"),
    ],
)
def test_an_argument_that_is_of_no_use_shows_at_once(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        ReverseValidation(model(), **options)
