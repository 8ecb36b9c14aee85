"""LangChain's own middleware with a judge: its page "Guardrails", custom guardrails.

"after_agent" is the page's model-based guardrail: a second model is asked in the hook, told which
two words to reply with, and the last message's content is replaced where the bad one is in the
reply. "after_model" is the same in the other hook. "wrap_model_call" is the safest that the pages
"Custom middleware" and "Streaming" have: the judge stands around the call, so that the state never
holds the rejected answer, the model's tokens are kept out of the stream by the tag "nostream", and
only the good word lets an answer through.

LangChain has no built-in guardrail that asks a judge: `PIIMiddleware` looks for patterns, and
`OpenAIModerationMiddleware` asks an endpoint for moderation, which knows no evidence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from _agents import ask
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

SETTINGS = ("after_agent", "after_model", "wrap_model_call")
REFUSAL = "I cannot give that answer."


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """An agent with one of the three middlewares."""
    options: dict[str, Any] = {"base_url": url, "api_key": "none", "timeout": timeout}
    if setting == "wrap_model_call":
        judge = ChatOpenAI(model="judge", tags=["nostream"], **options)
        return ask(_Around(judge), url, tags=["nostream"])
    judge = ChatOpenAI(model="judge", **options)
    return ask(_AfterAgent(judge) if setting == "after_agent" else _AfterModel(judge), url)


def _prompt(state: Any, answer: str) -> str:
    return (
        "Is the answer supported by the evidence? Reply with only SUPPORTED or UNSUPPORTED."
        f"\nEvidence: {' '.join(state['documents'])}\nAnswer: {answer}\nVerdict:"
    )


class _After(AgentMiddleware[Any, Any]):
    def __init__(self, judge: ChatOpenAI) -> None:
        super().__init__()
        self._judge = judge

    def _check(self, state: Any) -> None:
        last = state["messages"][-1]
        if "UNSUPPORTED" in self._judge.invoke(_prompt(state, last.text)).text:
            last.content = REFUSAL

    async def _acheck(self, state: Any) -> None:
        last = state["messages"][-1]
        if "UNSUPPORTED" in (await self._judge.ainvoke(_prompt(state, last.text))).text:
            last.content = REFUSAL


class _AfterAgent(_After):
    def after_agent(self, state: Any, runtime: Any) -> None:
        self._check(state)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._acheck(state)


class _AfterModel(_After):
    def after_model(self, state: Any, runtime: Any) -> None:
        self._check(state)

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        await self._acheck(state)


class _Around(_After):
    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> Any:
        response = handler(request)
        said = self._judge.invoke(_prompt(request.state, response.result[-1].text)).text
        return response if said.strip() == "SUPPORTED" else AIMessage(REFUSAL)

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> Any:
        response = await handler(request)
        said = (await self._judge.ainvoke(_prompt(request.state, response.result[-1].text))).text
        return response if said.strip() == "SUPPORTED" else AIMessage(REFUSAL)
