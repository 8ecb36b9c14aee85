"""Score an answer by the claims that its references support (RefChecker, arXiv 2405.14486)."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import Field, PrivateAttr, field_validator

from demur._system import warn_once_a_minute
from demur._text import without_sources
from demur.evaluators.base import ClaimEvaluator, ExtractedClaims, LabelledClaims
from demur.evaluators.refchecker import checking
from demur.evaluators.refchecker.actions import LEAST_SUPPORT, label_by_calls
from demur.evaluators.refchecker.aggregation import Aggregation, aggregate, least_support
from demur.evaluators.refchecker.calculations import worked_out
from demur.evaluators.refchecker.checking import Checker, Group
from demur.evaluators.refchecker.classifying import Classifier, classified
from demur.evaluators.refchecker.context import AskedClaim, apart, as_asked
from demur.evaluators.refchecker.coverage import complete, stating
from demur.evaluators.refchecker.exact_strings import are_code, missing_in
from demur.evaluators.refchecker.extraction import Extraction, extract
from demur.evaluators.refchecker.judges import (
    YES_NO_JUDGES,
    Judge,
    resolve_judge,
    yes_no_judge,
)
from demur.evaluators.refchecker.letters import in_same_letters
from demur.evaluators.refchecker.localization import with_quotes
from demur.evaluators.refchecker.merging import counts_of, explanation, merged
from demur.evaluators.refchecker.nearness import Chosen, choose, nearest_alone
from demur.evaluators.refchecker.prompts import RefCheckerPrompts
from demur.evaluators.refchecker.references import Window, with_lines
from demur.evaluators.refchecker.remembering import JudgedClaim, recall, remember
from demur.evaluators.refchecker.retrieval import (
    NO_REFERENCES,
    any_text,
    find_references,
    quoting_known,
    with_known,
)
from demur.evaluators.refchecker.wording import with_words
from demur.evaluators.thresholds import (
    ShareThreshold,
    ThresholdOrFile,
    number,
    refuse_foreign,
)
from demur.local import ADAPTED, SMALL, SmallJudge, is_served, word_fit
from demur.runtime import (
    CallPolicy,
    Steps,
    UndeterminedError,
    fields_of,
    is_local,
    undetermined_with,
)
from demur.runtime.prompting import Prompt
from demur.schema import ABSTAIN, Claim, Contexts, Evaluation, Sample, Threshold
from demur.schema.fingerprints import digest, model_fingerprint, prompts_fingerprint
from demur.shapes import status_of_call
from demur.similarity import NAMED, NLI, YesNoJudge, YesNoModel, load_nli, load_yes_no

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_log = logging.getLogger(__name__)

_YES_NO = "yes_no"
_MODES = ("auto", "joint", "per_claim", "logprobs", "adapter")
# The size of a window, in tokens; a yes-or-no judge has its own. A local model reads slowly and
# loses track of long texts; a cross-encoder takes 512 tokens, the claim included.
_WINDOW_TOKENS = {
    **{"joint": 3000, "per_claim": 3000, "logprobs": 700, "adapter": 560, "nli": 320},
    SMALL: 320,
}
# The number of windows of long references that a claim is checked against. Each further window
# finds a little more support (docs/results.md), and is one more chance that a wrong claim counts as
# supported. What classifies in this process reads one passage at a time, and cheaply.
_MAX_WINDOWS, _MAX_WINDOWS_HERE = 1, 4
# The probability of Entailment from which a claim counts as supported. To let a wrong claim pass is
# the worse mistake (docs/results.md has the figures). A cross-encoder for NLI is asked for its most
# likely label. None of a yes-or-no judge at an endpoint lets it decide without probabilities.
_SUPPORTED_FROM: dict[str, float | None] = {
    **{"logprobs": 0.5, "adapter": 0.5, "nli": None},
    **{SMALL: 0.5, _YES_NO: None},
}
_SHARE = 0.8
"""The entailed share that "soft" requires."""
_PROMPTS = RefCheckerPrompts()


class RefChecker(ClaimEvaluator):
    """Split an answer into claims, and label each claim against the references.

    The references are the sample's contexts, and its `reference` if it has one. If the sample has
    none, `retriever` is asked for them with the question, or with the answer if there is no
    question. An answer that states nothing needs no references.

    The evaluation's `score` is in [0, 1]. If the checker gives probabilities and `aggregation` is
    "strict", it is the `support` of the claim that is supported least. Else it is the share of the
    claims that the references entail. The `label` is "Entailment", "Neutral" or "Contradiction"; a
    yes-or-no judge, which does not tell the last two apart, gives "Unsupported" in their place.
    For an answer that states nothing to check, the label is "Abstain", and `score` and `passed` are
    None.

    The evaluation is undetermined (`error` says why) if the answer is empty, there are no
    references, or a model fails. It is also undetermined if labels are missing that could change
    `passed`.

    `details` has the `granularity` of the claims. If a model writes the claims, `details` also has
    the statements that it left out and that became claims themselves (`fallback_claims`), and the
    share of the answer that the model's claims cover (`coverage`).

    Examples:
        >>> checker = RefChecker("openai:gpt-4o-mini")
        >>> checker.invoke({"question": q, "answer": a, "contexts": ["..."]}).passed
        >>> checker = RefChecker("factcg")
        >>> checker = RefChecker("ollama:bespoke-minicheck", checker="bespoke-minicheck")

    Args:
        model: A chat model, or a name such as "openai:gpt-4o-mini" (see `resolve_model`). Or
            "small": demur's own judge of 53 MB, a cross-encoder that runs in this process without
            any language model. It is for what the references do not speak of and for many answers
            at once, not for details in other words: of 100 wrong everyday claims it lets 65 pass,
            and "local" 14. Or "judge:http://host:8080": the judge of "local", which another
            machine serves (`demur judge serve`). Or a public yes-or-no judge that runs in this
            process: a name such as "minicheck-roberta" (see docs/judges.md), or a `YesNoJudge`.
            These judge sentences only.
        checker: How claims are labelled. "joint": all claims in one call per window of the
            references. "per_claim": one call for each claim and window. "logprobs": as "per_claim",
            but labelled by the log-probabilities of the reply's first token, which the endpoint
            must give. "adapter": the local model judges by demur's adapter, one call for each claim
            and window. "auto": "adapter" for the local model ("logprobs" if it has none), else
            "joint". For NLI, give a sentence-transformers `CrossEncoder` or its name ("org/name" or
            a folder). For a yes-or-no judge, give its name or a `YesNoJudge`: it runs in this
            process, or `model` is what serves it. With a `model` that only judges, leave it out.
        claims: What a claim is. "sentences": each sentence, item or value of the answer as it
            stands, found without a model. "triplets": subject, predicate and object, written by the
            model; a sentence that it leaves out becomes a claim as it stands. "auto": "sentences"
            for the local model and for judges that write nothing, else "triplets".
        aggregation: How the claims' labels give the answer's label. "strict": Contradiction if any
            claim has it, else Unsupported or Neutral if any claim has it, else Entailment. "major":
            the most frequent label, and the worse one of a tie. "soft": Entailment if the entailed
            share of the claims reaches `threshold`, else the worst label. An answer passes if its
            label is Entailment.
        threshold: The score from which an answer passes, in (0, 1]. With "strict" and a checker
            that gives probabilities, it is the probability of Entailment from which a claim counts
            as supported; below it, the claim gets the more likely of the other labels. What an
            agent says that it did needs 0.7 of a chat model, or more. With "soft", it is the
            entailed share of the claims. Elsewhere labels decide, and it is refused. Or a
            `Threshold` that was chosen from scores with the same `fingerprints`, or the file that
            it was saved in. "auto": 0.5 with "strict" (a cross-encoder for NLI gives its most
            likely label, and a yes-or-no judge has a limit of its own), 0.8 with "soft". None:
            nothing is decided, and `passed` is None.
        known: Texts or documents that hold for every answer, such as what the assistant is and when
            support answers. They are references beside the sample's own, and are quoted as known
            (`Evidence.known`). They are never given to the retriever.
        refusals: Texts, or compiled patterns, that state nothing if they are the whole answer: the
            words with which your application says that it has no answer. White space and case do
            not matter. A pattern that matches a statement lets it through unchecked.
        retriever: A Runnable from a query to documents. It is asked for samples without references
            of their own, and for samples whose only references are what the user said
            (`Guard(conversation=True)`).
        prompts: Prompts to use in place of demur's.
        window_tokens: The size of a window in tokens, at least 50. A window is the text of the
            references that the checker reads at once. None: a size that fits the checker.
        max_windows: The most windows that a claim is checked against, at least 1; the windows
            nearest to the claim are taken. None: 1, or 4 for what classifies in this process.
            References that fill at most two windows are always read whole. For longer references,
            each window costs a request for every four claims, or for every claim with "per_claim"
            and "logprobs". `details["windows_left_out"]` says how many windows a claim was not
            checked against.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of model calls. None: defaults that
            fit the model.

    Raises:
        ValueError: An argument is out of its range or names no known mode or model. Or a threshold
            has no effect, with "major", or with "strict" and a checker that gives no probabilities.
            Or a `Threshold` was chosen from other scores.
        TypeError: `model` is no model of these kinds, or `checker` is not a cross-encoder.
        DemurError: The model or the cross-encoder is not available.
    """

    model: Any
    checker: Any = "auto"
    claims: Literal["auto", "sentences", "triplets"] = "auto"
    aggregation: Aggregation = "strict"
    threshold: Literal["auto"] | ShareThreshold | None = Field("auto", union_mode="left_to_right")
    known: Contexts = ()
    refusals: tuple[str | re.Pattern[str], ...] = ()
    retriever: Runnable[str, Any] | None = None
    prompts: RefCheckerPrompts = _PROMPTS
    window_tokens: int | None = Field(default=None, ge=50)
    max_windows: int | None = Field(default=None, ge=1)

    _judge: Judge = PrivateAttr()
    _yes_no: YesNoJudge | None = PrivateAttr(default=None)
    _mode: str = PrivateAttr()
    _form: Literal["sentences", "triplets"] = PrivateAttr()
    _classifier: Classifier | None = PrivateAttr(default=None)

    def __init__(
        self,
        model: str | Judge | YesNoJudge,
        *,
        checker: str | CrossEncoder | YesNoJudge = "auto",
        claims: Literal["auto", "sentences", "triplets"] = "auto",
        aggregation: Aggregation = "strict",
        threshold: ThresholdOrFile | None = "auto",
        known: Sequence[str | Document] = (),
        refusals: Sequence[str | re.Pattern[str]] = (),
        retriever: Runnable[str, Any] | None = None,
        prompts: RefCheckerPrompts = _PROMPTS,
        window_tokens: int | None = None,
        max_windows: int | None = None,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    @field_validator("checker")
    @classmethod
    def _known_checker(cls, value: object) -> object:
        if not isinstance(value, str):
            if not (hasattr(value, "predict") or isinstance(value, YesNoJudge)):
                raise TypeError(
                    f"checker: expected one of {_MODES}, a sentence-transformers CrossEncoder or a "
                    f"YesNoJudge, got {type(value).__name__}"
                )
        elif not (value in (*_MODES, *NAMED) or "/" in value or Path(value).is_dir()):
            raise ValueError(
                f"unknown checker {value!r}: expected one of {_MODES}, the name of a cross-encoder "
                f"for NLI such as 'org/name' or its folder, or {YES_NO_JUDGES}"
            )
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the names of models, so that a wrong name is reported before the first call."""
        super().model_post_init(context)
        self._judge = judge = resolve_judge(self.model)
        self._yes_no = yes_no_judge(self.checker)
        if self._only_judges:
            self._refuse_what_writes()
        if isinstance(judge, SmallJudge):
            self._mode, self._classifier = SMALL, judge
        elif isinstance(judge, YesNoModel):
            self._mode, self._classifier, self._yes_no = _YES_NO, judge, judge.judge
        elif self._yes_no is not None:
            self._mode = _YES_NO
            if self._yes_no.weights is not None:
                self._classifier = load_yes_no(self._yes_no)
        elif not isinstance(self.checker, str):
            self._mode, self._classifier = "nli", NLI(self.checker)
        elif self.checker not in _MODES:
            self._mode, self._classifier = "nli", load_nli(self.checker)
        elif self.checker == "auto":
            self._mode = self._auto_mode(judge)
        else:
            self._mode = self.checker
        if self._mode == "adapter" and _judging(judge) is None:
            raise ValueError(
                "checker='adapter' needs the model 'local' with its official weights, and "
                "demur-judge, or a judge at an address ('judge:http://host:8080'): choose "
                "checker='logprobs', or run: pip install 'demur[local]'"
            )
        self._form = self._auto_form() if self.claims == "auto" else self.claims
        self._take(self.threshold)

    def _auto_mode(self, model: BaseChatModel) -> str:
        if _judging(model) is not None:
            return "adapter"
        if not is_local(model):
            return "joint"
        _warn_of_no_adapter()
        return "logprobs"

    def _auto_form(self) -> Literal["sentences", "triplets"]:
        return "sentences" if self._only_judges or is_local(self._chat) else "triplets"

    @property
    def _only_judges(self) -> bool:
        """Return whether the judge labels claims and writes nothing."""
        judges = (SmallJudge, YesNoModel)
        return self._answers or isinstance(self._judge, judges) or is_served(self._judge)

    @property
    def _answers(self) -> bool:
        """Return whether the model serves a yes-or-no judge."""
        return self._yes_no is not None and self._yes_no.weights is None

    @property
    def _chat(self) -> BaseChatModel:
        """Return the chat model, which there is unless the judge is in this process."""
        assert isinstance(self._judge, BaseChatModel)
        return self._judge

    def _refuse_what_writes(self) -> None:
        """Refuse what needs a chat model beside a judge that writes nothing."""
        judge, own = "a yes-or-no judge", ["auto"]
        if isinstance(self._judge, SmallJudge):
            judge = repr(SMALL)
        elif is_served(self._judge):
            judge, own = "a judge at an address", ["auto", "adapter"]
        elif self._answers and isinstance(self._judge, BaseChatModel):
            own = [self.checker]
        if self.claims == "triplets":
            raise ValueError(
                f"claims={self.claims!r} needs a chat model that writes them, and {judge} only "
                "judges: choose claims='sentences', or another model"
            )
        if self.checker not in own:
            raise ValueError(
                f"{judge} checks the claims itself: leave out checker={self.checker!r}, or "
                "choose another model"
            )

    def _take(self, threshold: float | Threshold | Literal["auto"] | None) -> None:
        """Refuse a threshold that would have no effect here, or that is bound to other scores."""
        if threshold is None or threshold == "auto":
            return
        if self.aggregation != "soft" and not self._by_support:
            why = f"the checker {self._mode!r}, which gives no probabilities"
            if self.aggregation == "major":
                why = "aggregation='major', in which the most frequent label decides"
            raise ValueError(
                f"a threshold has no effect with {why}: leave it out, choose aggregation='soft' "
                "for a share of the claims, or for a limit of each claim aggregation='strict' and "
                "a judge with probabilities, such as 'small' or 'local'"
            )
        value = number(threshold)
        if not 0 <= value <= 1 or threshold == 0:
            raise ValueError(f"expected a threshold above 0 and at most 1, got {value!r}")
        refuse_foreign(threshold, self)

    @property
    def reads_calls(self) -> bool:
        """Return True: what an agent says that it did is held against its calls."""
        return True

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on beside the sample, as texts by name.

        The texts identify the model, the form of the claims, the checker (with the weights of a
        cross-encoder), the windows and the prompts. They cover neither what is `known` nor the
        documents that `retriever` finds for samples without references.
        """
        checker = self._mode
        if self._classifier is not None:
            checker = f"{self._mode} {self._classifier.fingerprint}"
            if self._mode == SMALL:
                checker = f"{checker}, {word_fit()}"
        elif self._yes_no is not None:
            checker = f"{self._mode} #{digest(self._yes_no)}"
        elif self._mode == "adapter":
            checker = f"adapter {getattr(self._judge, 'adapter_fingerprint', None)}"
        if self._by_support:
            checker = f"{checker}, the least support"
        elif (least := self._least) is not None:
            checker = f"{checker}, supported from {least}"
        judge = self._judge
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(judge) if isinstance(judge, BaseChatModel) else str(judge),
            "checker": checker,
            "claims": self._form,
            "window": f"{self._window_size} tokens, at most {self._most_windows}",
            "prompts": prompts_fingerprint(self.prompts),
        }

    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        if not sample.answer.strip():
            raise UndeterminedError("the answer is empty: there is nothing to check")
        said = without_sources(sample.answer, sample.contexts)
        sample = sample.model_copy(update={"answer": said})
        if self._refuses(sample) or not stating(sample):
            return Evaluation(
                name=self.get_name(),
                label=ABSTAIN,
                explanation="The answer states nothing that could be checked.",
                details={"checker": self._mode},
            )
        nominated = Extraction()
        details: dict[str, Any] = {"checker": self._mode, "granularity": self._form}
        with undetermined_with(details):
            # Before the claims: without references, extracting them would be wasted calls.
            referenced = yield from find_references(sample, self.retriever, self._known(sample))
            if self._form != "sentences":
                nominated = yield from extract(
                    self._chat,
                    sample.answer,
                    sample.question,
                    self.prompts.triplets,
                    is_local(self._chat),
                    sample.preceding,
                )
            completed = complete(nominated.claims, sample, as_fallback=self._form != "sentences")
            details |= completed.details
            if dropped := [*nominated.dropped, *completed.dropped]:
                details["dropped_claims"] = dropped
        if referenced is not sample:
            details["retrieved"] = [
                {"id": document.id, "page_content": document.page_content}
                for document in referenced.contexts
            ]
        return ExtractedClaims(
            referenced, completed.claims, details, (*completed.unfit, *nominated.ungrounded)
        )

    def _label(self, sample: Sample, claims: Sequence[Claim]) -> Steps[LabelledClaims]:
        shown = as_asked(claims, sample)

        def judge(seen: Sample, chosen: Sequence[int]) -> Steps[LabelledClaims]:
            return self._judged(seen, [claims[at] for at in chosen], apart(shown, chosen))

        known = self._known(sample)
        seen = with_known(sample, known)
        # It was chosen for chat models that label. A yes-or-no judge has a limit of its own.
        labels = self._classifier is None and self._yes_no is None
        least = LEAST_SUPPORT if labels else None
        labelled = yield from label_by_calls(claims, seen, judge, len(known), least)
        return replace(labelled, claims=quoting_known(labelled.claims, len(known)))

    def _refuses(self, sample: Sample) -> bool:
        """Return whether the whole answer is one of the application's own refusals."""
        answer = " ".join(sample.answer.split())
        return not sample.preceding.strip() and any(
            re.fullmatch(one.pattern, answer, one.flags | re.IGNORECASE)
            if isinstance(one, re.Pattern)
            else " ".join(one.split()).casefold() == answer.casefold()
            for one in self.refusals
        )

    def _known(self, sample: Sample) -> tuple[Document, ...]:
        return (*self.known, *sample.known)

    def _judged(
        self, sample: Sample, claims: Sequence[Claim], shown: Sequence[AskedClaim]
    ) -> Steps[LabelledClaims]:
        """Label claims, which a judge is `shown` in a form of their own, by all references."""
        if not any_text(sample.contexts, sample.reference):
            unread = tuple(claim.model_copy(update={"error": NO_REFERENCES}) for claim in claims)
            return LabelledClaims(unread, (0.0,) * len(unread))
        # An agent reports in its own words, which the record of its calls does not have.
        by_words = not any(one.page_content and status_of_call(one) for one in sample.contexts)
        worked = [
            worked_out(claim.text, one.alone, sample) if by_words and not is_code else ()
            for claim, one, is_code in zip(claims, shown, are_code(claims, sample), strict=True)
        ]
        lines = {
            one.alone: [line for of in found for line in of.lines]
            for one, found in zip(shown, worked, strict=True)
        }
        different = list(dict.fromkeys(shown))
        known = recall(self, sample, [claim.alone for claim in different])
        new = [at for at, claim in enumerate(different) if claim.alone not in known]
        asked = apart(different, new)
        texts = [claim.alone for claim in asked]
        chosen = choose(
            texts,
            sample,
            self._window_size,
            self._most_windows,
            lone=self._classifier is not None,
            together=self._mode == "joint",
        )
        windows = [one.windows for one in chosen]
        if self._mode == SMALL:
            near = nearest_alone(texts, windows) if by_words else windows
            # Sentences, read by themselves, too, make the judge right more often (decision 60). But
            # those of several texts change with each text beside the right one (decision 67).
            windows = with_quotes(texts, near, of_several=not by_words)
        windows = with_lines(windows, [lines[text] for text in texts], self._mode == "joint")
        together: dict[tuple[Window, ...], list[int]] = defaultdict(list)
        for at, of_claim in enumerate(windows):
            together[of_claim].append(at)
        groups = [(apart(asked, numbers), of_group) for of_group, numbers in together.items()]
        details: dict[str, Any] = {
            "checker": self._mode,
            **self._read([*chosen, *(one.chosen for one in known.values())]),
            "known": len(different) - len(new),
            "estimate": self._estimate(groups, sample.question),
        }
        with undetermined_with(details):
            answers = yield from self._check(by_words)(groups, sample.question)
        judged_now = {
            texts[at]: JudgedClaim(chosen[at], windows[at], findings)
            for numbers, answered in zip(together.values(), answers, strict=True)
            for at, findings in zip(numbers, zip(*answered, strict=True), strict=True)
        }
        remember(self, sample, judged_now)
        every = known | judged_now
        read = [(every[claim.alone].windows, every[claim.alone].findings) for claim in shown]
        labelled = merged(claims, read, worked, missing_in(claims, sample, worked))
        return replace(labelled, details=details)

    def _read(self, chosen: Sequence[Chosen]) -> dict[str, int]:
        """Return how much is read, for the details; warn if `max_windows` leaves text out."""
        numbers = [(one.left_out, len(one.windows)) for one in chosen]
        left_out, read = max(numbers, default=(0, 0))
        if left_out:
            name = self.get_name()
            warn_once_a_minute(
                _log,
                name,
                "%s held a claim against %d of about %d windows of its references, those nearest "
                "to it (max_windows=%d); what stands only in the others counts as not found. "
                "Retrieve less text, or give RefChecker a greater max_windows.",
                name,
                read,
                read + left_out,
                self._most_windows,
            )
        return {
            "windows": len({window for one in chosen for window in one.windows}),
            "windows_per_claim": max((count for _, count in numbers), default=0),
            "windows_in_all": read + left_out,
            "windows_left_out": left_out,
        }

    def _estimate(self, groups: Sequence[Group], question: str | None) -> dict[str, int]:
        """Estimate the number of the checker's next requests, and the tokens of their prompts."""
        calls = tokens = 0
        if groups and self._classifier is None:
            asked, together = self._yes_no or self._prompt, self._mode == "joint"
            calls, tokens = checking.estimate(asked, groups, question, together)
        return {"calls": calls, "tokens": tokens}

    @property
    def _window_size(self) -> int:
        own = self._yes_no.window if self._yes_no else _WINDOW_TOKENS[self._mode]
        return self.window_tokens or own

    @property
    def _most_windows(self) -> int:
        own = _MAX_WINDOWS if self._classifier is None else _MAX_WINDOWS_HERE
        return self.max_windows or own

    @property
    def _prompt(self) -> Prompt:
        """Return the prompt that asks the chat model for labels."""
        own = ADAPTED if self._mode == "adapter" else None
        prompt: Prompt = own or getattr(self.prompts, self._mode)
        return prompt

    @property
    def _by_support(self) -> bool:
        """Return whether an answer's score is the support of the claim that is supported least."""
        return self.aggregation == "strict" and self._mode in _SUPPORTED_FROM

    @property
    def _least(self) -> float | None:
        """Return the probability from which a claim is supported; None: the most likely label."""
        if self._by_support and self.threshold is not None and self.threshold != "auto":
            return number(self.threshold)
        if self._yes_no is not None and self._classifier is not None:
            return self._yes_no.limit
        return _SUPPORTED_FROM.get(self._mode)

    def _check(self, by_words: bool) -> Checker:
        own = in_same_letters if self._mode in (SMALL, "adapter") else lambda check: check
        if self._classifier is not None:
            check = own(classified(self._classifier, self._least))
            if self._mode == SMALL:
                return with_words(check, word_fit(), self._least, by_words)
            return check
        if self._yes_no is not None:
            return checking.answered(self._chat, self._yes_no, self._least)
        chat, prompt = self._chat, self._prompt
        if self._mode == "joint":
            return checking.joint(chat, prompt)
        if self._mode == "per_claim":
            return checking.per_claim(chat, prompt)
        options = (_judging(chat) or {}) if self._mode == "adapter" else {}
        return own(checking.logprobs(chat, prompt, self._least, options))

    def _conclude(self, claims: Sequence[Claim], details: Mapping[str, Any]) -> Evaluation:
        share = _SHARE if self.threshold == "auto" else number(self.threshold)
        verdict = aggregate([claim.label for claim in claims], self.aggregation, share)
        # A cascade's other stages may label without probabilities.
        score = (self._by_support and least_support(claims)) or verdict.share
        missing = [claim for claim in claims if claim.label is None]
        details = {
            **details,
            "counts": counts_of(claims),
            "unlabelled": len(missing),
            "score_bounds": list(score.bounds),
        }
        if not verdict.determined:
            raise UndeterminedError(
                f"{len(missing)} of {len(claims)} claims have no label, which could change the "
                f"decision. The first: {missing[0].error}",
                claims=tuple(claims),
                details=details,
            )
        return Evaluation(
            name=self.get_name(),
            score=score.value,
            label=verdict.label and verdict.label.value,
            passed=verdict.passed,
            explanation=explanation(claims, in_part=bool(details.get("windows_left_out"))),
            claims=tuple(claims),
            details=details,
        )


def _judging(model: object) -> Mapping[str, Any] | None:
    """Return the call options with which a local model judges by demur's adapter, or None."""
    found: Mapping[str, Any] | None = getattr(model, "judging", None)
    return found


@cache  # so that it is said once in a process
def _warn_of_no_adapter() -> None:
    _log.warning(
        "These weights of the local model have no adapter of demur's, or demur-judge is not "
        "installed, so claims are judged by the model itself (checker='logprobs'), which is wrong "
        "more often. The model 'local' with its official weights has one, and RefChecker('small') "
        "needs no language model."
    )
