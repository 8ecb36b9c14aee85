"""Define the recoveries, which say what to do about a rejected answer.

`GuardedCall` does what those in `Again` say, and `demur.guard.ending` what those in `Final` say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from langchain_core.documents import Document

from demur.errors import DemurError
from demur.guard.edits import FORMS, Form
from demur.guard.feedback import Feedback
from demur.guard.trace import TraceOutcome
from demur.guard.widening import Widened
from demur.shapes import kind_of

REFUSAL = "I cannot give an answer that the sources I have support."
"""The refusal for an answer that failed."""
UNCHECKED = "I cannot give an answer now, because it could not be checked. Please try again later."
"""The refusal for an answer that could not be checked because a judge failed."""
Tell = Callable[[Any, Feedback], Any]
"""A function from the chain's input and the feedback on its answer to the chain's next input."""
Words = str | Callable[[Feedback], str]
"""A text for the user, or a function that makes it from the feedback, in any language and tone."""
RepairPrompt = Callable[[Feedback, Sequence[Document]], Any]
"""A function from the feedback and the documents to a prompt, in any form that LangChain's models
take."""


class Recovery:
    """Say what to do about a rejected answer; each subclass is one way."""


def _said(words: Words, feedback: Feedback, of: str) -> str:
    text = words(feedback) if callable(words) else words
    if not isinstance(text, str):
        raise DemurError(f"{of}: the function returned {kind_of(text)}, expected a text")
    return text


# --- Who answers again, and from what ------------------------------------------------------------


@dataclass(frozen=True)
class Regenerate(Recovery):
    """Have the chain answer again."""

    tell: Tell | None = None
    """A function that makes the chain's next input from its input and the `Feedback`. None: the
    chain gets the same input again, which helps only if its answers vary."""
    _: KW_ONLY
    instruction: str = ""
    """What to ask of a better answer. It becomes the first line of the feedback, which `tell` can
    pass on."""

    def __post_init__(self) -> None:
        if not (self.tell is None or callable(self.tell)):
            raise TypeError(
                "Regenerate: expected tell to be a function of the chain's input and the feedback, "
                f"got {self.tell!r:.100}"
            )


@dataclass(frozen=True)
class Repair(Recovery):
    """Have a model answer from the documents.

    Of a rejected answer in prose, the model sees the wrong claims. Of a structured answer, it is
    told what was wrong. It is asked for an answer in the question's language and in the form of the
    rejected one: with citations in the same style, or with data of the same type. If the chain gave
    its chat model a system message, the model sees that message too, for tone and format.
    """

    model: Any = field(repr=False)
    """A chat model, or a name for `resolve_model`."""
    _: KW_ONLY
    instruction: str = ""
    """What to ask of a better answer."""
    prompt: RepairPrompt | None = field(default=None, repr=False)
    """A function that makes the model's prompt, in place of demur's prompt. It must keep the texts
    that it quotes apart from its instructions, as `feedback.prompt` does."""

    def __post_init__(self) -> None:
        if not (self.prompt is None or callable(self.prompt)):
            raise TypeError(
                "Repair: expected prompt to be a function of the feedback and the documents, got "
                f"{self.prompt!r:.100}"
            )


@dataclass(frozen=True)
class Retrieve(Recovery):
    """Search for each claim that failed, and have the question answered again."""

    retriever: Any = field(repr=False)
    """The retriever to search with. If it is a retriever in the chain that `widen` made, it also
    searches for the failed claims when the chain answers again. The guard asks any other Runnable
    from a query to documents itself. It puts the documents into the feedback and among the contexts
    of the next answer."""
    then: Regenerate | Repair = Regenerate()
    """Who answers. `Regenerate()` without `tell` needs a widened retriever, because nothing would
    read the documents that another retriever finds."""

    def __post_init__(self) -> None:
        if not isinstance(self.then, (Regenerate, Repair)):
            raise TypeError(
                "Retrieve: expected then to be Regenerate(...) or Repair(model), got "
                f"{type(self.then).__name__}"
            )

    @property
    def widened(self) -> Widened | None:
        """Return the retriever if the chain is to ask it, else None."""
        if isinstance(self.retriever, Widened) and isinstance(self.then, Regenerate):
            return self.retriever
        return None


# --- Changes in an answer -------------------------------------------------------------------------


@dataclass(frozen=True)
class Strip(Recovery):
    """Take out the sentences that fail, and keep the others if they still answer the question.

    The rest of the answer is judged again. `Strip` cannot help if a failure has no place in the
    answer, if nothing supported would be left, or if a word of the question would disappear that
    the answer had. A table or a block of code is removed as a whole. In a structured answer,
    failing values become None where None is allowed, and failing entries of lists are removed.
    """

    model: Any = field(default=None, repr=False)
    """A chat model, or a name for `resolve_model`, that rewords a sentence which refers to a
    removed one ("It is ..."). None: such a sentence is removed too."""


@dataclass(frozen=True)
class Cite(Recovery):
    """Show the sources of each supported sentence.

    `Guard(..., on_pass=Cite())` does so in every answer that passes. In a policy, under the key
    "citation", `Cite` corrects the chain's own citations: those that do not support their sentences
    are replaced or taken out. The answer is then judged again.
    """

    form: Form = "numbers"
    """How citations look. "numbers": [1] after the sentence. "footnotes": Markdown footnotes, with
    the quotes below the answer. "links": Markdown links to documents that have a web address.
    "blocks": content blocks with LangChain's citations, which need a message as the answer. "list":
    no marks in the text, only the list of citations that every form gives. The numbers are those of
    the documents, from 1."""
    known: str = ""
    """The mark in the text, such as "[about us]", of sentences that a text supports which is always
    known (`RefChecker(known=...)`). It has no number, and is no citation, since that text was not
    retrieved. Empty: no mark."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            known = ", ".join(map(repr, FORMS))
            raise ValueError(f"Cite: form must be one of {known}, got {self.form!r:.100}")
        if not isinstance(self.known, str):
            raise TypeError(f"Cite: expected known to be a text, got {self.known!r:.100}")


# --- What leaves if no answer passes -------------------------------------------------------------


@dataclass(frozen=True)
class Abstain(Recovery):
    """Put a refusal in the answer's place."""

    outcome: ClassVar[TraceOutcome] = "abstained"

    text: Words = REFUSAL
    """The refusal for an answer that failed."""
    _: KW_ONLY
    unchecked: Words = UNCHECKED
    """The refusal for an answer that an evaluator could not decide about. It differs from `text`
    because a judge that is down says nothing against the answer."""

    def __post_init__(self) -> None:
        for name in ("text", "unchecked"):
            if not (isinstance(words := getattr(self, name), str) or callable(words)):
                raise TypeError(
                    f"Abstain: expected {name} to be a text, or a function of the feedback that "
                    f"makes one, got {words!r:.100}"
                )

    def refusal(self, feedback: Feedback, undetermined: bool) -> str:
        """Return the refusal for an answer.

        Raises:
            DemurError: The user's function did not return a text.
        """
        return _said(self.unchecked if undetermined else self.text, feedback, "Abstain")


@dataclass(frozen=True)
class Annotate(Recovery):
    """Let the best attempt through, followed by a note that says what does not hold.

    The best attempt is the one that the fewest evaluators reject. Among equals, it is the one with
    the highest mean score.
    """

    outcome: ClassVar[TraceOutcome] = "best_effort"

    note: str | Callable[[Feedback], str] | None = None
    """The note, or a function that makes it from the feedback. None: demur's own note. An empty
    note leaves the answer unchanged."""

    def __post_init__(self) -> None:
        if not (self.note is None or isinstance(self.note, str) or callable(self.note)):
            raise TypeError(
                "Annotate: expected note to be a text or a function from the feedback to one, got "
                f"{type(self.note).__name__}"
            )

    def text(self, feedback: Feedback) -> str:
        """Return the note about an answer."""
        if isinstance(self.note, str):
            return self.note
        if self.note is not None:
            return _said(self.note, feedback, "Annotate")
        return f"Note: this answer could not be verified.\n{feedback.text}"


@dataclass(frozen=True)
class Block(Recovery):
    """Let nothing through, and raise `AnswerRejected`."""

    outcome: ClassVar[TraceOutcome] = "blocked"


Again = Retrieve | Regenerate | Repair | Strip | Cite
Final = Abstain | Annotate | Block


def name_of(recovery: Again) -> str:
    """Return the name of a kind of recovery: its class name in lower case."""
    return type(recovery).__name__.lower()
