"""Run the embedded models: a chat model on llama.cpp, judges and embeddings on ONNX Runtime.

`resolve_model` makes a model from its short name, embedded or elsewhere.

This room promises to the others:

- A file is used only if its sha256 is the expected one. Otherwise it is refused.
- Only `pull` downloads anything.
- A server starts at the first call, and ends with the process, behind the handlers that still wait
  for scores. There is one for each file of weights and context length.
"""

from typing import TYPE_CHECKING, Any

from demur.local.decoder import Decoder as Decoder
from demur.local.decoder import Judged as Judged
from demur.local.eight_bits import QWEN_SHAPE as QWEN_SHAPE
from demur.local.eight_bits import WEIGHTS as WEIGHTS
from demur.local.eight_bits import Place as Place
from demur.local.eight_bits import Shape as Shape
from demur.local.embeddings import MiniLM
from demur.local.fetching import pull
from demur.local.judge_files import adapted_judge as adapted_judge
from demur.local.judge_files import own_judge as own_judge
from demur.local.judge_files import prepare as prepare
from demur.local.judge_files import write_files as write_files
from demur.local.judges import ADAPTED as ADAPTED
from demur.local.judges import GRAPH as GRAPH
from demur.local.judges import JUDGE_FILES as JUDGE_FILES
from demur.local.judges import SERVED_KEY as SERVED_KEY
from demur.local.judges import WordFit as WordFit
from demur.local.judges import find_judge as find_judge
from demur.local.judges import is_served as is_served
from demur.local.judges import word_fit as word_fit
from demur.local.resolving import judge_at as judge_at
from demur.local.resolving import resolve_model as resolve_model
from demur.local.serving import bound as bound
from demur.local.serving import serve as serve
from demur.local.small_judge import SMALL as SMALL
from demur.local.small_judge import SmallJudge as SmallJudge
from demur.local.small_judge import calibrated as calibrated
from demur.local.small_judge import unread as unread
from demur.local.weights import EVERY as EVERY
from demur.local.weights import MINILM as MINILM
from demur.local.weights import QWEN as QWEN
from demur.local.weights import Manifest as Manifest
from demur.local.weights import Mirror as Mirror
from demur.local.weights import Weights as Weights
from demur.local.weights import model_dir

if TYPE_CHECKING:
    from demur.local.chat import ChatLocal

__all__ = [  # the other names serve other rooms, and are not public
    "ChatLocal",
    "MiniLM",
    "model_dir",
    "pull",
]


def __getattr__(name: str) -> Any:
    if name == "ChatLocal":  # imports langchain-openai, which an embedding does not need
        from demur.local.chat import ChatLocal

        return ChatLocal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
