"""Tell from the result of a tool what came of its call."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, ValuesView
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from demur.shapes.tool_names import SEEKING, only_reads

CallStatus = Literal["done", "failed", "pending", "none"]
"""What came of a call: it returned, it failed, it has not finished. "none" stands for a trace
without any call."""

_NO = ("false", "0", "no")
_ERRORS = ["error", "errors", "errorcode", "errormessage", "errormessages", "exception", "fehler"]
_NOTHING = (
    r"(?:none|null|n/a|false|ok|success|0+(?:\.0+)?(?:\sof\s\d+)?|keine?"
    r"|(?:no|0|keine?)\s(?:errors?|fehler)(?:\sfound)?|none\sfound)"
)
_NO_ERROR = re.compile(rf"(?:no|-|\[\]|\{{\}}|2\d\d|{_NOTHING})?\.?", re.IGNORECASE)
_NOTHING_WRONG = re.compile(rf"[^\w\n]*{_NOTHING}\W*(?:[,;\n]|\Z)", re.IGNORECASE)
_HTTP = [one for one in HTTPStatus if one.value >= 400]
_CODED = "|".join(f"{one.value} {one.phrase}" for one in _HTTP)
_UNCODED = "|".join(re.escape(one.phrase) for one in _HTTP if " " in one.phrase)
# What ends the first words of an error: "Error:", "[ERROR]", "Error - ".
_END = re.compile(r"[*_]*(?:\s?[:：!]|[\]>]|\.?\s*\Z|\.\s|\s[-–—]\s)")
# "Error", in the languages whose reports are known.
_ERROR = (
    "(?:error|erreur|errore|erro|fehler|fout|galat|hata|kesalahan|lỗi|błąd|ошибка|помилка|خطأ"
    "|त्रुटि|エラー|오류|错误)"
)
_OF = (
    "(?:(?:api|client|connection|database|fatal|http|internal|network|runtime|server|system|tool"
    r"|unexpected|unknown|validation)\s)"
)
_WORD = r"(?:(?!(?:no|not|none|without|zero|0|keine?)\b)[\w'’#.,-]+\s)"
# Not of what was counted ("20 rows imported, 2 failed"), nor of what is told ("The trip failed").
_NOUN = r"(?:(?!(?:no|not|none|the|an?|zero|keine?)\b)[^\W\d][\w'’-]*\s)"
_WHY = r"(?:\s(?:after|because|by|due|for|with)\b.*)?"
# A state that an action may be meant to bring about, as "reject_request" does.
_MEANT = "(?P<meant>aborted|blocked|declined|denied|refused|rejected|abgelehnt|verweigert)"
_FAILED = r"(?:failed|timed\sout|fehlgeschlagen|gescheitert)"
_COULD_NOT = r"(?:could(?:\snot|n['’]t)|konnten?\s.*\bnicht|(?:failed|unable)\sto)\b.*"
_CANNOT = r"(?:can(?:not|\snot|['’]t))\s"
# What begins so is an error, however long it is.
_ERROR_TEXT = re.compile(
    r"[\w.]*(?:Error|Exception)(?:\(|\s*:)|Traceback \(|\d{3} (?:Client|Server) Error:"
    r"|\{'(?:(?:ok|success)': False|error': (?!None|False|''|\[\])|status': '(?:error|fail))"
    r"|(?i:fatal:\s|npm err(?:or)?!?\s|error\s(?:response\s)?from\s"
    r"|[\w./-]+:\s(?:.{1,80}:\s)?(?:command not found|no such file or directory)"
    rf"|HTTP(?:/[\d.]+)?(?:\serror)?\s[45]\d\d\b|{_OF}?error\s'?[45]\d\d\b|(?:{_CODED})\b"
    r"|exit(?:ed\swith)?\s(?:code|status)\s*:?\s*[1-9])"
)
# The first words of an error.
_ERROR_WORDS = re.compile(
    rf"{_OF}*(?:{_ERROR}|failed|failure|exception|forbidden|unauthori[sz]ed)"
    r"(?:\s(?:code|message)|\s\([^)]*\d[^)]*\))?"
    rf"|(?:an?\s(?:\w+\s){{0,2}}|{_OF}*)(?:error|exception)\s(?:has\s)?occurred\b.*"
    r"|error\s(?:while|when|during|(?!(?:handling|logging|monitoring|reporting|tracking)\b"
    rf"(?!\s(?:in|the|your|request)\b))\w+ing)\b.*|fehler\sbeim\s.*"
    rf"|{_COULD_NOT}|(?:(?:i|we)\s)?{_CANNOT}(?-i:[a-z]).*",
    re.IGNORECASE | re.DOTALL,
)
# A short text that says that something failed, or could not be done.
_FAILED_TEXT = re.compile(
    rf"{_WORD}{{0,6}}(?:{_COULD_NOT}|{_CANNOT}be\b.*)|{_NOUN}{{0,3}}{_FAILED}{_WHY}"
    r"|(?:access|card|connection|payment|permission|transaction|zahlung|zugriff)\s(?:was\s)?"
    rf"{_MEANT}{_WHY}"
    r"|(?:not authori[sz]ed|you do not have permission|rate limit exceeded|invalid api key)\b.*"
    rf"|{_WORD}{{1,5}}(?:(?<!\bis\s)(?<!\bare\s)not\s(?:sent|\w+ed|(?P<sought>found))"
    rf"|nicht\sge\w+){_WHY}",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_FAILED_TEXT, _MOST_WORDS = 200, 400
# What is all that a result says, or the state in it.
_FAILED_STATE = re.compile(
    rf"(?P<of>{_WORD}{{0,3}})(?:{_ERROR}|errored|exception|fail(?:ed|ure)?|time(?:d\s)?out|forbidden"
    r"|unauthori[sz]ed|unsuccessful|unavailable|not\s(?:allowed|available|found|sent)"
    rf"|{_FAILED}|{_MEANT}){_WHY}|{_UNCODED}",
    re.IGNORECASE | re.DOTALL,
)
_WAITING = re.compile(
    "queued(?: (?:for|to) .*)?|awaiting(?: .*)?|waiting(?: (?:for|on) .*)?|requires .*"
    "|(?:pending|processing) (?:approval|confirmation|review)"
)
# The state of an attempt, or of the thing that it made: of an order, of an entry in a list.
_WAITING_TOO = re.compile("pending|processing|in ?progress")


@dataclass(frozen=True)
class _Asked:
    """Hold what a tool was asked, which its result may repeat."""

    tool: str
    args: Any

    def meant(self, state: str) -> bool:
        """Return whether a state is what the call was to bring about, as "reject_order" does."""
        verb = re.sub("i?ed$", "", state.lower())
        return bool(re.search(rf"(?<![a-z]){verb}", self.tool.lower())) or self.gave(state)

    def gave(self, value: object) -> bool:
        """Return whether a value is one of the arguments."""
        return _as_word(value) in filter(None, map(_as_word, self._values))

    @property
    def turns_off(self) -> bool:
        """Return whether the call may be meant to make something false."""
        named = re.search("off|disable|deactivate|stop|toggle", self.tool.lower())
        return bool(named) or any(value is False for value in self._values)

    @property
    def _values(self) -> Collection[Any]:
        return self.args.values() if isinstance(self.args, Mapping) else ()


def status_of_result(text: str, tool: str, args: object) -> CallStatus:
    """Return what the result of a tool says of its call.

    A call failed if the result is JSON with an error, `"ok": false` or a status of failure, a text
    that begins as errors do, or a short one that says that something could not be done. A status of
    waiting counts unless the JSON describes a thing, by an argument that it repeats or an id
    (`{"order_id": 9, "status": "processing"}`).

    Args:
        text: The result.
        tool: The name of the tool, such as "reject_order", which "rejected" does not fail.
        args: The arguments of the call.
    """
    call = _Asked(tool, args)
    try:
        said = json.loads(text)
        found = {_of_value(one, call) for one in (said if isinstance(said, list) else [said])}
    except (ValueError, RecursionError):
        found = {_of_value(text, call)}
    return found.pop() if len(found) == 1 else "done"


def _of_value(said: object, call: _Asked) -> CallStatus:
    if isinstance(said, str) and _failed(said, call):
        return "failed"
    if not isinstance(said, Mapping):
        return "done"
    values = {re.sub("[_ -]", "", str(name)).lower(): value for name, value in said.items()}
    lone = (
        ("message", "detail")
        if not values.keys() - {"message", "detail", "documentationurl"}
        else ()
    )
    texts = {
        name: values[name]
        for name in ("status", "state", "result", *lone)
        if isinstance(values.get(name), str) and not call.gave(values[name])
    }
    # It describes what the call was about, and its state may be that of the thing.
    tool = call.tool.lower()
    of_thing = any(
        call.gave(value) or (len(name) > 4 and name.endswith("id") and name[:-2] in tool)
        for name, value in values.items()
    )
    codes = [values.get("status"), values.get("statuscode")]
    if "message" in values:  # else it may be a code of something else, such as an area
        codes.append(values.get("code"))
    held = [values.get(name) for name in ("result", "response", "data")]
    inner = [_of_value(value, call) for value in held if isinstance(value, Mapping)]
    # A number of errors is what a tool counted.
    errors = [values.get(name) for name in _ERRORS if type(values.get("errors")) is not int]
    failed = (
        any(map(_tells_error, errors))
        or any(str(values.get(name)).strip().lower() in _NO for name in ("ok", "success"))
        or values.get("iserror") is True
        or any(type(code) is int and code for code in map(values.get, ("exitcode", "returncode")))
        or any(re.fullmatch(r"[45]\d\d", str(code)) for code in codes)
        or any(_failed(text, call, state=name[:4] == "stat") for name, text in texts.items())
        or "failed" in inner
        or ("message" in values and values.get("type") == "error")
        or (values.get("status") is False and not call.turns_off)
        or (values.get("sent") is False and "send" in tool)
    )
    if failed:
        return "failed"
    # What a tool reads may wait for somebody; to read it is done.
    states = [re.sub(r"[\W_]+", " ", text).strip().lower() for text in texts.values()]
    waits = not only_reads(call.tool) and any(
        (_WAITING.fullmatch(one) and not call.meant(one))
        or (_WAITING_TOO.fullmatch(one) and not of_thing)
        for one in states
    )
    return "pending" if waits or "pending" in inner else "done"


def _failed(text: str, call: _Asked, *, state: bool = False) -> bool:
    """Return whether a text says that the call failed; a `state` stands under this name in JSON."""
    said = re.sub(r"\A[^\w{]+", "", text)
    if error := _ERROR_TEXT.match(said):
        return not _NOTHING_WRONG.match(said, error.end())
    head, *rest = _END.split(said[:_MOST_WORDS], maxsplit=1)
    found = _ERROR_WORDS.fullmatch(head)
    if not found and len(said) <= _LONGEST_FAILED_TEXT:
        found = _FAILED_TEXT.fullmatch(head)
    if not found and (state or not any(rest)):
        found = _FAILED_STATE.fullmatch(re.sub("[_-]", " ", head))
        if found and found["of"] and not state:  # "Port 22 blocked" may be what was asked for
            return False
    if not found or _NOTHING_WRONG.match("".join(rest)):
        return False
    of_asked = found.groupdict()
    meant = of_asked.get("meant")
    seeks = of_asked.get("sought") and any(verb in call.tool.lower() for verb in SEEKING)
    return not seeks and not (meant and call.meant(meant))


def _tells_error(value: object) -> bool:
    """Return whether the value under "error" tells one: `{"code": 0}` does not."""
    held = value.values() if isinstance(value, Mapping) else value
    return not all(
        _NO_ERROR.fullmatch(str(one).strip())
        for one in (held if isinstance(held, (list, ValuesView)) else [held])
    )


def _as_word(value: object) -> str:
    """Return a text or a number as it can be compared, else nothing."""
    comparable = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return str(value).strip().lower() if comparable else ""
