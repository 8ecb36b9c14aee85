"""Run `demur calibrate`: choose a threshold from scores and from labels that people gave."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from demur.calibration import Operating, RepeatsWarning, best_f1, percentile
from demur.calibration import calibrate as by_guarantee
from demur.cli import judged
from demur.cli.console import PASSED, errors, may_write, output, pipe_may_close, print_json
from demur.cli.kept import Kept, keep
from demur.cli.options import beside, json_option, out_option
from demur.errors import DemurError
from demur.observe.log import LABEL, read_labels
from demur.schema import OnAbstain, Share, Threshold
from demur.views import counted, plural, terminal

_CONFIDENCE = 0.9
_MOST_TOLD = 5
_NEEDED = {"RefChecker": 'aggregation="soft", ', "ReverseValidation": 'variant="em", '}
"""The arguments without which these evaluators do not compare their score with a threshold."""
_WITHOUT = ("AllFalse", "Cascade", "LMvsLM", "ZeroShot")
"""The evaluators that take no threshold."""


def calibrate(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A file (SQLite, JSON lines, saved traces, or the results of demur score), or "
            "postgresql://user@host/database.",
        ),
    ],
    target: Annotated[
        float | None,
        typer.Option(help="The share of hallucinated answers that may pass at most, such as 0.05."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="With --target, the probability with which the target holds, over the draw of "
            "the samples. "
            f"[default: {_CONFIDENCE}]"
        ),
    ] = None,
    with_best_f1: Annotated[
        bool,
        typer.Option(
            "--best-f1",
            help="Instead of --target: find hallucinated answers with the best F1 on this log.",
        ),
    ] = False,
    percent: Annotated[
        float | None,
        typer.Option(
            "--percentile",
            help="Instead of --target, without labels: how many answers of a hundred may fail.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help=f"A file of CSV or JSON lines with the fields `id` (or `run`) and `{LABEL}`. "
            "[default: the runs' metadata]"
        ),
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option(help="The evaluator whose scores are used, if LOG has several evaluators."),
    ] = None,
    on_abstain: Annotated[
        OnAbstain,
        typer.Option(
            help="The guard's on_abstain: what it does with answers that state nothing to check."
        ),
    ] = "pass",
    out: Annotated[Path | None, out_option("the threshold", "LOG.threshold.json")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: Annotated[bool, json_option("the threshold as one line of JSON")] = False,
) -> int:
    """Choose the score from which an answer passes, and say what the choice guarantees.

    --target gives a guarantee for later answers that are like these: first answers of runs, with
    labels. docs/thresholds.md says what is guaranteed and what is not.

    Exit codes: 0 the threshold is saved, 2 no threshold can be chosen, 64 wrong usage, 130
    interrupted.
    """
    _one_way(target, confidence, with_best_f1, percent, labels)
    if os.path.isdir(log):
        message = terminal.one_line(f"{log} is a directory, expected a file")
        raise typer.BadParameter(message, param_hint="LOG")
    goal = out or beside(log, ".threshold.json")
    may_write([goal], Path(log), labels, force=force, option="--out")
    if not os.path.isdir(goal.parent):
        message = f"there is no folder {goal.parent}"
        raise typer.BadParameter(terminal.one_line(message), param_hint="--out")
    with errors().status("reading the scores"):
        held = judged.read(log, None if labels is None else read_labels(labels))
    name = judged.chosen(held, evaluator)
    kept = keep(held, name, labelled=percent is None)
    if target is not None and kept.in_parts:
        raise DemurError(
            f"{held.name}: {name} judged {_answers(kept.in_parts)} sentence by sentence, while "
            "they were streamed. Such a score is the lowest of the judged sentences, so it "
            "guarantees nothing for whole answers. Score whole answers: use a guard with "
            'streaming="buffer", or demur score'
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatsWarning)  # the report mentions repeats
        threshold = _chosen(held, kept, on_abstain, target, confidence, percent)
    threshold.save(goal)
    with pipe_may_close():
        if as_json:
            print_json(
                {
                    "file": held.name,
                    "saved": str(goal),
                    "threshold": threshold.model_dump(mode="json"),
                    "kappa": threshold.kappa,
                    "nothing_to_check": len(kept.silent),
                    "repeats": len(kept.evaluations) - threshold.samples,
                    "left_out": {**kept.left_out, "damaged": len(held.damaged)},
                    "by_sentences": kept.in_parts,
                    "unknown_labels": len(held.unknown),
                }
            )
        else:
            for head, tail in _report(threshold, name, held, kept, goal):
                terminal.say(output(), head, terminal.one_line(tail), style="bold")
    return PASSED


def _chosen(
    held: judged.Held,
    kept: Kept,
    on_abstain: OnAbstain,
    target: float | None,
    confidence: float | None,
    percent: float | None,
) -> Threshold:
    evaluations = [*kept.evaluations.values()]
    if percent is not None:
        return percentile(evaluations, percent, on_abstain=on_abstain, samples=kept.same)
    hallucinated = [held.labels[id] for id in kept.evaluations]
    if target is None:
        return best_f1(evaluations, hallucinated, on_abstain=on_abstain, samples=kept.same)
    sure = _CONFIDENCE if confidence is None else confidence
    return by_guarantee(
        evaluations,
        hallucinated,
        target=target,
        confidence=sure,
        on_abstain=on_abstain,
        samples=kept.same,
    )


# --- What is asked --------------------------------------------------------------------------------


def _one_way(
    target: float | None,
    confidence: float | None,
    with_best_f1: bool,
    percent: float | None,
    labels: Path | None,
) -> None:
    """Refuse options that name no way to choose or several, and options without an effect."""
    ways = {
        "--target": target is not None,
        "--best-f1": with_best_f1,
        "--percentile": percent is not None,
    }
    named = [way for way, is_given in ways.items() if is_given]
    if not named:
        raise typer.BadParameter(
            "expected a way to choose the threshold: give --target, such as 0.05, --best-f1 or "
            "--percentile"
        )
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} exclude each other")
    if confidence is not None and target is None:
        raise typer.BadParameter(f"--confidence has no effect with {named[0]}")
    if labels is not None and percent is not None:
        raise typer.BadParameter("--labels has no effect with --percentile")
    for option, value in (("--target", target), ("--confidence", confidence)):
        if value is not None and not 0 < value < 1:
            raise typer.BadParameter(
                f"expected a number above 0 and below 1, got {value:g}", param_hint=option
            )
    if percent is not None and not 0 <= percent <= 100:
        raise typer.BadParameter(
            f"expected a number from 0 to 100, got {percent:g}", param_hint="--percentile"
        )


# --- What is answered -----------------------------------------------------------------------------


def _report(
    threshold: Threshold, name: str, held: judged.Held, kept: Kept, goal: Path
) -> Iterator[tuple[str, str]]:
    passed, samples, wrong = threshold.passed, threshold.samples, threshold.hallucinated
    yield "threshold", f"{threshold.value!r}, of the scores of {name}"
    yield _promise(threshold)
    if repeats := len(kept.evaluations) - samples:
        yield (
            "counted once",
            f"{_answers(repeats)} more, which repeat others: the same text to the same question",
        )
    if apart := kept.same.count(None):
        yield (
            "not compared",
            f"{_answers(apart)} without a text in the file: each repeat among them counts",
        )
    of = "" if wrong is None else f", {wrong:,} of them hallucinated"
    yield "chosen from", f"{_answers(samples)}{of}"
    these = f", {threshold.passed_hallucinated:,} of the hallucinated ones" if wrong else ""
    yield "of these pass", f"{passed:,} ({passed / samples:.1%}){these}"
    if threshold.kappa is not None:
        yield "kappa with people", "{:.2f} [{:.2f}, {:.2f}], optimistic".format(*threshold.kappa)
    if kept.silent:
        yield "nothing to check", _nothing(threshold, held, kept)
    if threshold.passed_hallucinated is not None:
        share = Share(threshold.passed_hallucinated, passed)
        assert share.value is not None
        assert share.interval is not None
        low, high = share.interval
        yield (
            "not guaranteed",
            f"{share.value:.1%} of those that pass are hallucinated (95 %: {low:.1%}–{high:.1%}), "
            "if their share among all answers is the same as here",
        )
    if kept.in_parts:
        yield (
            "by sentences",
            f"{_answers(kept.in_parts)}, judged while streamed: the score is that of the worst "
            "sentence, not of the whole answer",
        )
    if kept.bounded:
        yield (
            "without a label",
            f"are claims of {_answers(kept.bounded)}: the lowest score that each can have counts",
        )
    if sum(kept.left_out.values()):
        yield "left out", counted(kept.left_out)
    if held.unknown:
        some = ", ".join(map(repr, sorted(held.unknown)[:_MOST_TOLD]))
        more = ", ..." if len(held.unknown) > _MOST_TOLD else ""
        yield "labels of no answer", f"{len(held.unknown):,}: {some}{more}"
    if held.damaged:
        first = held.damaged[0]
        yield "cannot be read", f"{len(held.damaged):,}, first {first.place}: {first.why}"
    yield "saved to", str(goal)
    yield "use", _usage(threshold, goal)


def _nothing(threshold: Threshold, held: judged.Held, kept: Kept) -> str:
    """Return how answers that state nothing to check were counted."""
    count = _answers(len(kept.silent))
    if threshold.hallucinated is not None:
        count += f", {sum(held.labels[id] for id in kept.silent):,} of them hallucinated"
    if threshold.on_abstain == "pass":
        return f'{count}: counted as passing, as a guard lets them (on_abstain="pass")'
    return f'{count}: counted as failing, so the guard has to fail them (on_abstain="fail")'


def _promise(threshold: Threshold) -> tuple[str, str]:
    """Return what the threshold guarantees, in a sentence."""
    if threshold.method == "learn-then-test":
        return "guaranteed", (
            f"by Learn then Test: at most {_percent(threshold.target)} of hallucinated answers "
            f"pass a guard with on_abstain={json.dumps(threshold.on_abstain)} that is not open on "
            f"errors, with a confidence of {_percent(threshold.confidence)}, if later answers are "
            "like these"
        )
    if threshold.method == "percentile":
        return "guaranteed", (
            f"nothing: it is a percentile; at most {threshold.percentile:g} % of these answers "
            "fail, whether they are hallucinated or not"
        )
    point = Operating(
        threshold.value,
        threshold.passed,
        threshold.samples,
        threshold.hallucinated,
        threshold.passed_hallucinated,
    )
    assert point.f1 is not None
    assert point.precision is not None
    assert point.recall is not None
    return "guaranteed", (
        f"nothing: it finds hallucinated answers with the best F1 here, {point.f1:.3f} (precision "
        f"{point.precision:.3f}, recall {point.recall:.3f})"
    )


def _usage(threshold: Threshold, goal: Path) -> str:
    load = f"Threshold.load({json.dumps(str(goal), ensure_ascii=False)})"
    maker = threshold.fingerprints.get("evaluator")
    if not threshold.fingerprints:
        return (
            f"threshold={load}.value: these scores do not say what they depend on, so no "
            "evaluator can check that the threshold fits"
        )
    if maker is None:
        return f"threshold={load}"
    by_name = maker == "ReverseValidation" and threshold.fingerprints.get("variant") != "em"
    if maker in _WITHOUT or by_name:
        return f"{load}.value, to compare scores with: this {maker} takes no threshold"
    options = _NEEDED.get(maker, "")
    return f"{maker}(..., {options}threshold={load})"


def _percent(share: float | None) -> str:
    assert share is not None
    return f"{100 * share:.6g} %"


def _answers(count: int) -> str:
    return plural(count, "answer")
