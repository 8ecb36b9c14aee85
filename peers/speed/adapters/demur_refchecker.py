"""Score with demur's RefChecker in one of its modes, in threads or in an event loop."""

from __future__ import annotations

from _serving import Score, serve

_MODES = {
    "sentences": {"checker": "joint", "claims": "sentences"},
    "joint": {"checker": "joint"},
    "per_claim": {"checker": "per_claim"},
}


def prepare(mode: str, way: str) -> Score:
    """Return the score function of a mode above, with the evaluator's `batch` or `abatch`."""
    import asyncio

    from demur import RefChecker

    checker = RefChecker("openai:gpt-4o-mini", **_MODES[mode])
    loop = asyncio.new_event_loop()

    def score(samples: list, at_once: int) -> list:
        asked = [sample._asdict() for sample in samples]
        config = {"max_concurrency": at_once}
        if way == "sync":
            found = checker.batch(asked, config, return_exceptions=True)
        else:
            found = loop.run_until_complete(checker.abatch(asked, config, return_exceptions=True))
        return [_result(one) for one in found]

    return score


def _result(found: object) -> object:
    """Return the score of an evaluation, or why there is none."""
    if isinstance(found, BaseException) or found.score is not None:
        return getattr(found, "score", found)
    # An evaluation that is decided without all labels has no score, but bounds of it.
    bounds = found.details.get("score_bounds")
    return RuntimeError(found.error or f"a label is missing, the score is within {bounds}")


if __name__ == "__main__":
    serve(prepare)
