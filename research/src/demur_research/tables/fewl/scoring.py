"""Score answers by configurations of FEWL, and measure the cost of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from demur import FEWL, Evaluation, NeighborStore, Sample
from demur.evaluators import CONFIGURATIONS, FEWLPrompts, Fitted
from demur.evaluators.fewl.neighbors import KnownQuestion
from demur.evaluators.fewl.terms import Premise
from demur.similarity import Similarity, resolve_similarity
from demur_research.bench import Bench, place
from demur_research.datasets.rows import LabelledRow
from demur_research.spending import Meter, Spent
from demur_research.tables.fewl.agreement import Agreement
from demur_research.tables.fewl.pairs import PROMPTS
from demur_research.tables.fewl.small import SMALL_ALONE, SMALL_ASKED, small

COSINE, BY_MODEL = "cosine", "agreement"
"""Names of similarities: the cosine of recorded vectors, and a model's view of whether two answers
agree."""
OPTIONS: Mapping[str, str] = {
    "similarity": "cosine, rouge, bleu, hhem, hhem-1.0, the name or folder of a cross-encoder, "
    "small (whether one answer entails the other, by demur's small judge), small-question (the "
    "same with the question in front of both), or agreement (the model says whether two answers "
    "agree) [default: cosine]",
    "wrong": "the number of pairs of wrong and corrected answers to ask for [default: 25, as in "
    "the papers]",
}
"""The options of every table that scores by FEWL."""

_PREMISES: Mapping[str, Premise] = {"answer": "answer", "reference": "reference"}
_MIN_PAIRS: int = FEWL.model_fields["min_pairs"].default


def chosen(bench: Bench, name: str, most: int | None = None) -> list[LabelledRow]:
    """Return questions of a data set, in an order that the seed decides.

    Args:
        bench: Reads the data set, and has the limit.
        name: The name of the data set.
        most: The number that the table wants; None: all.

    Raises:
        ValueError: The data set has no question.
    """
    rows = [row for row in bench.read(name) if (row.question or "").strip()]
    if not rows:
        raise ValueError(
            f"the data set {name!r} holds no row with a question: name other data with --data"
        )
    return in_order(bench, rows, most)


def in_order(
    bench: Bench, rows: Sequence[LabelledRow], most: int | None = None
) -> list[LabelledRow]:
    """Return as many rows as bench and table want, in an order that the seed decides."""
    ordered = sorted(rows, key=lambda row: place(bench.seed, str(row.question)))
    limits = [limit for limit in (bench.limit, most) if limit is not None]
    return ordered[: min(limits, default=None)]


@dataclass(frozen=True)
class Question:
    """Hold a question with the answers that are scored."""

    text: str
    answers: tuple[str, ...]
    """The answers. An empty answer has no score."""
    correct: tuple[str, ...] = ()
    """Answers that are labelled right, for weights by labels."""
    incorrect: tuple[str, ...] = ()
    """Answers that are labelled wrong, for weights by labels."""

    @classmethod
    def of(cls, row: LabelledRow, names: Sequence[str]) -> Question:
        """Return a row's question, with its answers of these names in this order."""
        texts = {answer.name: answer.text for answer in row.answers}
        return cls(
            str(row.question),
            tuple(texts[name] for name in names),
            tuple(answer.text for answer in row.answers if answer.hallucinated is False),
            tuple(answer.text for answer in row.answers if answer.hallucinated is True),
        )


@dataclass(frozen=True)
class Setting:
    """Describe how answers are scored, apart from the configuration."""

    similarity: str
    wrong: int
    """The number of pairs of wrong and corrected answers to ask for."""
    temperature: float
    premise: Premise
    pairs: str
    """One of `pairs.PROMPTS`."""

    @classmethod
    def of(cls, bench: Bench) -> Setting:
        """Read the setting from a table's options.

        Raises:
            ValueError: An option has a value that is not allowed.
        """
        return cls(
            similarity=bench.options.get("similarity", COSINE),
            wrong=bench.number("wrong", 25),
            temperature=_temperature(bench.options.get("temperature", "1")),
            premise=_PREMISES[bench.one_of("premise", _PREMISES, "answer")],
            pairs=bench.one_of("pairs", PROMPTS, "denied"),
        )

    @property
    def prompts(self) -> FEWLPrompts:
        """Return the prompts for the references."""
        return replace(FEWLPrompts(), pairs=PROMPTS[self.pairs])


def _temperature(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"temperature: expected a number above 0, got {text!r}")
    return number


@dataclass(frozen=True)
class Scored:
    """Hold a configuration's evaluations of every answer, with their cost."""

    evaluations: tuple[tuple[Evaluation, ...], ...]
    """For each question, the evaluations in the order of its answers."""
    spent: Spent | None
    """The mean cost of a question; None if no model was called."""

    @property
    def scores(self) -> list[list[float | None]]:
        """Return for each question the scores in the order of its answers; None: undetermined."""
        return [[evaluation.score for evaluation in row] for row in self.evaluations]


class Scorer:
    """Score the answers to some questions by any configuration of FEWL.

    Configurations that ask the references the same questions share the replies, and each counts
    their whole cost.
    """

    def __init__(self, bench: Bench, questions: Sequence[Question], setting: Setting) -> None:
        """Check that the similarity is available, before any model is asked."""
        self.bench, self.questions, self.setting = bench, questions, setting
        self._cosine = resolve_similarity(bench.embedding)
        self._asked: dict[tuple[bool, bool], tuple[NeighborStore, Spent]] = {}
        self._reasons: Counter[str] = Counter()
        self._similarities: dict[str, None] = {}
        self.similarity()

    def similarity(
        self,
        name: str | None = None,
        model: BaseChatModel | None = None,
        question: str = "",
    ) -> Similarity:
        """Return the similarity of a name, or the setting's.

        Args:
            name: The name, as `OPTIONS` describes; None: the setting's.
            model: The model to ask if the similarity asks one; None: the bench's model.
            question: The question whose answers are compared. "small-question" puts it in front.

        Raises:
            ValueError: The name is unknown.
            DemurError: A package or a model is missing.
        """
        name = self.setting.similarity if name is None else name
        if name == BY_MODEL:
            return resolve_similarity(Agreement(self.bench.model if model is None else model))
        if name in (SMALL_ALONE, SMALL_ASKED):
            return small(question if name == SMALL_ASKED else "")
        return self._cosine if name == COSINE else resolve_similarity(name)

    def scored(self, configuration: str, similarity: str | None = None) -> Scored:
        """Have a configuration score every answer.

        Args:
            configuration: One of `CONFIGURATIONS`.
            similarity: The similarity that replaces the setting's; None: the setting's.
        """
        meter = Meter()
        model = _metered(self.bench.model, meter)
        alike = self.similarity(similarity, model)
        name = similarity or self.setting.similarity
        self._similarities[name] = None
        store, asking = self.asked(configuration)
        of_all = self._fewl(configuration, model, alike, store)

        def work(question: Question, config: RunnableConfig) -> tuple[Evaluation, ...]:
            evaluator = of_all
            if name == SMALL_ASKED:
                asked = self.similarity(name, model, question.text)
                evaluator = self._fewl(configuration, model, asked, store)
            labels = {"correct": [*question.correct], "incorrect": [*question.incorrect]}
            return tuple(
                evaluator.invoke(
                    Sample(question=question.text, answer=answer, metadata=labels), config
                )
                for answer in question.answers
            )

        done = self.bench.each(configuration, self.questions, work)
        evaluations = tuple(one.value for one in done)
        self._reasons.update(
            evaluation.error for row in evaluations for evaluation in row if evaluation.error
        )
        spent = (asking + meter.spent) / len(self.questions)
        return Scored(evaluations, spent if spent.calls else None)

    def asked(self, configuration: str) -> tuple[NeighborStore, Spent]:
        """Ask the references about all questions; return their replies and what these cost."""
        weighting = CONFIGURATIONS[configuration]["weighting"]
        by_agreement = weighting == "agreement"
        key = by_agreement or weighting in ("expertise", "best"), by_agreement
        if key not in self._asked:
            meter = Meter()
            store = NeighborStore(embedding=self.bench.embedding)
            model = _metered(self.bench.model, meter)
            evaluator = self._fewl(configuration, model, self._cosine, store)
            evaluator.fit(
                [question.text for question in self.questions],
                pairs=True,
                at_once=self.bench.at_once,
                progress=self._tell,
            )
            self._asked[key] = store, meter.spent
        return self._asked[key]

    def known(self, configuration: str) -> list[KnownQuestion]:
        """Return what the references say of each question that they could answer."""
        store, _ = self.asked(configuration)
        texts = list(dict.fromkeys(question.text for question in self.questions))
        return [known for known in store.get_many(texts) if known is not None]

    def notes(self) -> Iterator[str]:
        """Yield the notes under a table, for all configurations that were scored."""
        setting, count = self.setting, len(self.questions)
        yield (
            f"{count} questions. The reference answers (5 in a reply), and {setting.wrong} pairs "
            f"of wrong and corrected answers, are those of {self.bench.model_name}; the papers "
            f"have 25 pairs. Similarity: {', '.join(self._similarities)}; the papers' is HHEM. A "
            "penalty is of neighbours among these questions."
        )
        yield (
            "A row with one reference answer scores by the first of the five, and its cost is that "
            "of all five. Seconds are those of the calls when they were recorded."
        )
        for (with_pairs, _), (store, _) in self._asked.items():
            if with_pairs:
                yield _usable([*store.entries()])
                break
        for reason, times in self._reasons.most_common(1):
            total = self._reasons.total()
            yield f"{total} scores are undetermined, {times} of them since {reason}"

    def _fewl(
        self, configuration: str, model: BaseChatModel, similarity: Similarity, store: NeighborStore
    ) -> FEWL:
        return FEWL(
            model,
            similarity=similarity,
            n_wrong=self.setting.wrong,
            temperature=self.setting.temperature,
            premise=self.setting.premise,
            prompts=self.setting.prompts,
            neighbors=store,
            **CONFIGURATIONS[configuration],
        )

    def _tell(self, now: Fitted) -> None:
        self.bench.report("asking the references", now.done + len(now.failed), now.questions)


def _metered(model: BaseChatModel, meter: Meter) -> BaseChatModel:
    """Return the same model with a meter, which also counts calls that take no config."""
    return model.model_copy(update={"callbacks": [meter]})


def _usable(known: Sequence[KnownQuestion]) -> str:
    """Say in one line how good the pairs are."""
    pairs = [one.pairs for one in known if one.pairs is not None]
    if not pairs:
        return "No reply held pairs of wrong and corrected answers."
    usable = sum(len(pair.usable) for pair in pairs) / len(pairs)
    thin = sum(len(pair.usable) < _MIN_PAIRS for pair in pairs)
    return (
        f"{usable:.1f} pairs a question are usable ({sum(pair.same for pair in pairs)} with equal "
        f"sides and {sum(pair.repeated for pair in pairs)} repeated were dropped); fewer than "
        f"{_MIN_PAIRS} for {thin} questions, where all references weigh alike."
    )
