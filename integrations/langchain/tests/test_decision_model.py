"""Test demur's judges as a decision model, by themselves and in LangChain's own middleware."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import json
import pickle
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

import langchain_demur
from demur import DemurError, Evaluation, RefChecker
from demur.local import SmallJudge
from demur.schema import NLI_LABELS, Calculation, Claim, ClaimLabel, MissingString, Usage
from support.fakes import scripted

pytest.importorskip("demur_judge")
decisions = pytest.importorskip("langchain_core.decisions")

from langchain_core.decisions import (  # noqa: E402
    Box,
    Choice,
    ClassifierResponse,
    Noul,
    NoulCriteria,
    Score,
)

from langchain_demur import ClaimDecisionModel  # noqa: E402

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
LOUVRE = "The Louvre, in Paris, opened as a museum in 1793."
RIGHT, WRONG = "The Louvre opened as a museum in 1793.", "The Louvre opened as a museum in 1851."
UNSAID = "Visitors may bring small dogs."
CYRILLIC = "Лувр открылся в 1793 году."
BOTH = {"label": ClaimDecisionModel.LABEL, "supported": ClaimDecisionModel.SUPPORTED}


@pytest.fixture(scope="module")
def model() -> ClaimDecisionModel:
    return ClaimDecisionModel("small")


def request(claim: str, questions: Mapping[str, Any] = BOTH, **more: Any) -> Any:
    return {"state": {"reference": LOUVRE, "claim": claim, **more}, "questions": questions}


class Started(BaseCallbackHandler):
    """Keep the names of the runs that start, which are RefChecker's if something is judged."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])


# -- What it answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(("claim", "label"), [(RIGHT, E), (WRONG, C), (UNSAID, N)])
def test_its_answers_are_those_of_refchecker(
    model: ClaimDecisionModel, claim: str, label: ClaimLabel
) -> None:
    found = model.invoke(request(claim))
    judged = RefChecker("small").invoke({"answer": claim, "contexts": [LOUVRE]})
    choice, noul = found.choices["label"], found.nouls["supported"].noul
    assert choice.choice == judged.label == label
    assert noul == pytest.approx(judged.score)
    assert (noul >= 0.5) is judged.passed
    assert noul == choice.probabilities["Entailment"]
    assert choice.confidence == choice.probabilities[choice.choice]
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    assert found.model == "small"
    assert found.usage is None


def test_threads_and_tasks_get_the_same_answers(model: ClaimDecisionModel) -> None:
    requests = [request(RIGHT), request(WRONG)] * 4
    expected = [*map(model.invoke, requests)]

    async def together() -> list[ClassifierResponse]:
        return [*await asyncio.gather(*map(model.ainvoke, requests))]

    assert model.batch(requests) == expected
    assert asyncio.run(together()) == expected
    with ThreadPoolExecutor() as pool:
        assert [*pool.map(ClaimDecisionModel("small").invoke, requests)] == expected


def test_the_answer_uses_the_callers_spelling(model: ClaimDecisionModel) -> None:
    labels = {"NEUTRAL": "said nowhere", "entailment": None, "Contradiction": {"any": "thing"}}
    asked = {"q": Choice(instructions="Is it so?", criteria=labels)}
    choice = model.invoke(request(WRONG, asked)).choices["q"]
    assert choice.choice == "Contradiction"
    assert {*choice.probabilities} == {*labels}
    assert model.invoke(request(RIGHT, asked)).choices["q"].choice == "entailment"


def test_the_question_of_supported_may_be_written_out(model: ClaimDecisionModel) -> None:
    found = model.invoke(request(RIGHT, {"q": Noul(instructions=SAME)}))
    assert found.nouls["q"].noul > 0.5


def test_copies_and_unpickled_models_judge_as_their_name_says(model: ClaimDecisionModel) -> None:
    copies = (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.model_copy())
    expected = model.invoke(request(RIGHT))
    assert all(one == model and one.invoke(request(RIGHT)) == expected for one in copies)
    with pytest.raises(ValueError, match="unknown model 'large'"):
        model.model_copy(update={"model": "large"})


@pytest.mark.parametrize(
    "state",
    [
        {"reference": [LOUVRE, "Lund is in Sweden."], "claim": WRONG, "question": "Since when?"},
        json.dumps({"reference": LOUVRE, "claim": WRONG}),
        HumanMessage(json.dumps({"reference": [LOUVRE], "claim": WRONG})),
        HumanMessage([{"type": "text", "text": json.dumps({"reference": LOUVRE, "claim": WRONG})}]),
    ],
    ids=["a list and a question", "JSON", "a message", "a message of blocks"],
)
def test_a_state_has_several_forms(model: ClaimDecisionModel, state: Any) -> None:
    found = model.invoke({"state": state, "questions": BOTH})
    assert found.choices["label"].choice == "Contradiction"


def test_the_worst_sentence_decides(model: ClaimDecisionModel) -> None:
    alone = model.invoke(request("It opened as a museum in 1851."))
    beside = model.invoke(request("The Louvre is in Paris. It opened as a museum in 1851."))
    assert beside.choices["label"].choice == alone.choices["label"].choice == "Contradiction"
    assert beside.nouls["supported"].noul < 0.5


def test_a_claim_with_an_identifier_of_no_reference_is_not_supported(
    model: ClaimDecisionModel,
) -> None:
    claim = "The Louvre (build a1b2c3d) opened as a museum in 1793."
    judged = RefChecker("small").invoke({"answer": claim, "contexts": [LOUVRE]}).claims[0]
    assert (judged.support or 0) > 0.5  # else this would show nothing
    found = model.invoke(request(claim))
    choice = found.choices["label"]
    assert choice.choice == "Neutral"
    assert found.nouls["supported"].noul == choice.probabilities["Entailment"] == 0
    assert max(choice.probabilities, key=choice.probabilities.__getitem__) == "Neutral"


def test_a_claim_with_a_figure_that_comes_out_otherwise_is_contradicted(
    model: ClaimDecisionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    offices = "The office in Leeds has 120 employees and the office in York has 170 employees."
    claim = "The offices in Leeds and York have 310 employees in total."
    believing = {E: 0.9, N: 0.06, C: 0.04}
    monkeypatch.setattr(SmallJudge, "predict", lambda _, pairs: [believing] * len(pairs))
    (judged,) = RefChecker("small").invoke({"answer": claim, "contexts": [offices]}).claims
    assert (judged.support or 0) > 0.5  # else this would show nothing
    found = model.invoke({**request(claim), "state": {"reference": offices, "claim": claim}})
    choice = found.choices["label"]
    assert choice.choice == "Contradiction"
    assert found.nouls["supported"].noul == choice.probabilities["Entailment"] == 0
    assert choice.confidence == choice.probabilities["Contradiction"] > 0.5
    assert sum(choice.probabilities.values()) == pytest.approx(1)


shares = st.tuples(*[st.floats(0, 1)] * 3).filter(lambda drawn: sum(drawn) > 0.001)


@st.composite
def claims(draw: Any) -> Claim:
    """Return a claim as RefChecker labels it; its support may be of another window."""
    drawn = draw(shares)
    e, n, c = (share / sum(drawn) for share in drawn)
    overruled, refuted = draw(st.booleans()), draw(st.booleans())
    label = E if e >= 0.5 else N if n >= c else C
    missing = (MissingString(string="AB-1", nearest=None),) if overruled else ()
    worked = (Calculation(figure="3", follows=not refuted, text="1 + 1 = 2", operands=()),)
    return Claim(
        text="It is so.",
        label=C if refuted else N if overruled and label is E else label,
        probabilities={E: e, N: n, C: c},
        support=e if label is E else draw(st.floats(e, 0.5, exclude_max=True)),
        missing_strings=missing,
        calculations=worked,
    )


@given(found=st.lists(claims(), min_size=1, max_size=4), usage=st.integers(0, 3))
def test_the_numbers_always_agree_with_the_label(found: list[Claim], usage: int) -> None:
    label = next(label for label in (C, N, E) if label in {claim.label for claim in found})
    spent = Usage(calls=1, input_tokens=usage, output_tokens=usage * 2)
    judged = Evaluation(name="judge", label=label, claims=tuple(found), usage=spent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RefChecker, "invoke", lambda *_: judged)
        response = ClaimDecisionModel("small").invoke(request(RIGHT))
    choice, noul = response.choices["label"], response.nouls["supported"].noul
    assert choice.choice == label
    worst = [0 if one.overruled else one.support or 0 for one in found if one.label is label]
    assert noul == choice.probabilities["Entailment"] == min(worst)
    assert (noul >= 0.5) is (label is E)
    assert choice.confidence == choice.probabilities[label]
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in choice.probabilities.values())
    if usage:
        assert response.usage is not None
        assert response.usage["total_tokens"] == usage * 3
    else:
        assert response.usage is None


# -- What it refuses -------------------------------------------------------------------------------

LABELS = dict.fromkeys(("Entailment", "Contradiction", "Neutral"))
SAME = "Is the claim supported by the reference?"


@pytest.mark.parametrize(
    "question",
    [
        Noul(instructions="Is the claim contradicted by the reference?"),
        Noul(instructions="Is the claim not supported by the reference?"),
        Noul(instructions=SAME, criteria=NoulCriteria(true="It is contradicted.")),
        Noul(instructions={"ask": SAME}),
        Noul(instructions=f"\N{NOT SIGN} {SAME}"),
        Choice(instructions="?", criteria={"yes": None, "no": None}),
        Choice(instructions="?", criteria={"Entailment": None, "Neutral": None}),
        Choice(instructions="?", criteria={**LABELS, "Other": None}),
        Choice(instructions="?", criteria={**LABELS, "entailment": None}),
        Choice(instructions="?", criteria={"Neutral": None, "neutral": None, "Entailment": None}),
        Score(instructions="?", criteria=[*LABELS]),
        Box(instructions=SAME),
        {"type": "noul", "instructions": SAME},
    ],
    ids=repr,
)
def test_another_question_is_refused_before_anything_is_judged(
    model: ClaimDecisionModel, question: Any
) -> None:
    started = Started()
    asked = request(RIGHT, {**BOTH, "other": question})
    for ask in (model.invoke, lambda *given: asyncio.run(model.ainvoke(*given))):
        with pytest.raises(
            ValueError, match=r"'other': ask a Choice between Entailment.*SUPPORTED"
        ):
            ask(asked, {"callbacks": [started]})
    assert {*started.names} == {"ClaimDecisionModel"}


def test_a_changed_supported_is_another_question(
    model: ClaimDecisionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClaimDecisionModel.SUPPORTED, "instructions", "Is the claim contradicted?")
    with pytest.raises(ValueError, match="cannot answer the question 'supported'"):
        model.invoke(request(RIGHT))


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("no JSON", "Invalid JSON"),
        ("[1]", "object"),
        (HumanMessage("Since when is it a museum?"), "Invalid JSON"),
        ([HumanMessage("{}")], "dictionary"),
        ({"claim": RIGHT}, "reference: Field required"),
        ({"reference": LOUVRE}, "claim: Field required"),
        ({"reference": LOUVRE, "claim": " \n"}, "claim: .* at least 1 character"),
        ({"reference": "", "claim": RIGHT}, "reference.* at least 1 character"),
        ({"reference": [], "claim": RIGHT}, "reference.* at least 1 item"),
        ({"reference": [LOUVRE, " "], "claim": RIGHT}, "reference.* at least 1 character"),
        ({"reference": [LOUVRE, 1], "claim": RIGHT}, r"reference.*1: .*string"),
        ({"reference": LOUVRE, "claim": [RIGHT]}, "claim: .*string"),
        ({"reference": LOUVRE, "claim": RIGHT, "question": ""}, "question: .*1 character"),
        ({"reference": LOUVRE, "claim": RIGHT, "answer": WRONG}, "answer: Extra"),
        (json.dumps({"references": [LOUVRE], "claim": RIGHT}), "reference: Field required"),
    ],
)
def test_another_state_is_refused_and_not_quoted(
    model: ClaimDecisionModel, state: Any, reason: str
) -> None:
    started = Started()
    with pytest.raises(ValueError, match=rf'expected {{"reference": .*{reason}') as refused:
        model.invoke({"state": state, "questions": BOTH}, {"callbacks": [started]})
    assert {*started.names} == {"ClaimDecisionModel"}
    assert not any(text in str(refused.value) for text in (LOUVRE, RIGHT, WRONG))


def test_what_the_judge_cannot_decide_is_no_answer(model: ClaimDecisionModel) -> None:
    judged = RefChecker("small").invoke({"answer": CYRILLIC, "contexts": [LOUVRE]})
    assert judged.error is not None
    with pytest.raises(DemurError, match="could not decide") as undecided:
        model.invoke(request(CYRILLIC))
    assert judged.claims[0].error is not None
    assert judged.claims[0].error in str(undecided.value)


def test_a_claim_without_a_label_is_no_answer_where_it_could_change_the_label(
    model: ClaimDecisionModel,
) -> None:
    judged = RefChecker("small").invoke({"answer": f"{UNSAID} {CYRILLIC}", "contexts": [LOUVRE]})
    assert judged.passed is False  # whether the second claim is Neutral or contradicted
    with pytest.raises(DemurError, match="1 of 2 claims have no label"):
        model.invoke(request(f"{UNSAID} {CYRILLIC}"))


def test_a_claim_that_states_nothing_is_no_answer(model: ClaimDecisionModel) -> None:
    with pytest.raises(DemurError, match="states nothing that could be checked"):
        model.invoke(request("Hello!"))


def test_a_model_that_gives_no_probabilities_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with pytest.raises(ValueError, match=r"'openai:any' is no judge .*gives no probabilities"):
        ClaimDecisionModel("openai:any")
    with pytest.raises(ValueError, match="unknown model 'large'"):
        ClaimDecisionModel("large")
    with pytest.raises(ValueError, match="valid string"):
        ClaimDecisionModel(scripted("Yes."))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'threshold'"):
        ClaimDecisionModel("small", threshold=0.9)  # type: ignore[call-arg]


# -- In LangChain's middleware ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
@pytest.mark.parametrize(("claim", "route"), [(RIGHT, "Entailment"), (WRONG, "Contradiction")])
def test_langchains_router_takes_the_route_of_the_label(claim: str, route: str, mode: str) -> None:
    from langchain.agents.middleware import ModelChoice, ModelRouterMiddleware

    router = ModelRouterMiddleware(
        choices={
            label.value: ModelChoice(FakeListChatModel(responses=[label.value]), "A route.")
            for label in NLI_LABELS
        },
        instructions="What does the reference say about the claim?",
        classifier=ClaimDecisionModel("small"),
    )
    agent = create_agent(FakeListChatModel(responses=["no route"]), middleware=[router])
    asked: Any = {"messages": [HumanMessage(json.dumps({"reference": LOUVRE, "claim": claim}))]}
    found = agent.invoke(asked) if mode == "invoke" else asyncio.run(agent.ainvoke(asked))
    assert found["messages"][-1].text == route


def test_langchains_auto_mode_is_told_that_it_asks_another_question() -> None:
    from langchain.agents.middleware import AutoModeMiddleware

    ran = []

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return "done"

    class Deleting(FakeListChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            result = super()._generate(*args, **kwargs)
            call = {"name": "delete", "args": {"path": "/"}, "id": "1"}
            result.generations[0].message = AIMessage("", tool_calls=[call])
            return result

    auto = AutoModeMiddleware(tools=[delete], classifier=ClaimDecisionModel("small"))
    agent = create_agent(Deleting(responses=[""]), [delete], middleware=[auto])
    with pytest.raises(ValueError, match="'is_risky': ask a Choice between Entailment"):
        agent.invoke({"messages": [HumanMessage("Delete all.")]})
    assert ran == []


# -- Where LangChain has no decision models --------------------------------------------------------


def test_with_an_older_langchain_core_the_error_names_the_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.decisions", None)
    monkeypatch.delitem(sys.modules, "langchain_demur.decisions")
    spec = importlib.util.spec_from_file_location("older", langchain_demur.__file__)
    assert spec is not None
    assert spec.loader is not None
    older = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)
    monkeypatch.setitem(sys.modules, "older", older)

    with pytest.raises(ImportError, match=r"needs langchain-core 1\.8.*pip install"):
        from older import ClaimDecisionModel  # type: ignore[import-not-found]  # noqa: F401
    assert "ClaimDecisionModel" not in dir(older)
    star: dict[str, Any] = {}
    exec("from older import *", star)  # noqa: S102
    assert {*star} - {"__builtins__"} == {"HallucinationMiddleware", "guarded_node"}
    with pytest.raises(AttributeError, match="has no attribute 'another'"):
        _ = older.another


def test_with_this_langchain_core_the_face_has_it() -> None:
    assert "ClaimDecisionModel" in langchain_demur.__all__
