"""Test FEWL as a whole: scores against figures by hand, details, and refusals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from allpairspy import AllPairs
from langchain_core.messages import BaseMessage

from demur import Evaluation, Failure
from demur.evaluators import FEWLPrompts
from demur.runtime import CallPolicy
from support.fakes import ScriptedModel, isolated
from support.fewl import HIGH, LOW, PAIRS, QUESTION, fewl, model, store

ANSWER = "Ada did."
NEIGHBORS = [
    ("0 1 | who built the bridge?", ["Cy built it.", "Di built it."]),
    ("0.6 0.8 | who dug the well?", ["Ed dug it.", "Flo dug it."]),
]
TABLE = {
    # Sim(h_i, CO_k), with the reference answer first. The highest values are 0.9 and 0.6.
    (HIGH, "No fox."): 0.9,
    (HIGH, "No cat."): 0.4,
    (HIGH, "No owl."): 0.3,
    (LOW, "No fox."): 0.3,
    (LOW, "No cat."): 0.6,
    (LOW, "No owl."): 0.2,
    # Sim(h_i, IW_k). The highest values are 0.5 and 0.7.
    (HIGH, "A fox."): 0.2,
    (HIGH, "A cat."): 0.5,
    (HIGH, "An owl."): 0.1,
    (LOW, "A fox."): 0.7,
    (LOW, "A cat."): 0.1,
    (LOW, "An owl."): 0.4,
    # The labelled answers of "ideal". The highest values are 0.8 and 0.3 for the correct answers,
    # and 0.2 and 0.9 for the incorrect ones.
    (HIGH, "It was Ada."): 0.8,
    (HIGH, "Ada, in May."): 0.1,
    (LOW, "It was Ada."): 0.3,
    (LOW, "Ada, in May."): 0.2,
    (HIGH, "It was Bo."): 0.2,
    (LOW, "It was Bo."): 0.9,
    # Sim(y, h_i(x)), with the answer first.
    (ANSWER, HIGH): 0.8,
    (ANSWER, LOW): 0.3,
    # Sim(y, h_i(x_k)). The means are 0.2 and 0.4.
    (ANSWER, "Cy built it."): 0.1,
    (ANSWER, "Ed dug it."): 0.3,
    (ANSWER, "Di built it."): 0.2,
    (ANSWER, "Flo dug it."): 0.6,
}
LABELLED = {"correct": ["It was Ada.", "Ada, in May."], "incorrect": ["It was Bo."]}
SAMPLE = {"question": QUESTION, "answer": ANSWER, "metadata": LABELLED}

# The terms that follow from the table by the paper's equations.
SIM, LAZY = [0.8, 0.3], [0.2, 0.4]
SKILL = {
    "expertise": [0.9 - 0.5, 0.6 - 0.7],
    "ideal": [0.8 - 0.2, 0.3 - 0.9],
    "agreement": [3 / 3 - 0 / 3, 1 / 3 - 2 / 3],
    "uniform": [0.0, 0.0],
}
G_STAR: dict[str, Callable[[float], float]] = {
    "tv": lambda v: math.tanh(v) / 2,
    "js": lambda v: math.log(2 / (1 + math.exp(-v))),
    "kl": lambda v: v,
}
F_STAR: dict[str, Callable[[float], float]] = {
    "tv": lambda u: u,
    "js": lambda u: -math.log(2 - math.exp(u)),
    "kl": lambda u: math.exp(u - 1),
}


def table(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Look up similarities; a pair that is missing, or in the other order, is an error."""
    return [TABLE[pair] for pair in pairs]


def by_hand(
    weighting: str, divergence: str, normalization: str, temperature: float, penalty: bool
) -> float:
    """Compute equation 4 term by term."""
    if weighting in ("best", "first"):  # The first reference has the higher expertise.
        weights = [1.0]
    else:
        powers = [math.exp(r / temperature) for r in SKILL[weighting]]
        scale = 2 if normalization == "mean_one" else 1
        weights = [scale * power / (powers[0] + powers[1]) for power in powers]
    g, f = G_STAR[divergence], F_STAR[divergence]
    terms = [
        g(weight * sim) - (f(g(lazy)) if penalty else 0)
        for weight, sim, lazy in zip(weights, SIM, LAZY, strict=False)
    ]
    return sum(terms) / len(terms)


def agrees(messages: Sequence[BaseMessage]) -> str:
    """Let HIGH agree with all corrected answers, and LOW with one of them and two wrong ones."""
    yes = {HIGH: {"No fox.", "No cat.", "No owl."}, LOW: {"No cat.", "A fox.", "An owl."}}
    said = isolated("answer", messages)
    lines = [line.partition(". ") for line in isolated("statements", messages).splitlines()]
    return "\n".join(f"{at}. {'yes' if text in yes[said] else 'no'}" for at, _, text in lines)


@pytest.mark.parametrize(
    ("weighting", "divergence", "normalization", "temperature", "penalty"),
    [
        *AllPairs(
            [
                ["expertise", "uniform", "best", "ideal", "first", "agreement"],
                ["tv", "js", "kl"],
                ["paper", "mean_one"],
                [1.0, 0.25],
                [True, False],
            ]
        )
    ],
)
def test_the_score_is_the_one_worked_out_by_hand(
    weighting: str, divergence: str, normalization: str, temperature: float, penalty: bool
) -> None:
    found = fewl(
        model(agreement=agrees),
        similarity=table,
        neighbors=store(*NEIGHBORS),
        k_neighbors=2,
        weighting=weighting,
        divergence=divergence,
        normalization=normalization,
        temperature=temperature,
        penalty=penalty,
    ).invoke(SAMPLE)
    expected = by_hand(weighting, divergence, normalization, temperature, penalty)
    assert found.score == pytest.approx(expected, rel=0, abs=1e-12)


def test_one_score_in_figures() -> None:
    # softmax(0.4, -0.1) is (0.6224593312, 0.3775406688). The first reference gives
    # tanh(0.6224593312 * 0.8) = 0.4605171741 less tanh(0.2) = 0.1973753202. The second gives
    # tanh(0.3775406688 * 0.3) = 0.1127803515 less tanh(0.4) = 0.3799489623. Their sum is
    # -0.0040267569. It is halved twice: for the mean, and for g*.
    found = fewl(
        similarity=table,
        neighbors=store(*NEIGHBORS),
        k_neighbors=2,
        penalty=True,
        normalization="paper",
    ).invoke(SAMPLE)
    assert found.score == pytest.approx(-0.0010066892, rel=0, abs=1e-10)


def test_details_hold_every_term() -> None:
    found = fewl(similarity=table, neighbors=store(*NEIGHBORS), k_neighbors=2, penalty=True).invoke(
        SAMPLE
    )
    details = found.details
    shares = [math.exp(0.4), math.exp(-0.1)]
    assert details["weights"] == pytest.approx([2 * one / sum(shares) for one in shares])
    assert details["similarities"] == SIM
    assert details["penalties"] == pytest.approx(LAZY)
    assert details["expertise"] == pytest.approx(SKILL["expertise"])
    assert details["answers"] == [HIGH, LOW]
    assert details["counted"] == [0, 1]
    assert details["pairs_used"] == 3
    assert details["pairs_dropped"] == {"same": 0, "repeated": 0, "incomplete": 0}
    assert details["penalty"] is True
    assert details["neighbors_used"] == 2
    # The nearest question comes first.
    assert details["neighbors"] == [NEIGHBORS[1][0], NEIGHBORS[0][0]]
    assert details["warnings"] == []
    assert found.label is None
    assert found.passed is None
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


# --- Warnings about scores -----------------------------------------------------------------------


FEW = PAIRS.replace("No cat.", "A CAT")
"""A reply that has only two usable pairs."""


@pytest.mark.parametrize(
    ("weighting", "normalization"), [("expertise", "paper"), ("agreement", "mean_one")]
)
def test_with_too_few_pairs_all_count_alike_on_the_same_scale(
    weighting: str, normalization: str
) -> None:
    options = {"similarity": table, "weighting": weighting, "normalization": normalization}
    given = fewl(model(pairs=FEW, agreement=agrees), **options)
    found = given.invoke(SAMPLE)
    assert found.score == pytest.approx(by_hand("uniform", "tv", normalization, 1, False))
    enough = fewl(model(pairs=FEW, agreement=agrees), min_pairs=2, **options).invoke(SAMPLE)
    assert enough.details["warnings"] == []
    assert sum(found.details["weights"]) == pytest.approx(sum(enough.details["weights"]))
    assert found.details["expertise"] is None
    assert found.details["pairs_used"] == 0
    assert found.details["pairs_dropped"] == {"same": 1, "repeated": 0, "incomplete": 0}
    (warning,) = found.details["warnings"]
    assert "2 usable pairs" in warning
    assert "min_pairs=3" in warning


@pytest.mark.parametrize("reply", ["Well...", ValueError("gone")], ids=["unreadable", "failed"])
def test_where_agreement_cannot_be_told_all_count_alike(reply: Any) -> None:
    found = fewl(model(agreement=reply), similarity=table, weighting="agreement").invoke(SAMPLE)
    assert found.score == pytest.approx(by_hand("uniform", "tv", "mean_one", 1, False))
    assert "agree with is unknown" in str(found.details["warnings"])


def test_the_best_is_undetermined_where_expertise_cannot_be_told() -> None:
    found = fewl(model(pairs=FEW), weighting="best", threshold=0).invoke(SAMPLE)
    assert found.undetermined
    assert (found.score, found.label, found.passed) == (None, None, None)
    assert re.search("2 usable pairs.*min_pairs=3.*give another generator", found.error or "")
    assert "weighting='expertise'" in (found.error or "")


def test_an_empty_and_a_thin_store_say_so() -> None:
    empty = fewl(penalty=True).invoke(SAMPLE)
    assert empty.details["penalties"] is None
    assert empty.details["warnings"] == ["no penalty: there are no neighbouring questions yet"]
    assert empty.score == fewl(penalty=False).invoke(SAMPLE).score
    thin = fewl(penalty=True, neighbors=store(*NEIGHBORS), k_neighbors=3).invoke(SAMPLE)
    assert thin.details["neighbors_used"] == 2
    assert thin.details["penalties"] == [0.5, 0.5]
    (warning,) = thin.details["warnings"]
    assert "2 neighbouring questions instead of 3" in warning


# --- The verdict ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("threshold", "passed"), [(0.24, True), (0.25, False)])
def test_a_threshold_decides(threshold: float, passed: bool) -> None:
    found = fewl(similarity=table, threshold=threshold).invoke(SAMPLE)
    assert found.passed is passed
    assert found.label == ("factual" if passed else "non-factual")
    assert found.failure is (None if passed else Failure.OTHER)


@pytest.mark.parametrize(("lazy", "failure"), [(0.5, "vague"), (0.4, "other")])
def test_vague_is_what_is_as_much_like_answers_to_other_questions(
    lazy: float, failure: str
) -> None:
    def alike(pairs: Sequence[tuple[str, str]]) -> list[float]:
        others = {answer for _, answers in NEIGHBORS for answer in answers}
        return [lazy if hypothesis in others else 0.5 for _, hypothesis in pairs]

    given = fewl(similarity=alike, penalty=True, neighbors=store(*NEIGHBORS), threshold=1)
    assert given.invoke(SAMPLE).failure == failure


# --- Undetermined --------------------------------------------------------------------------------


def broken(pairs: Sequence[tuple[str, str]]) -> list[float]:
    raise RuntimeError("the scorer is away")


@pytest.mark.parametrize(
    ("sample", "options", "why"),
    [
        ({"question": " \n"}, {}, "no question"),
        ({"answer": " \t"}, {}, "the answer is empty"),
        ({}, {"reference_models": model(reference=ValueError("out of order"))}, "out of order"),
        ({}, {"reference_models": model(reference=" ")}, "no answer that can be read"),
        (
            {},
            {"reference_models": [model(), model(reference="")]},
            "reference model 2 gave no answer",
        ),
        ({}, {"reference_models": model(pairs=ValueError("gone"))}, "writes wrong answers.*gone"),
        ({}, {"similarity": broken}, "the similarity failed: .*the scorer is away"),
        ({}, {"similarity": lambda pairs: [7.0] * len(pairs)}, "the similarity failed"),
        ({"metadata": {}}, {"weighting": "ideal"}, r"metadata\['correct'\], got None"),
        (
            {"metadata": {"correct": "Yes.", "incorrect": ["No."]}},
            {"weighting": "ideal"},
            r"metadata\['correct'\], got 'Yes.'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_undetermined(sample: dict[str, Any], options: dict[str, Any], why: str) -> None:
    given = fewl(**{"neighbors": store(), **options})
    found = given.invoke({**SAMPLE, **sample})
    assert found.undetermined
    assert re.search(why, found.error or "")
    assert (found.score, found.label, found.passed) == (None, None, None)


# --- Arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"reference_models": []}, ValueError, "an empty list"),
        ({"reference_models": 7}, TypeError, "model name or a LangChain chat model, got int"),
        ({"similarity": "cosinus"}, ValueError, "unknown similarity 'cosinus'"),
        ({"neighbors": "store"}, ValueError, "NeighborStore"),
        ({"weighting": "expert"}, ValueError, "'agreement', 'uniform', 'best', 'ideal' or 'first'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_bad_argument_is_refused_at_once(
    options: dict[str, Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=re.escape(why)):
        fewl(**options)


class Other(ScriptedModel):
    """Represent another model by being another class."""


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"reference_models": Other(script=lambda stage, messages: PAIRS)}, "reference_models"),
        ({"reference_models": [model(), model()]}, "reference_models"),
        ({"n_answers": 3}, "reference_models"),
        ({"generator": Other(script=lambda stage, messages: PAIRS)}, "prompts"),
        ({"prompts": FEWLPrompts(answers=FEWLPrompts().answer)}, "prompts"),
    ],
    ids=["model", "several models", "answers", "generator", "prompts"],
)
def test_a_store_of_others_is_refused(other: dict[str, Any], what: str) -> None:
    shared = store()
    fewl(neighbors=shared)
    fewl(neighbors=shared, weighting="uniform", penalty=True, divergence="js")
    with pytest.raises(ValueError, match=f"made with other {what.replace('_', ' ')}"):
        fewl(**{**other, "neighbors": shared})
    with pytest.raises(ValueError, match=f"made with other {what.replace('_', ' ')}"):
        fewl(neighbors=shared).model_copy(update=other)
    fewl(neighbors=shared).model_copy(update={**other, "neighbors": None})


def test_fingerprints_tell_what_scores_depend_on() -> None:
    shared = store()
    first = fewl(neighbors=shared)
    bound = shared.binding()
    told = first.fingerprints
    assert bound["reference_models"] == told["reference_models"]
    assert bound["prompts"] == f"{told['pairs']}, {told['prompts']}"
    assert told == {
        "reference_models": told["reference_models"],
        "pairs": told["pairs"],
        "prompts": told["prompts"],
        "similarity": "support.fewl.half",
        "formula": "weighting=expertise, penalty=False, divergence=tv, normalization=mean_one, "
        "temperature=1.0, expertise=similarity, k_neighbors=25, max_neighbor_similarity=0.8, "
        "neighbor_choice=nearest, min_pairs=3, premise=answer",
    }
    assert (
        fewl(threshold=0.5, call_policy=CallPolicy(attempts=1)).fingerprints == first.fingerprints
    )
    # Thresholds that were saved when this was two options stay valid.
    agreement = fewl(weighting="agreement").fingerprints["formula"]
    assert agreement == first.fingerprints["formula"].replace("=similarity", "=agreement")
    for changed, what in [
        ({"reference_models": [model(), model()]}, "reference_models"),
        ({"n_answers": 3}, "reference_models"),
        ({"n_wrong": 5}, "pairs"),
        ({"similarity": table}, "similarity"),
        ({"penalty": True}, "formula"),
        ({"divergence": "js"}, "formula"),
        ({"k_neighbors": 3}, "formula"),
        ({"premise": "reference"}, "formula"),
    ]:
        other = fewl(**changed).fingerprints
        differ = {key for key, text in first.fingerprints.items() if other[key] != text}
        assert what in differ
        assert differ <= {what, "pairs"}  # By default, the first reference writes the pairs.
