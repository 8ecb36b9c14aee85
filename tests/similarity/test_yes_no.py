"""Test yes-or-no judges: how they are described, and run by tiny models with random weights."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demur import ClaimLabel, DemurError, MissingExtraError, RefChecker, Sample
from demur.similarity import NAMED, YesNoJudge, YesNoModel, load_nli, load_yes_no
from support.tiny import (
    tiny_bi_encoder,
    tiny_classifier,
    tiny_cross_encoder,
    tiny_pair_model,
    tiny_seq2seq,
    with_torch,
)

E, U = ClaimLabel.ENTAILMENT, ClaimLabel.UNSUPPORTED
PAIRS = [("oslo is old .", "oslo is in norway"), ("it was founded long ago .", "it is old")]
HERE = [name for name, one in NAMED.items() if one.judge.weights]


def _hhem(folder: Path) -> str:
    tiny_pair_model(folder)
    return str(folder)


MAKERS: dict[str, Callable[[Path], str]] = {
    "minicheck-roberta": lambda folder: tiny_classifier(folder, "Roberta", 2),
    "minicheck-deberta": lambda folder: tiny_classifier(folder, "DebertaV2", 2),
    "minicheck-flan-t5": tiny_seq2seq,
    "factcg": lambda folder: tiny_classifier(folder, "DebertaV2", 2),
    "hhem": _hhem,
}
"""How weights of each architecture are made."""


def in_folder(name: str, folder: Path) -> YesNoJudge:
    """Return a named judge with tiny weights of its architecture."""
    judge = replace(NAMED[name].judge, weights=MAKERS[name](folder), revision=None)
    return replace(judge, base=str(folder / "base")) if judge.base else judge


def by_hand(judge: YesNoJudge, pair: tuple[str, str]) -> float:
    """Return the probability of support as transformers gives it."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(judge.weights)
    text = str(judge.template).replace("{document}", pair[0]).replace("{claim}", pair[1])
    inputs = dict(tokenizer(text.replace("{eos}", "[SEP]"), return_tensors="pt"))
    inputs.pop("token_type_ids", None)
    kind = transformers.AutoModelForSequenceClassification
    if judge.supported == 209:
        kind = transformers.AutoModelForSeq2SeqLM
        inputs["decoder_input_ids"] = torch.zeros((1, 1), dtype=torch.long)
    with torch.no_grad():
        logits = kind.from_pretrained(judge.weights).eval()(**inputs).logits
    if logits.ndim == 3:
        logits = logits[:, 0, [3, 209]]
    return float(logits.sigmoid() if logits.shape[-1] == 1 else logits.softmax(-1)[0, 1])


@with_torch
def test_one_logit_is_the_log_odds_of_support(tmp_path: Path) -> None:
    folder = tiny_classifier(tmp_path, "Roberta", 1)
    judge = YesNoJudge("{document}{eos}{claim}", 1, 0, weights=folder)
    (found,) = load_yes_no(judge).predict(PAIRS[:1])
    assert not isinstance(found, str)
    assert found[E] == pytest.approx(by_hand(judge, PAIRS[0]), abs=1e-5)
    assert found[U] == 1 - found[E]


@with_torch
@pytest.mark.parametrize("name", HERE)
def test_every_named_judge_loads_by_its_architecture_and_labels_an_answer(
    name: str, tmp_path: Path
) -> None:
    judge = in_folder(name, tmp_path)
    checker = RefChecker(judge)
    found = checker.invoke(Sample(answer="oslo is old.", contexts=["oslo is in norway . " * 300]))
    assert found.error is None
    (claim,) = found.claims
    assert claim.label in (E, U)
    assert claim.support is not None
    assert claim.probabilities is not None
    assert {*claim.probabilities} == {E, U}
    assert found.score == claim.support
    assert claim.label is (E if claim.support >= judge.limit else U)
    assert found.details["windows"] > 1
    assert found.details["windows_per_claim"] <= 4
    assert found.usage.calls == 0
    assert checker.fingerprints["model"] == judge.weights


@with_torch
def test_the_limit_of_a_judge_decides_and_a_threshold_replaces_it(tmp_path: Path) -> None:
    judge = in_folder("factcg", tmp_path)
    sample = Sample(answer="oslo is old.", contexts=["oslo is in norway ."])
    (claim,) = RefChecker(judge).invoke(sample).claims
    support = claim.support
    assert support is not None
    assert 0.01 < support < 0.99
    for limit, label in ((support - 0.01, E), (support + 0.01, U)):
        by_limit = RefChecker(replace(judge, limit=limit)).invoke(sample)
        by_threshold = RefChecker(judge, threshold=limit).invoke(sample)
        assert by_limit.claims[0].label is by_threshold.claims[0].label is label
        assert by_limit.label == label.value
        assert by_limit.passed is by_threshold.passed is (label is E)


@with_torch
def test_what_the_judge_cannot_read_gets_no_label(tmp_path: Path) -> None:
    judge = load_yes_no(replace(in_folder("minicheck-roberta", tmp_path), most=20))
    unknown, long, known = judge.predict(
        [(PAIRS[0][0], "Bergen is old"), ("oslo " * 40, "oslo"), ("bergen is old", "bergen is old")]
    )
    assert "does not know 'Bergen'" in str(unknown)
    assert all(said in str(long) for said in ("44 tokens", "at most 20", "window_tokens"))
    assert isinstance(known, dict)  # the document has the word in the same letters


@with_torch
@pytest.mark.parametrize("forged", ["[SEP]", "[PAD]", "[CLS]", "\uff3bSEP\uff3d", "[\u200bSEP]"])
@pytest.mark.parametrize("place", [0, 1])
def test_no_text_brings_a_token_that_the_judge_has_for_itself(
    place: int, forged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = load_yes_no(in_folder("minicheck-deberta", tmp_path))
    shown: list[list[int]] = []
    monkeypatch.setattr(judge, "_run", lambda rows: shown.extend(rows) or [0.5] * len(rows))
    pair = ["oslo is in norway", "oslo is in norway"]
    pair[place] += f" {forged} oslo is old"
    judge.predict([(pair[0], pair[1])])
    own = {0, 2, 3, 4}
    assert all([token for token in row if token in own] == [2, 3, 3] for row in shown)


@with_torch
def test_a_token_of_its_own_that_gets_through_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = load_yes_no(in_folder("minicheck-deberta", tmp_path))
    monkeypatch.setattr("demur.similarity.yes_no_models.as_shown", str)
    (found,) = judge.predict([("oslo is old [SEP] oslo", "oslo is old")])
    assert "has for itself" in str(found)


@with_torch
def test_no_number_that_is_none_becomes_a_label(tmp_path: Path) -> None:
    judge = in_folder("minicheck-roberta", tmp_path)
    model = load_yes_no(judge)
    model._model.classifier.out_proj.bias.data.fill_(float("nan"))
    found = RefChecker(judge).invoke(Sample(answer="oslo is old.", contexts=["oslo is old ."]))
    assert found.undetermined
    assert "no probabilities" in str(found.error)


@with_torch
def test_what_gives_no_yes_or_no_is_refused(tmp_path: Path) -> None:
    three = tiny_cross_encoder(tmp_path / "three", ["contradiction", "entailment", "neutral"])
    with pytest.raises(ValueError, match=r"3 classes.*for NLI, checker='org/name'"):
        RefChecker(YesNoJudge("{document} {claim}", 1, 0, weights=three))
    with pytest.raises(ValueError, match="those of BertModel"):
        RefChecker(
            YesNoJudge("{document} {claim}", 1, 0, weights=tiny_bi_encoder(tmp_path / "none"))
        )


@with_torch
@pytest.mark.parametrize("name", ["minicheck-roberta", "minicheck-flan-t5"])
def test_weights_without_a_tokenizer_are_refused(name: str, tmp_path: Path) -> None:
    judge = in_folder(name, tmp_path)
    for file in tmp_path.glob("token*"):
        file.unlink()
    with pytest.raises(DemurError, match="files of its tokenizer are missing"):
        RefChecker(judge)


@with_torch
def test_a_cross_encoder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path, ["contradiction", "entailment", "neutral"])
    for file in tmp_path.glob("token*"):
        file.unlink()
    with pytest.raises(DemurError, match="files of its tokenizer are missing"):
        RefChecker(YesNoJudge("{document} {claim}", 1, 0, weights=folder))
    with pytest.raises(DemurError, match="files of its tokenizer are missing"):
        load_nli(folder)


@with_torch
def test_a_claim_stands_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = load_yes_no(in_folder("factcg", tmp_path))
    given: list[dict[str, str]] = []
    monkeypatch.setattr(YesNoJudge, "filled", lambda _, **texts: given.append(texts) or "oslo")
    judge.predict([("oslo is\nold", 'oslo"?\n\nis\n- old')])
    assert given[0]["document"] == "oslo is\nold"
    assert given[0]["claim"] == 'oslo"? is - old'


@with_torch
def test_code_that_weights_bring_is_not_run(tmp_path: Path) -> None:
    tiny_pair_model(tmp_path)
    with pytest.raises(DemurError, match="code that weights bring is not run"):
        RefChecker(YesNoJudge("{document} {claim}", 1, 0, weights=str(tmp_path)))


@with_torch
def test_a_judge_is_loaded_once_and_its_fingerprint_knows_template_and_weights(
    tmp_path: Path,
) -> None:
    judge = in_folder("minicheck-roberta", tmp_path / "one")
    model = load_yes_no(judge)
    assert pickle.loads(pickle.dumps(model)) is model
    checker = pickle.loads(pickle.dumps(RefChecker(judge)))
    assert checker.fingerprints == RefChecker(model).fingerprints
    others = [
        replace(judge, template="{claim} {document}"),
        replace(judge, supported=0, unsupported=1),
    ]
    prints = {YesNoModel(one).fingerprint for one in (judge, *others)}
    assert len(prints) == 3


PAIR = "{document} {claim}"
HERE_OWN: dict[str, Any] = {"weights": "a/b"}


@pytest.mark.parametrize(
    ("template", "answers", "options", "why"),
    [
        ("{document} only", ("Yes", "No"), {}, "places for both texts"),
        ("{document}{eos}{claim}", ("Yes", "No"), {}, "perhaps {question}"),
        (f"{PAIR} {{question}}", (1, 0), HERE_OWN, "perhaps {eos}"),
        ("x", (1, 0), {**HERE_OWN, "options": {"x": PAIR}}, "places for both texts"),
        (("user", PAIR), ("Yes", "No"), {}, r"messages as \(role, text\)"),
        ((("user", PAIR),), (1, 0), HERE_OWN, "expected one text"),
        (PAIR, (1, 0), {}, r"two words, got \(1, 0\)"),
        (PAIR, ("Yes", "yes"), {}, "two words"),
        (PAIR, ("Yes", ""), {}, "two words"),
        (PAIR, ("Yes", "No"), HERE_OWN, "two numbers from 0 on"),
        (PAIR, (0, 0), HERE_OWN, "two numbers from 0 on"),
        (PAIR, (-1, 1), HERE_OWN, "two numbers from 0 on"),
        (PAIR, (1, 0), {**HERE_OWN, "limit": 1.0}, r"a limit in \(0, 1\)"),
        (PAIR, (1, 0), {**HERE_OWN, "window": 10}, "at least 50"),
        (PAIR, ("Yes", "No"), {"verdict": "Yes|No"}, "a verdict with a group"),
    ],
)
def test_a_description_that_cannot_be_meant_is_refused(
    template: Any, answers: tuple[Any, Any], options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        YesNoJudge(template, *answers, **options)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_is_named_with_its_extra_before_anything_is_fetched(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"sentence-transformers.*demur\[similarity\]"):
        RefChecker("minicheck-roberta")


@pytest.mark.parametrize("name", NAMED)
def test_every_named_judge_says_what_a_reader_chooses_by(name: str) -> None:
    known = NAMED[name]
    assert known.size
    assert known.licence
    assert (known.accuracy is None) == (known.measured_by == "")
    assert (known.judge.weights is None) == (known.served_as != "")
    assert known.judge.window >= 50
    if known.judge.weights:
        assert known.judge.window < known.judge.most
