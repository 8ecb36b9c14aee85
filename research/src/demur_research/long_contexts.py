"""How many unsupported answers still fail where what decides them stands in 50 kB of other text.

    python -m demur_research.long_contexts [--cases 20] [--length 50000] [--model local]

Unsupported English answers of texts/answers.jsonl, drawn with a fixed seed, each checked
against its own contexts alone and against the same amid other text, at a place that goes from the
beginning to the end. Prints recall, seconds and tokens of both.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence

os.environ.setdefault("DEMUR_SECRET", "bench.long_contexts")

from demur import RefChecker
from demur._share import Share
from demur_research.texts.answers import STATING, Answer
from demur_research.texts.bland import samples


def padding(length: int) -> list[str]:
    """Passages about other things, of so many characters in all."""
    texts: list[str] = []
    for sample in samples(1 + length // 1000):
        texts += [document.page_content for document in sample.contexts]
        if sum(map(len, texts)) >= length:
            break
    return texts


def measure(checker: RefChecker, cases: Sequence[Answer], others: Sequence[str]) -> str:
    """A line of the table: recall with its interval, seconds and tokens an answer."""
    failed = tokens = 0
    started = time.monotonic()
    for number, case in enumerate(cases):
        at = len(others) * number // max(1, len(cases) - 1)
        text = "\n\n".join([*others[:at], *case.contexts, *others[at:]])
        found = checker.invoke({**case.sample, "contexts": [text]})
        failed += found.passed is not True
        tokens += found.usage.input_tokens + found.usage.output_tokens
    seconds = (time.monotonic() - started) / len(cases)
    low, high = Share(failed, len(cases)).interval or (0.0, 1.0)
    recall = f"{failed} of {len(cases)} ({low:.0%} to {high:.0%})"
    return f"{recall} | {seconds:.1f} | {tokens / len(cases):,.0f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--length", type=int, default=50_000, help="of the other text")
    parser.add_argument("--model", default="local")
    options = parser.parse_args()
    wrong = [one for one in STATING if not one.supported and one.language == "en"]
    cases = random.Random(1).sample(wrong, options.cases)
    checker = RefChecker(options.model)
    print("| contexts | unsupported answers that do not pass | seconds | tokens |")
    print("|---|---|---|---|")
    print(f"| their own | {measure(checker, cases, [])} |", flush=True)
    others = padding(options.length)
    print(f"| amid {sum(map(len, others)):,} characters | {measure(checker, cases, others)} |")


if __name__ == "__main__":
    main()
