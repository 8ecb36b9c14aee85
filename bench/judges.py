"""Measure the judges of demur's own: "small", and that of "local" beside llama.cpp.

    make bench        or: python -m bench.judges [--rounds 5] [--local [--workers 4]]

Each check is of three sentences over three passages of 75 words, two of them supported. "small" is
measured in a fresh interpreter, from the import on. With `--local`, demur's judge and llama.cpp
with the same adapter, as xllamacpp's wheel has it, take turns, each with passages that it has not
read yet. Then each is asked about more sentences over the same passages, and several processes
judge at the same time, each with a judge of its own, and all by one that is served.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.measuring import Clock, arguments
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from demur import RefChecker
from demur.local import QWEN, find_judge, resolve_judge
from demur.local.cores import usable_cores
from demur.local.judge_files import kernels
from demur.local.judges import ADAPTER
from demur.local.server import load_runtime
from demur.local.weights import find_fetched

PASSAGES = (
    "The town library of Brunnau opened in 1911 in a former corn store beside the river. It has "
    "two floors and a reading room for children under the roof. Books are lent for four weeks, and "
    "films for one. Who brings a book back late pays twenty cents a day, but never more than five "
    "euros. The library is closed on Mondays, and on the first Friday of every month it stays open "
    "until ten in the evening for readings.",
    "Line 7 of the tram runs from the harbour to the zoo in thirty-one minutes. Cars follow each "
    "other every eight minutes on weekdays, and every fifteen on Sundays. Bicycles may be taken "
    "along after nine in the morning at no charge. Between the theatre and the hospital the line "
    "is under repair until March, and buses take its place there. Tickets of the tram are valid in "
    "these buses, and drivers sell none.",
    "The recipe for the bread needs a kilogram of flour, seven hundred grams of water, twenty "
    "grams of salt and a spoon of yeast. The dough rests for twelve hours in a cool room, and is "
    "folded twice in the first two. It is baked for forty minutes at two hundred and thirty "
    "degrees, the first half of them under a lid. The loaf must cool for two hours before it is "
    "cut, or the crumb will stick to the knife.",
)
ANSWER = (
    "The library is closed on Mondays. Line 7 takes thirty-one minutes from the harbour to the "
    "zoo. The bread is baked for ninety minutes."
)
FURTHER = "Films are lent for one week."
ANSWERS = {
    "3 sentences over 3 passages": ANSWER,
    "3 others over the same": "Books are lent for four weeks. Bicycles may be taken along after "
    "nine in the morning. The dough rests for two hours.",
    "1 more": FURTHER,
    "20 more": " ".join(f"The loaf must cool for {hours} hours." for hours in range(3, 23)),
}
LONG = " ".join(PASSAGES)
ENGINES = ("local", "wheel")
_SMALL = """
import json, resource, sys, time
before = time.perf_counter()
from demur import RefChecker
imported = time.perf_counter()
sample = json.loads(sys.argv[1])
checker = RefChecker("small")
checker.invoke({"answer": "It is.", "contexts": ["It is so."], "question": "Is it?"})
loaded = time.perf_counter()
taken = []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    found = checker.invoke(sample)
    taken.append(time.perf_counter() - started)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([imported - before, loaded - imported, taken, peak, found.score]))
"""


def _small(rounds: int) -> None:
    sample = json.dumps({"answer": ANSWER, "contexts": PASSAGES})
    command = [sys.executable, "-c", _SMALL, sample, str(rounds)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    imported, loaded, taken, peak, score = json.loads(said)
    print(f"import of demur           {imported:.2f} s")
    print(f"small: files and session  {loaded:.2f} s")
    print(
        f"small: 3 sentences over 3 passages  median {statistics.median(taken):.2f} s "
        f"(from {min(taken):.2f} to {max(taken):.2f}), score {score:.2f}"
    )
    print(f"small: memory of the process, at most  {peak:.0f} MB")


class Wheel(ChatOpenAI):
    """Judge by llama.cpp as xllamacpp's wheel has it, with the adapter always on."""

    @property
    def judging(self) -> dict[str, Any]:
        """Return no call options, since the adapter needs none."""
        return {}


def _wheel() -> BaseChatModel:
    """Start llama.cpp's server in this process, and return a model that asks it."""
    runtime = load_runtime()
    params, adapter = runtime.CommonParams(), runtime.CommonAdapterLoraInfo()
    params.model.path = str(find_fetched(QWEN))
    adapter.path, adapter.scale = str(find_judge(ADAPTER).path), 1.0
    params.lora_adapters = [adapter]
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 8192, 1, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = usable_cores()
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = runtime.Server(params)
    _servers.append(server)
    return Wheel(
        model="wheel", base_url=f"{server.listening_address}/v1", api_key="none", temperature=0
    )


_servers: list[Any] = []


def _checker(engine: str) -> RefChecker:
    """Return a checker by demur's judge, by llama.cpp's wheel, or by a judge at an address.

    Its model is loaded.
    """
    model = _wheel() if engine == "wheel" else resolve_judge(engine)
    checker = RefChecker(model, checker="adapter", claims="sentences")
    checker.invoke({"answer": "The shop is shut.", "contexts": ["The shop is shut."]})
    return checker


def _local(rounds: int) -> None:
    checkers = {engine: _checker(engine) for engine in ENGINES}
    taken: dict[tuple[str, str], Clock] = defaultdict(Clock)
    tokens: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for engine, checker in checkers.items():
            contexts = [f"Page {number} of {engine}. {text}" for text in PASSAGES]
            for what, answer in ANSWERS.items():
                with taken[what, engine]:
                    found = checker.invoke({"answer": answer, "contexts": contexts})
                assert found.error is None, found.error
            with taken["a text alone", engine]:
                alone = checker.invoke({"answer": FURTHER, "contexts": [f"{number} {LONG}"]})
            tokens[engine].append(
                alone.usage.input_tokens / taken["a text alone", engine].walls[-1]
            )
    for what in ANSWERS:
        medians = {engine: taken[what, engine].median.wall for engine in checkers}
        print(
            f"{what}: "
            + ", ".join(f"{engine} {median:.2f} s" for engine, median in medians.items())
            + f", ratio {medians['local'] / medians['wheel']:.2f}"
        )
    rates = {engine: statistics.median(rate) for engine, rate in tokens.items()}
    print("tokens a second: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))


def _side_by_side(workers: int) -> None:
    """Measure several processes, while this one has no judge that would share their memory."""
    for engine in ENGINES:
        _several(engine, workers)
    command = [sys.executable, "-m", "demur", "judge", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        _several(f"judge:{server.stderr.readline().split()[-1]}", workers, server.pid)
        server.terminate()


def _several(engine: str, workers: int, server: int | None = None) -> None:
    """Print the time and memory of several processes that judge at the same time.

    Args:
        engine: What they judge by.
        workers: The number of processes.
        server: The process that serves the judge, if one does.
    """
    spawn = multiprocessing.get_context("spawn")
    barrier, told = spawn.Barrier(workers), spawn.Queue()
    running = [
        spawn.Process(target=_worker, args=(engine, number, barrier, told))
        for number in range(workers)
    ]
    for process in running:
        process.start()
    found = [told.get() for _ in running]
    for process in running:
        process.join()
    taken, shares, own = (list(each) for each in zip(*found, strict=True))
    if server is not None:
        share, unshared = _memory(server)
        shares.append(share)
        own.append(unshared)
    print(
        f"{workers} processes, {engine}: 3 sentences in each {max(taken):.1f} s, memory together "
        f"{sum(shares):,.0f} MB, of which not shared {sum(own):,.0f} MB"
    )


def _worker(engine: str, number: int, barrier: Any, told: Any) -> None:
    checker = _checker(engine)
    contexts = [f"Page {number} of {engine}. {text}" for text in PASSAGES]
    barrier.wait()
    with (clock := Clock()):
        found = checker.invoke({"answer": ANSWER, "contexts": contexts})
    assert found.error is None, found.error
    barrier.wait()
    told.put((clock.total.wall, *_memory("self")))
    barrier.wait()  # as long as all are counted


def _memory(process: int | str) -> tuple[float, float]:
    """Return the memory of a process in MB: its part of what it shares and its own, and its own."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    memory = {
        name: int(size.split()[0]) / 1024
        for name, _, size in (one.partition(":") for one in lines[1:])
    }
    return memory["Pss"], memory["Anonymous"]


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--local", action="store_true", help="measure the local model too")
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    _small(options.rounds)
    if options.local:
        print(f"the processor has {kernels()}")
        _side_by_side(options.workers)
        _local(options.rounds)


if __name__ == "__main__":
    main()
