"""Score with RefChecker, whose model extracts triplets and checks them jointly or one by one.

It is used as its README shows: `extract` for many answers, then `check` for their claims. The
passages are given as one reference, which takes the fewest calls. Its only limit is the number of
requests in a batch.
"""

from __future__ import annotations

from _serving import Sample, Score, by_chunk, serve

_DEFAULT_BATCH = 16


def prepare(mode: str) -> Score:
    """Return the score function: joint checking, or one claim a call with "per_claim"."""
    import os

    from refchecker import LLMChecker, LLMExtractor
    from refchecker.aggregator import soft_agg

    at = os.environ["OPENAI_BASE_URL"]
    model = "openai/gpt-4o-mini"

    def score(samples: list[Sample], at_once: int) -> list:
        size = max(_DEFAULT_BATCH, at_once)
        extractor = LLMExtractor(model=model, batch_size=size, api_base=at)
        checker = LLMChecker(model=model, batch_size=size, api_base=at)

        def call(chunk: list[Sample]) -> list:
            questions = [sample.question for sample in chunk]
            extracted = extractor.extract(
                batch_responses=[sample.answer for sample in chunk], batch_questions=questions
            )
            labels = checker.check(
                batch_claims=[[claim.content for claim in one.claims] for one in extracted],
                batch_references=["\n\n".join(sample.contexts) for sample in chunk],
                batch_questions=questions,
                is_joint=mode == "joint",
            )
            shares = [soft_agg(one) for one in labels]
            # An answer without claims is "Abstain", which is not a score.
            return [None if share["Abstain"] else share["Entailment"] for share in shares]

        return by_chunk(samples, at_once, call)

    return score


if __name__ == "__main__":
    serve(prepare)
