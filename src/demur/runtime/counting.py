"""Count the tokens of a prompt with the model's own tokenizer, or estimate them.

Nothing is downloaded, and no request is made. LangChain's default counts with GPT-2's tokenizer for
every model, and would download it. OpenAI's tokenizer would download its tables at its first use.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur._text import count_tokens
from demur.runtime.in_process import is_local

_TABLES = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def prompt_tokens(model: BaseChatModel, messages: Iterable[BaseMessage]) -> tuple[int, bool]:
    """Return the number of tokens in a prompt's texts, and whether it is an estimate."""
    texts = [str(message.content) for message in messages]
    if (count := _tokenizer(model)) is not None:
        with suppress(Exception):  # if the tokenizer fails, the tokens are estimated
            return sum(map(count, texts)), False
    return sum(map(count_tokens, texts)), True


def _tokenizer(model: BaseChatModel) -> Callable[[str], int] | None:
    """Return the model's own token counter if it needs no request, else None.

    A class's own `get_num_tokens` does not qualify: Google's sends a request to its service, and
    Bedrock's calls LangChain's default.
    """
    if (token_ids := model.custom_get_token_ids) is not None:
        return lambda text: len(token_ids(text))
    if is_local(model) or not hasattr(model, "tiktoken_model_name"):
        return None  # counting with the local model is a request to its server
    name = model.tiktoken_model_name or getattr(model, "model_name", "")
    return model.get_num_tokens if _has_tables(str(name)) else None


def _has_tables(name: str) -> bool:
    """Return whether tiktoken knows the model and has its tables in memory or on this machine."""
    try:
        import tiktoken
        from tiktoken.registry import ENCODINGS

        encoding = tiktoken.encoding_name_for_model(name)
    except (ImportError, KeyError):
        return False
    if encoding in ENCODINGS:
        return True
    default = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    file = Path(folder, hashlib.sha1(_TABLES.format(encoding).encode()).hexdigest())
    return folder != "" and file.is_file()  # if the variable is "", tiktoken keeps nothing
