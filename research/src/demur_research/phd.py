"""How well methods detect passages of PHD that are not factual: the paper's tables 3 and 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from demur_research.datasets.phd import DOMAINS, Domain, LabelledPassage
from demur_research.detection import Detection, Ratio, detection, f1_difference
from demur_research.replay import PUBLISHED, Cost, Judging, Verdicts, chosen

Part = Literal["all", "low", "medium", "high"]


@dataclass(frozen=True)
class Row:
    """The figures of one method on one domain, or on all."""

    method: str
    matcher: str | None
    domain: Part
    figures: Detection
    over_published: Ratio
    """How much its F1 exceeds that of the published decision on the same replies; without a value
    for that decision itself, and for methods that match no names."""
    undetermined: int
    """Passages on which the method decides nothing: not in the figures."""
    missing: int
    """Passages without a record: not in the figures."""
    cost: Cost | None
    """Of a passage, of whatever domain; None where it was not recorded."""

    def plain(self) -> dict[str, Any]:
        """As JSON values; ratios in percent."""
        counts = self.figures.counts
        told: dict[str, Any] = {
            **{"method": self.method, "matcher": self.matcher, "domain": self.domain},
            **{"tp": counts.tp, "fp": counts.fp, "fn": counts.fn, "tn": counts.tn},
        }
        ratios = {
            **{"f1": self.figures.f1, "precision": self.figures.precision},
            **{"recall": self.figures.recall, "f1_over_published": self.over_published},
        }
        for name, ratio in ratios.items():
            told |= {name: ratio.value, f"{name}_interval": ratio.interval}
        spent = {
            "tokens": self.cost and self.cost.tokens,
            "seconds": self.cost and self.cost.seconds,
        }
        return {**told, "undetermined": self.undetermined, "missing": self.missing, **spent}


def table(
    passages: Sequence[LabelledPassage], judged: Sequence[Judging], matcher: str | None = None
) -> list[Row]:
    """One row for each method, matcher and domain; with a matcher, those that it decides.

    Raises:
        ValueError: The matcher is not known, or there is nothing recorded that it decides on.
    """
    published = {one.method: one.verdicts for one in judged if one.matcher in PUBLISHED.values()}
    parts: list[tuple[Part, Sequence[Domain]]] = [("all", DOMAINS), *((d, [d]) for d in DOMAINS)]
    return [
        _row(one, part, [p for p in passages if p.domain in domains], published.get(one.method))
        for one in chosen(judged, matcher)
        for part, domains in parts
    ]


def _row(
    one: Judging, part: Part, passages: Sequence[LabelledPassage], published: Verdicts | None
) -> Row:
    known = [p for p in passages if p.key in one.verdicts]
    decided = [(p, verdict) for p in known if (verdict := one.verdicts[p.key]) is not None]
    wrong, rejected = [not p.factual for p, _ in decided], [verdict for _, verdict in decided]
    over = Ratio(None, None)
    if published is not None and published is not one.verdicts:
        over = f1_difference(wrong, rejected, [bool(published[p.key]) for p, _ in decided])
    return Row(
        method=one.method,
        matcher=one.matcher,
        domain=part,
        figures=detection(wrong, rejected),
        over_published=over,
        undetermined=len(known) - len(decided),
        missing=len(passages) - len(known),
        cost=one.cost,
    )
