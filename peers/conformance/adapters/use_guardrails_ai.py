"""Use guardrails-ai as in "Custom validators", "Error remediation" and "Stream validated output".

A validator of the user's own asks a judge. The setting is what `on_fail` does. "exception" is the
default, and raises. "fix" puts `fix_value` in place of the failed text, here nothing; with it a
synchronous stream waits for the verdict on each sentence. A stream is validated sentence by
sentence, as its page says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import litellm
from guardrails import AsyncGuard, Guard
from guardrails.validators import (
    FailResult,
    PassResult,
    ValidationResult,
    Validator,
    register_validator,
)

SETTINGS = ("exception", "fix")


@register_validator(name="supported-by-documents", data_type="string")
class Supported(Validator):  # type: ignore[misc]
    """Ask a judge whether the documents in the metadata support a text."""

    def __init__(self, judge: dict[str, Any], on_fail: str | None = None) -> None:
        """Take the arguments of litellm for the judge."""
        super().__init__(on_fail=on_fail)
        self._judge = judge

    def _validate(self, value: Any, metadata: dict[str, Any]) -> ValidationResult:
        prompt = (
            "Is the answer supported by the evidence? Reply with only SUPPORTED or UNSUPPORTED."
            f"\nEvidence: {metadata['documents']}\nAnswer: {value}\nVerdict:"
        )
        said = litellm.completion(messages=[{"role": "user", "content": prompt}], **self._judge)
        if said.choices[0].message.content.strip() == "SUPPORTED":
            return PassResult()
        return FailResult(error_message="The documents do not support it.", fix_value="")


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask both guards, with one validator."""
    options: dict[str, Any] = {"api_base": url, "api_key": "none"}
    judge = {"model": "openai/judge", "timeout": timeout, **options}
    guard = Guard().use(Supported(judge, on_fail=setting))
    aguard = AsyncGuard().use(Supported(judge, on_fail=setting))

    def given(question: str, contexts: list[str]) -> dict[str, Any]:
        documents = "\n".join(contexts)
        return {
            "model": "openai/chain",
            "messages": [{"role": "user", "content": f"{documents}\n\n{question}"}],
            "metadata": {"documents": documents},
            **options,
        }

    async def whole(*call: Any) -> AsyncIterator[str]:
        yield (await aguard(**given(*call))).validated_output or ""

    def stream(*call: Any) -> Iterator[str]:
        for outcome in guard(**given(*call), stream=True):
            yield outcome.validated_output or ""

    async def astream(*call: Any) -> AsyncIterator[str]:
        async with aclosing(await aguard(**given(*call), stream=True)) as outcomes:
            async for outcome in outcomes:
                yield outcome.validated_output or ""

    return {"whole": whole, "stream": stream, "astream": astream}
