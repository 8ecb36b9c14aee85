"""Score with LlamaIndex's faithfulness evaluator, by its batch runner with `at_once` workers."""

from __future__ import annotations

from _serving import Sample, Score, by_chunk, serve


def prepare() -> Score:
    """Return the score function: `BatchEvalRunner.aevaluate_response_strs` in an event loop."""
    import asyncio
    import os

    from llama_index.core.evaluation import BatchEvalRunner, FaithfulnessEvaluator
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(
        model="gpt-4o-mini",
        api_base=os.environ["OPENAI_BASE_URL"],
        api_key="none",
        is_chat_model=True,
        context_window=128_000,
    )
    evaluator = FaithfulnessEvaluator(llm=model)
    loop = asyncio.new_event_loop()

    def score(samples: list[Sample], at_once: int) -> list:
        def call(chunk: list[Sample]) -> list:
            runner = BatchEvalRunner({"faithfulness": evaluator}, workers=at_once)
            found = loop.run_until_complete(
                runner.aevaluate_response_strs(
                    queries=[sample.question for sample in chunk],
                    response_strs=[sample.answer for sample in chunk],
                    contexts_list=[sample.contexts for sample in chunk],
                )
            )
            return [one.score for one in found["faithfulness"]]

        return by_chunk(samples, len(samples), call)

    return score


if __name__ == "__main__":
    serve(prepare)
