"""The embedded models: their files, a chat model on llama.cpp, sentence embeddings on ONNX Runtime.

What the room promises to the others: a file is used when its sha256 is the one that is written
down, and else refused; nothing is downloaded but by `pull`; servers start at the first call, one
for each file of weights, and end with the process; what was measured of known weights is kept
beside them for later processes.
"""

from typing import TYPE_CHECKING, Any

from demur.local.embeddings import MiniLM
from demur.local.fetching import pull
from demur.local.kept import load_measured as load_measured
from demur.local.kept import save_measured as save_measured
from demur.local.weights import EVERY as EVERY
from demur.local.weights import MINILM as MINILM
from demur.local.weights import QWEN as QWEN
from demur.local.weights import Manifest as Manifest
from demur.local.weights import Mirror as Mirror
from demur.local.weights import Weights as Weights
from demur.local.weights import model_dir

if TYPE_CHECKING:
    from demur.local.chat import ChatLocal

__all__ = [  # what is not named here serves other rooms, and is not promised
    "ChatLocal",
    "MiniLM",
    "model_dir",
    "pull",
]


def __getattr__(name: str) -> Any:
    if name == "ChatLocal":  # brings langchain-openai, for which an embedding has no use
        from demur.local.chat import ChatLocal

        return ChatLocal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
