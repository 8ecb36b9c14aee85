"""Select the past questions nearest to a prompt's question, with their best-scored answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from langchain_core.example_selectors import BaseExampleSelector

from demur.errors import DemurError
from demur.exemplars.exemplar import Exemplar, check_limits
from demur.exemplars.store import ExampleStore

_QUESTION_KEYS = ("question", "input", "query")
_BRACES = str.maketrans({"{": "{{", "}": "}}"})


@dataclass(frozen=True)
class FEWLExampleSelector(BaseExampleSelector):
    """Select few-shot examples from a store: near questions with their best answers.

    The paper shows the best-scored answers of the five questions nearest to the new one (v1,
    section 5.1). An example is `{"question": ..., "answer": ...}`, and the nearest question comes
    first. The question itself is never an example. The selector works with
    `FewShotChatMessagePromptTemplate`, `FewShotPromptTemplate`, and anything else that takes a
    `BaseExampleSelector`.

    Examples:
        >>> selector = FEWLExampleSelector(store, k=5, max_similarity=0.95)
        >>> selector.select_examples({"question": "Who painted Las Meninas?"})

    Args:
        store: The store of the examples.
        k: How many examples to select. There are fewer if the store has no more that fit.
        min_score: The least score of an example's answer, on the scorer's own scale. None: no
            floor.
        max_similarity: Only questions whose vectors have a cosine below it count, so that
            paraphrases of the question do not reveal its answer. None: no ceiling.
        escape_braces: Whether to double the braces in questions and answers.
            `FewShotPromptTemplate` formats its examples twice, and braces in answers make it fail
            or are filled in, so use it there. The chat template formats its examples once, and
            would show doubled braces. This is for f-strings only. With `template_format="jinja2"`,
            the plain template runs answers as templates, escaped or not; use the chat template
            instead.
        on_empty: What to do if there is nothing to select. "raise": raise an error. "none": make a
            prompt without examples.
        question_key: The key of the question in the prompt's input. None: "question", "input" or
            "query", or else the only text in the input.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: `store` is not an `ExampleStore`.
    """

    store: ExampleStore
    _: KW_ONLY
    k: int = 5
    min_score: float | None = None
    max_similarity: float | None = None
    escape_braces: bool = False
    on_empty: Literal["raise", "none"] = "raise"
    question_key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.store, ExampleStore):
            raise TypeError(f"expected an ExampleStore, got {type(self.store).__name__}")
        check_limits(self.k, self.max_similarity, self.min_score)
        if self.on_empty not in ("raise", "none"):
            raise ValueError(f"on_empty is 'raise' or 'none', got {self.on_empty!r}")

    def select_examples(self, input_variables: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the examples for a prompt's input, with the nearest question first.

        Raises:
            ValueError: The input has no question.
            DemurError: There is nothing to select; another scorer's scores count in the store (call
                `rescore`); or Chroma failed.
        """
        question = self._question(input_variables)
        exemplars = self.store.nearest(
            question, self.k, max_similarity=self.max_similarity, min_score=self.min_score
        )
        if not exemplars and self.on_empty == "raise":
            raise DemurError(self._nothing(question))
        return [self._example(exemplar) for exemplar in exemplars]

    def add_example(self, example: Mapping[str, Any]) -> None:
        """Add `{"question": ..., "answer": ...}` to the store, with a "score" or to be scored."""
        self.store.add(*_offer(example))

    def _question(self, variables: Mapping[str, Any]) -> str:
        keys = _QUESTION_KEYS if self.question_key is None else (self.question_key,)
        values = [variables[key] for key in keys if key in variables]
        if not values and self.question_key is None:
            texts = [value for value in variables.values() if isinstance(value, str)]
            values = texts if len(texts) == 1 else []
        if not values or not isinstance(values[0], str) or not values[0].strip():
            raise ValueError(
                f"expected the question as text under {' or '.join(map(repr, keys))}, got "
                f"{dict(variables)!r:.200}: name its key with question_key"
            )
        return values[0]

    def _example(self, exemplar: Exemplar) -> dict[str, str]:
        example = {"question": exemplar.question, "answer": exemplar.answer}
        if self.escape_braces:
            return {key: text.translate(_BRACES) for key, text in example.items()}
        return example

    def _nothing(self, question: str) -> str:
        count = len(self.store)
        limits = {"min_score": self.min_score, "max_similarity": self.max_similarity}
        named = ", ".join(f"{key}={value}" for key, value in limits.items() if value is not None)
        why = (
            f"none of its {count} questions fits "
            f"({named or 'they are the question itself, or wait for rescore()'})"
            if count
            else "it is empty: add questions with their answers"
        )
        return (
            f"{self.store!r} has no example for {question!r}: {why}. on_empty='none' makes a "
            "prompt without examples"
        )


def _offer(example: Mapping[str, Any]) -> tuple[Any, list[Any], list[Any] | None]:
    if missing := {"question", "answer"} - example.keys():
        raise ValueError(f"expected an example with question and answer, without {sorted(missing)}")
    scores = [example["score"]] if "score" in example else None
    return example["question"], [example["answer"]], scores
