"""Measure what it takes to look up the values of a tool call in a long conversation.

    python -m bench.calls [--chars 50000] [--rounds 20]

The texts are lists of orders, as a tool returns them. "first" is the first call of a conversation,
whose texts were not read before; "later" is the median of the calls that follow. The last column is
how often that goes into reading the texts as JSON.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator
from datetime import date
from typing import Any

from bench.measuring import arguments, load, seconds, table
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from demur.evaluators import missing_values
from demur.shapes import given_texts

_TODAY = date(2026, 12, 1)
_ROWS = 15


def conversation(chars: int, seed: int) -> tuple[list[BaseMessage], dict[str, Any]]:
    """Return messages of about so many characters, and one of their orders."""
    drawn, said = random.Random(seed), 0
    messages: list[BaseMessage] = [HumanMessage("Please refund the order of Ann Berg.")]
    rows: list[dict[str, Any]] = []
    while said < chars:
        rows = [*_orders(drawn)]
        text = json.dumps(rows)
        said, id_ = said + len(text), str(len(messages))
        call = {"name": "list_orders", "args": {"page": len(messages)}, "id": id_}
        messages.append(AIMessage("", tool_calls=[call]))
        messages.append(ToolMessage(text, tool_call_id=id_, name="list_orders"))
    return messages, rows[3]


def _orders(drawn: random.Random) -> Iterator[dict[str, Any]]:
    for _ in range(_ROWS):
        yield {
            "order_id": f"ORD-{drawn.randrange(10**5, 10**6)}",
            "amount": round(drawn.uniform(5, 900), 2),
            "phone": f"+49 30 {drawn.randrange(10**6, 10**7)}",
            "placed": f"2026-{drawn.randrange(1, 12):02}-{drawn.randrange(1, 28):02}",
            "customer_name": "Ann Berg",
        }


CASES: dict[str, dict[str, Any]] = {
    "all values stand as they are": {},
    "an identifier is missing": {"order_id": "ORD-48213-B"},
    "an amount is missing": {"amount": 48213.77},
    "a date is missing": {"placed": "2031-05-17"},
}


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--chars", type=int, default=50_000, help="characters of the conversation")
    parser.add_argument("--rounds", type=int, default=20, help="conversations of each kind")
    given = parser.parse_args()
    print(load())
    rows = []
    for name, changed in CASES.items():
        first, later, reading = [], [], []
        for seed in range(given.rounds):
            messages, order = conversation(given.chars, hash((name, seed)))
            call = {"name": "refund_order", "args": order | changed}

            def look(call: Any = call, messages: Any = messages) -> None:
                missing_values(call, {}, given_texts(messages), today=_TODAY)

            first.append(seconds(look))
            later += [seconds(look) for _ in range(3)]
            texts = [str(one.content) for one in messages if one.type == "tool"]
            reading.append(seconds(lambda texts=texts: [*map(json.loads, texts)]))
        took = statistics.median(later)
        share = took / statistics.median(reading)
        times = (statistics.median(first) * 1000, took * 1000)
        rows.append((name, *(f"{one:.1f}" for one in times), f"{share:.1f}"))
    print(table([f"{given.chars:,} characters", "first, ms", "later, ms", "× JSON"], rows))


if __name__ == "__main__":
    main()
