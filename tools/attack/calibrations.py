"""Test the guarantee of a threshold with draws from sources whose true share is known."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from demur import cli
from demur.calibration import CalibrationError, calibrate
from support.records import found, jsonl, nothing_to_check, scored  # the tests' modules

from .truth import Tally

Draw = Callable[[Any, int], Any]
_FINGERPRINTS = {"evaluator": "RefChecker", "model": "m"}
_SHARE_OF_DRAWS = 600
"""The factor by which calibrations by the command are fewer, because each of them reads a log."""


@dataclass(frozen=True)
class Source:
    """Describe how hallucinated answers are scored."""

    draw: Draw
    passing: Callable[[float], float]
    """A function that returns the true share of answers with at least a given score."""


def _steps(*shares: float) -> Source:
    scores = np.arange(len(shares)) / (len(shares) - 1)
    return Source(
        lambda random, size: random.choice(scores, size, p=shares),
        lambda least: sum(p for p, one in zip(shares, scores, strict=True) if one >= least),
    )


SOURCES = {
    "any score": Source(
        lambda random, size: random.random(size), lambda least: 1 - min(max(least, 0), 1)
    ),
    "mostly low scores": Source(
        lambda random, size: random.random(size) ** 4,
        lambda least: 1 - min(max(least, 0), 1) ** 0.25,
    ),
    "five scores": _steps(0.5, 0.25, 0.15, 0.06, 0.04),
    "two scores": _steps(0.94, 0.06),
}
SETTINGS = [*product((60, 200), (0.05, 0.1), (0.8, 0.9, 0.95))]
"""The number of hallucinated answers, the target, and the confidence."""


def attack(count: int, seed: int = 0) -> Iterator[Tally]:
    """Run about `count` calibrations, with equally many draws for each source and setting."""
    random = np.random.default_rng(seed)
    draws = max(1, count // (len(SOURCES) * len(SETTINGS)))
    for name, source in SOURCES.items():
        tally = Tally(f"guarantee: {name}", "calibrations")
        for setting in SETTINGS:
            broken = sum(_broken(source, *setting, random, tally) for _ in range(draws))
            _judge(broken, draws, setting, tally)
        yield tally
    few = max(4, count // _SHARE_OF_DRAWS)
    yield _by_command("some state nothing", few, random, silent=0.3)
    yield _by_command("few state nothing", few, random, silent=0.05)
    yield _by_command("each answer five times", few, random, times=5)


def _judge(broken: int, draws: int, setting: tuple[int, float, float], tally: Tally) -> None:
    """Report a wrong result if more draws break the target than chance explains."""
    unlucky = 1 - setting[2]
    most = draws * unlucky + 3.5 * math.sqrt(draws * unlucky * (1 - unlucky)) + 1
    if broken > most:
        size, target, confidence = setting
        what = f"{size} hallucinated, target {target}, confidence {confidence}"
        tally.add("wrong", what, f"the target is broken in {broken} of {draws} draws")


def _broken(
    source: Source, size: int, target: float, confidence: float, random: Any, tally: Tally
) -> bool:
    scores = np.concatenate([source.draw(random, size), random.random(50)])
    labels = np.arange(len(scores)) < size
    with tally:
        try:
            chosen = calibrate(scores, labels, target=target, confidence=confidence)
        except CalibrationError:  # this sample allows no such threshold, and the error says so
            tally.refused += 1
            return False
    return source.passing(chosen.value) > target


def _by_command(name: str, draws: int, random: Any, silent: float = 0.0, times: int = 1) -> Tally:
    """Run `demur calibrate` on logs in which hallucinated answers state nothing or are repeated."""
    tally = Tally(f"demur calibrate: {name}", "calibrations")
    source, setting = SOURCES["any score"], (150, 0.1, 0.9)
    broken = 0
    with TemporaryDirectory() as folder:
        for _ in range(draws):
            with tally:
                chosen = _chosen(Path(folder), source, setting, random, silent, times)
            if chosen is None:
                tally.refused += 1
                continue
            # An answer that states nothing has no score. A guard lets it through by default.
            passes = 1.0 if chosen.get("on_abstain", "pass") == "pass" else 0.0
            share = silent * passes + (1 - silent) * source.passing(chosen["value"])
            broken += share > setting[1]
    tally.notes.append(f"the target is broken in {broken} of {draws} draws")
    _judge(broken, draws, setting, tally)
    return tally


def _chosen(
    folder: Path,
    source: Source,
    setting: tuple[int, float, float],
    random: Any,
    silent: float,
    times: int,
) -> dict[str, Any] | None:
    """Return the threshold that the command writes; None if the command refuses."""
    size, target, confidence = setting
    runs = []
    for at, score in enumerate([*source.draw(random, size // times), *random.random(40)]):
        bad = at < size // times
        judged = found(score=float(score), passed=bool(score > 0.5), fingerprints=_FINGERPRINTS)
        if bad and random.random() < silent:
            judged = nothing_to_check().model_copy(update={"fingerprints": _FINGERPRINTS})
        answer = f"Answer {at}, {random.random()}."
        for again in range(times if bad else 1):
            metadata = {"hallucinated": bad}
            runs.append(scored(judged, at=10 * at + again, answer=answer, metadata=metadata))
    log, out = jsonl(folder / "log.jsonl", runs), folder / "threshold.json"
    out.unlink(missing_ok=True)
    asked = ["--target", str(target), "--confidence", str(confidence), "-o", str(out), "--force"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        cli.run(["calibrate", str(log), *asked])
    if not out.exists():
        return None
    threshold: dict[str, Any] = json.loads(out.read_text())
    return threshold
