"""Say what scoring many answers takes: calls, tokens, hours, cores, money, and the first limit.

    make bench        or: python -m bench.capacity [--answers 32]
    python -m bench.capacity --requests-per-minute 30000 --price-in 0.4 --price-out 1.6

Only the cost of one answer is measured. Each method judges the same answers of five facts over
three passages of 80 words, and asks a server that counts tokens (`bench.fixed_latency_server`). The
rest is arithmetic. Give your endpoint's limits and prices: the defaults are not those of a real
endpoint.

The CPU time is that of this process, with the HTTP client. A cross-encoder's weights are random
numbers in the shape of DeBERTa v3 base, because its time does not depend on them. Records of the
log and questions in Chroma are written one at a time, as they are while answers are scored.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench import fewl_texts as made
from bench.measuring import Clock, arguments, seconds, table
from bench.records import record
from bench.serving import asking, served

from demur import FEWL, Evaluation, RefChecker, ReverseValidation, Sample
from demur.evaluators import Evaluator, NeighborStore
from demur.local import MiniLM
from demur.observe import SQLSink
from demur_research.texts.bland import samples

COUNTS = tuple(10**power for power in range(4, 10))
"""The numbers of answers to score."""
_AT_ONCE = 16
_PAIR_TOKENS = 160
"""The tokens of a passage and a sentence."""
_WRITTEN = 200
"""How many records, and how many questions, are timed."""


@dataclass(frozen=True)
class Costs:
    """Hold what one answer takes, on average."""

    calls: float
    prompt: float
    """The tokens of prompts."""
    reply: float
    cpu: float
    """The seconds of one core, without models that run in this process."""
    pairs: float = 0
    """The pairs of texts for a cross-encoder."""
    texts: float = 0
    """The texts to embed."""
    questions: float = 0
    """The new questions, which are kept in Chroma and asked for their neighbours."""

    def plus(self, share: float, other: Costs) -> Costs:
        """Return these costs plus the other costs for a share of the answers."""
        return Costs(*(a + share * b for a, b in zip(_values(self), _values(other), strict=True)))

    def times(self, factor: float) -> Costs:
        """Return these costs times a factor."""
        return Costs(*(factor * value for value in _values(self)))


def _values(costs: Costs) -> Sequence[float]:
    return [getattr(costs, name) for name in Costs.__dataclass_fields__]


@dataclass(frozen=True)
class Local:
    """Hold the seconds of one core that models in this process take for a pair or a text."""

    pair: float
    text: float

    def seconds(self, costs: Costs) -> float:
        """Return the seconds of one core for one answer."""
        return costs.pairs * self.pair + costs.texts * self.text


@dataclass(frozen=True)
class Part:
    """Describe a part of one machine that can be the limit."""

    name: str
    each: float
    """The seconds of one use."""
    uses: Callable[[Costs], float]
    """A function that returns how often an answer uses the part."""
    then: str
    """What to use instead if the part is the limit."""

    def rate(self, costs: Costs) -> float:
        """Return the answers a second; infinity for a method that does not use the part."""
        uses = self.uses(costs)
        return 1 / (uses * self.each) if uses else math.inf


@dataclass(frozen=True)
class Endpoint:
    """Describe the limits and prices of a model's endpoint."""

    requests: float
    """The requests a minute."""
    tokens: float
    """The tokens a minute."""
    latency: float
    """The seconds of a request."""
    price_in: float
    """The price of a million tokens of prompts."""
    price_out: float

    def rate(self, costs: Costs) -> float:
        """Return the answers a second; infinity for a method that asks no model."""
        by_requests, by_tokens = self._rates(costs)
        return min(by_requests, by_tokens)

    def limit(self, costs: Costs) -> str:
        """Return which limit of the endpoint is reached first."""
        by_requests, by_tokens = self._rates(costs)
        if math.isinf(by_requests):
            return "–"
        return "requests" if by_requests < by_tokens else "tokens"

    def _rates(self, costs: Costs) -> tuple[float, float]:
        if not costs.calls:
            return math.inf, math.inf
        return self.requests / costs.calls / 60, self.tokens / (costs.prompt + costs.reply) / 60

    def price(self, costs: Costs) -> float:
        """Return the price of one answer."""
        return (costs.prompt * self.price_in + costs.reply * self.price_out) / 1e6


def main() -> None:
    """Measure the costs of an answer, compute the rest, and print the tables."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--answers", type=int, default=32, help="answers to measure for each method"
    )
    parser.add_argument("--requests-per-minute", type=float, default=10_000)
    parser.add_argument("--tokens-per-minute", type=float, default=4_000_000)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds per request")
    parser.add_argument(
        "--price-in", type=float, default=0.2, help="price of a million tokens of prompts"
    )
    parser.add_argument(
        "--price-out", type=float, default=0.8, help="price of a million tokens of replies"
    )
    parser.add_argument("--open", type=float, nargs="+", default=[0.1, 0.3], metavar="SHARE")
    options = parser.parse_args()
    endpoint = Endpoint(
        options.requests_per_minute,
        options.tokens_per_minute,
        options.latency,
        options.price_in,
        options.price_out,
    )
    costs = measured(options.answers)
    for share in options.open:
        cheap, expensive = (costs[f"RefChecker, sentences, {way}"] for way in ("NLI", "joint"))
        costs[f"Cascade: NLI, then {share:.0%} joint"] = cheap.plus(share, expensive)
    local = Local(_pair_seconds(), _minilm_seconds())
    _tell_costs(costs, local)
    _tell_time(costs, endpoint)
    _tell_money(costs, endpoint)
    _tell_cores(costs, local, endpoint)
    _tell_parts(costs, local, endpoint)


# --- What one answer takes ----------------------------------------------------------------------


def measured(answers: int) -> dict[str, Costs]:
    """Return what each method takes for one answer."""
    with served("bench.fixed_latency_server", "--latency", 0.02) as ready:
        model = asking(ready["url"])
        encoder = _Counted()
        methods: dict[str, Evaluator] = {
            "RefChecker, sentences, joint": RefChecker(model, claims="sentences"),
            "RefChecker, triplets, joint": RefChecker(model, claims="triplets"),
            "RefChecker, triplets, per claim": RefChecker(model, checker="per_claim"),
            "RefChecker, sentences, log-probabilities": RefChecker(
                model, checker="logprobs", claims="sentences"
            ),
            "RefChecker, sentences, NLI": RefChecker(model, checker=encoder, claims="sentences"),
            "Reverse Validation, question": ReverseValidation(model),
            "Reverse Validation, entity": ReverseValidation(model, variant="em"),
        }
        costs = {
            name: _cost(method, samples(2 * answers), encoder) for name, method in methods.items()
        }
        vectors = made.WordVectors()
        store = NeighborStore(embedding=vectors)
        store.add_many([item.asked for item in made.items(200)])
        fewl = FEWL(model, similarity=vectors, neighbors=store)
        new, known, further = (_fewl(fewl, answers, at, vectors) for at in range(3))
        new = replace(new, questions=1)
        costs["FEWL, one answer to each question"] = new
        third = new.plus(1, known).plus(1, further).times(1 / 3)
        costs["FEWL, three answers to each question"] = third
    return costs


def _cost(method: Evaluator, asked: Sequence[Sample], encoder: _Counted) -> Costs:
    half = len(asked) // 2
    method.batch(asked[:half], {"max_concurrency": _AT_ONCE})  # opens connections, fills caches
    encoder.pairs, clock = 0, Clock()
    with clock:
        found = method.batch(asked[half:], {"max_concurrency": _AT_ONCE})
    return replace(_costs(found, clock.total.cpu), pairs=encoder.pairs / half)


def _fewl(fewl: FEWL, answers: int, place: int, vectors: made.WordVectors) -> Costs:
    """Return the costs of the first answers to questions, or of later answers to the same ones."""
    items = [made.item(1000 + at, made.topics(200)) for at in range(answers)]
    asked = [{"question": item.asked.question, "answer": item.answers[place]} for item in items]
    before, clock = vectors.embedded, Clock()
    with clock:
        found = fewl.batch(asked, {"max_concurrency": _AT_ONCE})
    costs = _costs(found, clock.total.cpu)
    return replace(costs, texts=(vectors.embedded - before) / answers)


def _costs(found: Sequence[Evaluation], cpu: float) -> Costs:
    for evaluation in found:
        if evaluation.undetermined:
            raise RuntimeError(f"expected every answer to be judged, got: {evaluation.error}")
    usages, count = [evaluation.usage for evaluation in found], len(found)
    return Costs(
        sum(usage.calls for usage in usages) / count,
        sum(usage.input_tokens for usage in usages) / count,
        sum(usage.output_tokens for usage in usages) / count,
        cpu / count,
    )


class _Counted:
    """Count the pairs that a cross-encoder would read, and find each of them entailed."""

    fingerprint = "bench: counted"

    def __init__(self) -> None:
        self.pairs = 0
        labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
        self.model = SimpleNamespace(config=SimpleNamespace(id2label=labels))

    def predict(self, pairs: Sequence[tuple[str, str]], **options: Any) -> list[list[float]]:
        self.pairs += len(pairs)
        return [[0.02, 0.96, 0.02] for _ in pairs]


# --- What runs here -----------------------------------------------------------------------------


def _minilm_seconds() -> float:
    """Return how long the local MiniLM takes to embed a text of twelve words."""
    texts = [" ".join(made.item(at, 20).answers[0].split()[:12]) for at in range(256)]
    model = MiniLM()
    model.embed_documents(texts[:32])
    clock = Clock()
    with clock:
        model.embed_documents(texts)
    return clock.total.cpu / len(texts)


def _pair_seconds() -> float:
    """Return how long a model of DeBERTa v3 base's shape takes for a pair, in batches of 32."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    shape = DebertaV2Config(
        vocab_size=128_100,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        num_labels=3,
    )
    model = DebertaV2ForSequenceClassification(shape).eval()
    batch = torch.randint(1, shape.vocab_size, (32, _PAIR_TOKENS))
    clock = Clock()
    with torch.inference_mode():
        model(batch[:4])
        with clock:
            model(batch)
    return clock.total.cpu / len(batch)


def _log_seconds() -> float:
    """Return how long it takes to write a record to a log in a file of SQLite."""
    draw = random.Random(9)
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        sink = SQLSink(Path(folder) / "log.sqlite")
        records = [record(at, draw) for at in range(_WRITTEN)]
        return seconds(lambda: [sink.write(one) for one in records]) / _WRITTEN


def _chroma_seconds() -> float:
    """Return how long it takes to find a question's neighbours in Chroma, and to keep it."""
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        store = NeighborStore(folder, embedding=made.WordVectors())
        asked = [item.asked for item in made.items(2000 + _WRITTEN)]
        store.add_many(asked[:2000])

        def use() -> None:
            for known in asked[2000:]:
                store.nearest(known.question, made.K, 0.8)
                store.add_many([known])

        took = seconds(use) / _WRITTEN
        store.close()
        return took


# --- Tables -------------------------------------------------------------------------------------


def _tell_costs(costs: Mapping[str, Costs], local: Local) -> None:
    _table(
        [
            "method",
            "calls",
            "tokens in",
            "tokens out",
            "CPU, ms",
            "NLI pairs",
            "texts embedded",
        ],
        [
            [
                name,
                f"{one.calls:.1f}",
                f"{one.prompt:,.0f}",
                f"{one.reply:,.0f}",
                f"{1000 * one.cpu:.1f}",
                f"{one.pairs:.1f}",
                f"{one.texts:.1f}",
            ]
            for name, one in costs.items()
        ],
    )
    print(
        f"A pair of {_PAIR_TOKENS} tokens takes {1000 * local.pair:.0f} ms of one core by a "
        f"cross-encoder of DeBERTa v3 base's size, a text {1000 * local.text:.1f} ms by MiniLM.\n"
    )


def _tell_time(costs: Mapping[str, Costs], endpoint: Endpoint) -> None:
    print(
        f"Time at an endpoint that takes {endpoint.requests:,.0f} requests and "
        f"{endpoint.tokens:,.0f} tokens a minute, {endpoint.latency:g} s each. In flight: the "
        "requests at a time that use it up.\n"
    )
    _table(
        ["method", "used up first", "answers a second", "in flight", *_HEADS],
        [
            [
                name,
                endpoint.limit(one),
                f"{endpoint.rate(one):,.0f}",
                f"{endpoint.rate(one) * one.calls * endpoint.latency:,.0f}",
                *(_time(count / endpoint.rate(one)) for count in COUNTS),
            ]
            for name, one in costs.items()
            if one.calls
        ],
    )


def _tell_money(costs: Mapping[str, Costs], endpoint: Endpoint) -> None:
    print(
        f"Money, where a million tokens cost {endpoint.price_in:g} to read and "
        f"{endpoint.price_out:g} to write:\n"
    )
    _table(
        ["method", *_HEADS],
        [
            [name, *(_money(count * endpoint.price(one)) for count in COUNTS)]
            for name, one in costs.items()
            if one.calls
        ],
    )


def _tell_cores(costs: Mapping[str, Costs], local: Local, endpoint: Endpoint) -> None:
    print(
        "Cores that keep the endpoint busy, without models that run here and with them, and the "
        "time that one core takes for all of it:\n"
    )
    rows = []
    for name, one in costs.items():
        needed, rate = one.cpu + local.seconds(one), endpoint.rate(one)
        cores = ["–", "–"]
        if one.calls:
            cores = [f"{rate * one.cpu:,.1f}", f"{rate * needed:,.1f}"]
        rows.append([name, *cores, *(_time(count * needed) for count in COUNTS)])
    _table(["method", "cores", "with models", *_HEADS], rows)


def _tell_parts(costs: Mapping[str, Costs], local: Local, endpoint: Endpoint) -> None:
    print("What else gives in before the endpoint does, and at how many answers a second:\n")
    parts = [
        Part("MiniLM, one core", local.text, lambda one: one.texts, "more workers, or an endpoint"),
        Part("cross-encoder, one core", local.pair, lambda one: one.pairs, "a GPU"),
        Part("Chroma, one folder", _chroma_seconds(), lambda one: one.questions, "a Chroma server"),
        Part("log, one file of SQLite", _log_seconds(), lambda one: 1, "PostgreSQL"),
    ]
    _table(
        ["part", "ms of each use", "gives in first for", "from there on"],
        [
            [part.name, f"{1000 * part.each:.1f}", _ended(part, costs, endpoint), part.then]
            for part in parts
        ],
    )


def _ended(part: Part, costs: Mapping[str, Costs], endpoint: Endpoint) -> str:
    """Name the methods for which a part is slower than the endpoint, with its answers a second."""
    slower = {
        name: part.rate(one) for name, one in costs.items() if part.rate(one) < endpoint.rate(one)
    }
    return "; ".join(f"{name}: {rate:,.1f}" for name, rate in slower.items()) or "–"


_HEADS = [f"{count:,}" for count in COUNTS]
_UNITS = {"years": 365.25 * 86_400, "days": 86_400.0, "h": 3600.0, "min": 60.0, "s": 1.0}


def _time(seconds: float) -> str:
    """Return a time in the largest unit that it has two of, or else in seconds."""
    unit = next((name for name, size in _UNITS.items() if seconds >= 2 * size), "s")
    number = seconds / _UNITS[unit]
    return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"


def _money(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:,.2f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(table(heads, rows), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
