"""Turn the labelled rows of the data set into responses with claims and people's labels."""

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
    """Hold a model's response, with the labels that people gave its claims."""

    group: str
    """The question's key, the same for all models."""
    setting: str
    source: str
    model: str
    text: str
    claims: tuple[Claim, ...]
    """The claims with the people's labels; empty if the response states nothing."""

    @property
    def evaluation(self) -> Evaluation:
        """Return the evaluation that RefChecker would give with the people's claims and labels."""
        if not self.claims:
            return Evaluation(name="people", label=ABSTAIN)
        found = aggregate([claim.label for claim in self.claims], "strict", 1)
        return Evaluation(
            name="people",
            score=found.share.value,
            label=found.label and found.label.value,
            passed=found.passed,
            claims=self.claims,
        )

    @cached_property
    def summary(self) -> Summary:
        """Return the summary of this response alone."""
        return summarize([self.evaluation])


def response(row: LabelledRow) -> Response:
    """Return the response of a row of the data set."""
    told: Mapping[str, Any] = row.metadata
    claims = [
        Claim(text=" ".join(triplet), triplet=tuple(triplet), label=ClaimLabel(label))
        for triplet, label in zip(told["claims"], told["labels"], strict=True)
    ]
    setting, source, model = (told[name] for name in ("setting", "source", "model"))
    return Response(row.group, setting, source, model, row.answers[0].text, tuple(claims))


def chosen(responses: Sequence[Response], limit: int | None, seed: int) -> list[Response]:
    """Return the responses to the questions that the seed chooses: `limit` of each setting.

    If `limit` is None, all responses are returned.
    """
    of_setting: dict[str, set[str]] = defaultdict(set)
    for one in responses:
        of_setting[one.setting].add(one.group)
    kept = {
        name: sorted(groups, key=partial(place, seed))[:limit]
        for name, groups in of_setting.items()
    }
    return [one for one in responses if one.group in kept[one.setting]]
