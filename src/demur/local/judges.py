"""Find the files of demur's own two judges, and the small judge's fits, in `demur-judge`.

A file of the judges is changed in that distribution; a GGUF or a cross-encoder of a user's own
needs no change here: `ChatLocal(gguf=...)`, `RefChecker(..., checker="org/name")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demur.errors import LocalModelError, needs
from demur.local.weights import Weights, hashed
from demur.runtime.prompting import Prompt

ENCODER = "judge-small-int8.onnx"
ENCODER_TOKENIZER = "judge-small-tokenizer.json"
ADAPTER = "judge-1.5b-lora-r16-f16.gguf"
GRAPH = "judge-1.5b-8bit.onnx"
JUDGE_FILES = {
    ENCODER: "demur's small judge, a cross-encoder on ONNX, 8 bits",
    ENCODER_TOKENIZER: "the tokenizer of the small judge",
    ADAPTER: "demur's adapter for the chat model, with which it judges claims",
    GRAPH: "how the chat model with the adapter is computed, without weights",
}
"""The files of `demur-judge`, each with what it is."""
ADAPTED = Prompt(
    system="You compare a claim with a reference. Use only the reference, not what you know. Reply "
    "with one word: Entailment, Contradiction or Neutral.",
    # With the question, the adapter rejects right claims, as of an answer about two museums.
    fields=("reference", "claim"),
)
"""The prompt that the adapter was trained with. Another one would ask it for what it has not
learnt."""
SERVED_NAME = "demur-judge"
"""The name under which an endpoint serves the adapter."""
SERVED_KEY = "DEMUR_JUDGE_KEY"
"""The environment variable that holds the key of such an endpoint."""
_AGAIN = "Install demur-judge again: pip install --force-reinstall demur-judge"


def find_judge(file: str) -> Weights:
    """Return a file of `demur-judge`, and its sha256, which was verified.

    Raises:
        MissingExtraError: `demur-judge` is not installed.
        LocalModelError: The file is missing, or its sha256 is not the one in `SHA256SUMS`.
    """
    folder = judge_folder()
    path = folder / file
    try:
        sums = (folder / "SHA256SUMS").read_text().split()
        expected = dict(zip(sums[1::2], sums[::2], strict=True))[file]
        seen = path.stat()
        found = _digest(path, seen.st_size, seen.st_mtime_ns)
    except (OSError, ValueError, KeyError) as error:
        raise LocalModelError(f"{path} cannot be read: {error}. {_AGAIN}") from error
    if found != expected:
        raise LocalModelError(
            f"Refused {path}: its sha256 is {found}, expected {expected}. {_AGAIN}"
        )
    return Weights(path, found)


@cache  # while the file is the same, once in a process is enough
def _digest(path: Path, size: int, changed: int) -> str:
    return hashed(path)


def judge_folder() -> Path:
    """Return the folder of the files, none of which is verified yet.

    Raises:
        MissingExtraError: `demur-judge` is not installed.
    """
    with needs("demur-judge", "small", "a judge of demur's own"):
        import demur_judge
    folder: Path = demur_judge.FOLDER
    return folder


def is_served(model: object) -> bool:
    """Return whether a model is a judge at an address (`ServedJudge`), which writes nothing."""
    # By the type's name, because an import of the class would import langchain-openai.
    return getattr(model, "_llm_type", None) == "demur-served-judge"


@dataclass(frozen=True)
class WordFit:
    """Hold how RefChecker puts a claim's words beside what the small judge says.

    The judge's log-odds of Entailment are divided by `temperature`, `shift` is added, and the
    penalty of the words is taken off.
    """

    temperature: float
    shift: float
    missing: float
    """The penalty of each content word that no text has, beyond the first `free` ones."""
    free: float
    foreign: float
    """The penalty of a claim of whose content words each text has one or none."""

    def penalty(self, shared: int, missing: int) -> float:
        """Return the penalty of a claim.

        Args:
            shared: The most of its content words that one text has.
            missing: The number of its content words that no text has.
        """
        foreign = self.foreign if shared < _LEAST_SHARED else 0.0
        return foreign + self.missing * max(0, missing - self.free)


_LEAST_SHARED = 2


def fit() -> tuple[float, float]:
    """Return the temperature and the shift of the small judge's log-odds of Entailment."""
    import demur_judge

    return demur_judge.TEMPERATURE, demur_judge.SHIFT


def word_fit() -> WordFit:
    """Return how RefChecker puts a claim's words beside what the small judge says."""
    import demur_judge

    return WordFit(**demur_judge.WORDS)
