"""Find what differs between two sets of fingerprints, by the names of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

_BETWEEN = re.compile(r", | \(|\)")
_PART = re.compile(r"([^\s=]+)=(.*)", re.DOTALL)
_HOST = re.compile(r"(?<=[( ])host=([^,)]*)")
_DIGITS = re.compile(r"#[0-9a-f]{12}")
_PLAIN = re.compile(r"[\w.:/#+-]+")
_LONGEST = 100
_MOST_TOLD = 6
_MOST_KEYS = 3
_FIRST = "evaluator"
"""The key that is reported first, because everything differs between evaluators of two kinds."""


@dataclass(frozen=True)
class Difference:
    """Describe something that differs between two sets of fingerprints."""

    what: str
    """The name of what differs, such as "temperature of model and validator"."""
    here: str | None
    """Its value in the first set; None if it is not set there."""
    there: str | None
    """Its value in the second set; None if it is not set there."""

    @property
    def is_host(self) -> bool:
        """Return whether both values are hosts of models."""
        return self.what.startswith("host of ") and None not in (self.here, self.there)

    def told(self, form: str) -> str:
        """Return the difference in words, by a form with `{what}`, `{here}` and `{there}`.

        If both values are digests, the words only say that they differ, because a digest tells
        nothing else.
        """
        both = (self.here, self.there)
        if all(value is not None and _DIGITS.fullmatch(value) for value in both):
            return f"{self.what} differs"
        here, there = map(_shown, both)
        return form.format(what=self.what, here=here, there=there)


def told(differences: Sequence[Difference], form: str) -> str:
    """Return the differences in words, up to the number that fits into a message."""
    first = [difference.told(form) for difference in differences[:_MOST_TOLD]]
    more = len(differences) - len(first)
    return "; ".join([*first, *([f"and {more} more"] if more else [])])


def differences_between(here: Mapping[str, str], there: Mapping[str, str]) -> list[Difference]:
    """Return what differs between two sets of fingerprints; empty only if the sets are equal."""
    differing = [key for key in _in_order({*here, *there}) if here.get(key) != there.get(key)]
    found: dict[tuple[str, str | None, str | None], list[str]] = {}
    for key in differing:
        first, second = _parts(here.get(key)), _parts(there.get(key))
        if first == second:  # for example, the parts have another order
            first, second = ({"": one[key]} if key in one else {} for one in (here, there))
        for name in dict.fromkeys([*first, *second]):
            values = first.get(name), second.get(name)
            if values[0] != values[1]:
                found.setdefault((name, *values), []).append(key)
    return [Difference(_label(name, keys), *values) for (name, *values), keys in found.items()]


def flat(fingerprints: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of fingerprints by their names, such as "temperature of model"."""
    return {
        _label(name, [key]): value
        for key in _in_order(fingerprints)
        for name, value in _parts(fingerprints[key]).items()
    }


def with_hosts(text: str, hosts: Mapping[str, str]) -> str:
    """Return a fingerprint in which some hosts are replaced."""
    return _HOST.sub(lambda match: f"host={hosts.get(match[1], match[1])}", text)


def hosts_in(text: str) -> list[str]:
    """Return the hosts that a fingerprint names."""
    return _HOST.findall(text)


def _in_order(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: (key != _FIRST, key))


def _parts(text: str | None) -> dict[str, str]:
    """Return the parts of a fingerprint by name; a name that occurs again gets a number."""
    parts: dict[str, str] = {}
    for part in filter(None, _BETWEEN.split(text or "")):
        match = _PART.fullmatch(part)
        name, value = match.groups() if match else ("", part)
        parts[next(free for free in _numbered(name) if free not in parts)] = value
    return parts


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name or 'part'} {number}" for number in count(2))


def _label(name: str, keys: Sequence[str]) -> str:
    more = len(keys) - _MOST_KEYS
    of = " and ".join([*keys[:_MOST_KEYS], *([f"{more} more"] if more > 0 else [])])
    return f"{name} of {of}" if name else of


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    if len(value) > _LONGEST:
        value = f"{value[: _LONGEST - 1]}…"
    return value if _PLAIN.fullmatch(value) else repr(value)
