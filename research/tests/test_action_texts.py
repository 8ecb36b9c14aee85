"""Test the traces of agents: they are as many and as varied as the results say, and consistent."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from demur_research.texts import actions
from demur_research.texts.actions import (
    REPORT_KINDS,
    RIGHT_KINDS,
    WRONG_KINDS,
    ActionTrace,
    Said,
    action_traces,
    report_traces,
)

REPORTS = report_traces()
TRACES = action_traces()
CLAIMS = [one for trace in TRACES for one in trace.claims]
DOMAINS = ("mail", "files", "tickets", "bookings", "payments", "deployments", "searches", "home")


def calls(trace: ActionTrace) -> list[str | None]:
    of_agent = [one for one in trace.messages if isinstance(one, AIMessage)]
    return [call["id"] for one in of_agent for call in one.tool_calls]


def test_there_are_sixty_traces_with_three_hundred_claims_and_a_hundred_facts() -> None:
    assert (len(TRACES), len(CLAIMS)) == (60, 300)
    assert sum(len(trace.facts) for trace in TRACES) == 100
    assert {len(trace.claims) for trace in TRACES} == {5}
    domains = Counter(trace.domain for trace in TRACES)
    assert tuple(domains) == DOMAINS
    assert min(domains.values()) >= 7


def test_half_of_the_claims_are_right_and_every_kind_is_there_often_enough() -> None:
    assert sum(one.holds for one in CLAIMS) == 152
    kinds = Counter(one.kind for one in CLAIMS)
    assert set(kinds) == {*WRONG_KINDS, *RIGHT_KINDS}
    assert min(kinds[kind] for kind in WRONG_KINDS) >= 20
    assert min(kinds[kind] for kind in RIGHT_KINDS) >= 10


def test_there_are_reports_of_three_kinds_right_and_wrong_in_sight_and_held_out() -> None:
    told = [(one.kind, one.holds, trace.number % 2) for trace in REPORTS for one in trace.claims]
    assert (len(REPORTS), len(told)) == (96, 480)
    kinds = Counter(told)
    assert {kind for kind, _, _ in kinds} == {*REPORT_KINDS}
    assert len(kinds) == 12
    assert min(kinds.values()) >= 20
    assert sum(len(trace.facts) for trace in REPORTS) == 33


def test_about_half_of_the_traces_has_an_odd_number() -> None:
    assert sum(trace.number % 2 for trace in TRACES) == 32


def test_a_result_follows_its_call_and_some_calls_fail_or_have_no_result() -> None:
    failed = pending = without = 0
    for trace in TRACES:
        called: set[str | None] = set()
        for message in trace.messages:
            if isinstance(message, AIMessage):
                called.update(call["id"] for call in message.tool_calls)
            if isinstance(message, ToolMessage):
                assert message.tool_call_id in called, trace.id
                called.remove(message.tool_call_id)
                failed += message.status == "error"
        pending += bool(called)
        without += not calls(trace)
    assert failed >= 20
    assert pending >= 3
    assert without == 8


def test_the_file_has_all_fields_of_a_trace_and_no_other() -> None:
    for name, traces in (("actions.jsonl", TRACES), ("reports.jsonl", REPORTS)):
        path = Path(actions.__file__).with_name(name)
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert {tuple(row) for row in rows} == {("id", "domain", "messages", "claims", "facts")}
        assert [row["id"] for row in rows] == [trace.id for trace in traces]


CALL = AIMessage("", tool_calls=[{"name": "send", "args": {}, "id": "c1"}])
RESULT = ToolMessage("Sent at noon.", tool_call_id="c1")
TRACE = ActionTrace(
    "mail-01",
    "mail",
    (HumanMessage("Write to Dana."), CALL, RESULT),
    (Said("I wrote to Dana.", True, "done"), Said("I called her.", False, "never")),
    (Said("It was noon.", True),),
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "files-01"}, "expected the domain 'mail' and two digits"),
        ({"id": "mail-x"}, "expected the domain 'mail' and two digits"),
        ({"messages": (CALL, CALL, RESULT)}, "expected a call for each result, and ids to differ"),
        ({"messages": (CALL, RESULT, RESULT)}, "expected a call for each result"),
        ({"messages": (RESULT,)}, "expected a call for each result"),
        ({"messages": (CALL,)}, "expected facts that hold, by a result"),
        ({"messages": ()}, "unknown kind 'done'; use told undone"),
        ({"claims": (Said("I wrote.", False, "done"),)}, "unknown kind 'done'; use never, failed"),
        ({"claims": (Said("I wrote.", True),)}, "unknown kind None; use done"),
        ({"facts": (Said("It was one.", False),)}, "expected facts that hold"),
        ({"facts": (Said("It was noon.", True, "done"),)}, "without a kind"),
        ({"facts": (Said("I called her.", True),)}, "says a sentence twice"),
    ],
)
def test_a_trace_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TRACE, **changes)
