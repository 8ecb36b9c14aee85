"""Match the entity of a passage with a recorded reply by a judge of demur's own.

The judge is asked where the reply does not contain the name, as the matcher "llm" is. Several ways
to ask are compared on one half of the passages, and the best one is measured on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TypeAlias

from langchain_core.runnables import RunnableConfig

from demur.evaluators.reverse_validation.matching import Decision, exact, with_share
from demur.evaluators.reverse_validation.names import without_qualifier
from demur.evaluators.reverse_validation.parsing import parse_entity
from demur_research.bench import Bench, Column, Result, Row, mean_cost
from demur_research.datasets.published import (
    CHATGPT,
    LLAMA_2,
    VARIANTS,
    Records,
    Variant,
    first_percentage,
)
from demur_research.datasets.rows import LabelledRow
from demur_research.replay import PERCENTAGE
from demur_research.resampling import share
from demur_research.spending import Spent
from demur_research.tables.claims import Claimed
from demur_research.tables.judges import Judge, judge_of
from demur_research.tables.reverse_validation.judged import (
    HALVES,
    MATCHERS,
    PHD,
    Judged,
    floors,
    over,
    passages,
    percentage,
    wrong,
)
from demur_research.tables.reverse_validation.recorded import by_matchers, records_of

MODELS = (CHATGPT, LLAMA_2)
FORMS: Mapping[str, tuple[str, str]] = {
    "the reply entails the name": ("The entity is {reply}.", "The entity is {name}."),
    "the name entails the reply": ("The entity is {name}.", "The entity is {reply}."),
    "the reply means the name": ("{reply}", "This is about {name}."),
    "another name of it": ("It is called {reply}.", "It is also known as {name}."),
}
"""The ways to ask: what the judge gets as reference and as claim."""
_LIMITS = (0.2, 0.5, 0.8, 0.95)
"""The probabilities of Entailment from which on reply and name may count as the same entity."""


@dataclass(frozen=True)
class _Reply:
    """Hold a recorded reply about a passage."""

    model: str
    variant: Variant
    row: LabelledRow
    name: str
    """The name of the entity, without its qualifier."""
    text: str

    @property
    def named(self) -> bool:
        """Return whether the reply contains the name, so that no judge is asked."""
        return exact(self.name, self.text).same

    def asked(self, form: str) -> Claimed:
        """Return what the judge is asked."""
        reply = (parse_entity(self.text) or self.text).strip().rstrip(".")
        reference, claim = (text.format(reply=reply, name=self.name) for text in FORMS[form])
        key = f"{self.model} {self.variant} {self.row.key} {form}"
        return Claimed(key, self.row.key, None, claim, (reference,), supported=True)

    def rejected(self, same: bool, least: float) -> bool | None:
        """Return whether the passage is rejected if reply and name are the same entity or not."""
        decision: Decision | None = Decision(same, "As the judge says.")
        if self.variant == "em" and decision is not None:
            decision = with_share(decision, first_percentage(self.text), least / 100)
        return None if decision is None else not decision.same


Support: TypeAlias = Mapping[tuple[str, str, str], "float | None"]
"""The probability that a judge gives, by model, variant and the key of the passage."""


def _key(reply: _Reply) -> tuple[str, str, str]:
    return reply.model, reply.variant, reply.row.key


@dataclass(frozen=True)
class _Matching:
    """Hold what every way to ask has in common."""

    bench: Bench
    judge: Judge
    name: str
    """The judge's name."""
    records: Mapping[str, Records]
    """The recorded replies of each model."""
    least: float
    """The least percentage that entity matching has to give."""

    @property
    def parts(self) -> list[tuple[str, Variant]]:
        """Return each model with each variant."""
        return [*product(self.records, VARIANTS)]

    def replies(self, rows: Sequence[LabelledRow], part: tuple[str, Variant]) -> list[_Reply]:
        """Return the replies of a model and a variant about some passages."""
        model, variant = part
        found = []
        for row in rows:
            said = self.records[model].by_key.get(row.key)
            text = None if said is None else said.reply(variant)
            if said is not None and text is not None:
                entity = said.entity or str(row.metadata["entity"])
                found.append(_Reply(model, variant, row, without_qualifier(entity), text))
        return found

    def ask(self, rows: Sequence[LabelledRow], form: str) -> tuple[Support, Spent | None]:
        """Ask about the replies that lack the name; return the support and the mean cost."""
        unnamed = [one for part in self.parts for one in self.replies(rows, part) if not one.named]

        def work(one: _Reply, config: RunnableConfig) -> float | None:
            return self.judge(one.asked(form), config).score

        done = self.bench.each(f"{self.name}, {form}", unnamed, work)
        support = {_key(one): of.value for one, of in zip(unnamed, done, strict=True)}
        return support, mean_cost(done) if done else None

    def verdicts(
        self,
        rows: Sequence[LabelledRow],
        part: tuple[str, Variant],
        support: Support,
        limit: float,
    ) -> dict[str, bool | None]:
        """Return the verdicts on passages of a model and a variant."""
        found: dict[str, bool | None] = {}
        for reply in self.replies(rows, part):
            score = 1.0 if reply.named else support[_key(reply)]
            same = reply.named or (score is not None and score >= limit)
            found[reply.row.key] = None if score is None else reply.rejected(same, self.least)
        return found

    def mean_f1(self, rows: Sequence[LabelledRow], support: Support, limit: float) -> float:
        """Return the mean of the F1 scores of all models and variants."""
        found = (self.verdicts(rows, part, support, limit) for part in self.parts)
        return fmean(Judged("", one).detection(rows).f1.value or 0.0 for one in found)

    def choose(self, rows: Sequence[LabelledRow]) -> tuple[str, float, str]:
        """Return the way to ask and the limit that are best on some passages, and a note."""
        tried: dict[str, dict[float, float]] = {}
        support: Support = {}
        for form in FORMS:
            support, _ = self.ask(rows, form)
            tried[form] = {limit: self.mean_f1(rows, support, limit) for limit in _LIMITS}
        best = {form: max(found, key=lambda limit: found[limit]) for form, found in tried.items()}
        form = max(FORMS, key=lambda one: tried[one][best[one]])
        told = [f"{one} {tried[one][best[one]]:.1f} (from {best[one]})" for one in FORMS]
        exact_alone = self.mean_f1(rows, support, math.inf)
        note = (
            f"The mean F1 on the other half: exact alone {exact_alone:.1f}; {'; '.join(told)}. "
            f'Chosen: "{form}" from {best[form]} on.'
        )
        return form, best[form], note


def _row(bench: Bench, rows: Sequence[LabelledRow], one: Judged) -> Row:
    decided = one.decided(rows)
    figures = (
        *one.detection(rows, bench.seed),
        share([wrong(row) is no for row, no in decided]),
        None if one.published is None else over(decided, one.published, bench.seed),
    )
    return Row(one.name, figures, len(decided), one.undetermined(rows), one.spent, one.floor)


def matched(bench: Bench) -> Result:
    """Return the table of the matchers, with a judge of demur's own among them."""
    name, rows = judge_of(bench), passages(bench)
    chosen_on, rest = rows[::2], rows[1::2]
    models = bench.names("models", MODELS)
    least = percentage(bench, PERCENTAGE)
    records = {model: records_of(bench, PHD, model) for model in models}
    matching = _Matching(bench, Judge(bench, name), name, records, least)
    form, limit, note = matching.choose(chosen_on)
    support, cost = matching.ask(rest, form)

    shown = [_row(bench, rest, one) for one in floors(rest)]
    for model, variant in matching.parts:
        title = f"{model}: {variant}"
        found = [*by_matchers(rest, records[model], variant, least, title)]
        shown += [_row(bench, rest, one) for one in found]
        published = next(one.verdicts for one in found if one.published is None)
        verdicts = matching.verdicts(rest, (model, variant), support, limit)
        own = Judged(f"{title}, exact, or {name}", verdicts, cost, published=published)
        shown.append(_row(bench, rest, own))
    return Result(
        (
            *(Column("F1, %"), Column("precision, %"), Column("recall, %")),
            *(Column("accuracy, %"), Column("F1 over the published decision")),
        ),
        tuple(shown),
        (
            f"{len(rest)} of {len(rows)} passages. On the {len(chosen_on)} others, the way to ask "
            "the judge and its limit were chosen, for all models and variants together.",
            note,
            f'"exact, or {name}": the judge is asked where the reply does not have the name. A '
            "call's cost is the mean over these replies.",
            MATCHERS,
            HALVES,
        ),
    )
