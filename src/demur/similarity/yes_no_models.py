"""Run a yes-or-no judge in this process, on torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, partial
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
_LEAST_SAID = 0.5
"""The smallest probability that a model which writes begins with one of its two answers."""
_YES = {"entailment", "supported", "consistent", "grounded", "faithful", "factual", "true", "yes"}
_NO = {
    "contradiction",
    "unsupported",
    "inconsistent",
    "hallucinated",
    "hallucination",
    "false",
    "no",
}
"""Names of classes that can only mean one thing."""


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
        if "{eos}" in str(judge.template) and not self._tokenizer.eos_token:
            raise ValueError(
                f"template: the tokenizer of {str(self)!r} has no token for {{eos}}: write its "
                "separator there, such as [SEP]"
            )
        self._own = {*self._tokenizer.all_special_ids} - {self._tokenizer.unk_token_id}
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
            read = {
                pair: self._read(_as_read(pair[0]), " ".join(_as_read(pair[1]).split()))
                for pair in dict.fromkeys(pairs)
            }
            rows = {pair: one for pair, one in read.items() if not isinstance(one, str)}
            support = dict(zip(rows, self._run([*rows.values()]) if rows else (), strict=True))
        return [
            {ClaimLabel.ENTAILMENT: support[pair], ClaimLabel.UNSUPPORTED: 1 - support[pair]}
            if pair in support
            else str(read[pair])
            for pair in pairs
        ]

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability of support for each (document, claim), in [0, 1].

        Raises:
            DemurError: The model gave no probability, or cannot read a pair.
        """
        found = self.predict(pairs)
        if unreadable := [one for one in found if isinstance(one, str)]:
            raise DemurError(unreadable[0])
        return [one[ClaimLabel.ENTAILMENT] for one in found if not isinstance(one, str)]

    def _read(self, document: str, claim: str) -> Sequence[int] | str:
        """Return the tokens of a pair, or why it cannot be judged."""
        encode = partial(self._tokenizer, verbose=False)
        alone = encode(claim, add_special_tokens=False, return_offsets_mapping=True)
        tokens = zip(alone["input_ids"], alone["offset_mapping"], strict=True)
        if error := unread(str(self), claim, tokens, self._tokenizer.unk_token_id, document):
            return error
        eos = self._tokenizer.eos_token
        row, frame = (
            encode(self.judge.filled(document=texts[0], claim=texts[1], eos=eos))["input_ids"]
            for texts in ((document, claim), ("", ""))
        )
        if sum(token in self._own for token in row) != sum(token in self._own for token in frame):
            # It could end the document, or begin another claim.
            return f"a text holds a token that the judge {str(self)!r} has for itself"
        if len(row) > self.judge.most:
            return (
                f"passage and claim have {len(row)} tokens, and the judge {str(self)!r} reads at "
                f"most {self.judge.most} at once: give RefChecker smaller window_tokens"
            )
        found: Sequence[int] = row
        return found

    def _run(self, rows: Sequence[Sequence[int]]) -> list[float]:
        import torch

        padded = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt", verbose=False)
        inputs = dict(padded.to(self._model.device))
        if writes := _WRITES in type(self._model).__name__:
            begin = self._model.config.decoder_start_token_id
            inputs["decoder_input_ids"] = torch.full_like(inputs["input_ids"][:, :1], begin)
        with torch.no_grad():
            logits = self._model(**inputs).logits.float()
        if logits.ndim == 3:
            logits = logits[:, 0]  # of the first token
        answers = [self.judge.supported, self.judge.unsupported]
        if writes and logits.softmax(-1)[:, answers].sum(-1).min() < _LEAST_SAID:
            raise DemurError(f"the judge {str(self)!r} was about to write neither of its answers")
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
    writes, named = _WRITES in architectures, config.id2label or {}
    if writes and (judge.supported, judge.unsupported) == (1, 0):
        raise ValueError(
            f"supported, unsupported: {judge.weights!r} writes, so expected the ids of two tokens"
        )
    supported, unsupported = (
        str(named.get(at)).lower() for at in (judge.supported, judge.unsupported)
    )
    if not writes and config.num_labels == 2 and (supported in _NO or unsupported in _YES):
        raise ValueError(
            f"supported, unsupported: {judge.weights!r} calls its classes {named}: give "
            f"supported={judge.unsupported}, unsupported={judge.supported}"
        )
    most = config.vocab_size if writes else 2
    if max(int(judge.supported), int(judge.unsupported)) >= most:
        raise ValueError(
            f"supported, unsupported: {judge.weights!r} has no class or token of such a number"
        )
    if writes:
        return transformers.AutoModelForSeq2SeqLM.from_pretrained
    if "ForSequenceClassification" in architectures and config.num_labels <= 2:
        return transformers.AutoModelForSequenceClassification.from_pretrained
    raise ValueError(
        f"{judge.weights!r} gives no yes or no: its weights are those of {architectures}, with "
        f"{config.num_labels} classes. Expected two classes, one logit, or a model that writes; "
        "for NLI, checker='org/name'"
    )
