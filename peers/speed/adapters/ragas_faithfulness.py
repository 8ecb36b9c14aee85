"""Score with ragas' faithfulness, from the collections that its documentation recommends since 0.4.

`evaluate` is deprecated there. An experiment runs `ascore` for every row at the same time, without
a limit, and only prints a line about a row that failed. Here a semaphore limits it, as a user would
do.
"""

from __future__ import annotations

from _serving import Sample, Score, serve


def prepare() -> Score:
    """Return the score function: `Faithfulness.ascore` in an event loop."""
    import asyncio

    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics.collections import Faithfulness

    metric = Faithfulness(llm=llm_factory("gpt-4o-mini", client=AsyncOpenAI()))
    loop = asyncio.new_event_loop()

    async def all_of(samples: list[Sample], at_once: int) -> list:
        free = asyncio.Semaphore(at_once)

        async def one(sample: Sample) -> float:
            async with free:
                found = await metric.ascore(
                    user_input=sample.question,
                    response=sample.answer,
                    retrieved_contexts=sample.contexts,
                )
                return float(found.value)

        return await asyncio.gather(*map(one, samples), return_exceptions=True)

    return lambda samples, at_once: loop.run_until_complete(all_of(samples, at_once))


if __name__ == "__main__":
    serve(prepare)
