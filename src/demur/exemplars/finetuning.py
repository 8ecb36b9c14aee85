"""Best answers as training data: the files that TRL's SFTTrainer reads, split by question."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

from demur import _owner_only as private
from demur._jsonl import new_files
from demur._text import replace_surrogates, words
from demur.exemplars.entries import Entry, is_text

Form = Literal["prompt-completion", "messages", "text-prompt-completion"]
"""What a line holds, in TRL's terms: a conversation cut before the answer, a whole conversation, or
plain text cut before the answer."""

_TRAIN, _TEST = "train.jsonl", "test.jsonl"


@dataclass(frozen=True)
class Exported:
    """What `export_finetuning` wrote, and what it left out."""

    train: int
    """Questions in train.jsonl, one a line."""
    test: int
    """Questions in test.jsonl."""
    unscored: int
    """Questions left out, since none of their answers has a score of the store's scorer: `rescore`
    gives them one."""
    below: int
    """Questions left out, since their best answer scores below `min_score`."""
    single: int
    """Of those written, questions with one scored answer: nothing was chosen there."""
    tied: int
    """Of those written, questions whose two best answers have the same score: which of them was
    taken says nothing."""
    lowest: float
    """Of the scores of the answers written."""
    mean: float
    highest: float
    margin: float | None
    """The mean of best score less second best, at least 0, over the questions written with two
    scored answers or more; None when there are none of them."""
    characters: int
    """Of all answers written."""
    longest: int
    """Characters of the longest answer written: a trainer cuts what is over its limit of tokens."""


def export_finetuning(
    entries: Iterable[Entry],
    folder: str | Path,
    *,
    form: Form = "prompt-completion",
    test_share: float = 0.2,
    min_score: float | None = None,
    system: str | None = None,
) -> Exported:
    r"""Write each question's best answer to `folder`/train.jsonl or `folder`/test.jsonl.

    Label-free fine-tuning (version 1, section 5.2 and D.6; version 2, section 5.2 and D.12): a
    model is trained on the answers that score best, without a gold answer, and 20 % of the
    questions are kept for the test. On which side a question falls depends on its words alone, see
    `in_test`.

    The forms, per line:

    - "prompt-completion", for a model with a chat template:
      {"prompt": [{"role": "user", ...}], "completion": [{"role": "assistant", ...}]}. The loss is
      that of the answer, with any template.
    - "messages", the same as {"messages": [...]}: TRL counts the question's loss too, unless it is
      told otherwise and knows the template.
    - "text-prompt-completion", for a model without a template:
      {"prompt": "Question: ...\nAnswer:", "completion": " ..."}.

    Entries are read once and none is kept. Both files are put into place at the end, together; the
    same entries in the same order give the same bytes. Texts stay as they are, but for lone
    surrogates.

    Args:
        entries: Such as `store.entries()`; all scored by one scorer.
        folder: Made if it is not there. Files of an earlier export are replaced.
        form: What a line holds.
        test_share: The share of questions for test.jsonl, in (0, 1): in expectation.
        min_score: The least score of an answer to be written; None: any.
        system: A system message before each question; in plain text, a paragraph.

    Raises:
        ValueError: An argument is out of range; an entry is without a question, or not best first;
            entries are of several scorers; or a file would be empty, of which loaders make an error
            without words. What stood in the folder is then still there.
        OSError: The files cannot be written.
    """
    if form not in _LINES:
        raise ValueError(f"form: expected one of {', '.join(get_args(Form))}, got {form!r}")
    _check_share(test_share)
    if min_score is not None and not math.isfinite(min_score):
        raise ValueError(f"min_score: expected a finite number or None, got {min_score}")
    if system is not None and not system.strip():
        raise ValueError(f"system: expected a text or None, got {system!r}")
    path = Path(folder).expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError(f"folder: expected a folder to write to, but {path} is a file")
    private.make_folder(path)
    line, written, unscored, below = _LINES[form], list[_Written](), 0, 0
    with new_files(path / _TRAIN, path / _TEST) as (train, test):
        for entry in entries:
            _check(entry)
            best = entry.best
            if best is None:
                unscored += 1
            elif min_score is not None and best.score < min_score:
                below += 1
            else:
                one = _Written.of(entry, in_test(entry.question, test_share))
                _check_scorer(one, written, entry.question)
                (test if one.held_out else train)(line(entry.question, best.answer, system))
                written.append(one)
        return _exported(written, unscored, below, min_score, test_share)


def in_test(question: str, test_share: float = 0.2) -> bool:
    """Whether a question falls to the test side of the split.

    That depends on the hash of its words and on nothing else: not on other questions, on the order
    or on the answers. Case, punctuation, white space and Unicode's ways to write one letter do not
    count, so variants of a question fall on one side; paraphrases need not. What is for the test
    with one share is so with every larger one.

    Raises:
        ValueError: `test_share` is not in (0, 1).
    """
    _check_share(test_share)
    folded = unicodedata.normalize("NFKC", question.casefold())
    # A question without words, of signs alone, is known by its signs.
    key = " ".join(word for word, _, _ in words(folded)) or "".join(folded.split())
    digest = hashlib.sha256(replace_surrogates(key).encode()).digest()
    return int.from_bytes(digest[:8], "big") < test_share * 2**64


def _check_share(test_share: float) -> None:
    if not 0 < test_share < 1:
        raise ValueError(
            f"test_share: expected a number between 0 and 1, both excluded, got {test_share}"
        )


# --- Lines ----------------------------------------------------------------------------------------


def _prompt_completion(question: str, answer: str, system: str | None) -> dict[str, Any]:
    return {"prompt": _request(question, system), "completion": [_message("assistant", answer)]}


def _messages(question: str, answer: str, system: str | None) -> dict[str, Any]:
    return {"messages": [*_request(question, system), _message("assistant", answer)]}


def _text_prompt_completion(question: str, answer: str, system: str | None) -> dict[str, Any]:
    before = "" if system is None else f"{system}\n\n"
    # The space belongs to the completion, since in most vocabularies it is part of a word's token.
    return {"prompt": f"{before}Question: {question}\nAnswer:", "completion": f" {answer}"}


def _request(question: str, system: str | None) -> list[dict[str, str]]:
    first = [] if system is None else [_message("system", system)]
    return [*first, _message("user", question)]


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


_LINES: Mapping[str, Callable[[str, str, str | None], dict[str, Any]]] = {
    "prompt-completion": _prompt_completion,
    "messages": _messages,
    "text-prompt-completion": _text_prompt_completion,
}


# --- Figures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Written:
    """What is counted of a question that was written."""

    held_out: bool
    scorer: str
    score: float
    margin: float | None
    """Best score less second best; None where there is one only."""
    characters: int

    @classmethod
    def of(cls, entry: Entry, held_out: bool) -> _Written:
        """Of an entry with a best answer."""
        best, *others = entry.candidates
        margin = float(best.score) - float(others[0].score) if others else None
        return cls(held_out, best.scorer, float(best.score), margin, len(best.answer))


def _check_scorer(one: _Written, written: Sequence[_Written], question: str) -> None:
    if written and one.scorer != written[0].scorer:
        raise ValueError(
            f"entries: expected scores of one scorer, got {written[0].scorer} and, for "
            f"{question[:80]!r}, {one.scorer}, which cannot be compared: export each store to a "
            "folder of its own, or rescore one of them"
        )


def _exported(
    written: Sequence[_Written],
    unscored: int,
    below: int,
    min_score: float | None,
    test_share: float,
) -> Exported:
    """The figures.

    Raises:
        ValueError: A file would be empty.
    """
    if not written:
        left_out = (
            f"{unscored} without a score of the store's scorer (rescore gives them one), "
            f"{below} below min_score={min_score}"
        )
        raise ValueError(f"entries: expected a question with a scored answer, got {left_out}")
    held_out = sum(one.held_out for one in written)
    if held_out in (0, len(written)):
        empty, change = (_TRAIN, "smaller") if held_out else (_TEST, "larger")
        raise ValueError(
            f"{empty} would be empty: by their hashes, all of {len(written)} questions fall to the "
            f"other side with test_share={test_share}. Give a {change} share, or more questions"
        )
    scores = [one.score for one in written]
    margins = [one.margin for one in written if one.margin is not None]
    return Exported(
        train=len(written) - held_out,
        test=held_out,
        unscored=unscored,
        below=below,
        single=len(written) - len(margins),
        tied=margins.count(0.0),
        lowest=min(scores),
        mean=fmean(scores),
        highest=max(scores),
        margin=fmean(margins) if margins else None,
        characters=sum(one.characters for one in written),
        longest=max(one.characters for one in written),
    )


def _check(entry: Entry) -> None:
    """Refuse an entry that was not made by a store, and has no best answer or no question."""
    if not is_text(entry.question):
        raise ValueError(f"entries: expected a question, got {entry.question!r}")
    scores = [candidate.score for candidate in entry.candidates]
    if scores != sorted(scores, reverse=True):
        raise ValueError(
            f"entries: expected the candidates of {entry.question[:80]!r} best first, got the "
            f"scores {scores}"
        )
