"""Score an answer by asking a model outright whether it is factual."""

from __future__ import annotations

from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from pydantic import PrivateAttr

from demur.evaluators.base import Evaluator
from demur.evaluators.baselines.parsing import parse_verdict
from demur.evaluators.baselines.prompts import ZeroShotPrompts
from demur.evaluators.verdicts import ask_until_read, evaluation, refuse_empty
from demur.local import resolve_model
from demur.runtime import CallPolicy, Steps, fields_of, undetermined_with
from demur.schema import Evaluation, Sample
from demur.schema.fingerprints import model_fingerprint, prompts_fingerprint

_REPLY_TOKENS = 32


class ZeroShot(Evaluator):
    """Ask a model, in one call, whether the answer has anything false or made up in it.

    `score` is 1.0 for "factual" and 0.0 for "non-factual"; `failure` is "other" for the latter.
    `details["replies"]` has the model's replies. If a reply cannot be read, the model is asked once
    more. The evaluation is undetermined if the second reply cannot be read either, if a call
    failed, or if the answer is empty.

    The method is the zero-shot baseline of arXiv 2310.06498, section 5, with demur's own prompt.

    Args:
        model: A chat model, or a name such as "openai:gpt-4o-mini" (see `resolve_model`).
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of model calls. None: defaults that
            fit the model.

    Raises:
        ValueError: The name of the model has no known form.
        TypeError: `model` is not a chat model.
        DemurError: The model is not available.
    """

    model: Any

    _chat: BaseChatModel = PrivateAttr()
    _prompts: ClassVar[ZeroShotPrompts] = ZeroShotPrompts()

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the name of the model, so that a wrong name is reported before the first call."""
        super().model_post_init(context)
        self._chat = resolve_model(self.model)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on: the model and the prompts."""
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(self._chat),
            "prompts": prompts_fingerprint(self._prompts),
        }

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        refuse_empty(sample)
        shown = [sample.answer, sample.question or ""]
        replies: list[str] = []
        details: dict[str, Any] = {"replies": replies}
        with undetermined_with(details):
            factual = yield from ask_until_read(
                self._chat,
                self._prompts.judge.messages(passage=sample.answer, question=sample.question),
                "verdict",
                lambda reply: parse_verdict(reply, shown),
                "non-factual or factual",
                _REPLY_TOKENS,
                replies,
            )
        what = "no fact" if factual else "something"
        return evaluation(
            self.get_name(), factual, f"The model finds {what} false or made up in it.", details
        )
