"""Define the recoveries, which say what to do about a rejected answer, and read policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from demur.errors import DemurError
from demur.guard.edits import FORMS, Form
from demur.guard.feedback import Feedback
from demur.guard.trace import TraceOutcome
from demur.guard.widening import Widened
from demur.local import resolve_model
from demur.runtime import Account
from demur.schema import Failure
from demur.shapes import kind_of

REFUSAL = "I cannot give an answer that the sources I have support."
"""The refusal for an answer that failed."""
UNCHECKED = "I cannot give an answer now, because it could not be checked. Please try again later."
"""The refusal for an answer that could not be checked because a judge failed."""
_SPECIFICS = (
    "Be specific: give the names, dates, places and numbers that belong to this question and to "
    "no other."
)

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

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            known = ", ".join(map(repr, FORMS))
            raise ValueError(f"Cite: form must be one of {known}, got {self.form!r:.100}")


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
Policy = Mapping[str, Again | Final]
OnFail = Mapping[str, Recovery | str] | Recovery | str | None


# --- A policy ------------------------------------------------------------------------------------

ANY = "any"
"""The policy's key for failures that have no key of their own."""
UNDETERMINED = "undetermined"
"""The policy's key for answers that an evaluator could not decide about."""
END = "end"
"""The policy's key for the recovery that is taken when nothing is left to try."""

_NAMES: dict[str, Again | Final] = {
    "regenerate": Regenerate(),
    "strip": Strip(),
    "abstain": Abstain(),
    "annotate": Annotate(),
    "block": Block(),
}


def name_of(recovery: Again) -> str:
    """Return the name of a kind of recovery: its class name in lower case."""
    return type(recovery).__name__.lower()


def make_policy(
    on_fail: OnFail,
    model: Any = None,
    *,
    adapt: Callable[[Any], Any] = lambda recovery: recovery,
    retriever: Runnable[str, Any] | None = None,
) -> dict[str, Again | Final]:
    """Return the policy that a guard's arguments describe.

    Args:
        on_fail: A policy, one recovery for every failure, or the name of a recovery. None: the
            default policy.
        model: The model that answers again in the default policy; None: the chain does.
        adapt: A function that turns a recovery, as users of a framework write it, into demur's
            recovery.
        retriever: The retriever that the default policy asks about claims that the documents do not
            speak of.

    Returns:
        A mapping from failures to recoveries in the given order, with plain strings as keys and
        "end" as the last.

    Raises:
        ValueError: A key is not the name of a failure, the recovery for "end" cannot end a call, or
            both a policy and a model are given.
        TypeError: A value is not a recovery.
    """
    if on_fail is not None and model is not None:
        raise ValueError(
            "model= and on_fail= cannot both be given: name the model in the policy instead, "
            "on_fail={'contradiction': Repair(model), ...}"
        )
    if on_fail is None:
        return _default(adapt(Regenerate() if model is None else Repair(model)), retriever)
    if not isinstance(on_fail, Mapping):
        only = _recovery(on_fail)
        on_fail = {END: only} if isinstance(only, Final) else {ANY: only}
    known = [*map(str, Failure), ANY, UNDETERMINED, END]
    if unknown := [key for key in on_fail if str(key) not in known]:
        raise ValueError(f"on_fail: no failure is called {unknown[0]!r}; expected {known}")
    policy = {str(key): _adapted(_recovery(value), adapt) for key, value in on_fail.items()}
    end = policy.pop(END, Abstain())
    if not isinstance(end, Final):
        raise ValueError(
            f"on_fail: {END!r} is for when nothing is left to try: expected Abstain(), Annotate() "
            f"or Block(), got {end}"
        )
    return {**policy, END: end}


def _default(
    answers: Regenerate | Repair, retriever: Runnable[str, Any] | None
) -> dict[str, Again | Final]:
    policy: dict[str, Again | Final] = {}
    if retriever is not None:
        search = Retrieve(retriever, answers)
        policy = {str(Failure.NEUTRAL): search, str(Failure.MISMATCH): search}
    if answers != Regenerate():
        policy[str(Failure.VAGUE)] = replace(answers, instruction=_SPECIFICS)
    policy[str(Failure.CITATION)] = Cite()
    return {**policy, ANY: answers, END: Abstain()}


def _adapted(recovery: Again | Final, adapt: Callable[[Any], Any]) -> Again | Final:
    if isinstance(recovery, Retrieve):
        recovery = replace(recovery, then=adapt(recovery.then))
    return recovery if isinstance(recovery, Final) else adapt(recovery)


def prepared(policy: Policy) -> dict[str, Again | Final]:
    """Return the policy with chat models in place of their names, after checking its recoveries.

    Raises:
        ValueError: Nothing would read the instruction or the documents of a recovery, or a model's
            name has an unknown form.
        TypeError: A value is not a retriever or not a chat model.
        DemurError: A model is not available.
    """
    named: dict[str, BaseChatModel] = {}

    def found(model: Any) -> BaseChatModel:
        if not isinstance(model, str):
            return resolve_model(model)
        if model not in named:  # one object for each name, so that recoveries share its limits
            named[model] = resolve_model(model)
        return named[model]

    def answering(recovery: Regenerate | Repair) -> Regenerate | Repair:
        if isinstance(recovery, Repair):
            return replace(recovery, model=found(recovery.model))
        if recovery.tell is None and recovery.instruction:
            raise ValueError(
                f"Regenerate(instruction={recovery.instruction!r}) asks the chain as before, and "
                "nothing would read the instruction: give tell=, or have a model answer, "
                "Repair(model, instruction=...)"
            )
        return recovery

    def searching(recovery: Retrieve) -> Retrieve:
        if not isinstance(recovery.retriever, Runnable):
            raise TypeError(
                "Retrieve expects a retriever, a Runnable from a query to documents, got "
                f"{type(recovery.retriever).__name__}"
            )
        if recovery.widened is None and recovery.then == Regenerate():
            raise ValueError(
                "Retrieve: nothing would read what the retriever finds. Have a model answer, "
                "Retrieve(retriever, then=Repair(model)); tell the chain, then=Regenerate(tell=f); "
                "or give a retriever that is in the chain as widen(retriever)"
            )
        return replace(recovery, then=answering(recovery.then))

    ready = dict(policy)
    for key, recovery in policy.items():
        if isinstance(recovery, Retrieve):
            ready[key] = searching(recovery)
        elif isinstance(recovery, Regenerate | Repair):
            ready[key] = answering(recovery)
        elif isinstance(recovery, Strip) and recovery.model is not None:
            ready[key] = replace(recovery, model=found(recovery.model))
    return ready


def fitting(policy: Policy, failures: Iterable[Failure]) -> Iterator[Again | Final]:
    """Return the recoveries whose keys fit the failures, in the policy's order, "end" last."""
    names = {*map(str, failures), ANY, END}
    return (recovery for key, recovery in policy.items() if key in names)


def for_undetermined(policy: Policy) -> Iterator[Again | Final]:
    """Return the recovery for an answer that could not be decided about, or an empty iterator."""
    return (recovery for key, recovery in policy.items() if key == UNDETERMINED)


def _recovery(recovery: Any) -> Again | Final:
    if isinstance(recovery, Again | Final):
        return recovery
    if isinstance(recovery, str) and recovery in _NAMES:
        return _NAMES[recovery]
    what = repr(recovery) if isinstance(recovery, str) else type(recovery).__name__
    if isinstance(recovery, type):
        what = f"the class {recovery.__name__}: make one first, {recovery.__name__}(...)"
    raise TypeError(
        "on_fail: expected a mapping from failures to recoveries, or a recovery such as "
        "Repair(model) or Abstain(), or the name of a recovery that needs no arguments "
        f"({', '.join(_NAMES)}); got {what}"
    )


# --- Limits ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """Hold the limits that the chain, the judges and the repairs of one guarded call share.

    A call to a model that judges or repairs is reserved beforehand, and is not made if it would
    pass a limit. A run of the chain is not reserved: its usage is counted after it has ended, and
    it is never stopped. Tokens of a prompt are estimated until the endpoint reports them. Tokens of
    a reply are reserved beforehand only if `max_tokens` bounds them.

    Raises:
        ValueError: A limit is out of its range.
    """

    attempts: int = 3
    """The number of answers in all, the first included; at least 1."""
    model_calls: int | None = None
    """The number of requests to models, retries included; at least 1, or None for no limit."""
    tokens: int | None = None
    """The tokens of prompts and replies together; at least 1, or None for no limit."""
    seconds: float | None = None
    """The time of the whole call, in seconds; above 0, or None for no limit. A model call that runs
    gets the time that is left."""
    judge_seconds: float | None = None
    """The time in seconds that all evaluators together, running side by side, may take for one
    answer, or for one sentence of a stream; above 0, or None for no limit of their own. An
    evaluator that takes longer could not decide, and `on_error` says what to do with the answer."""

    def __post_init__(self) -> None:
        for name in ("attempts", "model_calls", "tokens"):
            value = getattr(self, name)
            if value is None and name != "attempts":
                continue
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("seconds", "judge_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value!r}")

    def open(self) -> Account | None:
        """Return an account for a call that starts now, or None if only attempts are limited."""
        if self.model_calls is None and self.tokens is None and self.seconds is None:
            return None
        return Account(self.model_calls, self.tokens, self.seconds)
