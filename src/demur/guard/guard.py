"""Guard: a Runnable around any chain that checks each answer and acts on what is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, get_args

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableLike, coerce_to_runnable
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import ConfigurableFieldSpec, Input, Output
from langchain_core.utils.pydantic import TypeBaseModel
from pydantic import BaseModel
from typing_extensions import Self

from demur._frozen import fields_of
from demur._known_secrets import learn
from demur.evaluators import EvaluatorLike, as_evaluators, decides_nothing
from demur.guard.arguments import GuardArguments, OnError, Streaming
from demur.guard.call import GuardedCall
from demur.guard.chain import refuse_agent, refuse_memory, streams_steps
from demur.guard.recoveries import Budget, Cite, OnFail, make_policy
from demur.guard.streams import astream, stream
from demur.guard.trace import Guarded
from demur.guard.verdicts import no_verdict
from demur.guard.widening import in_a_guarded_chain
from demur.runtime import adrive, drive, within_scope
from demur.schema import OnAbstain, Threshold
from demur.shapes import ContextsReader, Reader, added, check_reader, kind_of


class Guard(GuardArguments[Input, Output]):
    """Check every answer of a chain, and recover when it fails.

    A guard takes the chain's input and returns the chain's output. Question, answer and contexts
    are found in the usual shapes: a string, a message, a mapping with `input`, `question` or
    `query`; `answer`, `output`, `result` or `response`; `context`, `contexts`, `source_documents`
    or `documents`. Where the output has no contexts, they are what the chain's own retrievers
    returned. Nothing leaves before it was checked: what runs inside is heard by no listener that
    streams to a client, such as `astream_events` and langgraph's streams; tracers hear it.

    An answer passes when one evaluation has `passed`, and each of the others has or found nothing
    to check (`Abstain`). What becomes of one in which none found anything, such as "I don't know.",
    is what `on_abstain` says. One that an evaluator could not decide about does not pass, and is
    not answered again.

    Examples:
        >>> guarded = Guard(chain, RefChecker("openai:gpt-4o-mini"))
        >>> guarded.invoke({"input": "How tall is the tower?"})
        >>> guarded.with_trace().invoke({"input": "How tall is the tower?"}).trace.outcome

    Args:
        chain: Any Runnable, or what LangChain makes one of: a function, a dict.
        evaluators: At least one evaluator: one of demur's, a function of a `Sample` that returns
            whether it passes, or what else `demur.evaluators.as_evaluator` takes. All are run on
            every answer, side by side.
        on_fail: What to do about an answer that fails: a mapping from failures to recoveries, of
            which the first that fits and can help is taken ("neutral", "contradiction", "mismatch",
            "vague", "irrelevant", "self_contradiction", "citation", "nothing_to_check", "other",
            "any"; "end" when nothing is left to try); or one recovery; or the name of one that
            needs nothing: "regenerate", "strip", "abstain", "annotate", "block". None:
            `Repair(model)` if a model is given, else `Regenerate()`; then `Abstain()`.
        on_pass: What is done to an answer that passes. `Cite()`: each supported sentence shows what
            it rests on; None: it leaves as it is.
        budget: What one call may spend.
        on_error: What becomes of an answer that an evaluator could not decide about. "closed": what
            the policy has for the end; "open": it is let through; "raise": `EvaluatorFailed`.
        on_abstain: What becomes of an answer that states nothing that could be checked, by all
            evaluators. "pass": it is let through, as the outcome "nothing_to_check"; a chain that
            does not know is to say so. "fail": it fails, and so does one in which a single
            evaluator found nothing to check; the failure is "nothing_to_check".
        streaming: When the text of a stream leaves. "buffer": when the whole answer was checked;
            "sentence": each sentence when it was, for which every evaluator must judge claims. What
            is streamed then, and how it is corrected, is told in `demur.guard.streams`. In the
            chain of another guard, "sentence" does what "buffer" does.
        question: Where the question is: a key of the input, or a function of the input.
        answer: Where the answer is: a key of the output, or a function of the output. With a
            function, only a string or message can be replaced, and as a whole.
        contexts: Where the contexts are: a key of the output or the input, a function of the
            output, or a function of the input and the output (two required parameters).
        conversation: Whether the conversation supports an answer too: what the user stated in it
            ("My name is Ann."), the question included, and the sources of earlier turns (documents
            in the input, results of tools). The user is a source then, and is believed. True: the
            messages are wherever lists of them are in the input; or a key, or a function of the
            input, that tells where.
        model: In place of `on_fail`: a chat model, or a name for `resolve_model`, that answers from
            the documents when the chain's answer failed.
        name: Under which callbacks and traces know it; None: "Guard".

    Raises:
        ValueError: There is no evaluator, one without a threshold, or one whose `Threshold` was
            chosen for a guard with another `on_abstain`; an argument is out of its range; a
            recovery could not act; `on_fail` and `model` are both given; something in the chain
            remembers by itself, such as a graph that was compiled with a checkpointer.
        TypeError: Something is no Runnable, no evaluator, no chat model, or no recovery; or what
            says where something is is neither a key nor a function.
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
        model: str | BaseChatModel | None = None,
        name: str | None = None,
    ) -> None:
        """See the class."""
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
        learn(self.chain, self.on_fail)  # models' keys, which no record is to hold
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
        """Answer, checked. `kwargs` go to the chain.

        Raises:
            AnswerRejected: No answer was let through.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
            DemurError: The answer cannot be found, or an evaluator gives no verdict.
            TypeError, AttributeError, NameError, NotImplementedError: An evaluator raised it and
                has returned no evaluation yet. Once it has, this is an evaluator that fails.
        """
        return self._call_with_config(self._output, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """As `invoke`, natively asynchronous."""
        return await self._acall_with_config(self._aoutput, input, config, **kwargs)

    def stream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """Answer in chunks that were checked; in how many, and when, is what `streaming` says."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """As `stream`, natively asynchronous."""

        async def inputs() -> AsyncIterator[Input]:
            yield input

        return self.atransform(inputs(), config, **kwargs)

    def transform(
        self, input: Iterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """As `stream`, on an input that comes in chunks, when all of it is there."""
        return self._transform_stream_with_config(input, self._chunks, config, **kwargs)

    def atransform(
        self, input: AsyncIterator[Input], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """As `transform`, natively asynchronous."""
        return self._atransform_stream_with_config(input, self._achunks, config, **kwargs)

    def with_trace(self) -> Runnable[Input, Guarded[Output]]:
        """This guard as a Runnable that returns the output together with its `Trace`."""
        return RunnableLambda(self._guarded, self._aguarded, name=self.get_name())

    def _output(
        self,
        input: Input,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Output:
        return self._guarded(input, run_manager, config, **kwargs).output

    async def _aoutput(
        self,
        input: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Output:
        return (await self._aguarded(input, run_manager, config, **kwargs)).output

    def _guarded(
        self,
        input: Input,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Guarded[Output]:
        child = patch_config(config, callbacks=run_manager.get_child())
        call = GuardedCall(self, input, kwargs)
        with within_scope(call.scope):
            return drive(call.run(), child, None)[0]

    async def _aguarded(
        self,
        input: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Guarded[Output]:
        child = patch_config(config, callbacks=run_manager.get_child())
        call = GuardedCall(self, input, kwargs)
        with within_scope(call.scope):
            return (await adrive(call.run(), child, None))[0]

    def _chunks(
        self,
        inputs: Iterator[Input],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Iterator[Output]:
        if self._by_sentences():
            child = patch_config(config, callbacks=run_manager.get_child())
            return stream(self, inputs, kwargs, child)
        return self._buffered(inputs, run_manager, config, **kwargs)

    def _achunks(
        self,
        inputs: AsyncIterator[Input],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Output]:
        if self._by_sentences():
            child = patch_config(config, callbacks=run_manager.get_child())
            return astream(self, inputs, kwargs, child)
        return self._abuffered(inputs, run_manager, config, **kwargs)

    def _by_sentences(self) -> bool:
        # What is taken back in a chain cannot be followed through its further steps, and the guard
        # around the chain is the one whose stream is seen.
        by_sentences = self.streaming == "sentence" and not streams_steps(self.chain)
        return by_sentences and not in_a_guarded_chain()

    def _buffered(self, inputs: Iterator[Input], *run: Any, **kwargs: Any) -> Iterator[Output]:
        if given := list(inputs):
            yield self._output(reduce(added, given), *run, **kwargs)

    async def _abuffered(
        self, inputs: AsyncIterator[Input], *run: Any, **kwargs: Any
    ) -> AsyncIterator[Output]:
        if given := [one async for one in inputs]:
            yield await self._aoutput(reduce(added, given), *run, **kwargs)

    @property
    def InputType(self) -> type[Input]:  # noqa: N802  # LangChain's name
        """The chain's."""
        return self.chain.InputType

    @property
    def OutputType(self) -> type[Output]:  # noqa: N802  # LangChain's name
        """The chain's."""
        return self.chain.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The chain's."""
        return self.chain.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The chain's."""
        return self.chain.get_output_schema(config)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The chain's."""
        return self.chain.config_specs


def _refuse_options(given: Mapping[str, Any]) -> None:
    """Refuse what is none of an argument's values, by the argument's name."""
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
    """Refuse a threshold for guards that fail what states nothing, in one that lets it pass."""
    if on_abstain == "fail":
        return  # a threshold for the other kind promises no less here
    if any(threshold.on_abstain == "fail" for threshold in _thresholds(evaluator)):
        raise ValueError(
            f"the threshold of {evaluator.get_name()} was chosen for a guard that fails answers "
            "which state nothing to check, and this one lets them pass: more passes than it "
            'promises. Use Guard(..., on_abstain="fail"), or choose a threshold with '
            'on_abstain="pass"'
        )


def _thresholds(found: object) -> Iterator[Threshold]:
    """The thresholds of a Runnable and of those inside it, as of one with retries."""
    if isinstance(found, Threshold):
        yield found
    elif isinstance(found, Runnable) and isinstance(found, BaseModel):
        for name in type(found).model_fields:
            yield from _thresholds(getattr(found, name))
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from _thresholds(one)
