"""List the products, each with its default setting and its safest documented setting."""

from __future__ import annotations

from .runner import Guard

_OURS = ("langchain-core", "langchain-openai", "langchain", "llama-index-core")
_LLAMA = ("llama-index-core", "llama-index-llms-openai-like")

GUARDS = (
    Guard("none", "use_nothing", "default", None, ()),
    Guard("demur", "use_demur", "buffer", None, _OURS, own_prompt=True),
    Guard("demur-sentence", "use_demur", "sentence", None, _OURS, own_prompt=True),
    Guard("demur-one-call", "use_demur", "one call", None, _OURS, own_prompt=True),
    Guard("demur-small", "use_demur", "small", None, _OURS, own_prompt=True, judges_itself=True),
    Guard(
        "demur-small-sentence",
        "use_demur",
        "small, sentence",
        None,
        _OURS,
        own_prompt=True,
        judges_itself=True,
    ),
    Guard("demur-agent", "use_demur_agent", "default", None, _OURS, own_prompt=True),
    Guard("demur-llama", "use_demur_llama", "buffer", None, _OURS, own_prompt=True),
    Guard("demur-llama-sentence", "use_demur_llama", "sentence", None, _OURS, own_prompt=True),
    Guard("langchain", "use_langchain", "after_agent", "langchain", ("langchain", "langgraph")),
    Guard(
        "langchain-safest",
        "use_langchain",
        "wrap_model_call",
        "langchain",
        ("langchain", "langgraph"),
    ),
    Guard("llama-retry", "use_llama_index", "retry", "llama-index", _LLAMA, own_prompt=True),
    Guard(
        "llama-retry-source",
        "use_llama_index",
        "retry source",
        "llama-index",
        _LLAMA,
        own_prompt=True,
    ),
    Guard(
        "llama-retry-guideline",
        "use_llama_index",
        "retry guideline",
        "llama-index",
        _LLAMA,
        own_prompt=True,
    ),
    Guard("guardrails-ai", "use_guardrails_ai", "exception", "guardrails-ai", ("guardrails-ai",)),
    Guard("guardrails-ai-safest", "use_guardrails_ai", "fix", "guardrails-ai", ("guardrails-ai",)),
    Guard("nemo", "use_nemo", "output", "nemo-guardrails", ("nemoguardrails",)),
    Guard(
        "nemo-safest", "use_nemo", "output, checked first", "nemo-guardrails", ("nemoguardrails",)
    ),
    Guard("nemo-facts", "use_nemo", "facts, checked first", "nemo-guardrails", ("nemoguardrails",)),
    Guard(
        "openai-guardrails",
        "use_openai_guardrails",
        "default",
        "openai-guardrails",
        ("openai-guardrails",),
        own_prompt=True,
    ),
    Guard(
        "openai-guardrails-safest",
        "use_openai_guardrails",
        "raise_guardrail_errors",
        "openai-guardrails",
        ("openai-guardrails",),
        own_prompt=True,
    ),
)
