"""Few-shot examples for LlamaIndex's prompts: near questions, with the answers FEWL thinks best."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from llama_index.core.prompts.utils import format_string, get_template_vars

from demur import ExampleStore, FEWLExampleSelector

_VARIABLES = {"question", "answer"}
_STAND_IN = "What?"
"""The question where LlamaIndex measures a prompt without one: with examples it is longer."""


@dataclass(frozen=True)
class FEWLExamples:
    r"""Write the few-shot examples of a prompt, for its `function_mappings`.

    v1, section 5.1, as `FEWLExampleSelector` has it: of the past questions nearest to the new one,
    the answers with the highest score, the most relevant first. What the store holds serves prompts
    of LangChain and of LlamaIndex alike.

    Works in `PromptTemplate`, `ChatPromptTemplate` and `RichPromptTemplate`, also as the
    `text_qa_template` of a query engine. These put a function's text in as it is, so that braces
    in an answer stay what they are: leave the selector's `escape_braces` off.

    LlamaIndex formats prompts synchronously, in asynchronous calls too, and several times for an
    answer. Each time the question is embedded and searched for: some milliseconds with the default
    embedding and a store in a folder, in which the running loop waits.

    Copies are this object itself, since `get_prompts` copies what it returns, and the store is
    shared. It can be pickled where the store can: in a folder or on a server.

    Examples:
        >>> template = PromptTemplate(
        ...     "{examples}\n\nContext: {context_str}\nQuestion: {query_str}\nAnswer: ",
        ...     function_mappings={"examples": FEWLExamples(store)},
        ... )
        >>> engine = index.as_query_engine(text_qa_template=template)

    Args:
        source: What selects the examples, or the store that they are selected from, with the
            selector's defaults.
        question_key: The prompt's variable that holds the question: "query_str" in LlamaIndex's
            own prompts.
        example_template: How one example reads, with `{question}` and `{answer}`.
        separator: What stands between two.

    Raises:
        TypeError: `source` is neither, or another argument is no text.
        ValueError: `example_template` has other variables, or the selector escapes braces.
    """

    source: FEWLExampleSelector | ExampleStore
    _: KW_ONLY
    question_key: str = "query_str"
    example_template: str = "Question: {question}\nAnswer: {answer}"
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        if not isinstance(self.source, (FEWLExampleSelector, ExampleStore)):
            raise TypeError(
                "expected a FEWLExampleSelector or an ExampleStore, got "
                f"{type(self.source).__name__}"
            )
        for name in ("question_key", "example_template", "separator"):
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
        """What selects the examples."""
        if isinstance(self.source, FEWLExampleSelector):
            return self.source
        return FEWLExampleSelector(self.source)

    def __call__(self, **variables: Any) -> str:
        """The examples for a prompt's variables, as text.

        Args:
            **variables: All that the prompt is given, of which the question alone is read. An
                empty one, as in a prompt that is measured, has examples that fit any question.

        Returns:
            The examples, the most relevant first; "" where there is none and the selector has
            `on_empty="none"`.

        Raises:
            ValueError: There is no question under `question_key`.
            DemurError: There is nothing to select; another scorer's scores count in the store
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
        # The selector may have a key of its own, for prompts of LangChain's.
        examples = selector.select_examples({selector.question_key or "question": question})
        return self.separator.join(
            format_string(self.example_template, **example) for example in examples
        )

    @property
    def __name__(self) -> str:
        """What stands for the function where LlamaIndex writes a prompt as JSON."""
        return "FEWLExamples"

    def __copy__(self) -> FEWLExamples:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FEWLExamples:
        return self
