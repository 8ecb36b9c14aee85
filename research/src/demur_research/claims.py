"""How well RefChecker's checkers tell supported claims from unsupported ones.

The claims are given, so that only the checking is measured, not the extraction.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from demur import ClaimLabel
from demur.calibration import roc
from demur.evaluators import RefCheckerPrompts
from demur.evaluators.refchecker import checking
from demur.evaluators.refchecker.aggregation import merge
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.prompts import CALIBRATION
from demur.evaluators.refchecker.references import pack, passages
from demur.runtime import drive
from demur_research.recorder import Item
from demur_research.runner import Finding

MODES = ("logprobs", "joint", "per_claim")
"""RefChecker's checkers."""

Row = Mapping[str, Any]

_WINDOW_TOKENS = 700
_RESAMPLES = 2000


@dataclass(frozen=True)
class Labelled:
    """Claims about one reference, some supported and some not."""

    dataset: str
    key: str
    reference: str
    claims: tuple[tuple[str, bool], ...]
    """Each claim with whether the reference supports it."""


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error


def fever(folder: Path) -> Iterator[Labelled]:
    """FEVER-symmetric: each evidence sentence with the claim it supports and the one it refutes."""
    claims: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for row in _rows(folder / "nli" / "fever_symmetric_v02.jsonl"):
        claims[row["premise"]].append((row["hypothesis"], row["label"] == "SUPPORTS"))
    for premise, judged in claims.items():
        if {supported for _, supported in judged} == {True, False}:
            yield Labelled("fever_symmetric", premise, premise, tuple(judged))


def halueval(folder: Path) -> Iterator[Labelled]:
    """HaluEval QA: the right and the hallucinated answer, with the knowledge for reference."""
    for row in _rows(folder / "halueval" / "qa_first1000.jsonl"):
        answers = ((row["right_answer"], True), (row["hallucinated_answer"], False))
        # Many answers are a bare name, so the question has to be part of the claim.
        claims = tuple((f"{row['question']} {answer}", right) for answer, right in answers)
        yield Labelled("halueval_qa", row["id"], row["knowledge"], claims)


def stances(folder: Path) -> Iterator[Labelled]:
    """Factcheck-Bench: claims with short evidence that supports them, or does not."""
    for row in _rows(folder / "nli" / "factcheckbench_stance.jsonl"):
        if len(row["evidence"]) < 1500 and row["stance"] != "partially-support":
            judged = ((row["claim"], row["stance"] == "completely-support"),)
            yield Labelled("factcheckbench", row["id"], row["evidence"], judged)


def wice(folder: Path) -> Iterator[Labelled]:
    """WiCE: claims of Wikipedia with the cited text, the shorter ones (15 s a claim)."""
    for row in _rows(folder / "nli" / "wice_claim_oracle.jsonl"):
        text = " ".join(sentence for chunk in row["chunks"] for sentence in chunk)
        if len(text) < 4500 and row["label"] in ("supported", "not_supported"):
            yield Labelled("wice", row["id"], text, ((row["claim"], row["label"] == "supported"),))


SETS: dict[str, Callable[[Path], Iterator[Labelled]]] = {
    "fever_symmetric": fever,
    "halueval_qa": halueval,
    "factcheckbench": stances,
    "wice": wice,
}


def choose(items: Iterable[Labelled], claims: int, seed: int) -> list[Labelled]:
    """About `claims` claims, as many supported as not, in an order that the seed decides."""
    ordered = sorted(
        items, key=lambda item: hashlib.sha256(f"{seed}:{item.key}".encode()).hexdigest()
    )
    chosen: list[Labelled] = []
    left = {True: claims // 2, False: claims // 2}
    for item in ordered:
        counts = {side: sum(s is side for _, s in item.claims) for side in left}
        if all(counts[side] <= left[side] for side in left):
            chosen.append(item)
            left = {side: left[side] - counts[side] for side in left}
    return chosen


def items(references: Iterable[Labelled]) -> list[Item[Labelled]]:
    """References with their claims as a recording knows them."""
    return [
        Item(
            f"{reference.dataset}: {hashlib.sha256(reference.key.encode()).hexdigest()[:16]}",
            "\0".join([reference.reference, *(claim for claim, _ in reference.claims)]),
            reference,
        )
        for reference in references
    ]


def _checker(mode: str, model: BaseChatModel) -> checking.Checker:
    prompts = RefCheckerPrompts()
    if mode == "joint":
        return checking.joint(model, prompts.joint)
    if mode == "per_claim":
        return checking.per_claim(model, prompts.per_claim)
    return checking.logprobs(model, prompts.logprobs, CALIBRATION)


def judge(item: Labelled, mode: str, model: BaseChatModel) -> Finding:
    """A row for each claim: its label, and how sure the checker is that it is supported."""
    contexts = [Document(page_content=item.reference)]
    windows = pack(passages(contexts, None, _WINDOW_TOKENS, 80), _WINDOW_TOKENS)
    texts = [AskedClaim(claim, claim) for claim, _ in item.claims]
    started = time.monotonic()
    steps = _checker(mode, model)(texts, windows, None)
    findings, ledger = drive(steps, {}, None)
    seconds = (time.monotonic() - started) / len(texts)
    rows = []
    for at, (claim, supported) in enumerate(item.claims):
        found = [of_window[at] for of_window in findings]
        label = merge(finding.label for finding in found)
        shares = [f.probabilities[ClaimLabel.ENTAILMENT] for f in found if f.probabilities]
        rows.append(
            {
                "dataset": item.dataset,
                "key": item.key,
                "mode": mode,
                "claim": claim,
                "supported": supported,
                "label": label,
                "score": max(shares) if shares else _hard_score(label),
                "error": next((finding.error for finding in found if finding.error), None),
                "seconds": seconds,
                "calls": ledger.total.calls / len(texts),
            }
        )
    errors = (finding.error for of_window in findings for finding in of_window if finding.error)
    return Finding({"rows": rows}, next(errors, None))


def _hard_score(label: ClaimLabel | None) -> float | None:
    """A bare label as a score: Entailment above Neutral above Contradiction."""
    if label is None:
        return None
    return {ClaimLabel.ENTAILMENT: 1.0, ClaimLabel.NEUTRAL: 0.5}.get(label, 0.0)


def auroc(scores: Sequence[float], supported: Sequence[bool]) -> float | None:
    """The chance that a supported claim scores above an unsupported one, ties counting half.

    None if the claims are all of one kind.
    """
    wrong = [not one for one in supported]
    return roc(scores, wrong).auc if any(wrong) and not all(wrong) else None


def interval(rows: Sequence[Row], seed: int = 0) -> tuple[float, float] | None:
    """The 95 percent bootstrap interval of the AUROC, resampled by reference; None without one."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["key"]].append(row)
    members = list(groups.values())
    random = np.random.default_rng(seed)
    values = []
    for _ in range(_RESAMPLES):
        drawn = [
            row for at in random.integers(len(members), size=len(members)) for row in members[at]
        ]
        values.append(auroc([r["score"] for r in drawn], [r["supported"] for r in drawn]))
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def table(rows: Sequence[Row]) -> str:
    """The figures by set and mode, as a Markdown table."""
    lines = [
        "| set | checker | claims | no label | AUROC | 95 % interval | accuracy | s / claim | "
        "calls / claim |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["dataset"], row["mode"]].append(row)
    for (dataset, mode), found in sorted(groups.items()):
        judged = [row for row in found if row["score"] is not None]
        value = auroc([r["score"] for r in judged], [r["supported"] for r in judged])
        bounds = interval(judged)
        if not judged:
            lines.append(
                f"| {dataset} | {mode} | {len(found)} | {len(found)} | - | - | - | - | - |"
            )
            continue
        right = [(r["label"] == ClaimLabel.ENTAILMENT) == r["supported"] for r in judged]
        lines.append(
            f"| {dataset} | {mode} | {len(found)} | {len(found) - len(judged)} | "
            f"{'-' if value is None else f'{value:.3f}'} | "
            f"{'-' if bounds is None else '{:.3f} to {:.3f}'.format(*bounds)} | "
            f"{np.mean(right):.3f} | {np.mean([r['seconds'] for r in found]):.2f} | "
            f"{np.mean([r['calls'] for r in found]):.2f} |"
        )
    return "\n".join(lines)
