"""Score with uqlm's panel of judges, with one judge.

Its black-box scorers measure how much sampled answers differ, mostly with NLI weights, and read no
passages. Its only limit is the number of calls a minute, so it is given `at_once` answers at a
time.
"""

from __future__ import annotations

from _serving import Sample, Score, by_chunk, serve


def prepare() -> Score:
    """Return the score function: `LLMPanel.score` in an event loop."""
    import asyncio

    from langchain_openai import ChatOpenAI
    from uqlm import LLMPanel

    model = ChatOpenAI(model="gpt-4o-mini", temperature=0)
    panel = LLMPanel(llm=model, judges=[model], scoring_templates=["true_false"])
    loop = asyncio.new_event_loop()

    def call(chunk: list[Sample]) -> list:
        found = loop.run_until_complete(
            panel.score(
                prompts=["\n\n".join([*one.contexts, one.question]) for one in chunk],
                responses=[one.answer for one in chunk],
                show_progress_bars=False,
            )
        )
        return list(found.data["avg"])

    return lambda samples, at_once: by_chunk(samples, at_once, call)


if __name__ == "__main__":
    serve(prepare)
