"""Run an adapter in its product's environment: read jobs as lines of JSON, and write results so.

    python harness.py ADAPTER.py SETTING

Beside the product, only the standard library is used here. An adapter has a function
`modes(setting, url, timeout)`. It builds the guarded chain once, as an application does, and
returns the ways to ask it. A way is a function of a question and its documents. It returns a
generator, asynchronous or not, of what the client gets.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import inspect
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.request import urlopen

Call = dict[str, Any]
"""A mapping with `at`, `question`, `contexts`, and the `url` of the server to use."""
Ask = Callable[[Call], Any]
"""A function from a call to the generator, asynchronous or not, of what the client gets."""
GRACE = 1.0
"""The seconds after the last client has left until requests that are still open count as left
behind."""
_LOOP = asyncio.new_event_loop()
"""One event loop for all jobs, as in a service, because models' clients keep connections in it."""


def do(modes: Callable[[str], dict[str, Any]], job: dict[str, Any]) -> dict[str, Any]:
    """Make all calls of a job, some of them at once, and return what happened to each.

    Args:
        modes: A function from a URL to the ways to ask the chain that uses it.
        job: What `checks` asks for.
    """

    def ask(call: Call) -> Any:
        return modes(call["url"])[job["mode"]](call["question"], call["contexts"])

    # The time of a call does not include building the chain.
    built = [modes(url)[job["mode"]] for url in {call["url"] for call in job["calls"]}]
    if not inspect.isasyncgenfunction(built[0]):
        return {"results": _in_threads(ask, job)}
    found = _LOOP.run_until_complete(_in_tasks(ask, job))
    for task in asyncio.all_tasks(_LOOP):
        task.cancel()
    _LOOP.run_until_complete(asyncio.sleep(0.01))
    return found


async def _in_tasks(ask: Ask, job: dict[str, Any]) -> dict[str, Any]:
    turns = asyncio.Semaphore(job["at_once"])
    leave_after, patience = job.get("leave_after"), job["patience"]

    async def one(call: Call) -> dict[str, Any]:
        async with turns:
            if leave_after is not None:
                return await _leave(ask, call, leave_after)
            return await _listen(ask, call, patience)

    results = await asyncio.gather(*(one(call) for call in job["calls"]))
    if leave_after is None:
        return {"results": results}
    await asyncio.sleep(GRACE)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    return {
        "results": results,
        "tasks": len(left),
        "threads": _threads() - job["threads_before"],
        "open": await asyncio.to_thread(_open, job["calls"][0]["url"]),
        "next": [await _listen(ask, call, patience) for call in job["next"]],
    }


async def _listen(ask: Ask, call: Call, patience: float) -> dict[str, Any]:
    """Act as a client that takes everything."""
    got: list[str] = []
    started = time.perf_counter()

    async def take() -> None:
        async with contextlib.aclosing(ask(call)) as pieces:
            async for piece in pieces:
                got.append(str(piece))

    task = asyncio.ensure_future(take())
    done, _ = await asyncio.wait({task}, timeout=patience)
    if not done:
        task.cancel()
        await asyncio.wait({task}, timeout=1.0)
        return _result(call, got, started, "hung")
    error = task.exception()
    return _result(call, got, started, "raised" if error else "returned", error)


async def _leave(ask: Ask, call: Call, after: float) -> dict[str, Any]:
    """Act as a client that takes the first piece, or waits a moment for it, and goes away."""
    started = time.perf_counter()
    pieces: AsyncGenerator[Any, None] = ask(call)
    first = asyncio.ensure_future(anext(pieces))
    await asyncio.wait({first}, timeout=after)
    got = [str(first.result())] if first.done() and not first.exception() else []

    async def go() -> None:
        first.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await first
        with contextlib.suppress(Exception):
            await pieces.aclose()

    began = time.perf_counter()
    going = asyncio.ensure_future(go())
    await asyncio.wait({going}, timeout=10.0)
    return _result(call, got, started, "left", held=time.perf_counter() - began)


def _in_threads(ask: Ask, job: dict[str, Any]) -> list[dict[str, Any]]:
    todo: queue.SimpleQueue[Call] = queue.SimpleQueue()
    for call in job["calls"]:
        todo.put(call)
    results: dict[str, dict[str, Any]] = {}

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                call = todo.get_nowait()
                results[_key(call)] = _take(ask, call)

    count = min(job["at_once"], len(job["calls"]))
    # Daemon threads, so that a thread that hangs does not keep the process alive.
    workers = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    started = time.perf_counter()
    deadline = started + job["patience"] * -(-len(job["calls"]) // count)
    for worker in workers:
        worker.join(max(0.0, deadline - time.perf_counter()))
    return [results.get(_key(call)) or _result(call, [], started, "hung") for call in job["calls"]]


def _key(call: Call) -> str:
    return f"{call['url']} {call['at']}"


def _take(ask: Ask, call: Call) -> dict[str, Any]:
    got: list[str] = []
    started = time.perf_counter()
    try:
        for piece in ask(call):
            got.append(str(piece))
    except Exception as error:
        return _result(call, got, started, "raised", error)
    return _result(call, got, started, "returned")


def _result(
    call: Call,
    got: list[str],
    started: float,
    ended: str,
    error: BaseException | None = None,
    held: float = 0.0,
) -> dict[str, Any]:
    return {
        "at": call["at"],
        "url": call["url"],
        "received": "".join(got),
        "ended": ended,
        "error": f"{type(error).__name__}: {error}" if error else "",
        "held": held,
        "seconds": time.perf_counter() - started,
    }


def _open(url: str) -> dict[str, int]:
    with urlopen(f"{url}/state", timeout=5) as reply:
        found: dict[str, int] = json.load(reply)["open"]
    return found


def _threads() -> int:
    """Count the threads, without those of pools, which wait for work."""
    pooled = ("ThreadPoolExecutor", "asyncio_", "AnyIO", "demur")
    return sum(not thread.name.startswith(pooled) for thread in threading.enumerate())


def main() -> None:
    """Read jobs until there are no more."""
    path, setting = sys.argv[1:3]
    asyncio.set_event_loop(_LOOP)
    # The product's own output must not mix with the results.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[:] = [*sys.path[1:], os.path.dirname(path)]
    spec = importlib.util.spec_from_file_location("adapter", path)
    assert spec is not None
    assert spec.loader is not None
    adapter = importlib.util.module_from_spec(spec)
    sys.modules["adapter"] = adapter
    try:
        spec.loader.exec_module(adapter)
        ready: dict[str, Any] = {"settings": adapter.SETTINGS}
    except Exception as error:
        ready = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(ready), file=out, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        modes = functools.lru_cache(functools.partial(adapter.modes, setting, **job["options"]))
        try:
            if job["mode"] is None:
                found: dict[str, Any] = {"modes": list(modes(job["url"]))}
            else:
                found = do(modes, {**job, "threads_before": _threads()})
        except Exception:
            found = {"error": traceback.format_exc()}
        print(json.dumps(found), file=out, flush=True)
    os._exit(0)  # ends what the product has left running


if __name__ == "__main__":
    main()
