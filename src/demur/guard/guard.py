"""Wrap any chain in a Runnable that checks each answer and acts on the result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableLike, coerce_to_runnable
from langchain_core.runnables.utils import ConfigurableFieldSpec, Input, Output
from langchain_core.utils.pydantic import TypeBaseModel
from pydantic import BaseModel
from typing_extensions import Self

from demur._secrets import learn
from demur.evaluators import EvaluatorLike, as_evaluators, decides_nothing
from demur.guard.arguments import GuardArguments, OnError, Streaming
from demur.guard.budget import Budget
from demur.guard.call import GuardedCall
from demur.guard.policies import OnFail, make_policy
from demur.guard.recoveries import Cite
from demur.guard.refused import refuse_agent, refuse_memory, streams_steps
from demur.guard.streams import astream, stream
from demur.guard.trace import Guarded
from demur.guard.verdicts import no_verdict
from demur.guard.widening import in_a_guarded_chain
from demur.runtime import adrive, drive, fields_of, within_scope
from demur.schema import OnAbstain, Threshold
from demur.shapes import ContextsReader, Reader, added, check_reader, kind_of


class Guard(GuardArguments[Input, Output]):
    """Check every answer of a chain, and recover when an answer fails.

    A guard takes the chain's input and returns the chain's output. It finds the question, the
    answer and the contexts in the usual shapes: a string, a message, or a mapping. The keys that it
    knows are `input`, `question` and `query` for the question; `answer`, `output`, `result` and
    `response` for the answer; `context`, `contexts`, `source_documents` and `documents` for the
    contexts. If the output has no contexts, the guard uses the documents that the chain's own
    retrievers returned.

    No text leaves before it was checked. Handlers that stream to a client, such as those of
    `astream_events` and of LangGraph's streams, do not hear what runs inside the guard. Tracers do.

    An answer passes if at least one evaluation has `passed` and each of the others has passed or
    found nothing to check (`Abstain`). If no evaluation found anything to check, as in "I don't
    know.", `on_abstain` decides. An answer that an evaluator could not decide about does not pass,
    and by default is not answered again.

    Examples:
        >>> guarded = Guard(chain, RefChecker("openai:gpt-4o-mini"))
        >>> guarded.invoke({"input": "How tall is the tower?"})
        >>> guarded.with_trace().invoke({"input": "How tall is the tower?"}).trace.outcome

    Args:
        chain: Any Runnable, or anything that LangChain turns into a Runnable, such as a function or
            a dict.
        evaluators: One or more evaluators: demur's own, a function from a `Sample` to whether it
            passes, or anything else that `demur.evaluators.as_evaluator` takes. All of them judge
            every answer, at the same time.
        on_fail: What to do about an answer that fails. Give a policy, which is a mapping from
            failures to recoveries; a single recovery; or the name of a recovery that needs no
            arguments ("regenerate", "strip", "abstain", "annotate", "block"). The keys of a policy
            are "neutral", "contradiction", "unsupported", "mismatch", "vague", "irrelevant",
            "self_contradiction", "citation", "nothing_to_check", "other", "any", "undetermined" (an
            evaluator could not decide), and "end" (nothing is left to try). The guard takes the
            first recovery whose key fits and that can help. None stands for `Repair(model)` if a
            model is given, else `Regenerate()`; and then for `Abstain()`.
        on_pass: What to do to an answer that passes. With `Cite()`, each supported sentence shows
            its sources. None: the answer leaves unchanged.
        budget: The limits of one guarded call.
        on_error: What to do with an answer that an evaluator could not decide about. "closed": the
            policy decides, by its key "undetermined", else by "end". "open": the answer is let
            through. "raise": `EvaluatorFailed` is raised.
        on_abstain: What to do with an answer in which no evaluator found anything to check. "pass":
            it is let through with the outcome "nothing_to_check", so that a chain can say that it
            does not know. "fail": it fails with the failure "nothing_to_check", and so does an
            answer in which a single evaluator found nothing to check.
        streaming: When the text of a stream leaves. "buffer": after the whole answer was checked.
            "sentence": each sentence leaves as soon as it was checked, which needs evaluators that
            all judge claims. `demur.guard.streams` describes what is streamed and how it is
            corrected. In a guard inside the chain of another guard, "sentence" acts as "buffer".
        question: Where the question is: a key of the input, or a function of the input.
        answer: Where the answer is: a key of the output, or a function of the output. With a
            function, the guard can only replace an output that is a string or a message, and only
            as a whole.
        contexts: Where the contexts are: a key of the output or of the input, a function of the
            output, or a function of the input and the output (with two required parameters).
        conversation: Whether the conversation supports the answer too. The user's statements then
            count as sources and are believed ("My name is Ann."), those in the question included.
            So do sources of earlier turns: documents in the input, and results of tools. True: the
            guard uses all messages in the input or among its values. A key or a function of the
            input says where the messages are.
        system: Whether the facts among the instructions support the answer too: the sentences of
            system messages, in the input or to the chain's chat model, that tell something and
            order nothing ("Our support answers from 9 to 5."). They are known in English alone.
            RefChecker then takes them as known. An order that is worded as a fact supports what it
            orders, so prefer `RefChecker(known=...)`.
        model: A shorter form of `on_fail`: a chat model, or a name for `resolve_model`, that
            answers from the documents when the chain's answer failed.
        name: The name in callbacks and traces; None: "Guard".

    Raises:
        ValueError: There is no evaluator, an evaluator has no threshold, or its `Threshold` was
            chosen for a guard with another `on_abstain`; an argument is out of its range; a
            recovery could not act; `on_fail` and `model` are both given; or a part of the chain
            keeps a memory of its own, such as a graph that was compiled with a checkpointer.
        TypeError: A value is not a Runnable, an evaluator, a chat model or a recovery where one is
            expected; or `question`, `answer`, `contexts` or `conversation` is neither a key nor a
            function.
    """

    def __init__(
        self,
        chain: Runnable[Input, Output] | RunnableLike[Input, Output],
        *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
        on_fail: OnFail = None,
        on_pass: Cite | None = None,
        budget: Budget | None = None,
        on_error: OnError = "closed",
        on_abstain: OnAbstain = "pass",
        streaming: Streaming = "buffer",
        question: Reader | None = None,
        answer: Reader | None = None,
        contexts: ContextsReader | None = None,
        conversation: bool | Reader = False,
        system: bool = False,
        model: str | BaseChatModel | None = None,
        name: str | None = None,
    ) -> None:
        """Make a guard; the class describes the arguments."""
        fields = fields_of(locals())
        fields.pop("model")
        judges = as_evaluators(evaluators)
        if not judges:
            raise ValueError(
                "a guard needs an evaluator to judge the answers: Guard(chain, RefChecker(model))"
            )
        _refuse_options(fields)
        made: dict[str, Any] = {
            "chain": coerce_to_runnable(chain),
            "evaluators": judges,
            "on_fail": make_policy(on_fail, model),
            "budget": budget or Budget(),
        }
        super().__init__(**{**fields, **made})
        learn(self.chain, self.on_fail)  # the models' keys, which must not get into records
        refuse_memory(self.chain)
        if self.answer is None:
            refuse_agent(self.chain)
        for evaluator in self.evaluators:
            if decides_nothing(evaluator):
                raise ValueError(no_verdict(evaluator.get_name()))
            _refuse_unkept(evaluator, on_abstain)
            if streaming == "sentence" and not getattr(evaluator, "claim_level", False):
                raise ValueError(
                    f"streaming='sentence' needs evaluators that judge claim by claim, as "
                    f"RefChecker does; {evaluator.get_name()} judges answers as a whole: stream "
                    "with streaming='buffer'"
                )

    @classmethod
    def _made(cls, fields: Mapping[str, Any]) -> Self:
        given = dict(fields)
        return cls(given.pop("chain"), *given.pop("evaluators"), **given)

    # --- As a Runnable ---------------------------------------------------------------------

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Return a checked answer of the chain. `kwargs` are passed on to the chain.

        Raises:
            AnswerRejected: No answer was let through.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
            DemurError: The answer cannot be found, or an evaluator gives no verdict.
            TypeError, AttributeError, NameError, NotImplementedError: An evaluator raised it before
                its first evaluation, which points to a programming error. Afterwards, the guard
                treats it as an evaluator that could not decide.
        """
        return self._call_with_config(self._output, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """Do the same as `invoke`, natively asynchronous."""
        return await self._acall_with_config(self._aoutput, input, config, **kwargs)

    def stream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """Stream a checked answer. `streaming` decides in how many chunks, and when they leave."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """Do the same as `stream`, natively asynchronous."""

        async def inputs() -> AsyncIterator[Input]:
            yield input

        return self.atransform(inputs(), config, **kwargs)

    def transform(
        self, input: Iterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """Do the same as `stream` for an input in chunks, after its last chunk has arrived."""
        return self._transform_stream_with_config(input, self._chunks, config, **kwargs)

    def atransform(
        self, input: AsyncIterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """Do the same as `transform`, natively asynchronous."""
        return self._atransform_stream_with_config(input, self._achunks, config, **kwargs)

    def with_trace(self) -> Runnable[Input, Guarded[Output]]:
        """Return a Runnable that does the same and returns the output with its `Trace`."""
        return RunnableLambda(self._guarded, self._aguarded, name=self.get_name())

    # LangChain gives these methods the config for the children of the guard's run.

    def _output(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        return self._guarded(input, config, **kwargs).output

    async def _aoutput(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        return (await self._aguarded(input, config, **kwargs)).output

    def _guarded(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Guarded[Output]:
        call = GuardedCall(self, input, kwargs)
        with within_scope(call.scope):
            return drive(call.run(), config or {}, None)[0]

    async def _aguarded(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Guarded[Output]:
        call = GuardedCall(self, input, kwargs)
        with within_scope(call.scope):
            return (await adrive(call.run(), config or {}, None))[0]

    def _chunks(
        self, inputs: Iterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        if self._by_sentences():
            return stream(self, inputs, kwargs, config or {})
        return self._buffered(inputs, config, **kwargs)

    def _achunks(
        self, inputs: AsyncIterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        if self._by_sentences():
            return astream(self, inputs, kwargs, config or {})
        return self._abuffered(inputs, config, **kwargs)

    def _by_sentences(self) -> bool:
        # A correction inside a chain cannot be carried through the chain's later steps, and only
        # the stream of the outer guard is seen.
        by_sentences = self.streaming == "sentence" and not streams_steps(self.chain)
        return by_sentences and not in_a_guarded_chain()

    def _buffered(
        self, inputs: Iterator[Input], config: RunnableConfig | None, **kwargs: Any
    ) -> Iterator[Output]:
        if given := list(inputs):
            yield self._output(reduce(added, given), config, **kwargs)

    async def _abuffered(
        self, inputs: AsyncIterator[Input], config: RunnableConfig | None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        if given := [one async for one in inputs]:
            yield await self._aoutput(reduce(added, given), config, **kwargs)

    @property
    def InputType(self) -> type[Input]:  # noqa: N802  # LangChain's name
        """Return the chain's input type."""
        return self.chain.InputType

    @property
    def OutputType(self) -> type[Output]:  # noqa: N802  # LangChain's name
        """Return the chain's output type."""
        return self.chain.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """Return the chain's input schema."""
        return self.chain.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """Return the chain's output schema."""
        return self.chain.get_output_schema(config)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """Return the chain's configurable fields."""
        return self.chain.config_specs


def _refuse_options(given: Mapping[str, Any]) -> None:
    """Raise an error that names the argument whose value is not allowed."""
    choices = {
        "on_error": get_args(OnError),
        "on_abstain": get_args(OnAbstain),
        "streaming": get_args(Streaming),
    }
    for name, known in choices.items():
        if given[name] not in known:
            *others, last = map(repr, known)
            listed = f"{', '.join(others)} or {last}"
            raise ValueError(f"{name} must be {listed}, got {given[name]!r:.100}")
    if not isinstance(given["budget"], Budget | None):
        raise TypeError(
            f"budget: expected Budget(attempts=..., ...), got {kind_of(given['budget'])}"
        )
    if not isinstance(given["on_pass"], Cite | None):
        raise TypeError(f"on_pass: expected Cite(...), got {kind_of(given['on_pass'])}")
    check_reader("question", given["question"], "the input")
    check_reader("answer", given["answer"], "the output")
    check_reader("contexts", given["contexts"], "the output or of the input")


def _refuse_unkept(evaluator: Runnable[Any, Any], on_abstain: OnAbstain) -> None:
    """Refuse a threshold that was chosen for `on_abstain="fail"` in a guard with "pass"."""
    if on_abstain == "fail":
        return  # a threshold for "pass" keeps its promise here too, since fewer answers pass
    if any(threshold.on_abstain == "fail" for threshold in _thresholds(evaluator)):
        raise ValueError(
            f"the threshold of {evaluator.get_name()} was chosen for a guard that fails answers "
            "which state nothing to check, and this guard lets them pass, so more answers pass "
            'than the threshold promises. Use Guard(..., on_abstain="fail"), or choose a threshold '
            'with on_abstain="pass"'
        )


def _thresholds(found: object) -> Iterator[Threshold]:
    """Yield the thresholds of a Runnable and of the Runnables inside it, as of one with retries."""
    if isinstance(found, Threshold):
        yield found
    elif isinstance(found, Runnable) and isinstance(found, BaseModel):
        for name in type(found).model_fields:
            yield from _thresholds(getattr(found, name))
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from _thresholds(one)
