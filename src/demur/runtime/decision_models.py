"""Ask a decision model of LangChain (`langchain_core.decisions`, since 1.8) as a chat model.

So its requests have what all requests have: retries, slots, budgets, caches and recordings.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from demur.schema.fingerprints import fields_in


class DecisionModel(BaseChatModel):
    """Ask a decision model the questions that the last message of a prompt holds.

    The message is a JSON object: `state`, and `questions` by name, each a `Choice`. The reply is a
    JSON object, too: the answers to the questions by name.
    """

    inner: Any = Field(repr=False)

    @property
    def model(self) -> str:
        """Return the name of the decision model."""
        return str(self.inner.model)

    @property
    def _llm_type(self) -> str:
        return "demur-decision"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        kind = {"class": type(self.inner).__qualname__, "provider": self.inner._provider}
        return {**kind, **fields_in(self.inner)}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": self.inner._provider}

    # `invoke` of the decision model would add a second run, and its tokens would count twice.

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return _reply(self.inner._classify(*_request(messages)))

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return _reply(await self.inner._aclassify(*_request(messages)))


_made: WeakValueDictionary[int, DecisionModel] = WeakValueDictionary()


def decision_model(model: object) -> DecisionModel | None:
    """Return the chat model that asks a decision model; None if `model` is none.

    It is the same one for the same model, so that all evaluators share its slots and requests.
    """
    loaded = sys.modules.get("langchain_core.decisions.base")  # if there is any decision model
    if not isinstance(model, getattr(loaded, "BaseDecisionModel", ())):
        return None
    # What is kept under the id holds the model, so that no other model has it.
    made = _made.get(id(model)) or DecisionModel(inner=model)
    return _made.setdefault(id(model), made)


def _request(messages: list[BaseMessage]) -> tuple[dict[str, Any], dict[str, Any]]:
    from langchain_core.decisions import Choice

    asked = json.loads(str(messages[-1].content))
    return asked["state"], {name: Choice(**one) for name, one in asked["questions"].items()}


def _reply(response: Any) -> ChatResult:
    # Its parts are checked only when it is made, and may have been changed since.
    response = type(response).model_validate(response.model_dump(warnings=False))
    answers = {name: answer.model_dump() for name, answer in response.choices.items()}
    # In a text without "<", nothing looks like the tags of a model's reasoning.
    text = json.dumps(answers).replace("<", "\\u003c")
    told = {"model_name": response.model, "request_id": response.request_id}
    message = AIMessage(text, usage_metadata=response.usage, response_metadata=told)
    return ChatResult(generations=[ChatGeneration(message=message)])
