"""Score with deepeval's faithfulness or hallucination metric, by `evaluate` on test cases."""

from __future__ import annotations

from typing import Any

from _serving import Sample, Score, by_chunk, serve


def prepare(name: str) -> Score:
    """Return the score function of a metric, "faithfulness" or "hallucination"."""
    import os

    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import FaithfulnessMetric, HallucinationMetric
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase

    model = GPTModel(model="gpt-4o-mini", base_url=os.environ["OPENAI_BASE_URL"])
    kind = {"faithfulness": FaithfulnessMetric, "hallucination": HallucinationMetric}[name]

    def score(samples: list[Sample], at_once: int) -> list:
        def call(chunk: list[Sample]) -> list:
            found = evaluate(
                [
                    LLMTestCase(
                        name=str(at),
                        input=sample.question,
                        actual_output=sample.answer,
                        retrieval_context=sample.contexts,
                        context=sample.contexts,
                    )
                    for at, sample in enumerate(chunk)
                ],
                [kind(model=model)],
                async_config=AsyncConfig(max_concurrent=at_once),
                cache_config=CacheConfig(write_cache=False),
                display_config=DisplayConfig(
                    show_indicator=False, print_results=False, inspect_after_run=False
                ),
                error_config=ErrorConfig(ignore_errors=True),
            )
            named = {result.name: result.metrics_data[0] for result in found.test_results}
            return [_result(named.get(str(at))) for at in range(len(chunk))]

        return by_chunk(samples, len(samples), call)

    return score


def _result(data: Any) -> object:
    if data is None:
        return None
    return RuntimeError(data.error) if data.error else data.score


if __name__ == "__main__":
    serve(prepare)
