"""Read rows with labels from checkouts of public repositories, one function for each source.

All checkouts stand in one folder, as OWNER/NAME. Only files are read: no code of theirs is run. The
licence of each source is in `SOURCES`; "none stated" means that its repository states none.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import NamedTuple

from demur_research.datasets import (
    factcheck_bench,
    fever_symmetric,
    fool_me_twice,
    halueval,
    summedits,
    wice,
)
from demur_research.datasets.files import load, load_lines, text
from demur_research.datasets.rows import LabelledRow
from demur_research.recipe.rows import Label, TrainingRow


class Example(NamedTuple):
    """Hold what a source says: passages, a claim, its label and, if there is one, its question."""

    passages: str
    claim: str
    label: Label
    question: str | None = None


@dataclass(frozen=True)
class Source:
    """Describe a public source of rows."""

    name: str
    repository: str
    """The repository on GitHub, as OWNER/NAME."""
    licence: str
    """The licence of the rows that are read, as the repository states it."""
    weight: float
    """The weight of each row. Large sources of short, easy pairs have a small one."""
    read: Callable[[Path], Iterable[Example]]
    """A function from the checkout to its examples."""


MOST_WORDS = 600
"""The most words of passages. A judge reads longer ones in windows, so no row needs them."""
_CLAIM_CHARACTERS, _CLAIM_WORDS = 700, 3
_NLI: dict[str, Label] = {
    **{"entailment": "support", "contradiction": "contradict", "neutral": "neutral"},
    **{"e": "support", "c": "contradict", "n": "neutral"},
}
"""The label for each word of the data sets of natural language inference, in small letters."""
_TOKENS = {
    **{"-LSB-": "[", "-RSB-": "]", "-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"'},
    **{" ,": ",", " .": ".", " 's": "'s", "( ": "(", " )": ")", " n't": "n't"},
}


def read_sources(folder: Path, sources: Iterable[Source]) -> list[TrainingRow]:
    """Return the rows of sources from their checkouts.

    Rows that a judge cannot learn from are left out: without passages, with passages of more than
    `MOST_WORDS`, or with a claim shorter than three words or longer than 700 characters.

    Args:
        folder: The folder of all checkouts.
        sources: The sources to read.

    Raises:
        ValueError: Checkouts are missing (the message has the commands that clone all of them), or
            a file is missing or has another form.
    """
    wanted = list(sources)
    missing = dict.fromkeys(
        source.repository for source in wanted if not (folder / source.repository).is_dir()
    )
    if missing:
        commands = (
            f"git clone --depth 1 https://github.com/{repository} {folder / repository}"
            for repository in missing
        )
        raise ValueError(f"{len(missing)} checkouts are missing. Run: {' && '.join(commands)}")
    found: list[TrainingRow] = []
    for source in wanted:
        rows = list(_rows(source, folder / source.repository))
        if not rows:
            raise ValueError(f"{source.name}: no row in {folder / source.repository}")
        found += rows
    return found


def _rows(source: Source, checkout: Path) -> Iterator[TrainingRow]:
    try:
        for passages, claim, label, question in source.read(checkout):
            passages, claim = passages.strip(), " ".join(claim.split())
            row = TrainingRow(passages, claim, label, source.name, question, source.weight)
            long_enough = len(row.shown.split()) >= _CLAIM_WORDS
            if (
                0 < len(passages.split()) <= MOST_WORDS
                and claim
                and long_enough
                and len(claim) <= _CLAIM_CHARACTERS
            ):
                yield row
    except (
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        csv.Error,
        zipfile.BadZipFile,
    ) as error:
        told = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{source.name}: a file in {checkout} has another form than expected ({told})"
        ) from error


# -- natural language inference --------------------------------------------------------------------


def _fever(checkout: Path) -> Iterator[Example]:
    folder = checkout / "RTE-Fever" / "processed"
    for premise, claim, label in _columns(folder, "dev.raw.input0", "dev.raw.input1", "dev.label"):
        yield Example(
            _plain(premise), _plain(claim), "support" if label == "entailment" else "unsupported"
        )


def _snli(checkout: Path) -> Iterator[Example]:
    folder = checkout / "dataset" / "eSNLI"
    for part in ("dev", "test"):
        for premise, claim, label in _columns(folder, f"s1.{part}", f"s2.{part}", f"labels.{part}"):
            yield from _inferred(_plain(premise), _plain(claim), label)


def _mnli(checkout: Path) -> Iterator[Example]:
    for row in _table(checkout / "data" / "MNLI" / "Corrupt-Test" / "MNLI-NUM.tsv", quoted=False):
        yield from _inferred(_plain(row["sentence1"]), _plain(row["sentence2"]), row["gold_label"])


def _conjnli(checkout: Path) -> Iterator[Example]:
    for row in _table(checkout / "data" / "NLI" / "adversarial_train_15k.tsv", quoted=False):
        yield from _inferred(row["Premise"], row["Hypothesis"], row["Label"])


def _counterfactual(checkout: Path) -> Iterator[Example]:
    for part in ("train", "dev"):
        for row in _table(checkout / "NLI" / "all_combined" / f"{part}.tsv"):
            yield from _inferred(row["sentence1"], row["sentence2"], row["gold_label"])


def _control(checkout: Path) -> Iterator[Example]:
    for part in ("dev", "test"):
        for row in load_lines(checkout / "data" / f"{part}.jsonl"):
            yield from _inferred(row["premise"], row["hypothesis"], str(row["label"]))


_PAIR = re.compile(
    r'<pair[^>]*?(?:value|entailment)="(\w+)"[^>]*>\s*<t>(.*?)</t>\s*<h>(.*?)</h>', re.DOTALL
)


def _rte(checkout: Path) -> Iterator[Example]:
    with zipfile.ZipFile(checkout / "packages" / "corpora" / "rte.zip") as packed:
        for name in sorted(one for one in packed.namelist() if one.endswith(".xml")):
            for said, premise, claim in _PAIR.findall(packed.read(name).decode("utf-8", "replace")):
                label: Label = "support" if said.upper() in ("TRUE", "YES") else "unsupported"
                yield Example(unescape(premise), unescape(claim), label)


def _infotabs(checkout: Path) -> Iterator[Example]:
    folder = checkout / "data"
    rows = _table(folder / "maindata" / "infotabs_train.tsv", quoted=False)
    for at, row in enumerate(rows):
        table = load(folder / "tables" / "json" / f"{row['table_id']}.json")
        yield from _inferred(_box(table, at % 3), row["hypothesis"], row["label"])


def _box(table: dict[str, list[str]], form: int) -> str:
    """Return a box of facts as lines, as a table or as JSON."""
    title, *lines = (
        f"{name}: {', '.join(values)}"
        for name, values in sorted(table.items(), key=lambda item: item[0] != "title")
    )
    title = title.removeprefix("title: ")
    if form == 0:
        return "\n".join((title, *lines))
    if form == 1:
        cells = (f"| {' | '.join(line.split(': ', 1))} |" for line in lines)
        return "\n".join((f"| {title} | |", "|---|---|", *cells))
    return json.dumps(table, ensure_ascii=False)


def _farstail(checkout: Path) -> Iterator[Example]:
    for row in _table(checkout / "data" / "Train-word.csv"):
        yield from _inferred(row["premise"], row["hypothesis"], row["label"])


def _indonli(checkout: Path) -> Iterator[Example]:
    for row in load_lines(checkout / "data" / "indonli" / "train.jsonl"):
        yield from _inferred(row["premise"], row["hypothesis"], row["label"])


def _jnli(checkout: Path) -> Iterator[Example]:
    for row in load_lines(checkout / "datasets" / "jnli-v1.3" / "valid-v1.3.json"):
        yield from _inferred(row["sentence1"], row["sentence2"], row["label"])


# -- claims and evidence ---------------------------------------------------------------------------


def _covidfact(checkout: Path) -> Iterator[Example]:
    for row in load_lines(checkout / "COVIDFACT_dataset.jsonl"):
        label: Label = "support" if row["label"] == "SUPPORTED" else "unsupported"
        yield Example(" ".join(row["evidence"]), row["claim"], label)


def _healthver(checkout: Path) -> Iterator[Example]:
    labels: dict[str, Label] = {
        "Supports": "support",
        "Refutes": "contradict",
        "Neutral": "neutral",
    }
    for part in ("dev", "test"):
        for row in _table(checkout / "data" / f"healthver_{part}.csv", separator=","):
            yield Example(row["evidence"], row["claim"], labels[row["label"]])


def _climate_fever(checkout: Path) -> Iterator[Example]:
    labels: dict[str, Label] = {
        "SUPPORTS": "support",
        "REFUTES": "contradict",
        "NOT_ENOUGH_INFO": "neutral",
    }
    for row in load_lines(checkout / "dataset" / "climate-fever.jsonl"):
        for evidence in row["evidences"]:
            label = labels[evidence["evidence_label"]]
            yield Example(evidence["evidence"], row["claim"], label)


def _begin(checkout: Path) -> Iterator[Example]:
    names = (
        *("wow/begin_dev_wow.tsv", "wow/begin_test_wow.tsv"),
        *("cmu-dog/begin_dev_cmu.tsv", "topicalchat/begin_dev_tc.tsv"),
    )
    for name in names:
        for row in _table(checkout / name, quoted=False):
            said = row["begin_label"].lower()
            if said and "generic" not in said:  # a generic reply states nothing to judge
                label: Label = "support" if said.startswith("fully") else "unsupported"
                yield Example(row["knowledge"], row["response"], label)


def _fool_me_twice(checkout: Path) -> Iterator[Example]:
    folder = checkout / "dataset"
    for row in fool_me_twice.read(_files(folder / "dev.jsonl", folder / "test.jsonl")):
        # The sentences that decide stand among up to three that a search found, so that a judge
        # learns to find them.
        rng = random.Random(row.key)
        evidence = list(row.contexts[: int(str(row.metadata["gold"])) + rng.randint(0, 3)])
        rng.shuffle(evidence)
        yield from _answered(row, "\n\n".join(evidence), wrong="contradict")


def _fever_symmetric(checkout: Path) -> Iterator[Example]:
    path = checkout / "symmetric_v0.2" / "fever_symmetric_dev.jsonl"
    for row in fever_symmetric.read(_files(path)):
        yield from _answered(row, _plain(row.contexts[0]), wrong="contradict")


def _factcheck_bench(checkout: Path) -> Iterator[Example]:
    labels: dict[str | None, Label] = {
        "completely-support": "support",
        "partially-support": "unsupported",
        "refute": "contradict",
        "irrelevant": "neutral",
    }
    path = checkout / "subtasks" / "subtask3_claim_evidence_stance.jsonl"
    for row in factcheck_bench.read(_files(path)):
        yield Example(row.contexts[0], row.answers[0].text, labels[row.answers[0].label])


_AROUND, _MOST_EVIDENCE = 4, 500


def _wice(checkout: Path) -> Iterator[Example]:
    path = checkout / "data" / "entailment_retrieval" / "claim" / "dev.jsonl"
    for row in wice.read(_files(path)):
        sentences, chosen = row.metadata["evidence"], row.metadata["supporting_sentences"]
        assert isinstance(sentences, list)
        assert isinstance(chosen, list)
        # The page around the sentences that the first annotator chose, if any, and around three
        # others, so that pages that support nothing look no different.
        first = chosen[0] if chosen else []
        assert isinstance(first, list)
        rng = random.Random(row.key)
        places = [*map(int, map(str, first)), *(rng.randrange(len(sentences)) for _ in range(3))]
        for around in (_AROUND, 1, 0):
            kept = {
                near
                for place in places
                for near in range(place - around, place + around + 1)
                if 0 <= near < len(sentences)
            }
            passages = " ".join(str(sentences[place]) for place in sorted(kept))
            if len(passages.split()) <= _MOST_EVIDENCE:
                break
        yield from _answered(row, passages)


# -- answers and summaries -------------------------------------------------------------------------


def _summedits(checkout: Path) -> Iterator[Example]:
    folder = checkout / "data" / "summedits"
    domains = ("samsum", "sales_email", "scitldr", "sales_call")
    for row in summedits.read(_files(*(folder / f"summedits_{name}.json" for name in domains))):
        yield from _answered(row, row.contexts[0])


def _halueval(checkout: Path) -> Iterator[Example]:
    for row in halueval.QA.read(_files(checkout / "data" / "qa_data.json")):
        yield from _answered(row, row.contexts[0])


_LANGUAGES = ("en", "de", "es", "ru", "zh", "ar", "hi", "tr", "vi", "el", "th", "ro")


def _xquad(checkout: Path) -> Iterator[Example]:
    for language in _LANGUAGES:
        for article in load(checkout / f"xquad.{language}.json")["data"]:
            for paragraph in article["paragraphs"]:
                asked = [(one["question"], one["answers"][0]["text"]) for one in paragraph["qas"]]
                for question, answer in asked:
                    yield Example(paragraph["context"], answer, "support", question)
                    # The answer to a question that begins alike is a wrong answer that looks right.
                    others = [other for _, other in asked if other != answer]
                    alike = [
                        other
                        for its, other in asked
                        if other != answer and its.split()[:1] == question.split()[:1]
                    ]
                    if others:
                        wrong = (alike or others)[0]
                        yield Example(paragraph["context"], wrong, "contradict", question)


# -- reading files ---------------------------------------------------------------------------------


def _inferred(passages: str, claim: str, said: str) -> Iterator[Example]:
    """Yield an example, unless the annotators found no label that most of them agree with."""
    label = _NLI.get(said.strip().lower())
    if label is not None:
        yield Example(passages, claim, label)


def _answered(row: LabelledRow, passages: str, wrong: Label = "unsupported") -> Iterator[Example]:
    """Yield an example for each answer of a row that demur's own reader read."""
    for answer in row.answers:
        label: Label = wrong if answer.hallucinated else "support"
        yield Example(passages, answer.text, label, row.question)


def _files(*paths: Path) -> dict[str, Path]:
    return {path.name: path for path in paths}


def _columns(folder: Path, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield the lines of files that stand side by side, as one row each."""
    columns = [text(folder / name).split("\n") for name in names]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"{folder}: {', '.join(names)} have different numbers of lines")
    yield from zip(*columns, strict=True)


def _table(path: Path, separator: str = "\t", quoted: bool = True) -> Iterator[dict[str, str]]:
    """Yield the rows of a table; an empty cell is an empty text."""
    reader = csv.DictReader(
        io.StringIO(text(path), newline=""),
        delimiter=separator,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        restval="",
    )
    yield from reader


def _plain(tokenised: str) -> str:
    """Return a text whose words and signs were set apart as people write it."""
    for token, sign in _TOKENS.items():
        tokenised = tokenised.replace(token, sign)
    return tokenised


_WIKIPEDIA = "CC BY-SA 3.0"
_SOURCES = (
    Source("fever", "asaakyan/covidfact", _WIKIPEDIA, 1.0, _fever),
    Source("snli", "OanaMariaCamburu/e-SNLI", "CC BY-SA 4.0", 0.15, _snli),
    Source("mnli", "Helsinki-NLP/nli-data-sanity-check", "as MultiNLI", 0.6, _mnli),
    Source("conjnli", "swarnaHub/ConjNLI", "MIT", 0.35, _conjnli),
    Source(
        "counterfactual",
        "acmi-lab/counterfactually-augmented-data",
        "Apache-2.0",
        0.25,
        _counterfactual,
    ),
    Source("control", "csitfun/ConTRoL-dataset", "none stated", 0.8, _control),
    Source("rte", "nltk/nltk_data", "as the challenges", 1.0, _rte),
    Source("infotabs", "infotabs/infotabs", "Apache-2.0", 0.3, _infotabs),
    Source("farstail", "dml-qom/FarsTail", "Apache-2.0", 0.15, _farstail),
    Source("indonli", "ir-nlp-csui/indonli", "CC BY-SA", 0.15, _indonli),
    Source("jnli", "yahoojapan/JGLUE", "CC BY-SA 4.0", 0.25, _jnli),
    Source("covidfact", "asaakyan/covidfact", "none stated", 0.4, _covidfact),
    Source("healthver", "sarrouti/HealthVer", "none stated", 0.8, _healthver),
    Source("climate-fever", "tdiggelm/climate-fever-dataset", "none stated", 0.4, _climate_fever),
    Source("begin", "google/BEGIN-dataset", _WIKIPEDIA, 0.4, _begin),
    Source(
        "fool-me-twice",
        "google-research/fool-me-twice",
        f"Apache-2.0; {_WIKIPEDIA} (text)",
        1.0,
        _fool_me_twice,
    ),
    Source(
        "fever-symmetric",
        "TalSchuster/FeverSymmetric",
        f"MIT; {_WIKIPEDIA} (text)",
        1.0,
        _fever_symmetric,
    ),
    Source("factcheck-bench", "yuxiaw/Factcheck-GPT", "Apache-2.0", 1.0, _factcheck_bench),
    Source("wice", "ryokamoi/wice", "ODC-BY; CC BY-SA and Common Crawl (text)", 1.0, _wice),
    Source("summedits", "salesforce/factualNLG", "Apache-2.0", 1.0, _summedits),
    Source("halueval-qa", "RUCAIBox/HaluEval", "MIT", 0.1, _halueval),
    Source("xquad", "google-deepmind/xquad", "CC BY-SA 4.0", 0.15, _xquad),
)
SOURCES = {source.name: source for source in _SOURCES}
"""All sources, by name."""
