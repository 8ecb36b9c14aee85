"""Test thresholds in single evaluators; tests/contract has what all evaluators share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from demur import Cascade, Evaluation, Guard, RefChecker, ReverseValidation, Sample, Threshold
from demur.evaluators import (
    AnyThreshold,
    Evaluator,
    RefCheckerPrompts,
    as_sample,
    number,
    refuse_foreign,
)
from demur.evaluators.reverse_validation.matching import exact
from demur.runtime import Steps, ask_all
from support.fakes import ScriptedModel


def threshold(
    value: float = 0.5, on_abstain: Literal["pass", "fail"] = "pass", **fingerprints: str
) -> Threshold:
    return Threshold(
        on_abstain=on_abstain,
        value=value,
        method="learn-then-test",
        target=0.05,
        confidence=0.9,
        evaluator="whoever",
        fingerprints=fingerprints,
        samples=100,
        passed=40,
        hallucinated=50,
        passed_hallucinated=0,
    )


def silent() -> ScriptedModel:
    return ScriptedModel(script=lambda stage, messages: "")


# --- A custom evaluator ---------------------------------------------------------------------------


class Mine(Evaluator):
    """Score the share of letters that are "a", with the fingerprints that a test sets."""

    told: Any = None
    threshold: AnyThreshold | None = None

    _asked: list[int] = PrivateAttr(default_factory=list)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        refuse_foreign(self.threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        self._asked.append(1)
        found: dict[str, str] = self.told or {}
        return found

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        score = sample.answer.count("a") / len(sample.answer)
        least = number(self.threshold)
        passed = None if least is None else score >= least
        return Evaluation(name="Mine", score=score, passed=passed)


class Plain(Evaluator):
    """Imitate a custom evaluator whose author knows nothing of fingerprints.

    Its evaluation may come from another evaluator.
    """

    found: Evaluation

    def model_post_init(self, context: Any, /) -> None:
        """Leave out the base class's call."""

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        return self.found


def test_one_that_says_nothing_tells_nothing_and_takes_no_threshold() -> None:
    plain = Plain(found=Evaluation(name="p", score=1.0))
    assert plain.fingerprints == {}
    assert plain.invoke({"answer": "a"}).fingerprints == {}
    with pytest.raises(ValueError, match=r"Mine, which does not say.*its property `fingerprints`"):
        Mine(threshold=threshold(model="m"))
    with pytest.raises(ValueError, match="define its property"):
        Mine(threshold=threshold())
    assert Mine(threshold=0.5).invoke({"answer": "ab"}).passed is True


def test_one_that_says_something_takes_what_is_bound_to_it() -> None:
    mine = Mine(told={"model": "m"}, threshold=threshold(model="m"))
    found = mine.batch([{"answer": "ab"}, {"answer": "abb"}])
    assert [one.passed for one in found] == [True, False]
    assert found[0].fingerprints == {"model": "m"}


# --- In guards ------------------------------------------------------------------------------------


def _chain(question: str) -> str:
    return "aa"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda mine: mine,
        lambda mine: mine.with_config(tags=["judge"]),
        lambda mine: mine.with_fallbacks([Mine(threshold=0.1)]),
        lambda mine: as_sample | mine,
    ],
)
def test_a_guard_that_lets_more_pass_than_was_counted_refuses_the_threshold(wrap: Any) -> None:
    evaluator = wrap(Mine(told={"model": "m"}, threshold=threshold(on_abstain="fail", model="m")))
    said = r"threshold of .* was chosen for a guard that fails.*Use Guard\(\.\.\., on_abstain="
    with pytest.raises(ValueError, match=said):
        Guard(_chain, Mine(threshold=0.5), evaluator)
    guard = Guard(_chain, evaluator, on_abstain="fail")
    assert guard.invoke("q") == "aa"
    with pytest.raises(ValueError, match=said):
        guard.model_copy(update={"on_abstain": "pass"})


def test_a_cascade_with_one_that_tells_nothing_tells_nothing() -> None:
    plain = Plain(found=Evaluation(name="p", score=1.0, passed=True))
    assert Cascade([RefChecker(silent()), plain]).fingerprints == {}


# --- What is said of a foreign one ----------------------------------------------------------------


def _refused(here: dict[str, str], there: dict[str, str]) -> str:
    """Return the message with which a threshold made for one evaluator is refused by another."""
    with pytest.raises(ValueError, match="chosen from other scores than those of Mine") as caught:
        Mine(told=here, threshold=threshold(0.07, **there))
    return str(caught.value)


def test_each_difference_is_named_and_nothing_else() -> None:
    here = {
        "model": "m (1)",
        "formula": ", ".join(f"option{at}={at}" for at in range(40)),
        "prompts": "same",
        "window": "700 tokens",
    }
    there = {**here, "model": "m (2)", "formula": here["formula"].replace("option7=7", "option7=8")}
    del there["window"]
    there["similarity"] = "x" * 500
    said = _refused(here, there)
    assert "option7 of formula is 7 here and was 8" in said
    assert "part 2 of model is 1 here and was 2" in said
    assert f"similarity is not set here and was '{'x' * 99}…'" in said
    assert "window is '700 tokens' here and was not set" in said
    assert "prompts" not in said
    assert "threshold=0.07" in said


def _checker(**options: Any) -> RefChecker:
    given = {"model": "gpt-4o-mini", "api_key": "sk-hush", "base_url": "https://one.example/v1"}
    return RefChecker(ChatOpenAI(**{**given, **options}), aggregation="soft")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": 0.7}, "temperature of model is 0.7 here and was 0"),
        ({"model": "gpt-4o"}, "model is 'ChatOpenAI gpt-4o' here and was 'ChatOpenAI gpt-4o-mini'"),
        ({"base_url": "https://u:hush@two.example/v1?key=hush"}, "host of model is two.example/v1"),
    ],
)
def test_a_refusal_names_the_parameter_of_the_model(options: dict[str, Any], said: str) -> None:
    chosen = threshold(**_checker(temperature=0).fingerprints)
    with pytest.raises(ValueError, match="chosen from other scores") as caught:
        _checker(**{"temperature": 0, **options}).model_copy(update={"threshold": chosen})
    told = str(caught.value).partition("RefChecker: ")[2].partition(". ")[0]
    assert said in str(caught.value)
    assert ";" not in told
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"max_retries": 5},
        {"api_key": "sk-another"},
        {"model_kwargs": {"user": "ada"}},
        {"default_headers": {"Authorization": "Bearer hush"}},
        {"base_url": "http://ada:hush@one.example:80/v1/"},
    ],
    ids=str,
)
def test_what_changes_no_score_is_no_part_of_them(options: dict[str, Any]) -> None:
    plain = _checker(temperature=0)
    other = _checker(**{"temperature": 0, **options})
    assert other.fingerprints == plain.fingerprints
    chosen = threshold(**plain.fingerprints)
    assert other.model_copy(update={"threshold": chosen}).threshold == chosen


def test_a_refusal_stays_short_and_begins_with_the_evaluator() -> None:
    here = {f"key{at}": f"one{at}" for at in range(40)} | {"evaluator": "Mine"}
    there = dict.fromkeys(here, "two")
    said = _refused(here, there)
    told = said.partition("those of Mine: ")[2].partition(". Choose")[0]
    assert told.startswith("evaluator is Mine here and was two; key0 is")
    assert told.endswith("; and 35 more")
    told = _refused(dict.fromkeys(here, "one"), there)
    assert "evaluator and key0 and key1 and 38 more is one here and was two" in told


@given(
    st.dictionaries(st.sampled_from("ab"), st.text(st.sampled_from("ab=, ()"), max_size=12)),
    st.dictionaries(st.sampled_from("ab"), st.text(st.sampled_from("ab=, ()"), max_size=12)),
)
def test_texts_that_differ_in_anything_are_refused(
    here: dict[str, str], there: dict[str, str]
) -> None:
    here, there = {"x": "", **here}, {"x": "", **there}
    if here == there:
        assert Mine(told=here, threshold=threshold(**there)).threshold
    else:
        assert _refused(here, there)


# --- Other hosts ----------------------------------------------------------------------------------


def test_another_host_of_the_same_model_can_be_vouched_for() -> None:
    chosen = threshold(**_checker().fingerprints)
    gateway = _checker(base_url="https://gateway.example/openai/v1")
    with pytest.raises(ValueError, match="host of model is gateway") as caught:
        gateway.model_copy(update={"threshold": chosen})
    hosts = {"one.example/v1": "gateway.example/openai/v1"}
    assert f"threshold.with_hosts({hosts})" in str(caught.value)
    for said in (hosts, {"https://one.example/v1/": "https://k:k@gateway.example/openai/v1?k=1"}):
        moved = chosen.with_hosts(said)
        assert gateway.model_copy(update={"threshold": moved}).threshold == moved
        assert (moved.value, moved.samples) == (chosen.value, chosen.samples)
        with pytest.raises(ValueError, match="temperature of model"):
            gateway.model_copy(
                update={"threshold": moved, "model": _hot("https://gateway.example/openai/v1")}
            )
    with pytest.raises(ValueError, match="host of model"):
        _checker().model_copy(update={"threshold": chosen.with_hosts(hosts)})


def _hot(url: str) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o-mini", api_key="k", base_url=url, temperature=1)  # type: ignore[arg-type]


# --- RefChecker -----------------------------------------------------------------------------------


def test_what_refchecker_tells() -> None:
    joint = RefChecker(silent(), checker="joint")
    assert joint.fingerprints == {
        "evaluator": "RefChecker",
        "model": joint.fingerprints["model"],
        "checker": "joint",
        "claims": "triplets",
        "window": "3000 tokens, at most 1",
        "prompts": joint.fingerprints["prompts"],
    }
    for options, what in [
        ({"claims": "sentences"}, "claims"),
        ({"window_tokens": 500}, "window"),
        ({"max_windows": 2}, "window"),
        ({"checker": "per_claim"}, "checker"),
        ({"prompts": RefCheckerPrompts(logprobs=RefCheckerPrompts().per_claim)}, "prompts"),
    ]:
        other = joint.model_copy(update=options).fingerprints
        assert {key for key in other if other[key] != joint.fingerprints[key]} == {what}
    # What only decides about a score is not in the fingerprints. An "auto" setting counts as what
    # it stands for.
    assert (
        joint.fingerprints == RefChecker(silent(), aggregation="soft", threshold=0.3).fingerprints
    )


def test_a_cross_encoder_is_told_by_what_it_says_or_by_its_own_fingerprint() -> None:
    config = SimpleNamespace(id2label={0: "entailment", 1: "neutral", 2: "contradiction"})
    encoder = SimpleNamespace(model=SimpleNamespace(config=config), predict=list)
    checker: Any = {"checker": encoder}
    told = RefChecker(silent(), **checker).fingerprints["checker"]
    assert told == "nli SimpleNamespace Entailment Neutral Contradiction, the least support"
    encoder.fingerprint = "7"
    assert RefChecker(silent(), **checker).fingerprints["checker"] == "nli 7, the least support"


@pytest.mark.parametrize("aggregation", ["strict", "major"])
def test_refchecker_takes_one_where_the_score_decides(aggregation: Any) -> None:
    fingerprints = RefChecker(silent()).fingerprints
    for value in (threshold(**fingerprints), 0.9):
        with pytest.raises(
            ValueError, match=r"a threshold has no effect with .*aggregation='soft'"
        ):
            RefChecker(silent(), aggregation=aggregation, threshold=value)
    made = RefChecker(silent(), aggregation="soft", threshold=threshold(**fingerprints))
    with pytest.raises(ValueError, match="no effect"):
        made.model_copy(update={"aggregation": aggregation})


# --- Reverse Validation ---------------------------------------------------------------------------


def test_what_reverse_validation_tells() -> None:
    made = ReverseValidation(silent())
    assert made.fingerprints == {
        "evaluator": "ReverseValidation",
        "model": made.fingerprints["model"],
        "validator": made.fingerprints["model"],
        "variant": "qg",
        "matcher": "normalized",
        "prompts": made.fingerprints["prompts"],
    }
    module = exact.__module__
    for options, what, text in [
        ({"variant": "em"}, "variant", "em"),
        ({"matcher": "llm"}, "matcher", "llm"),
        ({"matcher": exact}, "matcher", f"{module}.exact"),
        ({"entity": _finder}, "entity", f"{_finder.__module__}._finder"),
    ]:
        other = made.model_copy(update=options).fingerprints
        assert other == {**made.fingerprints, what: text}


def _finder(sample: Sample) -> str:
    return "Hoy"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variant": "qg"}, "variant='qg'"),
        ({"variant": "em", "matcher": "published_em"}, "matcher=published_em"),
    ],
)
def test_reverse_validation_takes_one_where_the_score_decides(
    options: dict[str, Any], said: str
) -> None:
    made = ReverseValidation(silent(), **options)
    with pytest.raises(ValueError, match="does not decide with") as caught:
        made.model_copy(update={"threshold": threshold(**made.fingerprints)})
    assert said in str(caught.value)
    assert "threshold=0.5" in str(caught.value)


@pytest.mark.parametrize(
    ("made", "value", "range_"),
    [
        (ReverseValidation(silent(), variant="em"), 0.0, r"in \(0, 1\]"),
        (RefChecker(silent(), aggregation="soft"), 1.0000000000000002, "above 0 and at most 1"),
    ],
    ids=["which all reach", "which none reaches"],
)
def test_one_that_does_not_tell_answers_apart_is_refused(
    made: Any, value: float, range_: str
) -> None:
    with pytest.raises(ValueError, match=f"expected a threshold {range_}"):
        made.model_copy(update={"threshold": threshold(value, **made.fingerprints)})
