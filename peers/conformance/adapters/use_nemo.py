"""Use NeMo Guardrails as in "Guardrail catalog" (LLM self-checking) and "Streaming".

"output" is the rail `self check output`, which asks a judge whether the bot's message must be
blocked. "output, checked first" is the same with `stream_first: false`, which the page on streaming
gives for tokens that are to leave after the check. "facts, checked first" is the rail `self check
facts`, which shows the judge the evidence: a context message has `relevant_chunks` and
`check_facts`.

The last two settings also have a `max_length` of their prompts that long answers fit into. The
default is 16,000 characters, and a longer prompt is an error. The catalogue leaves the prompts to
users, so they are demur's own, in the form that it asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from nemoguardrails import LLMRails, RailsConfig

SETTINGS = ("output", "output, checked first", "facts, checked first")

_CONFIG = """
models:
  - {{type: main, engine: openai, model: chain, parameters: {{base_url: "{url}"}}}}
  - {{type: {task}, engine: openai, model: judge,
      parameters: {{base_url: "{url}", timeout: {timeout}}}}}
rails:
  output:
    flows: ["{flow}"]
    streaming: {{enabled: true, stream_first: {stream_first}}}
prompts:
  - task: self_check_output
    max_length: {most}
    content: |-
      Reply only yes or no: yes if it must be blocked, since its facts are wrong.
      Answer: {{{{ bot_response }}}}
      Verdict:
  - task: self_check_facts
    max_length: {most}
    content: |-
      Reply only yes or no: yes if it follows from the evidence alone.
      Evidence: {{{{ evidence }}}}
      Answer: {{{{ response }}}}
      Verdict:
"""


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask the chain's model inside rails."""
    kind, _, first = setting.partition(", ")
    config = _CONFIG.format(
        url=url,
        timeout=timeout,
        task=f"self_check_{kind}",
        flow=f"self check {kind}",
        stream_first="false" if first else "true",
        most=200_000 if first else 16_000,
    )
    rails = LLMRails(RailsConfig.from_content(yaml_content=config))

    def messages(question: str, contexts: list[str]) -> list[dict[str, Any]]:
        told = {"relevant_chunks": "\n".join(contexts), "check_facts": True}
        return [{"role": "context", "content": told}, {"role": "user", "content": question}]

    async def whole(*call: Any) -> AsyncIterator[str]:
        yield (await rails.generate_async(messages=messages(*call)))["content"]

    async def astream(*call: Any) -> AsyncIterator[str]:
        async with aclosing(rails.stream_async(messages=messages(*call))) as pieces:
            async for piece in pieces:
                yield piece

    return {"whole": whole, "astream": astream}
