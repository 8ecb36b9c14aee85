"""Use LangChain's own middleware with a judge, as its page "Guardrails" (custom guardrails) shows.

"after_agent" is the page's model-based guardrail. The hook asks a second model, which is told to
reply with one of two words. If the reply has the bad word, the content of the last message is
replaced. "after_model" is the same in the other hook. "wrap_model_call" is the safest way in the
pages "Custom middleware" and "Streaming". The judge is asked around the call, so the state never
holds a rejected answer. The tag "nostream" keeps the model's tokens out of the stream, and only the
good word lets an answer through.

LangChain has no built-in guardrail that asks a judge. `PIIMiddleware` looks for patterns, and
`OpenAIModerationMiddleware` asks a moderation endpoint, which knows no evidence.
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
    """Return the ways to ask an agent with one of the three middlewares."""
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
