"""Ask demur's judge in another process, or on another machine, over OpenAI's chat protocol.

`demur judge serve`, llama.cpp's server and vLLM can serve it (docs/judges.md).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr, SecretStr

from demur.errors import DemurError
from demur.local.decoder import first_token
from demur.local.eight_bits import QWEN_SHAPE
from demur.local.judges import ADAPTED, SERVED_KEY, SERVED_NAME
from demur.runtime import ashare, share
from demur.schema import ClaimLabel

_TOKENS = {
    ClaimLabel.ENTAILMENT: "Ent",
    ClaimLabel.CONTRADICTION: "Contr",
    ClaimLabel.NEUTRAL: "Neutral",
}
"""The token with which the reply of each label begins, in the order of their ids."""
_IDS = QWEN_SHAPE.labels
_ASKED: Mapping[str, Any] = {
    "max_tokens": 1,
    "temperature": 1.0,
    "top_p": 1.0,
    "logprobs": True,
    "top_logprobs": len(_IDS),
    # The three tokens need not be among the likeliest ones, since the training took no notice of
    # others. llama.cpp: raise them above all others, then tell their probabilities.
    "logit_bias": {str(token): 100 for token in _IDS},
    "extra_body": {
        "post_sampling_probs": True,
        # Nothing else may change them: vLLM takes what is not said from the model's own settings.
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "lora": [{"id": 0, "scale": 1.0}],
        # vLLM: allow no others, or tell these.
        "allowed_token_ids": [*_IDS],
        "logprob_token_ids": [*_IDS],
    },
}
"""What is asked of each server for the probabilities of the three tokens. A server takes no notice
of what is meant for others."""

_POOL = "The pool opens at seven in the morning. Children under six swim for free."
_KNOWN = {
    "Children under six pay nothing.": ClaimLabel.ENTAILMENT,
    "The pool has a sauna.": ClaimLabel.NEUTRAL,
}
"""Claims about `_POOL`. Of both, the chat model says Contradiction where it has no adapter."""
_KNOWN_FOR = 60.0
"""After how many seconds an endpoint is asked about them again."""


class ServedJudge(ChatOpenAI):
    """Ask a judge with demur's adapter at an endpoint.

    It writes nothing: whatever it is asked, its reply is one of three tokens, with the
    log-probabilities of all three. `served_judge` makes it.

    Before an endpoint is believed, it has to label two claims as demur's adapter does: at first,
    after each failure, and every minute. Each of its replies has to name the model `demur-judge`.

    Raises:
        DemurError: On a call: what is served there is not demur's adapter.
    """

    _known_at: float | None = PrivateAttr(default=None)

    @property
    def judging(self) -> dict[str, Any]:
        """Return the call options with which the model judges: it needs none."""
        return {}

    @property
    def adapter_fingerprint(self) -> str:
        """Return what stands for the adapter, which the endpoint does not tell."""
        return SERVED_NAME

    @property
    def _llm_type(self) -> str:
        return "demur-served-judge"

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        with self._doubting():
            if not self._is_known:
                share(self._meeting, self._meet)
            return self._judged(super()._generate(messages, **_ASKED))

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        with self._doubting():
            if not self._is_known:
                await ashare(self._meeting, self._ameet)
            return self._judged(await super()._agenerate(messages, **_ASKED))

    def _should_stream(self, **options: Any) -> bool:
        return False

    # -- Whether it is demur's adapter -------------------------------------------------------------

    @property
    def _is_known(self) -> bool:
        return self._known_at is not None and time.monotonic() - self._known_at < _KNOWN_FOR

    @property
    def _meeting(self) -> Hashable:
        """Return what requests have in common that wait for the same answers about what it is."""
        # By the second: a thread that was given up may hang there, and a retry must not join it.
        return "adapter", id(self), int(time.monotonic())

    @contextmanager
    def _doubting(self) -> Iterator[None]:
        """Have the endpoint show what it is again, if a request fails or is given up."""
        try:
            yield
        except BaseException:
            self._known_at = None
            raise

    def _meet(self) -> None:
        for claim, label in _KNOWN.items():
            asked = ADAPTED.messages(reference=_POOL, claim=claim)
            self._believe(self._judged(super()._generate(asked, **_ASKED)), claim, label)
        self._known_at = time.monotonic()

    async def _ameet(self) -> None:
        for claim, label in _KNOWN.items():
            asked = ADAPTED.messages(reference=_POOL, claim=claim)
            self._believe(self._judged(await super()._agenerate(asked, **_ASKED)), claim, label)
        self._known_at = time.monotonic()

    def _believe(self, found: ChatResult, claim: str, label: ClaimLabel) -> None:
        said = found.generations[0].message.text
        if said != _TOKENS[label]:
            raise self._foreign(
                f"of {_POOL!r} and {claim!r} it says {said!r}, expected {_TOKENS[label]!r}"
            )

    def _judged(self, found: ChatResult) -> ChatResult:
        """Return a reply with the log-probabilities of the three tokens, among these three."""
        if not found.generations:
            raise ConnectionError("the reply holds no message")  # worth a retry
        name = (found.llm_output or {}).get("model_name")
        if name != SERVED_NAME:
            raise self._foreign(f"it names its model {name!r}, expected {SERVED_NAME!r}")
        reply = found.generations[0]
        told = reply.generation_info or {}
        logprobs = _among_three(told.get("logprobs"))
        if logprobs is None:
            raise self._foreign(
                f"its reply has no probabilities of the tokens {', '.join(_TOKENS.values())}"
            )
        first = first_token(logprobs)
        reply.message.content = first["token"]
        reply.generation_info = {**told, "logprobs": {"content": [first]}}
        return found

    def _foreign(self, why: str) -> DemurError:
        return DemurError(
            f"the endpoint {self.openai_api_base} does not judge as demur's adapter: {why}. Serve "
            "the adapter of demur-judge there (demur judge serve), under the name "
            f"{SERVED_NAME!r}. For llama.cpp and vLLM: https://demur-dev.github.io/demur/judges/"
        )


def _among_three(logprobs: Any) -> dict[str, float] | None:
    """Return the log-probability of each of the three tokens among these three.

    None: the first token's alternatives do not have all three. llama.cpp tells probabilities in
    place of their logarithms.
    """
    try:
        first = logprobs["content"][0]
        likely = first.get("top_logprobs") or first["top_probs"]
        told = {
            one["token"]: one["logprob"] if "logprob" in one else math.log(max(one["prob"], 1e-30))
            for one in likely
        }
        said = {token: float(told[token]) for token in _TOKENS.values()}
    except (TypeError, KeyError, IndexError, ValueError, AttributeError):
        return None
    highest = max(said.values())
    if not all(map(math.isfinite, said.values())):
        return None
    every = highest + math.log(sum(math.exp(value - highest) for value in said.values()))
    return {token: value - every for token, value in said.items()}


def served_judge(address: str) -> ServedJudge:
    """Return the judge that is served at an address.

    The key comes from `DEMUR_JUDGE_KEY`.

    Args:
        address: The address of the server, such as "http://host:8080", with or without "/v1".

    Raises:
        ValueError: It is no such address, or holds a credential.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"expected the address of a judge, such as 'judge:http://host:8080', got {address!r}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            f"expected the address of a judge without a credential, a query and a fragment: give "
            f"the key in {SERVED_KEY}"
        )
    return ServedJudge(
        model_name=SERVED_NAME,
        openai_api_base=f"{address.rstrip('/').removesuffix('/v1')}/v1",
        openai_api_key=SecretStr(os.environ.get(SERVED_KEY) or "none"),
        # A connection kept open would outlive its event loop, and hide a server that has changed.
        default_headers={"Connection": "close"},
        use_responses_api=False,
        max_retries=0,
        request_timeout=120,
    )
