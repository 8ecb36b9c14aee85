"""Test the fingerprints of every evaluator, and which thresholds it accepts."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from contract.evaluators import EVALUATORS, _Beginning, refchecker
from contract.member import Member
from demur import FEWL, Cascade, Evaluation, RefChecker, ReverseValidation, Threshold
from demur.evaluators import AllFalse, CitationSupport, Evaluator, SelfCheck, ZeroShot
from demur.runtime import CallPolicy
from support import facts
from support.fakes import ScriptedModel

EMPTY = {"question": "What is item 1 like?", "answer": " ", "contexts": ["Item 1 is red."]}


class Other(ScriptedModel):
    """Represent a model with another name that gives the same replies."""

    model_name: str = "other"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}


def _reworded(prompts: Any) -> Any:
    """Return the prompts with another ending of the first one."""
    first = next(one.name for one in fields(prompts))
    return replace(prompts, **{first: replace(getattr(prompts, first), closing="Now:")})


def _with_prompts(made: Any, prompts: Any) -> Any:
    """Return the evaluator with other prompts of its own, as another version of demur may have."""
    own = type(made)
    other: Any = type(own.__name__, (own,), {"__qualname__": own.__qualname__})
    other._prompts = prompts
    return other(**{name: getattr(made, name) for name in own.model_fields})


def _half(pairs: Any) -> list[float]:
    return [0.5 for _ in pairs]


_MODEL = {FEWL: "reference_models"}


def _changed(made: Any, what: str) -> Evaluator | None:
    """Return the evaluator with another model, prompts or similarity; None if it has none."""
    if isinstance(made, Cascade):
        last = _changed(made.stages[-1], what)
        return last and made.model_copy(update={"stages": (*made.stages[:-1], last)})
    if isinstance(made, CitationSupport):
        checker = _changed(made.checker, what)
        return checker and made.model_copy(update={"checker": checker})
    if isinstance(made, AllFalse) or (what == "similarity" and not hasattr(made, "similarity")):
        return None
    update: dict[str, Any] = {}
    if what == "model":
        update[_MODEL.get(type(made), "model")] = Other(script=facts.judge)
    elif what == "similarity":
        update["similarity"] = _half
    elif hasattr(made, "prompts"):
        update["prompts"] = _reworded(made.prompts)
    else:
        return _with_prompts(made, _reworded(made._prompts))
    if isinstance(made, FEWL):  # A store of neighbours is bound to its model and prompts.
        update["neighbors"] = _Beginning()
    if isinstance(made, SelfCheck) and made.method != "embedding" and what == "similarity":
        return None
    return made.model_copy(update=update)


def test_they_stay_the_same_in_copies(member: Member, made: Any) -> None:
    for copied in (
        member.make(),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
        copy.copy(made),
        made.model_copy(),
    ):
        assert copied.fingerprints == made.fingerprints
    told = made.fingerprints
    assert told
    assert all(isinstance(text, str) and text for pair in told.items() for text in pair)


@pytest.mark.parametrize("what", ["model", "prompts", "similarity"])
def test_they_differ_where_scores_may(made: Any, what: str) -> None:
    other = _changed(made, what)
    if other is None:
        assert isinstance(made, AllFalse) or what == "similarity"
        return
    before, after = made.fingerprints, other.fingerprints
    differ = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    named = {"model": ("model", "reference_models", "samples"), "prompts": ("prompts",)}
    assert any(key.endswith(named.get(what, (what,))) for key in differ)
    if what != "model":  # The first of FEWL's reference models also writes the pairs.
        assert len(differ) == 1


def test_how_calls_are_made_is_no_part_of_them(made: Any) -> None:
    other = made.model_copy(update={"call_policy": CallPolicy(attempts=1), "name": "mine"})
    assert other.fingerprints == made.fingerprints


async def test_every_evaluation_carries_them(member: Member, made: Any) -> None:
    found = [
        made.invoke(member.give(3)),
        await made.ainvoke(member.give(3)),
        *made.batch([member.give(1), EMPTY]),
    ]
    assert [one.undetermined for one in found] == [False, False, False, True]
    for one in found:
        assert one.fingerprints == made.fingerprints
        assert Evaluation.model_validate_json(one.model_dump_json()) == one


# --- Thresholds -----------------------------------------------------------------------------------


def _of(class_: type[Evaluator]) -> Any:
    made: Any = [made for made in (one.make() for one in EVALUATORS) if type(made) is class_][-1]
    if isinstance(made, RefChecker):
        return made.model_copy(update={"aggregation": "soft"})
    return made.model_copy(update={"variant": "em"} if class_ is ReverseValidation else {})


def chosen(value: float, fingerprints: dict[str, str]) -> Threshold:
    return Threshold(
        on_abstain="pass",
        value=value,
        method="percentile",
        percentile=10,
        evaluator="whoever",
        fingerprints=fingerprints,
        samples=20,
        passed=18,
    )


TAKE = [FEWL, SelfCheck, RefChecker, ReverseValidation]


@pytest.mark.slow
@pytest.mark.parametrize("class_", TAKE)
def test_a_threshold_from_its_own_scores_decides(class_: type[Evaluator]) -> None:
    made = _of(class_)
    scores = {number: made.invoke(facts.sample(number)).score for number in range(4)}
    assert len(set(scores.values())) > 1
    for value in {score for score in scores.values() if score}:
        threshold = chosen(value, made.fingerprints)
        bound = made.model_copy(update={"threshold": threshold})
        plain = made.model_copy(update={"threshold": value})
        assert bound.threshold == threshold
        assert bound.fingerprints == plain.fingerprints == made.fingerprints
        assert "percentile" in repr(bound)
        for each in (bound, pickle.loads(pickle.dumps(bound)), copy.deepcopy(bound), plain):
            found = each.batch([facts.sample(number) for number in range(4)])
            assert [one.passed for one in found] == [score >= value for score in scores.values()]


@pytest.mark.parametrize("class_", TAKE)
@pytest.mark.parametrize("what", ["model", "prompts"])
def test_a_threshold_from_other_scores_is_refused(class_: type[Evaluator], what: str) -> None:
    made = _of(class_)
    other = _changed(made, what)
    assert other is not None
    threshold = chosen(0.25, other.fingerprints)
    with pytest.raises(ValueError, match="chosen from other scores") as caught:
        made.model_copy(update={"threshold": threshold})
    told = str(caught.value)
    assert "Choose one from scores of this evaluator" in told
    assert "threshold=0.25" in told
    assert other.model_copy(update={"threshold": threshold}).threshold == threshold


@pytest.mark.parametrize("class_", TAKE)
def test_a_threshold_that_is_bound_to_nothing_is_refused(class_: type[Evaluator]) -> None:
    made = _of(class_)
    with pytest.raises(ValueError, match=r"bound to no evaluator.*calibrate\(\.\.\., evaluator="):
        made.model_copy(update={"threshold": chosen(0.25, {})})


@pytest.mark.parametrize(
    ("class_", "wrong"),
    [*zip(TAKE, [[0.5], {"value": 0.5}, float("nan"), float("inf")], strict=True)],
)
def test_what_is_no_threshold_is_refused_in_one_sentence(
    class_: type[Evaluator], wrong: Any
) -> None:
    with pytest.raises(ValueError, match=r"valid number|finite number") as caught:
        _of(class_).model_copy(update={"threshold": wrong})
    assert re.fullmatch(rf"{class_.__name__}: threshold: [^;\n]+", str(caught.value))


@pytest.mark.parametrize(("class_", "kind"), [*zip(TAKE, [str, Path, str, Path], strict=True)])
def test_a_threshold_is_taken_from_its_file(
    class_: type[Evaluator], kind: Callable[[Path], str | Path], tmp_path: Path
) -> None:
    made = _of(class_)
    threshold = chosen(0.25, made.fingerprints)
    threshold.save(tmp_path / "it.json")
    bound = made.model_copy(update={"threshold": kind(tmp_path / "it.json")})
    assert bound.threshold == threshold
    (tmp_path / "it.json").unlink()  # The file is read only once.
    for each in (bound, pickle.loads(pickle.dumps(bound)), copy.deepcopy(bound)):
        found = each.invoke(facts.sample(2))
        assert found.passed is (found.score >= 0.25)


def test_a_cascade_tells_of_each_stage() -> None:
    first, second = refchecker("logprobs"), ZeroShot(Other(script=facts.judge))
    told = Cascade([first, second], min_confidence=0.8).fingerprints
    assert told == {
        "evaluator": "Cascade",
        "min_confidence": "0.8",
        **{f"stage 1 {name}": text for name, text in first.fingerprints.items()},
        **{f"stage 2 {name}": text for name, text in second.fingerprints.items()},
    }
