"""Methods on PHD with a model that is asked now: configurations, and what each decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel

from demur import Evaluation, ReverseValidation, Sample
from demur.evaluators import AllFalse, Evaluator, LMvsLM, ZeroShot
from demur.evaluators.reverse_validation.share import share_met
from demur_research.datasets.phd import LabelledPassage
from demur_research.datasets.published import VARIANTS, Exchange, Variant
from demur_research.recorder import Item, Line
from demur_research.replay import ALL_FALSE, LMVSLM, ZERO_SHOT, Cost, Judging, matchers, rejected
from demur_research.runner import Finding

METHODS: Mapping[str, Callable[[BaseChatModel], Evaluator]] = MappingProxyType(
    {
        "qg": lambda model: ReverseValidation(model, variant="qg"),
        "em": lambda model: ReverseValidation(model, variant="em"),
        ZERO_SHOT: ZeroShot,
        LMVSLM: LMvsLM,
        ALL_FALSE: lambda model: AllFalse(),
    }
)
"""By the names that the replay gives them; how each is made for a model."""


def items(
    passages: Sequence[LabelledPassage], most: int | None = None
) -> list[Item[LabelledPassage]]:
    """So many passages, or all, in an order that only their texts decide."""
    found = [
        Item(passage.key, f"{passage.entity}\0{passage.text}", passage) for passage in passages
    ]
    return sorted(found, key=lambda item: item.digest)[:most]


def judges(
    methods: Sequence[str], model: BaseChatModel
) -> dict[str, Callable[[LabelledPassage], Finding]]:
    """By the methods' names, what judges a passage. The entity is given, as in the paper."""
    return {method: _judge(METHODS[method](model)) for method in methods}


def _judge(evaluator: Evaluator) -> Callable[[LabelledPassage], Finding]:
    def judge(one: LabelledPassage) -> Finding:
        sample = Sample(answer=one.text, metadata={"entity": one.entity})
        evaluation = evaluator.invoke(sample)
        return Finding({"evaluation": evaluation.model_dump(mode="json")}, evaluation.error)

    return judge


def judgings(
    passages: Sequence[LabelledPassage], lines: Sequence[Line], percentage: float
) -> Iterator[Judging]:
    """What each recorded method decides, Reverse Validation with every matcher.

    Args:
        passages: The data.
        lines: Of a recording.
        percentage: The least that entity matching has to give; "published_em" has its own.

    Raises:
        ValueError: A line holds no evaluation.
    """
    names = {passage.key: passage.entity for passage in passages}
    for method in dict.fromkeys(line.configuration for line in lines):
        found = {
            line.item: Evaluation.model_validate(line.result.get("evaluation"))
            for line in lines
            if line.configuration == method
        }
        cost = _cost(list(found.values()))
        variant = next((one for one in VARIANTS if one == method), None)
        if variant is None:
            verdicts = {key: _failed(evaluation) for key, evaluation in found.items()}
            yield Judging(method, None, verdicts, cost)
            continue
        for matcher in matchers(variant):
            verdicts = {
                key: _rejected(names[key], evaluation, variant, matcher, percentage)
                for key, evaluation in found.items()
            }
            yield Judging(method, matcher, verdicts, cost)


def _failed(evaluation: Evaluation) -> bool | None:
    return None if evaluation.passed is None else not evaluation.passed


def _rejected(
    entity: str, evaluation: Evaluation, variant: Variant, matcher: str, percentage: float
) -> bool | None:
    """By the second stage; None where nothing was said in it."""
    reply, query = (evaluation.details.get(name) for name in ("reply", "query"))
    if reply is None:
        return None
    said, met = Exchange(str(reply), None), share_met(str(reply), str(query))
    return rejected(entity, said, variant, matcher, percentage, met)


def _cost(evaluations: Sequence[Evaluation]) -> Cost:
    spent = [evaluation.usage for evaluation in evaluations]
    return Cost(
        fmean(usage.input_tokens + usage.output_tokens for usage in spent),
        fmean(usage.seconds for usage in spent),
    )
