"""Write best answers as training data: the files that TRL's SFTTrainer reads."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

from demur._system import make_private_folder, new_files
from demur._text import replace_surrogates, words
from demur.exemplars.entries import Entry, is_text

Form = Literal["prompt-completion", "messages", "text-prompt-completion"]
"""What a line has, in TRL's terms: a conversation that is split before the answer, a whole
conversation, or plain text that is split before the answer."""

_TRAIN, _TEST = "train.jsonl", "test.jsonl"


@dataclass(frozen=True)
class Exported:
    """Describe what `export_finetuning` wrote, and what it left out."""

    train: int
    """The number of questions in train.jsonl, one a line."""
    test: int
    """The number of questions in test.jsonl, one a line."""
    unscored: int
    """The number of questions left out because none of their answers has a score of the store's
    scorer. `rescore` gives them one."""
    below: int
    """The number of questions left out because their best answer scores below `min_score`."""
    single: int
    """The number of written questions with only one scored answer, so that there was no choice."""
    tied: int
    """The number of written questions whose two best answers have the same score, so that the
    choice between them means nothing."""
    lowest: float
    """The lowest of the scores of the answers written; `mean` and `highest` are of these too."""
    mean: float
    highest: float
    margin: float | None
    """The mean difference of best and second-best score, at least 0, over the written questions
    with two or more scored answers; None if there are none."""
    longest: int
    """The number of characters of the longest answer written. A trainer cuts texts over its limit
    of tokens."""


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

    The files are for label-free fine-tuning (version 1, section 5.2 and D.6; version 2, section 5.2
    and D.12). A model is trained on the answers that score best, without a gold answer, and 20 % of
    the questions are kept for the test. The words of a question alone decide to which file it goes
    (`in_test`).

    A line has one of these forms:

    - "prompt-completion", for a model with a chat template:
      {"prompt": [{"role": "user", ...}], "completion": [{"role": "assistant", ...}]}. With any
      template, only the answer counts for the loss.
    - "messages", the same as {"messages": [...]}. In TRL, the question counts for the loss too,
      unless you configure it otherwise and it knows the template.
    - "text-prompt-completion", for a model without a template:
      {"prompt": "Question: ...\nAnswer:", "completion": " ..."}.

    Entries are read once and are not kept in memory. Both files are put into place together at the
    end. The same entries in the same order give the same bytes. Texts stay as they are, except for
    lone surrogates.

    Args:
        entries: The entries, such as `store.entries()`; all scored by the same scorer.
        folder: The folder, which is made if it does not exist. Files of an earlier export are
            replaced.
        form: The form of a line.
        test_share: The expected share of questions in test.jsonl, in (0, 1).
        min_score: The least score of an answer to be written. None: any score.
        system: A system message before each question. In plain text, it is a paragraph.

    Raises:
        ValueError: An argument is out of its range; an entry has no question, or its candidates are
            not best first; the entries are of several scorers; or a file would be empty, for which
            loaders raise an error without an explanation. The files of an earlier export then stay.
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
    make_private_folder(path)
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
    """Return whether a question belongs to the test file.

    This depends only on the hash of the question's words, and not on other questions, the order or
    the answers. Case, punctuation, white space and Unicode's variants of the same letter do not
    count. So variants of a question are in the same file, but paraphrases need not be. A question
    that is in the test file with one share is also there with every larger share.

    Raises:
        ValueError: `test_share` is not in (0, 1).
    """
    _check_share(test_share)
    folded = unicodedata.normalize("NFKC", question.casefold())
    # A question that has only signs is identified by its signs.
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
    # The space belongs to the completion, since most vocabularies have it in the word's token.
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
    """Hold the figures of a question that was written."""

    held_out: bool
    scorer: str
    score: float
    margin: float | None
    """The difference of best and second-best score; None if there is only one score."""
    characters: int

    @classmethod
    def of(cls, entry: Entry, held_out: bool) -> _Written:
        """Return the figures of an entry that has a best answer."""
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
    """Return the figures of all written questions.

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
        longest=max(one.characters for one in written),
    )


def _check(entry: Entry) -> None:
    """Raise ValueError for an entry without a question, or not sorted best first."""
    if not is_text(entry.question):
        raise ValueError(f"entries: expected a question, got {entry.question!r}")
    scores = [candidate.score for candidate in entry.candidates]
    if scores != sorted(scores, reverse=True):
        raise ValueError(
            f"entries: expected the candidates of {entry.question[:80]!r} best first, got the "
            f"scores {scores}"
        )
