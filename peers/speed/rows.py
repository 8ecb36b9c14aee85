"""List what is measured: one row for each way of scoring that a peer has."""

from __future__ import annotations

from dataclasses import dataclass

from peers.speed.texts import Unit


@dataclass(frozen=True)
class Row:
    """Describe one way of scoring of one peer."""

    peer: str
    """The peer's environment (`peers.environments`), or "demur" for the one that runs this."""
    package: str
    """The package whose version is shown."""
    way: str
    """What distinguishes this row from the peer's others."""
    adapter: str
    """The name of a file in `peers/speed/adapters`."""
    arguments: tuple[str, ...]
    """The arguments of the adapter."""
    depth: int
    """How many requests of an answer have to wait for one another: no schedule is faster."""
    unit: Unit
    """What the score is a share of."""
    serial: int = 0
    """How many requests it makes one after the other, if these are more than necessary; 0: as many
    as `depth`. Such a row gets fewer answers at the low levels of concurrency."""

    @property
    def name(self) -> str:
        """Return the name of the row in tables."""
        return f"{self.package}, {self.way}"


def _demur(way: str, mode: str, depth: int, unit: Unit) -> list[Row]:
    return [
        Row("demur", "demur", f"{way}, {how}", "demur_refchecker", (mode, how), depth, unit)
        for how in ("async", "sync")
    ]


ROWS: tuple[Row, ...] = (
    *_demur("sentences", "sentences", 1, "sentences"),
    *_demur("triplets, joint", "joint", 2, "claims"),
    *_demur("triplets, per claim", "per_claim", 2, "claims"),
    Row(
        "llama-index-evaluators",
        "llama-index-core",
        "faithfulness",
        "llama_index_faithfulness",
        (),
        1,
        "whole",
    ),
    Row("uqlm", "uqlm", "one judge", "uqlm_panel", (), 1, "whole"),
    Row("ragas", "ragas", "faithfulness", "ragas_faithfulness", (), 2, "claims"),
    Row("refchecker", "refchecker", "joint", "refchecker_llm", ("joint",), 2, "claims"),
    Row(
        "refchecker",
        "refchecker",
        "per claim",
        "refchecker_llm",
        ("per_claim",),
        2,
        "claims",
    ),
    # It asks for the truths and the claims, then the verdicts, then the reason.
    Row("deepeval", "deepeval", "faithfulness", "deepeval_metrics", ("faithfulness",), 3, "claims"),
    # It asks for the verdicts, then the reason.
    Row(
        "deepeval",
        "deepeval",
        "hallucination",
        "deepeval_metrics",
        ("hallucination",),
        2,
        "passages",
    ),
    # It asks for three samples in one request, then compares four sentences with each sample.
    Row(
        "selfcheckgpt",
        "selfcheckgpt",
        "prompt",
        "selfcheckgpt_prompt",
        (),
        2,
        "sentences",
        serial=13,
    ),
)


def ideal(answers: int, at_once: int, depth: int, latency: float) -> float:
    """Return the seconds that the requests alone take, if an answer waits only for its own.

    The answers are scored `at_once` at a time, and the next ones begin when those are done. Each
    takes its `depth` requests in sequence, and all its others beside them.
    """
    return -(-answers // at_once) * depth * latency


def answers_at(at_once: int, most: int, serial: int) -> int:
    """Return how many answers to score at a level: whole rounds, fewer if each takes long.

    Args:
        at_once: The number of answers at a time.
        most: The most answers, for rows with at most two requests in sequence.
        serial: How many requests an answer makes one after the other.
    """
    rounds = max(1, min(most, 2 * most // serial) // at_once)
    return rounds * at_once
