"""Say which values among a call's arguments have to be given, by the schema, the name and the form.

What is to be written or searched, chosen, sorted or limited is the model's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from demur.shapes import READING

Kind = Literal["free", "number", "date", "identifier", "address", "phone", "name"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TEXTS = re.compile(
    "answer|body|caption|cause|code|command|comment|content|css|description|detail|explanation|"
    "expression|filter|html|instruction|justification|keyword|markdown|message|note|prompt|q|query|"
    "question|reason|remark|script|search|sql|statement|subject|summary|text"
)
_SETTINGS = re.compile(
    "codec|color|colour|correlation|count|cron|currency|default|direction|encoding|format|"
    "idempotency|interval|lang|language|level|limit|locale|max|min|mode|model|nonce|page|preset|"
    "priority|profile|recurrence|resolution|rrule|schedule|scope|size|sort|status|style|timezone|"
    "token|type|tz|unit"
)
_IDENTIFIERS = re.compile(
    "account|address|attachment|bcc|branch|bucket|cc|channel|cluster|database|db|device|document|"
    "domain|email|file|filename|handle|host|iban|id|image|key|link|mail|number|package|path|phone|"
    "reference|repo|repository|sku|tracking|url|uri|username"
)
# What these hold may be a word of their own kind, such as "checking" or "status".
_IN_WORDS_TOO = re.compile("account|document|key|link|number|reference")
_OTHER_NAMES = re.compile(
    r"\w{2,3}|admin|anonymous|anyone|current|customer|default|everyone|guest|(?:head|latest)\W?\d*|"
    "localhost|main|master|myself|nobody|primary|root|self|stdin|team|unassigned|"
    r"(?:africa|america|asia|atlantic|australia|etc|europe|indian|pacific)/\w+"
)
_PEOPLE = re.compile(
    "assignee|attendee|beneficiary|candidate|customer|doctor|driver|employee|guest|holder|"
    "housekeeper|instructor|invitee|landlord|manager|member|organi[sz]er|owner|participant|"
    "passenger|patient|patron|payee|person|pupil|recipient|reviewer|seller|sender|speaker|student|"
    "surname|teacher|technician|tenant|traveller|user|watcher"
)
_THINGS = re.compile(
    "agent|artist|author|client|company|contact|drug|hotel|item|merchant|name|product|project|"
    "property|restaurant|room|scene|supplier|team|vendor|venue"
)
_SELF_MADE = re.compile("correlation|idempotency|nonce")
_MEASURES = re.compile("kb|mb|gb|tb|kg|km|cm|mm")
_MONEY = re.compile(
    "amount|balance|bonus|budget|commission|cost|credit|deposit|discount|fee|payment|price|refund|"
    "rent|salary|subtotal|sum|tip|total|value"
)
_OUTPUT = re.compile("dest|destination|output|save")
_CONSTANT = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_MAKING = re.compile("add|create|export|generate|make|new|output|save|target|upload|write")
_MADE = re.compile("branch|caption|file|filename|folder|label|name|path|slug|tag|title")
_LONGEST, _MOST_WORDS, _DEEPEST = 200, 7, 8
_DATE = re.compile(
    r"\d{4}-(?:\d\d|W\d\d|Q\d)(?:-\d\d(?:[T ]\d\d:\d\d.*)?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
_ADDRESS = re.compile(
    r"\S+@\S+\.\w+|\w+://\S+|www\.\S+|[A-Z]:\\\S+|(?:~|\.{0,2})/?[^\s/]+(?:/[^\s/]*)+"
)
_TIME = re.compile(r"(?:\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?(?: ?[-–] ?|$)){1,2}", re.I)
_TEMPLATE = re.compile(
    r"<[a-z][\w .-]*>|\[[\w .-]*[a-z][\w .-]*\]|\{{1,2}[\w .-]+\}{1,2}|(?:\w+[-_])?your[-_][\w-]+"
    r"|(?:.*[-_ ])?x{3,}(?:[-_ ].*)?|.*x{4,}.*|\.{3,}|string|todo|tbd|placeholder|foo|bar|dummy"
    r"|(?:insert|enter)[-_][\w-]+|(?-i:[A-Z_]+_(?:ID|NUMBER))",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"@?[\w.-]+")
# What looks like an identifier under any name: "ORD-48231", "QX7R2M", "cus_Pz19", "v2.1.0".
_CODE = re.compile(
    r"(?:\d[\w.:/ -]*?){3}|\bv?\d+(?:\.\d+)+\b|\b(?=\w*\d)(?=\w*[A-Z])[A-Z\d]{5,}\b"
    r"|\b[a-z]{2,9}_(?=\w*\d)\w{3,}"
)
_LONG = re.compile(r"^\d{3,}(?!00$)\d\d$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_PHONE = re.compile(r"(?:\+|00)[\d ()/.-]{7,22}")
_CAPITAL = re.compile(r"\b[^\W\d_a-z]")


@dataclass(frozen=True)
class Argument:
    """Hold one value among the arguments of a call."""

    path: str
    """Where it stands: "items[0].sku"."""
    value: str | int | float
    words: tuple[str, ...]
    """The words of its name, in lower case."""
    hint: str
    """What the schema says of it, in lower case."""
    kind: Kind

    @property
    def is_placeholder(self) -> bool:
        """Return whether the value only holds a place, and cannot be one that somebody gave."""
        if not isinstance(self.value, str) or len(self.value) > _LONGEST:
            return False
        held = _TEMPLATE.fullmatch(self.value.strip())
        return held is not None and not _has(_SETTINGS, self.words)

    @property
    def is_thing(self) -> bool:
        """Return whether it names a thing, which others may call a little otherwise."""
        return _has(_THINGS, self.words) and not _has(_PEOPLE, self.words)

    @property
    def said(self) -> str:
        """Return the value behind its name."""
        return f"{' '.join(self.words)}: {self.value}"

    @property
    def is_money(self) -> bool:
        """Return whether its name is that of an amount."""
        return _has(_MONEY, self.words)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: "orderId" has "order" and "id"."""
    return tuple(word.lower() for word in _WORDS.findall(name)) or ("",)


def arguments(
    tool: str, args: Mapping[str, Any], schema: Mapping[str, Any], checked: Mapping[str, bool]
) -> Iterator[Argument]:
    """Yield the values among the arguments of a call that are strings and numbers.

    Args:
        tool: The tool's name.
        args: The arguments.
        schema: The JSON schema of the arguments; {} if it is not known.
        checked: Settings that overrule what is known of an argument: whether the values of
            "TOOL.ARGUMENT", or of all arguments of "TOOL", have to be given.
    """
    of_tool = words_of(tool)
    for path, name, value, node in _leaves("", "", args, schema, schema):
        argument = f"{tool}.{path.split('.')[0].split('[')[0]}"
        said = checked.get(argument, checked.get(tool))
        words = words_of(name)
        kind: Kind = _kind(value, words, of_tool, node) if said is not False else "free"
        if said and kind == "free":
            has_digit = any(map(str.isdigit, str(value)))
            kind = "number" if not isinstance(value, str) else ("name", "identifier")[has_digit]
        yield Argument(path, value, words, f"{name} {node.get('description', '')}".lower(), kind)


def _leaves(
    path: str, name: str, value: Any, node: Any, root: Mapping[str, Any]
) -> Iterator[tuple[str, str, str | int | float, Mapping[str, Any]]]:
    """Yield each string and number in a value: path, name, value, and its part of the schema."""
    node = _resolved(node, root)
    if isinstance(value, Mapping):
        known = node.get("properties") or {}
        for key, one in value.items():
            yield from _leaves(f"{path}.{key}".lstrip("."), key, one, known.get(key), root)
    elif isinstance(value, (list, tuple)):
        for at, one in enumerate(value):
            yield from _leaves(f"{path}[{at}]", name, one, node.get("items"), root)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
        yield path, name, value, node


def _resolved(node: Any, root: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return a part of a schema with what it refers to, and its alternatives in one."""
    if not isinstance(node, Mapping) or depth > _DEEPEST:  # an alternative may be the whole again
        return {}
    found = dict(node)
    reference = found.pop("$ref", None)
    if isinstance(reference, str):
        target: Any = root
        for step in reference.lstrip("#/").split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        found = {**target, **found} if isinstance(target, Mapping) else found
    for some in ("anyOf", "oneOf", "allOf"):
        for one in found.pop(some, None) or ():
            other = _resolved(one, root, depth + 1)
            chosen = [*(found.get("enum") or ()), *(other.get("enum") or ())]
            found = {**other, **found, **({"enum": chosen} if chosen else {})}
    return found


def _kind(
    value: str | int | float, words: tuple[str, ...], tool: tuple[str, ...], node: Mapping[str, Any]
) -> Kind:
    """Return what a value is, by the words of its name and of its tool; "free" needs no source."""
    if value in (node.get("enum") or ()) or value in (node.get("const"), node.get("default")):
        return "free"
    is_id = _has(_IDENTIFIERS, words[-1:]) and not _has(_SELF_MADE, words)
    is_setting = _has(_SETTINGS, words) and not is_id and words[-1] != "code"
    if isinstance(value, (int, float)) or _NUMBER.fullmatch(value):
        if is_id and isinstance(value, (str, int)):
            return "identifier"
        of_limit = "limit" in words and "limit" in tool
        if _has(_MONEY, words) or _has(_MEASURES, words[-1:]) or of_limit:
            return "number" if tool[0] not in READING else "free"
        # Of other numbers, long ones that are not round are no settings.
        return "identifier" if _LONG.search(str(value)) and not is_setting else "free"
    long = len(value) > _LONGEST or "\n" in value or len(value.split()) > _MOST_WORDS
    if long or _TIME.fullmatch(value) or _OTHER_NAMES.fullmatch(value.lower()):
        return "free"
    if _DATE.fullmatch(value):
        return "date"
    is_text = _has(_TEXTS, words[-1:]) and not (words[-1] == "code" and _WRITTEN.fullmatch(value))
    made = _has(_MAKING, (tool[0], *words)) and _has(_MADE, words[-1:])
    made = made and not (words[-1] == "name" and _has(_PEOPLE, (*words, *tool)))
    is_output = "/" in value and _has(_OUTPUT, words)
    if made or is_output or is_text or is_setting or _CONSTANT.fullmatch(value):
        return "free"
    if _ADDRESS.fullmatch(value):
        return "address"
    if _PHONE.fullmatch(value):
        return "phone"
    has_digit = any(map(str.isdigit, value))
    if has_digit and (is_id or words[-1] == "code" or _CODE.search(value)):
        return "identifier"
    if is_id and not has_digit and not _has(_IN_WORDS_TOO, words[-1:]):
        return "name"
    is_person = _has(_PEOPLE, words) and _WRITTEN.fullmatch(value)
    named = _has(_PEOPLE, words) or _has(_THINGS, words)
    return "name" if is_person or (named and _CAPITAL.search(value)) else "free"


def _has(some: re.Pattern[str], words: tuple[str, ...]) -> bool:
    """Return whether one of the words, or its singular, is one of `some`."""
    return any(some.fullmatch(form) for word in words for form in (word, word.removesuffix("s")))
