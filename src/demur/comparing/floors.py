"""Score answers without regard to the truth, as floors that a detector must be better than."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from demur._text import word_set, words
from demur.evaluators import Evaluator
from demur.runtime import CallPolicy, Steps, UndeterminedError, ask_all, fields_of
from demur.schema import Evaluation, Sample

Measure: TypeAlias = Literal["longest", "shortest", "question", "contexts"]


class Floor(Evaluator):
    """Score an answer by its words alone, without a call to a model.

    `score` is the number of words for "longest" and its negative for "shortest". For "question" and
    "contexts" it is the share, in [0, 1], of the answer's words that also stand in the question, or
    in the contexts and the reference. It never decides. An answer without words is undetermined,
    and so is an answer without a text to compare it with.

    Args:
        measure: What the score is.
        name: The name in results. None: the class's name.
        call_policy: Accepted as by other evaluators, but not used, since no model is called.
    """

    measure: Measure

    def __init__(
        self, measure: Measure, *, name: str | None = None, call_policy: CallPolicy | None = None
    ) -> None:
        """Make a floor; the class describes the arguments."""
        super().__init__(**fields_of(locals()))

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the score depends on, which is only the measure."""
        return {"evaluator": type(self).__qualname__, "measure": self.measure}

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        said = _words(sample.answer)
        if not said:
            raise UndeterminedError("the answer holds no words")
        return Evaluation(name=self.get_name(), score=_MEASURES[self.measure](said, sample))


def _overlap(said: list[str], other: str) -> float:
    known = word_set(other)
    if not known:
        raise UndeterminedError("there are no words to compare the answer with")
    return sum(word in known for word in said) / len(said)


def _sources(sample: Sample) -> str:
    return "\n".join([*(one.page_content for one in sample.contexts), sample.reference or ""])


_MEASURES: Mapping[Measure, Callable[[list[str], Sample], float]] = {
    "longest": lambda said, sample: float(len(said)),
    "shortest": lambda said, sample: -float(len(said)),
    "question": lambda said, sample: _overlap(said, sample.question or ""),
    "contexts": lambda said, sample: _overlap(said, _sources(sample)),
}


def _words(text: str) -> list[str]:
    return [word for word, _, _ in words(text)]
