"""Define the checks: what is asked, and what is counted of the replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from . import facts
from .runner import Running, calls
from .server import BEHAVIOURS, Seen, Server

Counts = dict[str, Any]
"""What a check found, as JSON."""
Check = Callable[[Running, Server, tuple[str, ...], int], Counts]
"""A function of a running guard, the server, the guard's modes and the number of calls of each
kind."""

PATIENCE = 120.0
"""The seconds after which a call counts as hung: long, as a product's first call may import what it
needs on a busy machine."""
OWN_PATIENCE = 900.0
"""The same for hundreds of calls whose judge is a model in the product's process."""
JUDGE_TIMEOUT = 1.0
"""The seconds that a product is told to wait for a judge that never answers."""
LEAVE_AFTER = 0.5
"""The seconds that a client waits for a first piece before it goes away."""
_SPARE = 120.0
"""The seconds that a job may take beyond the patience with one call, after which the adapter itself
is given up."""
_IN_NO_REFERENCE = "not run: the padding stands in no reference"


def leak(running: Running, server: Server, modes: tuple[str, ...], count: int) -> Counts:
    """Count the wrong answers that reach a client in each mode, and the right ones that do."""
    asked = calls(list(range(10, 10 + 2 * count)), server.url())
    found: Counts = {}
    for mode in modes:
        # Streams in threads run one by one, because `crowd` checks how threads affect each other.
        results = _ask(running, server, mode, asked, 1 if mode == "stream" else 5)
        found[mode] = _told(results)
    first = facts.RECOVERS.start
    asked = calls(list(range(first + 1, first + 2 * count, 2)), server.url())
    results = _ask(running, server, modes[0], asked, 5)
    whole = sum(_is_whole(one) for one in results)
    found["put right"] = {"wrong": count, "whole": whole, "leaked": sum(map(_leaked, results))}
    return found


def fails(running: Running, server: Server, modes: tuple[str, ...], count: int) -> Counts:
    """Count what happens to answers when the judge misbehaves, whole and streamed."""
    numbers = list(range(10, 10 + 2 * max(1, count // 5)))
    urls = {server.url(behaviour): behaviour for behaviour in BEHAVIOURS[1:]}
    found: Counts = {}
    for mode in _whole_and_streamed(modes):
        # All misbehaviours run at once, so that their waiting times do not add up.
        asked = [call for url in urls for call in calls(numbers, url)]
        results = _ask(running, server, mode, asked, len(asked), timeout=JUDGE_TIMEOUT)
        for url, behaviour in urls.items():
            wrong, right = _apart(one for one in results if one["url"] == url)
            found[f"{mode}, {behaviour}"] = {
                "wrong": dict(Counter(map(_fate_of_wrong, wrong))),
                "right": dict(Counter(map(_fate_of_right, right))),
                "seconds": round(max(one["seconds"] for one in (*wrong, *right)), 1),
            }
    return found


def padding(running: Running, server: Server, modes: tuple[str, ...], count: int) -> Counts:
    """Check whether the judge sees a wrong sentence in 50 kB, and right answers still pass."""
    count = max(1, count // 4)
    found: Counts = {}
    for name, numbers in (("answer", facts.PADDED_ANSWER), ("evidence", facts.PADDED_EVIDENCE)):
        if name == "answer" and running.guard.judges_itself:
            # A scripted judge looks at the marks only. A real one is right to refuse the padding.
            found[name] = {"none": _IN_NO_REFERENCE}
            continue
        asked = list(numbers[: 2 * count])
        results = _ask(running, server, modes[0], calls(asked, server.url()), 2)
        told = _told(results)
        told["seen"] = None if running.guard.judges_itself else _seen(server, asked)
        told["seconds"] = round(max(one["seconds"] for one in results), 1)
        found[name] = told
    return found


def crowd(running: Running, server: Server, modes: tuple[str, ...], count: int) -> Counts:
    """Make 500 calls, 100 streams and 20 streams in threads at once, and count false verdicts."""
    found: Counts = {}
    patience = OWN_PATIENCE if running.guard.judges_itself else PATIENCE
    for mode, times in (("whole", 25), ("astream", 5), ("stream", 1)):
        if mode not in modes:
            continue
        numbers = list(range(4000, 4000 + times * count))
        asked = calls(numbers, server.url())
        results = _ask(running, server, mode, asked, len(asked), patience=patience)
        told = _told(results)
        _, right = _apart(results)
        told["mixed"] = sum(bool(facts.numbers(one["received"]) - {one["at"]}) for one in results)
        told["mixed prompts"] = server.seen.mixed
        told["errors"] = dict(Counter(_name(one) for one in right if one["ended"] == "raised"))
        told["patience"] = patience
        told["hung"] = sum(one["ended"] == "hung" for one in results)
        told["requests"] = dict(server.seen.asked)
        told["wall"] = round(max(one["seconds"] for one in results), 1)
        found[mode] = told
    return found


def cancel(running: Running, server: Server, modes: tuple[str, ...], count: int) -> Counts:
    """Let clients go away while the chain writes or the judge thinks, and count what still runs."""
    count = max(1, count // 2)
    found: Counts = {}
    if "astream" not in modes:
        return {"none": "no asynchronous mode: a thread that waits cannot go away"}
    for name, numbers in (("chain", facts.SLOW_CHAIN), ("judge", facts.SLOW_JUDGE)):
        server.seen = Seen()
        done = running.job(
            _SPARE + PATIENCE,
            mode="astream",
            options={"timeout": 60.0},
            # Only right answers, which no verdict ends early.
            calls=calls(list(numbers[: 2 * count : 2]), server.url()),
            at_once=count,
            patience=PATIENCE,
            leave_after=LEAVE_AFTER,
            next=calls([10], server.url()),
        )
        _check_prompts(server.seen)
        found[name] = {
            "left": count,
            "open": done["open"],
            "tasks": done["tasks"],
            "threads": done["threads"],
            "held": round(max(one["held"] for one in done["results"]), 1),
            "next": all(map(_is_whole, done["next"])),
        }
    return found


def forged(running: Running, server: Server, modes: tuple[str, ...], count: int) -> Counts:
    """Send wrong answers that forge the marks of a judge's prompt, on which the judge relies."""
    numbers = list(facts.FORGED[: 2 * max(1, count // 4)])
    told = _told(_ask(running, server, modes[0], calls(numbers, server.url()), 5))
    return {**told, "seen": _seen(server, numbers)}


CHECKS: dict[str, Check] = {
    "leak": leak,
    "fails": fails,
    "padding": padding,
    "crowd": crowd,
    "cancel": cancel,
    "forged": forged,
}


class BlindError(Exception):
    """Say that a check means nothing.

    The judge did not know a prompt, or the chain was never asked.
    """


def _ask(
    running: Running,
    server: Server,
    mode: str,
    asked: list[dict[str, Any]],
    at_once: int,
    timeout: float = 60.0,
    patience: float = PATIENCE,
) -> list[dict[str, Any]]:
    server.seen = Seen()
    done = running.job(
        _SPARE + patience,
        mode=mode,
        options={"timeout": timeout},
        calls=asked,
        at_once=at_once,
        patience=patience,
    )
    _check_prompts(server.seen)
    results: list[dict[str, Any]] = done["results"]
    return results


def _check_prompts(seen: Seen) -> None:
    """Refuse to count if the adapter, and not the product, may be wrong.

    Raises:
        BlindError: The judge did not know a prompt, or the chain was never asked.
    """
    if seen.unknown:
        raise BlindError(f"the judge does not know this prompt: {seen.unknown[0][:200]!r}")
    if not seen.asked["chain"]:
        raise BlindError("the chain's model was never asked")


def _told(results: list[dict[str, Any]]) -> Counts:
    """Return the counts of wrong and right answers in a list of calls."""
    wrong, right = _apart(results)
    return {
        "wrong": len(wrong),
        "leaked": sum(map(_leaked, wrong)),
        "canaries": sum(len(_canaries(one)) for one in wrong),
        "right": len(right),
        "whole": sum(map(_is_whole, right)),
    }


def _seen(server: Server, numbers: list[int]) -> int:
    """Return how many wrong answers the judge saw with all of their wrong sentences."""
    judged = [server.seen.judged.get(at, set()) for at in numbers if facts.is_wrong(at)]
    return sum(len(canaries) == len(facts.WRONG) for canaries in judged)


def _apart(
    results: Iterable[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    kinds: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for one in results:
        kinds[not facts.is_wrong(one["at"])].append(one)
    return kinds


def _canaries(one: dict[str, Any]) -> set[str]:
    """Return the marks of wrong sentences that reached the client, in its text or in an error."""
    return facts.canaries(one["received"] + one["error"])


def _leaked(one: dict[str, Any]) -> bool:
    return bool(_canaries(one))


def _is_whole(one: dict[str, Any]) -> bool:
    marks = facts.rights(facts.answer(one["at"], wrong=False))
    return one["ended"] == "returned" and marks <= facts.rights(one["received"])


def _fate_of_wrong(one: dict[str, Any]) -> str:
    if one["ended"] == "hung":
        return "hung"
    if one["ended"] == "raised":
        return "leaked, then raised" if _leaked(one) else "raised"
    if not _leaked(one):
        return "blocked"
    marks = facts.marks(facts.answer(one["at"], wrong=True))
    return "let through" if marks <= facts.marks(one["received"]) else "leaked, then stopped"


def _fate_of_right(one: dict[str, Any]) -> str:
    if one["ended"] in ("hung", "raised"):
        return str(one["ended"])
    if _is_whole(one):
        return "let through"
    return "cut short" if facts.marks(one["received"]) else "blocked"


def _name(one: dict[str, Any]) -> str:
    return str(one["error"]).partition(":")[0]


def _whole_and_streamed(modes: tuple[str, ...]) -> list[str]:
    return [modes[0], "astream" if "astream" in modes else "stream"]


def any_hung(found: Counts) -> bool:
    """Return whether a call was given up because it had not ended."""
    return any(
        bool(value) if name == "hung" else isinstance(value, dict) and any_hung(value)
        for name, value in found.items()
    )
