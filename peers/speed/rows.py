"""What is measured: one row for each way of scoring that a peer has."""

from __future__ import annotations

from dataclasses import dataclass

from peers.speed.texts import Unit


@dataclass(frozen=True)
class Row:
    """One way of one peer."""

    peer: str
    """Its environment (`peers.environments`), or "demur" for the one that runs this."""
    package: str
    """Whose version is told."""
    way: str
    """What tells this row from the peer's others."""
    adapter: str
    """A file of `peers/speed/adapters`."""
    arguments: tuple[str, ...]
    """What the adapter is told."""
    depth: int
    """How many requests of an answer have to wait for one another: no schedule is faster."""
    unit: Unit
    """What its score is a share of."""
    serial: int = 0
    """How many requests it makes one after the other, where it makes more so than it has to: at
    few answers at a time it gets fewer of them. 0: as many as `depth`."""

    @property
    def name(self) -> str:
        """As tables show it."""
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
    # The truths and the claims, then the verdicts, then the reason.
    Row("deepeval", "deepeval", "faithfulness", "deepeval_metrics", ("faithfulness",), 3, "claims"),
    # The verdicts, then the reason.
    Row(
        "deepeval",
        "deepeval",
        "hallucination",
        "deepeval_metrics",
        ("hallucination",),
        2,
        "passages",
    ),
    # Three samples in one request, then four sentences against each.
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
    """Seconds that the requests alone take, if an answer waits for nothing but its own.

    So many answers are scored at a time, the next ones when those are done; each takes its `depth`
    requests in sequence, and all its others beside them.
    """
    return -(-answers // at_once) * depth * latency


def answers_at(at_once: int, most: int, serial: int) -> int:
    """How many answers to score at a time's level: whole rounds, fewer where each takes long.

    Args:
        at_once: So many at a time.
        most: As many as that, where a round has two requests in sequence or fewer.
        serial: How many requests an answer makes one after the other.
    """
    rounds = max(1, min(most, 2 * most // serial) // at_once)
    return rounds * at_once
