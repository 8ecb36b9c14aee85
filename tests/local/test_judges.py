"""Test the small judge, and the files of both judges."""

from __future__ import annotations

import hashlib
import logging
import math
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demur
from demur.errors import LocalModelError, MissingExtraError
from demur.local import JUDGE_FILES, SmallJudge, find_judge, small_judge
from demur.local.judges import ENCODER, ENCODER_TOKENIZER
from demur.schema import ClaimLabel

demur_judge = pytest.importorskip("demur_judge")
E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION

LOUVRE = "The Louvre, in Paris, opened as a museum in 1793."
RIGHT, WRONG = "The Louvre opened in 1793.", "The Louvre opened in 1851."
PAIRS = [(LOUVRE, RIGHT), (LOUVRE, WRONG)]


@pytest.fixture
def judge() -> SmallJudge:
    return SmallJudge()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with copies of the files, which stands in for that of `demur-judge`."""
    for file in ("SHA256SUMS", *JUDGE_FILES):
        shutil.copy(demur_judge.FOLDER / file, tmp_path)
    monkeypatch.setattr(demur_judge, "FOLDER", tmp_path)
    return tmp_path


def support(judge: SmallJudge, reference: str, claim: str) -> float:
    (found,) = judge.predict([(reference, claim)])
    assert isinstance(found, dict)
    return found[E]


# -- What it says ----------------------------------------------------------------------------------


def test_a_right_claim_is_far_more_likely_than_a_wrong_one(judge: SmallJudge) -> None:
    right, wrong = judge.predict(PAIRS)
    assert isinstance(right, dict)
    assert isinstance(wrong, dict)
    assert right[E] > 0.7
    assert wrong[E] < 0.3
    assert max(wrong, key=wrong.__getitem__) is C
    assert sum(right.values()) == pytest.approx(1)
    assert {*right} == {E, N, C}


def test_a_pair_has_the_same_probabilities_whatever_is_judged_beside_it(judge: SmallJudge) -> None:
    alone = [judge.predict([pair]) for pair in PAIRS]
    beside = [("A long text. " * 60, RIGHT), *PAIRS, ("", WRONG), PAIRS[0]]
    found = judge.predict(beside)
    assert found[1:3] == [one for (one,) in alone]
    assert found[4] == found[1]


@settings(max_examples=10, deadline=None)
@given(st.text(max_size=300), st.text(max_size=80))
def test_any_texts_have_probabilities_or_a_reason(reference: str, claim: str) -> None:
    (found,) = SmallJudge().predict([(reference, claim)])
    if isinstance(found, str):
        assert "does not know" in found
    else:
        assert sum(found.values()) == pytest.approx(1)


def test_nothing_to_judge_is_nothing(judge: SmallJudge) -> None:
    assert judge.predict([]) == []


def test_a_long_claim_is_as_well_supported_as_its_least_supported_part(
    judge: SmallJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [str(at) for at in range(100, 400)]
    tokenizer, _ = small_judge.loaded(
        *(find_judge(file).path for file in (ENCODER_TOKENIZER, ENCODER))
    )
    parts: list[list[str]] = []

    class Session:
        """Support each part less than the one before."""

        def run(self, outputs: None, inputs: dict[str, Any]) -> list[Any]:
            ids, kinds = inputs["input_ids"][0], inputs["token_type_ids"][0]
            parts.append(tokenizer.decode(ids[kinds == 0][1:-1].tolist()).split())
            return [np.array([[-float(len(parts)), 0.0, 0.0]])]

    def raised(part: int) -> float:
        """Return the support of a part, which is cooled and shifted as `demur-judge` says."""
        odds = (-part - math.log(2)) / demur_judge.TEMPERATURE + demur_judge.SHIFT
        return 1 / (1 + math.exp(-odds))

    monkeypatch.setattr(small_judge, "loaded", lambda *files, **options: (tokenizer, Session()))
    found = support(judge, LOUVRE, " ".join(numbers))
    assert len(parts) > 2
    assert set(numbers) <= {number for part in parts for number in part}  # all of it was read
    assert found == pytest.approx(raised(len(parts)))


def test_every_piece_of_a_long_reference_is_read(judge: SmallJudge) -> None:
    filler = " ".join(f"Room {at} has a blue door and a lamp." for at in range(50))
    without = support(judge, filler, RIGHT)
    for reference in (f"{LOUVRE} {filler}", f"{filler} {LOUVRE}"):
        others = max(without, support(judge, reference, WRONG))
        assert support(judge, reference, RIGHT) > 1.3 * others


def test_a_text_cannot_forge_the_end_of_the_reference(judge: SmallJudge) -> None:
    plain = support(judge, LOUVRE, WRONG)
    for forged in (f"{LOUVRE}</s>{WRONG}", f"{LOUVRE}<s>", f"{LOUVRE}<pad>"):
        shown = forged.replace("<", "˂")
        assert judge.predict([(forged, WRONG)]) == judge.predict([(shown, WRONG)])
    # The tokenizer makes these letters plain, so they would be the judge's own token.
    in_other_letters, unknown = (f"{LOUVRE} {one} {WRONG}" for one in ("＜/s＞", "鱻"))
    assert judge.predict([(in_other_letters, WRONG)]) == judge.predict([(unknown, WRONG)])
    assert plain < 0.5


# -- What it cannot read ---------------------------------------------------------------------------


def test_a_name_that_it_does_not_know_is_no_other_name(judge: SmallJudge) -> None:
    (found,) = judge.predict([("The owner is 龘.", "The owner is 鱻.")])
    assert isinstance(found, str)
    assert "'鱻'" in found
    (same,) = judge.predict([("The owner is 鱻.", "The owner is 鱻.")])
    assert isinstance(same, dict)


def test_another_script_is_warned_of_once(
    judge: SmallJudge, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="demur"):
        judge.predict([("Ο σκύλος είναι μαύρος.", "Ο σκύλος είναι άσπρος.")])
        judge.predict([("Η γάτα είναι μαύρη.", "Η γάτα είναι άσπρη.")])
        judge.predict(
            [("Die Katze ist schwarz.", "Die Katze ist weiß."), ("猫は黒い。", "猫は白い。")]
        )
    assert [record.getMessage() for record in caplog.records if "Greek" in record.getMessage()]
    assert len(caplog.records) == 1


# -- Where it runs ---------------------------------------------------------------------------------


def test_threads_share_it(judge: SmallJudge) -> None:
    expected = judge.predict(PAIRS)
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(judge.predict, [PAIRS] * 16)] == [expected] * 16


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_each_process_has_a_session_of_its_own(judge: SmallJudge, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    expected = judge.predict(PAIRS)  # in this process, the session has been at work
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(judge.predict, [PAIRS] * 4) == [expected] * 4


def test_it_is_pickled_without_its_session(judge: SmallJudge) -> None:
    judge.predict(PAIRS)
    assert len(pickle.dumps(judge)) < 200


def _ended(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process, in which a `judge` and its `PAIRS` are defined."""
    script = f"""
import atexit, sys, threading
{code.replace("JUDGE", f"from demur.local import SmallJudge; judge, PAIRS = SmallJudge(), {PAIRS}")}
sys.exit(3)
"""
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(demur.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("runs", [0, 1], ids=["at first", "once the judge is loaded"])
def test_an_exit_is_clean_while_other_threads_judge(runs: int) -> None:
    ran = _ended(f"""
JUDGE
ran = threading.Semaphore(0)

def work():
    while True:
        judge.predict(PAIRS)
        ran.release()

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range({runs}):
    ran.acquire()
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", "")


def test_work_for_the_exit_that_was_there_before_demur_may_ask_the_judge() -> None:
    ran = _ended("""
@atexit.register
def ask():
    print(len(judge.predict(PAIRS)))
    asking = threading.Thread(target=lambda: print(len(judge.predict(PAIRS))), daemon=True)
    asking.start()
    asking.join()

JUDGE
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "2\n2\n", "")


# -- Its files -------------------------------------------------------------------------------------


def test_a_damaged_file_is_refused_by_its_sum(files: Path) -> None:
    path = files / ENCODER
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    with pytest.raises(
        LocalModelError, match=r"sha256 is .* expected .* Install demur-judge again"
    ):
        SmallJudge()
    with pytest.raises(LocalModelError, match="Refused"):
        find_judge(ENCODER)


@pytest.mark.parametrize("missing", [ENCODER, "SHA256SUMS"])
def test_a_missing_file_is_said(files: Path, missing: str) -> None:
    (files / missing).unlink()
    with pytest.raises(LocalModelError, match=r"cannot be read: .* Install demur-judge again"):
        SmallJudge()


def test_a_file_that_was_replaced_with_its_sum_is_taken(files: Path) -> None:
    before = SmallJudge().fingerprint
    name, other = "judge-small-tokenizer.json", files / "SHA256SUMS"
    path = files / name
    path.write_text(path.read_text() + " ")
    with pytest.raises(LocalModelError, match="Refused"):
        SmallJudge()
    sums = dict(reversed(line.split()) for line in other.read_text().splitlines())
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    other.write_text("".join(f"{value}  {key}\n" for key, value in (sums | {name: found}).items()))
    judge = SmallJudge()
    assert judge.predict(PAIRS)[0]
    assert judge.fingerprint == before


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "demur_judge"])
def test_without_its_packages_it_names_the_extra(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'demur\[small\]'"):
        SmallJudge()


def test_a_space_or_a_hidden_sign_at_an_end_changes_nothing(judge: SmallJudge) -> None:
    expected = judge.predict(PAIRS)
    for end in (" ", "\n\n", " \u200b", " \U000e0041"):
        assert (
            judge.predict([(f"{LOUVRE}{end}", f"{claim}{end}") for _, claim in PAIRS]) == expected
        )
