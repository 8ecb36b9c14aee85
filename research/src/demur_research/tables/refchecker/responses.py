"""The responses that people labelled claim by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from demur import Claim, ClaimLabel, Evaluation
from demur.evaluators.refchecker import Summary, summarize
from demur.evaluators.refchecker.aggregation import aggregate
from demur.schema import ABSTAIN
from demur_research.bench import place
from demur_research.datasets.rows import LabelledRow

SETTINGS = ("zero_context", "noisy_context", "accurate_context")


@dataclass(frozen=True)
class Response:
    """What a model answered, with what people found of it."""

    group: str
    """Of the question: the same for all models."""
    setting: str
    source: str
    model: str
    text: str
    claims: tuple[Claim, ...]
    """With the people's labels; none of a response that states nothing."""

    @property
    def evaluation(self) -> Evaluation:
        """What RefChecker would find if its claims and labels were the people's."""
        if not self.claims:
            return Evaluation(name="people", label=ABSTAIN)
        found = aggregate([claim.label for claim in self.claims], "strict", 1)
        return Evaluation(
            name="people",
            score=found.score,
            label=found.label and found.label.value,
            passed=found.passed,
            claims=self.claims,
        )

    @cached_property
    def summary(self) -> Summary:
        """Of this response alone."""
        return summarize([self.evaluation])


def response(row: LabelledRow) -> Response:
    """The response of a row of the set."""
    told: Mapping[str, Any] = row.metadata
    claims = [
        Claim(text=" ".join(triplet), triplet=tuple(triplet), label=ClaimLabel(label))
        for triplet, label in zip(told["claims"], told["labels"], strict=True)
    ]
    setting, source, model = (told[name] for name in ("setting", "source", "model"))
    return Response(row.group, setting, source, model, row.answers[0].text, tuple(claims))


def chosen(responses: Sequence[Response], limit: int | None, seed: int) -> list[Response]:
    """The responses to so many questions of each setting, which the seed decides; None: to all."""
    of_setting: dict[str, set[str]] = defaultdict(set)
    for one in responses:
        of_setting[one.setting].add(one.group)
    kept = {
        name: sorted(groups, key=partial(place, seed))[:limit]
        for name, groups in of_setting.items()
    }
    return [one for one in responses if one.group in kept[one.setting]]
