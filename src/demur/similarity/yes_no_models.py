"""Run a yes-or-no judge in this process, on torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, partial
from importlib.util import find_spec
from typing import Any, ClassVar

from demur._system import lock
from demur._text import replace_surrogates
from demur.errors import DemurError, needs
from demur.local import unread
from demur.runtime.prompting import as_shown
from demur.schema import ClaimLabel
from demur.schema.fingerprints import digest
from demur.similarity.encoders import from_hub, refuse_random, weights_fingerprint, with_words
from demur.similarity.yes_no import YesNoJudge

_WRITES = "ForConditionalGeneration"


class YesNoModel:
    """Predict whether documents support claims, by a yes-or-no judge with weights.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        DemurError: The weights are not available, or only with code of their own.
        ValueError: The weights are not those of such a judge.
    """

    batch_size: ClassVar[int] = 4
    """The number of pairs that are judged in one call, which cannot be interrupted."""

    def __init__(self, judge: YesNoJudge) -> None:
        """Load the judge."""
        self.judge = judge
        self._tokenizer, self._model = _load(judge)
        self._own = {*self._tokenizer.all_special_ids} - {self._tokenizer.unk_token_id}
        self._of_template = self._count_own(self._row("", ""))
        self._lock = lock()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the weights."""
        return load_yes_no, (self.judge,)

    def __str__(self) -> str:
        """Return the name of the weights."""
        return str(self.judge.weights)

    @cached_property
    def fingerprint(self) -> str:
        """Return what identifies its probabilities: hashes of the weights and the description."""
        return f"{weights_fingerprint(self._model)} {digest(self.judge)}"

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[dict[ClaimLabel, float] | str]:
        """Return the probabilities of Entailment and Unsupported for each (document, claim).

        A text in place of the probabilities says why the judge cannot read the pair.

        Raises:
            DemurError: The model gave no probability.
        """
        with self._lock:
            read = {pair: self._read(*map(_as_read, pair)) for pair in dict.fromkeys(pairs)}
            rows = {pair: one for pair, one in read.items() if not isinstance(one, str)}
            support = dict(zip(rows, self._run([*rows.values()]) if rows else (), strict=True))
        return [
            {ClaimLabel.ENTAILMENT: support[pair], ClaimLabel.UNSUPPORTED: 1 - support[pair]}
            if pair in support
            else str(read[pair])
            for pair in pairs
        ]

    def _read(self, document: str, claim: str) -> Sequence[int] | str:
        """Return the tokens of a pair, or why it cannot be judged."""
        claim = " ".join(claim.split())  # so that it cannot look like a part of the template
        alone = self._tokenizer(
            claim, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        tokens = zip(alone["input_ids"], alone["offset_mapping"], strict=True)
        if error := unread(str(self), claim, tokens, self._tokenizer.unk_token_id, document):
            return error
        row = self._row(document, claim)
        if self._count_own(row) != self._of_template:
            # It could end the document, or begin another claim.
            return f"a text holds a token that the judge {str(self)!r} has for itself"
        if len(row) > self.judge.most:
            return (
                f"passage and claim have {len(row)} tokens, and the judge {str(self)!r} reads at "
                f"most {self.judge.most} at once: give RefChecker smaller window_tokens"
            )
        return row

    def _row(self, document: str, claim: str) -> Sequence[int]:
        eos = self._tokenizer.eos_token or self._tokenizer.sep_token
        text = self.judge.filled(document=document, claim=claim, eos=eos)
        tokens: Sequence[int] = self._tokenizer(text, verbose=False)["input_ids"]
        return tokens

    def _count_own(self, tokens: Sequence[int]) -> int:
        return sum(token in self._own for token in tokens)

    def _run(self, rows: Sequence[Sequence[int]]) -> list[float]:
        import torch

        padded = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt", verbose=False)
        inputs = dict(padded.to(self._model.device))
        if _WRITES in type(self._model).__name__:
            begin = self._model.config.decoder_start_token_id
            inputs["decoder_input_ids"] = torch.full_like(inputs["input_ids"][:, :1], begin)
        with torch.no_grad():
            logits = self._model(**inputs).logits.float()
        if logits.ndim == 3:
            logits = logits[:, 0]  # of the first token
        answers = [self.judge.supported, self.judge.unsupported]
        one_logit = logits.shape[-1] == 1
        shares = logits.sigmoid() if one_logit else logits[:, answers].softmax(-1)
        support: list[float] = shares[:, 0].tolist()
        if not all(0 <= one <= 1 for one in support):
            raise DemurError(f"the judge {str(self)!r} gave {support}, which are no probabilities")
        return support


@cache
def load_yes_no(judge: YesNoJudge) -> YesNoModel:
    """Load a yes-or-no judge with weights, once for each process; `YesNoModel` says what raises."""
    return YesNoModel(judge)


def _as_read(text: str) -> str:
    return as_shown(replace_surrogates(text)).strip()


def _load(judge: YesNoJudge) -> tuple[Any, Any]:
    weights, source = str(judge.weights), str(judge.base or judge.weights)
    revision, what = None if judge.base else judge.revision, f"the judge {weights!r}"

    def described(**where: Any) -> tuple[Any, Any]:
        from transformers import AutoConfig, AutoTokenizer

        where |= {"revision": revision or "main", "trust_remote_code": False}
        config = AutoConfig.from_pretrained(source, **where)
        return config, with_words(AutoTokenizer.from_pretrained(source, **where))

    def loaded(**where: Any) -> Any:
        where |= {"revision": judge.revision or "main", "output_loading_info": True}
        return _reader(judge, config)(weights, config=config, **where)

    with needs("sentence-transformers", "similarity", "a judge in this process"):
        if find_spec("transformers") is None or find_spec("torch") is None:
            raise ImportError("before anything is fetched")
        try:
            config, tokenizer = from_hub(what, source, revision, described)
        except ValueError as error:
            raise DemurError(
                f"{what} cannot be read by transformers alone, and code that weights bring is not "
                "run. Give another name or folder, or serve it at an endpoint and give YesNoJudge "
                f"no weights ({error})"
            ) from error
        model, loading = from_hub(what, weights, judge.revision, loaded)
        refuse_random(weights, loading)
        import torch
    return tokenizer, model.eval().to("cuda" if torch.cuda.is_available() else "cpu")


def _reader(judge: YesNoJudge, config: Any) -> Any:
    """Return the function that reads the weights; refuse weights that answer otherwise."""
    import transformers

    if judge.base is not None:
        config.num_labels = 2
        inside = {r"^\w+\.(?=(transformer|classifier)\.)": ""}
        return partial(transformers.T5ForTokenClassification.from_pretrained, key_mapping=inside)
    architectures = " ".join(config.architectures or ["nothing"])
    if _WRITES in architectures:
        return transformers.AutoModelForSeq2SeqLM.from_pretrained
    if "ForSequenceClassification" in architectures and config.num_labels <= 2:
        return transformers.AutoModelForSequenceClassification.from_pretrained
    raise ValueError(
        f"{judge.weights!r} gives no yes or no: its weights are those of {architectures}, with "
        f"{config.num_labels} classes. Expected two classes, one logit, or an encoder-decoder that "
        "writes; for NLI, checker='org/name'"
    )
