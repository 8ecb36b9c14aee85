"""What to do about a rejected answer: each recovery is a value, and a policy a mapping to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from demur._resolve import resolve_model
from demur.edits import FORMS, Form
from demur.errors import DemurError
from demur.guard.feedback import Feedback
from demur.guard.trace import TraceOutcome
from demur.guard.widening import Widened
from demur.runtime import Account
from demur.schema import Failure
from demur.shapes import kind_of

REFUSAL = "I cannot give an answer that the sources I have support."
UNCHECKED = "I cannot give an answer now, because it could not be checked. Please try again later."
"""The refusal where it was not the answer that failed, but a judge."""
_SPECIFICS = (
    "Be specific: give the names, dates, places and numbers that belong to this question and to "
    "no other."
)

Tell = Callable[[Any, Feedback], Any]
"""From a chain's input, and what was wrong with its answer, to the input it is asked again with."""
Words = str | Callable[[Feedback], str]
"""A text for the user; or a function of what was wrong, which can choose a language and a tone."""
RepairPrompt = Callable[[Feedback, Sequence[Document]], Any]
"""From what was wrong, and the documents, to a prompt as LangChain's models take it."""


class Recovery:
    """What to do about a rejected answer."""


def _said(words: Words, feedback: Feedback, of: str) -> str:
    text = words(feedback) if callable(words) else words
    if not isinstance(text, str):
        raise DemurError(f"{of}: the function made {kind_of(text)}, expected a text")
    return text


# --- Who answers again, and from what ------------------------------------------------------------


@dataclass(frozen=True)
class Regenerate(Recovery):
    """Have the chain answer again."""

    tell: Tell | None = None
    """Makes of the chain's input and the `Feedback` the input that the chain is asked again with.
    None: it is asked as before, which helps a chain that varies."""
    _: KW_ONLY
    instruction: str = ""
    """What to ask of a better answer. The feedback begins with it, for `tell` to hand on."""

    def __post_init__(self) -> None:
        if not (self.tell is None or callable(self.tell)):
            raise TypeError(
                "Regenerate: expected tell to be a function of the chain's input and the feedback, "
                f"got {self.tell!r:.100}"
            )


@dataclass(frozen=True)
class Repair(Recovery):
    """Have a model answer from the documents. It is told what was wrong, not the answer itself.

    It is asked for an answer in the question's language and in the form of the one that failed:
    citations as that had them, and data of the same type. Where the chain asked a chat model with
    a system message, it is shown that too, for tone and format.
    """

    model: Any = field(repr=False)
    """A chat model, or a name for `resolve_model`."""
    _: KW_ONLY
    instruction: str = ""
    """What to ask of a better answer."""
    prompt: RepairPrompt | None = field(default=None, repr=False)
    """Makes what the model is asked, in place of demur's prompt. What it quotes is for it to keep
    apart from its instructions: `feedback.prompt` does."""

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
    """A retriever in the chain that `widen` made: it is asked about the failed claims too when the
    chain answers again. Any other Runnable from a query to documents: the guard asks it, and what
    it finds is in the feedback and among the contexts of the next answer."""
    then: Regenerate | Repair = Regenerate()
    """Who answers. `Regenerate()` without `tell` is for a widened retriever: nobody would read what
    another one finds."""

    def __post_init__(self) -> None:
        if not isinstance(self.then, (Regenerate, Repair)):
            raise TypeError(
                "Retrieve: expected then to be Regenerate(...) or Repair(model), got "
                f"{type(self.then).__name__}"
            )

    @property
    def widened(self) -> Widened | None:
        """The retriever, if it is the chain that is to ask it."""
        if isinstance(self.retriever, Widened) and isinstance(self.then, Regenerate):
            return self.retriever
        return None


# --- What is changed in an answer -----------------------------------------------------------------


@dataclass(frozen=True)
class Strip(Recovery):
    """Take out the sentences that fail, and keep the others if they still answer the question.

    What is left is judged again. It cannot help where a failure has no place in the answer, where
    nothing that is supported would be left, or where a word of the question would be gone that the
    answer had. A table or a block of code goes as a whole. Of structured answers, values become
    None that may be None, and entries of lists go.
    """

    model: Any = field(default=None, repr=False)
    """A chat model, or a name for `resolve_model`: it rewords a sentence that went on from one that
    is taken out ("It is ..."). None: such a sentence is taken out too."""


@dataclass(frozen=True)
class Cite(Recovery):
    """Show what each supported sentence rests on.

    As `Guard(..., on_pass=Cite())` it is done to every answer that passes. In a policy, under
    "citation", it corrects the citations that the chain wrote itself and that do not support their
    sentences, or takes them out; the answer is judged again.
    """

    form: Form = "numbers"
    """How: "numbers", as [1] after the sentence; "footnotes", Markdown's, with the quotes below;
    "links", Markdown's, to documents that have a web address; "blocks", content blocks with
    LangChain's citations, which takes a message; "list", in nothing but the list of citations,
    which there is with every form. Numbers are those of the documents, from 1."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            known = ", ".join(map(repr, FORMS))
            raise ValueError(f"Cite: form must be one of {known}, got {self.form!r:.100}")


# --- What leaves where no answer passes ----------------------------------------------------------


@dataclass(frozen=True)
class Abstain(Recovery):
    """Put a refusal in the answer's place."""

    outcome: ClassVar[TraceOutcome] = "abstained"

    text: Words = REFUSAL
    """What it says."""
    _: KW_ONLY
    unchecked: Words = UNCHECKED
    """What it says of an answer that an evaluator could not decide about: that is no careful bot,
    but a judge that is down."""

    def __post_init__(self) -> None:
        for name in ("text", "unchecked"):
            if not (isinstance(words := getattr(self, name), str) or callable(words)):
                raise TypeError(
                    f"Abstain: expected {name} to be a text, or a function of the feedback that "
                    f"makes one, got {words!r:.100}"
                )

    def refusal(self, feedback: Feedback, undetermined: bool) -> str:
        """The refusal of an answer.

        Raises:
            DemurError: The user's function made no text.
        """
        return _said(self.unchecked if undetermined else self.text, feedback, "Abstain")


@dataclass(frozen=True)
class Annotate(Recovery):
    """Let the best attempt through, with a note after the answer that says what does not hold.

    The best is the one that fewest evaluators are against, and of those the one with the highest
    scores.
    """

    outcome: ClassVar[TraceOutcome] = "best_effort"

    note: str | Callable[[Feedback], str] | None = None
    """The note, or a function from the feedback to it; None for ours. An empty note changes
    nothing."""

    def __post_init__(self) -> None:
        if not (self.note is None or isinstance(self.note, str) or callable(self.note)):
            raise TypeError(
                "Annotate: expected note to be a text or a function from the feedback to one, got "
                f"{type(self.note).__name__}"
            )

    def text(self, feedback: Feedback) -> str:
        """The note about an answer."""
        if isinstance(self.note, str):
            return self.note
        if self.note is not None:
            return _said(self.note, feedback, "Annotate")
        return f"Note: this answer could not be verified.\n{feedback.text}"


@dataclass(frozen=True)
class Block(Recovery):
    """Let nothing through: raise `AnswerRejected`."""

    outcome: ClassVar[TraceOutcome] = "blocked"


Again = Retrieve | Regenerate | Repair | Strip | Cite
Final = Abstain | Annotate | Block
Policy = Mapping[str, Again | Final]
OnFail = Mapping[str, Recovery | str] | Recovery | str | None


# --- A policy ------------------------------------------------------------------------------------

ANY = "any"
"""The key of a policy for failures that have none of their own."""
UNDETERMINED = "undetermined"
"""The key of a policy for answers that an evaluator could not decide about."""
END = "end"
"""The key of a policy for when nothing is left to try."""

_NAMES: dict[str, Again | Final] = {
    "regenerate": Regenerate(),
    "strip": Strip(),
    "abstain": Abstain(),
    "annotate": Annotate(),
    "block": Block(),
}


def name_of(recovery: Again) -> str:
    """The word for a kind of recovery."""
    return type(recovery).__name__.lower()


def make_policy(
    on_fail: OnFail,
    model: Any = None,
    *,
    adapt: Callable[[Any], Any] = lambda recovery: recovery,
    retriever: Runnable[str, Any] | None = None,
) -> dict[str, Again | Final]:
    """The policy that a guard's arguments describe.

    Args:
        on_fail: A policy; or one recovery for every failure, or its name. None: the default.
        model: What answers again by default; None: the chain.
        adapt: From what answers again, as the user of a framework writes it, to what is meant.
        retriever: What is asked by default about claims that the documents do not speak of.

    Returns:
        Failures to recoveries in their order, with plain strings as keys, "end" last.

    Raises:
        ValueError: A key names no failure, "end" is no end, or there are a policy and a model.
        TypeError: What was given is no recovery.
    """
    if on_fail is not None and model is not None:
        raise ValueError(
            "model= stands in place of on_fail=: name the model where it is to answer in a policy, "
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
    """The policy with its models found, so that what could not act shows before a call.

    Raises:
        ValueError: Nothing would read what a recovery has to tell; a model's name has no known
            form.
        TypeError: Something is no retriever, or no chat model.
        DemurError: A model is not at hand.
    """
    named: dict[str, BaseChatModel] = {}

    def found(model: Any) -> BaseChatModel:
        if not isinstance(model, str):
            return resolve_model(model)
        if model not in named:  # one for all who name it, so that its limits are theirs together
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
    """The recoveries of the keys that fit, in their order; that of "end" is the last."""
    names = {*map(str, failures), ANY, END}
    return (recovery for key, recovery in policy.items() if key in names)


def for_undetermined(policy: Policy) -> Iterator[Again | Final]:
    """The recovery for an answer about which nothing could be decided, if there is one."""
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
        "on_fail: expected a mapping from failures to recoveries, or one of them, such as "
        f"Repair(model) or Abstain(), or the name of one that needs nothing ({', '.join(_NAMES)}); "
        f"got {what}"
    )


# --- Within which limits --------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """Limits shared by all that one guarded call does: the chain, the judges, the repairs.

    A call that judges or repairs is reserved before it is made, and not made if it would pass a
    limit. A run of the chain is not: what it spent is counted when it is over, and it is never
    stopped. Tokens of prompts are estimated until the endpoint has reported them; those of a reply
    count beforehand where `max_tokens` bounds it.

    Raises:
        ValueError: A limit is out of its range.
    """

    attempts: int = 3
    """Answers in all, the first included; at least 1."""
    model_calls: int | None = None
    """Requests to models, retries included; at least 1, None for no limit."""
    tokens: int | None = None
    """Of prompts and replies together; at least 1, None for no limit."""
    seconds: float | None = None
    """Time that may go by; > 0, None for no limit. A call under way gets what is left of it."""
    judge_seconds: float | None = None
    """Time that the evaluators may take, side by side, for one answer, or for one sentence of a
    stream; > 0, None for no limit of their own. One that takes longer could not decide: what
    becomes of the answer is what `on_error` says."""

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
        """An account for one call, from now on; None if only the attempts are limited."""
        if self.model_calls is None and self.tokens is None and self.seconds is None:
            return None
        return Account(self.model_calls, self.tokens, self.seconds)
