"""Provide few-shot examples for LlamaIndex's prompts: near questions with FEWL's best answers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from llama_index.core.prompts.utils import format_string, get_template_vars

from demur import ExampleStore, FEWLExampleSelector

_VARIABLES = {"question", "answer"}
_STAND_IN = "What?"
"""The question when LlamaIndex measures a prompt without one. Without any examples, the prompt
would be measured too short."""


@dataclass(frozen=True)
class FEWLExamples:
    r"""Write the few-shot examples of a prompt, as one of its `function_mappings`.

    The examples are those of `FEWLExampleSelector` (v1, section 5.1): among the past questions
    nearest to the new one, the answers with the highest scores, the most relevant example first.
    One store serves prompts of LangChain and of LlamaIndex.

    It works in `PromptTemplate`, `ChatPromptTemplate` and `RichPromptTemplate`, and as part of a
    query engine's `text_qa_template`. These templates insert the text of a function unchanged, so
    braces in an answer need no escaping: leave the selector's `escape_braces` off.

    LlamaIndex formats prompts synchronously, in asynchronous calls too, and several times for one
    answer. Each time, the question is embedded and searched for. With the default embedding and a
    store in a folder, this takes some milliseconds, during which the event loop waits.

    A copy is this object itself, because `get_prompts` copies what it returns, and the store must
    stay shared. The object can be pickled if its store can: a store in a folder or on a server.

    Examples:
        >>> template = PromptTemplate(
        ...     "{examples}\n\nContext: {context_str}\nQuestion: {query_str}\nAnswer: ",
        ...     function_mappings={"examples": FEWLExamples(store)},
        ... )
        >>> engine = index.as_query_engine(text_qa_template=template)

    Args:
        source: The selector of the examples; or a store, from which a selector with default
            arguments selects.
        question_key: The prompt's variable that holds the question: "query_str" in LlamaIndex's own
            prompts.
        example_template: The text of one example, with `{question}` and `{answer}`.

    Raises:
        TypeError: `source` is neither a selector nor a store, or another argument is not a text.
        ValueError: `example_template` has other variables, or the selector escapes braces.
    """

    source: FEWLExampleSelector | ExampleStore
    _: KW_ONLY
    question_key: str = "query_str"
    example_template: str = "Question: {question}\nAnswer: {answer}"

    def __post_init__(self) -> None:
        if not isinstance(self.source, (FEWLExampleSelector, ExampleStore)):
            raise TypeError(
                "expected a FEWLExampleSelector or an ExampleStore, got "
                f"{type(self.source).__name__}"
            )
        for name in ("question_key", "example_template"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"{name}: expected text, got {type(value).__name__}")
        if (found := set(get_template_vars(self.example_template))) != _VARIABLES:
            raise ValueError(
                "example_template needs {question} and {answer}, and no other variable, got "
                f"{sorted(found)}"
            )
        if self.selector.escape_braces:
            raise ValueError(
                "the selector has escape_braces=True, and LlamaIndex's prompts would show braces "
                "doubled: leave it off"
            )

    @property
    def selector(self) -> FEWLExampleSelector:
        """Return the selector of the examples."""
        if isinstance(self.source, FEWLExampleSelector):
            return self.source
        return FEWLExampleSelector(self.source)

    def __call__(self, **variables: Any) -> str:
        """Return the examples for a prompt's variables, as text.

        Args:
            **variables: All variables of the prompt, of which only the question is read. For an
                empty question, as in a prompt that is measured, examples for any question are
                returned.

        Returns:
            The examples, the most relevant first; "" if there is none and the selector has
            `on_empty="none"`.

        Raises:
            ValueError: There is no question under `question_key`.
            DemurError: The store has nothing to select; another scorer's scores count in the store
                (`rescore`); or Chroma failed.
        """
        question = variables.get(self.question_key)
        if question == "":
            question = _STAND_IN
        if not isinstance(question, str) or not question.strip():
            raise ValueError(
                f"expected the question as text in the prompt's variable {self.question_key!r}, "
                f"got {question!r:.200} among {sorted(variables)}: name its variable with "
                "question_key"
            )
        selector = self.selector
        # The selector may have its own key, for prompts of LangChain.
        examples = selector.select_examples({selector.question_key or "question": question})
        return "\n\n".join(format_string(self.example_template, **example) for example in examples)

    @property
    def __name__(self) -> str:
        """Return the name that LlamaIndex writes for the function in a prompt's JSON."""
        return "FEWLExamples"

    def __copy__(self) -> FEWLExamples:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FEWLExamples:
        return self
