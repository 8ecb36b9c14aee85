"""Test how the calls of an agent are read from its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import TypeAdapter

from demur import Sample
from demur._text import plain
from demur.shapes import (
    calls_last,
    parts_of_call,
    sample_of,
    sources,
    status_of_call,
    tool_calls,
)

ASKED = HumanMessage("Please do it.")
NOTHING_DONE = "The assistant called no tool. It did nothing."
_DOCUMENTS = TypeAdapter(list[Document])


def calls(*named: tuple[str, dict[str, Any], str]) -> AIMessage:
    """Return the message in which the model calls some tools: names, arguments, ids."""
    made = [{"name": name, "args": args, "id": id_} for name, args, id_ in named]
    return AIMessage("", tool_calls=made)


def came(result: Any, *, status: Any = "success", **args: Any) -> Document:
    """Return the document of one call that returned a result."""
    messages = [
        ASKED,
        calls(("send_mail", args, "c1")),
        ToolMessage(result, tool_call_id="c1", status=status),
    ]
    (document,) = tool_calls(messages, complete=True)
    return document


def texts(messages: list[AnyMessage], *, complete: bool = True) -> list[str]:
    return [document.page_content for document in tool_calls(messages, complete=complete)]


# --- One document a call --------------------------------------------------------------------------


def test_each_call_is_one_document_in_the_order_of_the_calls() -> None:
    messages = [
        ASKED,
        calls(("find", {"name": "Dana"}, "a"), ("book", {"room": 4, "days": [1, 2]}, "b")),
        ToolMessage("Room 4 is free.", tool_call_id="b"),
        ToolMessage("dana@lund.example", tool_call_id="a"),
        calls(("send_mail", {"to": "dana@lund.example"}, "c")),
        ToolMessage("Error: no such mailbox", tool_call_id="c"),
        AIMessage("It did not work."),
    ]
    found = tool_calls(messages, complete=True)
    assert [one.page_content for one in found] == [
        "The assistant called find(name=Dana). It succeeded: dana@lund.example",
        "The assistant called book(room=4, days=[1, 2]). It succeeded: Room 4 is free.",
        "The assistant called send_mail(to=dana@lund.example). It failed: Error: no such mailbox",
    ]
    assert [status_of_call(one) for one in found] == ["done", "done", "failed"]
    assert [one.metadata["tool"] for one in found] == ["find", "book", "send_mail"]
    assert [one.metadata["tool_call_id"] for one in found] == ["a", "b", "c"]
    assert {one.metadata["turn"] for one in found} == {1}


def test_arguments_in_arguments_are_written_out() -> None:
    document = came("ok", mail={"to": ["a", "b"], "draft": False, "delay": None})
    assert document.page_content == (
        "The assistant called send_mail(mail={to: [a, b], draft: false, delay: null}). "
        "It succeeded: ok"
    )


def test_a_call_without_a_result_is_pending() -> None:
    (document,) = tool_calls([ASKED, calls(("deploy", {"to": "live"}, "a"))], complete=True)
    assert status_of_call(document) == "pending"
    assert document.page_content.endswith("deploy(to=live). It is not finished.")


@pytest.mark.parametrize(
    ("document", "status", "end"),
    [
        (came("  "), "done", "It succeeded."),
        (came('{"ok": true}', status="error"), "failed", 'It failed: {"ok": true}'),
        (
            came([{"type": "text", "text": "Error: "}, {"type": "text", "text": "no mailbox"}]),
            "failed",
            "It failed: Error: no mailbox",
        ),
    ],
    ids=["an empty one", "with the status error, whatever it says", "in blocks"],
)
def test_a_result_is_told_behind_its_call(document: Document, status: str, end: str) -> None:
    assert status_of_call(document) == status
    assert document.page_content.endswith(f"send_mail(). {end}")


# --- What a result says ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        '{"error": "quota exceeded"}',
        '{"error": {"code": 404, "message": "no such order"}}',
        '{"errors": ["no such order"]}',
        '{"data": null, "errors": [{"message": "no"}]}',
        '{"ok": false}',
        '{"OK": false, "error": null}',
        '{"success": false}',
        '{"success": "false"}',
        '{"isError": true, "content": []}',
        '{"status": "failed"}',
        '{"status": "Error"}',
        '{"state": "FAILURE"}',
        '{"result": "rejected"}',
        '{"result": "Error: disk full"}',
        '{"status": "not_found"}',
        '{"status": "timed out"}',
        '{"status": 404}',
        '{"status": "503"}',
        '{"status": "500 Internal Server Error"}',
        '{"statusCode": 500}',
        '{"status_code": 422}',
        '{"code": 409, "message": "The room is taken."}',
        '[{"ok": false}, {"ok": false}]',
        '"Error: disk full"',
        "{'ok': False, 'at': datetime.datetime(2026, 1, 1)}",
        "{'error': 'quota exceeded'}",
        "{'status': 'failed'}",
        "ValueError: invalid literal",
        "requests.exceptions.ConnectionError: refused",
        "TimeoutError()",
        "SomeException: broken",
        "Error: no such file",
        "Error: none of the recipients exists",
        "error: pathspec did not match",
        "ERROR: could not open",
        "Error executing tool send_mail: no mailbox",
        "Error 404: no such order",
        "  Error : broken",
        "Failed: the card was declined",
        "Failed to send the mail",
        "Unable to reach the server",
        "Could not find the order",
        "couldn't open the file",
        "Traceback (most recent call last):\n  ...",
        "HTTP/1.1 503 Service Unavailable",
        "HTTP 404",
        "404 Not Found",
        "429 Too Many Requests: slow down",
        "Error sending email: mailbox full",
        "Error logging in: wrong password",
        "An error occurred: 503",
        "An unexpected error has occurred.",
        "Error while sending",
        "[ERROR] no mailbox",
        "❌ Failed to send",
        "**Error:** no mailbox",
        "**Error**: no mailbox",
        "<error>no mailbox</error>",
        "ERROR - no mailbox",
        "Error (404): no mailbox",
        "Error code: 404",
        "API error: no quota",
        "Client error '404 Not Found' for url",
        "Error",
        "Error: ",
        "Request failed: 500",
        "Sending failed: no mailbox",
        "Operation failed.",
        "Command failed with exit code 2",
        "Email not sent: no mailbox",
        "Order 7 was not found.",
        "Sorry, the mail could not be sent.",
        "This order cannot be cancelled.",
        "Cannot send: mailbox full",
        "Permission denied",
        "Access denied.",
        "Connection refused",
        "Unauthorized",
        "Timeout",
        "Internal Server Error",
        "HTTP Error 404: Not Found",
        "401 Client Error: Unauthorized for url",
        "Exit code: 1\n0 errors",
        "Fehler: Postfach voll",
        "Fehler beim Senden: Postfach voll",
        "Fehlgeschlagen: Postfach voll",
        "Die Mail konnte nicht gesendet werden",
        "Zugriff verweigert",
        "Erreur : boîte pleine",
        "错误：邮箱已满",
        '{"message": "Internal Server Error"}',
        '{"message": "Failed to send"}',
        '{"detail": "Not found"}',
        '{"error_message": "no mailbox"}',
        '{"errorMessage": "no mailbox"}',
        '{"error_code": "E7"}',
        '{"exception": "no mailbox"}',
        '{"error": {"code": 0, "message": "no mailbox"}}',
        '{"error": true}',
        '{"type": "error", "message": "no mailbox"}',
        '{"result": {"error": "no mailbox"}}',
        '{"response": {"status": "error"}}',
        '{"data": {"ok": false}}',
        '{"status": "aborted"}',
        '{"status": "blocked"}',
        '{"status": "unavailable"}',
        '{"status": "payment_failed"}',
        '{"status": "failed: no quota"}',
        '{"status": "rejected by the server"}',
        '{"status": "fehlgeschlagen"}',
        '{"status": false}',
        '{"sent": false}',
        '{"exit_code": 1}',
        '{"id": "m1", "status": "failed"}',
        "Error response from daemon: no such image",
        "Error from server (Forbidden): pods",
        "bash: deploy: command not found",
        "rm: cannot remove 'x': No such file or directory",
        "fatal: not a git repository",
        "npm ERR! code E404",
        '{"message": "Not Found", "documentation_url": "https://a.example"}',
        '{"errorMessages": ["no such issue"]}',
        "Rate limit exceeded",
        "Payment declined",
    ],
)
def test_a_result_that_says_that_it_failed_is_a_failure(result: str) -> None:
    document = came(result)
    assert status_of_call(document) == "failed"
    assert f"It failed: {result.strip()}" in document.page_content


@pytest.mark.parametrize(
    "result",
    [
        '{"status": "pending"}',
        '{"status": "Queued", "id": 4}',
        '{"state": "in_progress"}',
        '{"state": "in progress"}',
        '{"state": "IN-PROGRESS"}',
        '{"result": "awaiting approval"}',
        '{"status": "processing"}',
        '{"status": "requires_approval"}',
        '[{"status": "queued"}]',
    ],
)
def test_a_result_that_says_that_it_waits_is_pending(result: str) -> None:
    assert status_of_call(came(result)) == "pending"


@pytest.mark.parametrize(
    "result",
    [
        '{"status": "cancelled"}',
        '{"status": "ok"}',
        '{"status": "error-free"}',
        '{"status": "refusedly"}',
        '{"status": 200}',
        '{"status": "200 OK"}',
        '{"error": null}',
        '{"error": ""}',
        '{"error": "none"}',
        '{"error": false}',
        '{"errors": []}',
        '{"errors": {}}',
        '{"errors": 0}',
        '{"ok": true}',
        '{"ok": null}',
        '{"code": 415, "city": "San Francisco"}',
        '{"room": 404}',
        '{"title": "Error: a history"}',
        '[{"ok": true}, {"ok": false}]',
        "[]",
        "404",
        "null",
        "No errors found",
        "Errors: 0",
        "Failed: 0\nPassed: 12",
        "Error: none",
        "stderr: Error: x",
        "404 rooms are free",
        "404 Rooms are free",
        "450 EUR were charged",
        "500 Internal notes",
        "Terror: a novel",
        "Erroneous zones",
        "The queue is empty",
        "Waiting for Godot is a play.",
        "Can't Buy Me Love is a song.",
        "Failure is an option",
        "{'error': None, 'ok': True}",
        '{"status": "no_errors"}',
        '{"status": true}',
        '{"state": "error_free"}',
        '{"result": "Timeout set to 30 s"}',
        '{"result": "Error report created"}',
        '{"result": "Failed logins: 0"}',
        '{"result": "Rejected candidates were told"}',
        '{"result": "Pending invoices sent"}',
        '{"result": "Waiting list updated"}',
        '{"result": false}',
        '{"passed": 10, "errors": 2}',
        '{"error": "no error"}',
        '{"error": "OK"}',
        '{"errors": "0 errors"}',
        '{"errors": [null]}',
        '{"error": {"code": 0}}',
        '{"exit_code": 0}',
        "Error handling guide: catch what you can handle",
        "Error reporting is on.",
        "Error\n\nThis page is about mistakes.",
        "# Error\n\nAn error is a mistake.",
        "The error occurred in 1911.",
        "No error occurred.",
        "Error: no errors found",
        "Error: None.",
        "Failed: 0 of 12",
        "Failed logins: 0",
        "12 passed, 0 failed",
        "No test failed.",
        "Completed without errors",
        "Exit code: 0",
        "Standard error: 0.05",
        "timeout: 30\nretries: 3",
        "rejected: 3\naccepted: 4",
        "Room 4 is not booked.",
        f"The bridge could not be built before 1911. {'It was ' * 50}",
        '{"unfinished": ',
    ],
)
def test_a_result_that_only_looks_like_one_is_done(result: str) -> None:
    assert status_of_call(came(result)) == "done"


def status_from(name: str, args: dict[str, Any], result: str) -> Any:
    """Return what came of one call of a tool of this name."""
    given = [ASKED, calls((name, args, "c1")), ToolMessage(result, tool_call_id="c1")]
    (document,) = tool_calls(given, complete=True)
    return status_of_call(document)


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("get_order", {"id": 1042}, '{"id": 1042, "status": "processing"}'),
        ("track", {"package": 7}, '{"package": 7, "status": "in_progress", "place": "Lund"}'),
        ("add", {"title": "Buy milk"}, '{"id": 1, "title": "Buy milk", "status": "pending"}'),
        ("place_order", {"item": "book"}, '{"order_id": 99, "status": "processing"}'),
        ("find_mail", {"id": "m1"}, '{"id": "m1", "sent": false}'),
        ("create_draft", {}, '{"message": "Draft saved", "sent": false}'),
        ("list_issues", {}, '[{"id": 1, "type": "error", "title": "TypeError"}]'),
        ("orders.lookup", {"ids": [7, 8]}, '{"status": "awaiting payment"}'),
        ("shop__getOrder", {}, '{"status": "queued"}'),
    ],
)
def test_the_state_of_a_thing_is_not_the_state_of_the_call(
    name: str, args: dict[str, Any], result: str
) -> None:
    assert status_from(name, args, result) == "done"


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("reject_order", {"id": 7}, '{"id": 7, "status": "rejected"}'),
        ("declineInvitation", {}, "Invitation declined."),
        ("deny_request", {"id": 7}, "Request denied"),
        ("set_status", {"id": 7, "status": "failed"}, '{"id": 7, "status": "failed"}'),
        ("set_status", {"status": "Blocked"}, "Card blocked."),
        ("stop_job", {}, "Job aborted"),
        ("close_port", {"port": 22}, "Port 22 blocked"),
        ("respond", {"with": "decline"}, "Invitation declined"),
        ("turn_off_alarm", {}, '{"status": false}'),
        ("set_light", {"on": False}, '{"status": false, "device": "lamp"}'),
        ("add_to_queue", {"song": "x"}, '{"song": "x", "status": "queued"}'),
    ],
)
def test_a_state_that_the_call_was_to_bring_about_is_no_failure(
    name: str, args: dict[str, Any], result: str
) -> None:
    assert status_from(name, args, result) == "done"


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("import_rows", "20 rows imported, 2 failed"),
        ("run_tests", "22 passed, 1 failed"),
        ("ask_insurer", "The request was denied by the insurer."),
        ("search", "The mission failed because of a leak."),
        ("find_user", "User not found"),
        ("pay", '{"return_code": "SUCCESS"}'),
        ("pay", '{"error_code": 200, "error_message": "Success"}'),
    ],
)
def test_a_result_that_tells_of_a_failure_is_that_of_a_call_that_was_done(
    name: str, result: str
) -> None:
    assert status_from(name, {}, result) == "done"


@pytest.mark.parametrize(
    ("name", "args", "result", "status"),
    [
        ("send_mail", {"to": "Dana"}, '{"id": 4, "to": "Dana", "status": "failed"}', "failed"),
        ("send_mail", {"to": "Dana"}, '{"id": 4, "to": "Dana", "status": "queued"}', "pending"),
        ("send_mail", {"to": "Dana"}, '{"id": 4, "status": "pending"}', "pending"),
        ("make_report", {"of": "May"}, '{"job_id": 4, "status": "processing"}', "pending"),
        ("deploy", {"to": "live"}, '{"data": {"status": "queued"}}', "pending"),
        ("send_budget", {"to": "Dana"}, '{"status": "queued"}', "pending"),
        ("search.reindex", {}, '{"status": "queued"}', "pending"),
        ("send_identity", {}, "Access denied", "failed"),
    ],
)
def test_the_state_of_an_attempt_is_the_state_of_the_call(
    name: str, args: dict[str, Any], result: str, status: str
) -> None:
    assert status_from(name, args, result) == status


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000], ids=["a list", "an object"])
def test_a_result_that_is_nested_too_deep_is_read_as_text(deep: str) -> None:
    assert status_of_call(came(deep)) == "done"


def test_a_long_result_is_cut_and_a_long_error_is_not() -> None:
    long = "word " * 200
    assert came(long).page_content.endswith(" ...")
    assert len(came(long).page_content) < 500
    assert came(f"Error: {long}").page_content.endswith(f"It failed: Error: {long.strip()}")


# --- Calls that the model or the provider got wrong -----------------------------------------------


def invalid(error: str | None, args: str | None, name: str | None = "send_mail") -> Document:
    wrong: Any = {
        "type": "invalid_tool_call",
        "name": name,
        "args": args,
        "id": "a",
        "error": error,
    }
    messages = [ASKED, AIMessage("", invalid_tool_calls=[wrong])]
    (document,) = tool_calls(messages, complete=True)
    return document


def test_a_call_whose_arguments_cannot_be_read_failed() -> None:
    document = invalid("Expecting value", '{"to": ')
    assert status_of_call(document) == "failed"
    assert document.page_content == (
        'The assistant called send_mail({"to": ). It failed: Expecting value'
    )
    assert document.metadata["tool_call_id"] == "a"


def test_a_call_without_a_name_and_arguments_failed_too() -> None:
    assert invalid(None, None, None).page_content == (
        "The assistant called a tool(). It failed: the arguments cannot be read"
    )


def test_a_secret_in_arguments_that_cannot_be_read_is_masked() -> None:
    assert "hunter2-and-3" not in invalid("cut", '{"password": "hunter2-and-3').page_content


def test_an_answer_to_an_invalid_call_does_not_make_it_one_that_was_done() -> None:
    wrong: Any = {
        "type": "invalid_tool_call",
        "name": "send_mail",
        "args": "{",
        "id": "a",
        "error": "cut",
    }
    said = AIMessage("", invalid_tool_calls=[wrong])
    messages = [ASKED, said, ToolMessage("Try again.", tool_call_id="a")]
    assert [*map(status_of_call, tool_calls(messages, complete=True))] == ["failed"]


def of_server(provider: str | dict[str, str], *content: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return text and status of the calls that a provider made on its server."""
    metadata = {"model_provider": provider} if isinstance(provider, str) else provider
    said = AIMessage([*content], response_metadata=metadata)
    found = tool_calls([ASKED, said], complete=True)
    return [(one.page_content, status_of_call(one)) for one in found]


@pytest.mark.parametrize("provider", [{"model_provider": "anthropic"}, {}])
def test_calls_of_anthropics_server_are_calls(provider: dict[str, str]) -> None:
    found = of_server(
        provider,
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Lund"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "title": "Lund", "url": "https://a.example"}],
        },
        {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {"query": "Oslo"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s2",
            "content": {
                "type": "web_search_tool_result_error",
                "error_code": "max_uses_exceeded",
            },
        },
        {"type": "server_tool_use", "id": "s3", "name": "web_search", "input": {"query": "Rome"}},
        {"type": "text", "text": "I searched for both."},
    )
    assert [status for _, status in found] == ["done", "failed", "pending"]
    (first, _), (second, _), (third, _) = found
    assert first.startswith("The assistant called web_search(query=Lund). It succeeded: ")
    assert second.startswith("The assistant called web_search(query=Oslo). It failed: ")
    assert "max_uses_exceeded" in second
    assert third == "The assistant called web_search(query=Rome). It is not finished."


def test_calls_of_openais_server_are_calls() -> None:
    mail = {"type": "mcp_call", "name": "send", "server_label": "mail", "arguments": '{"to": "Di"}'}
    code = {"type": "code_interpreter_call", "container_id": "box", "code": "1 / 0"}
    searched = {"type": "search", "query": "Lund"}
    found = of_server(
        "openai",
        {"type": "web_search_call", "id": "w", "status": "completed", "action": searched},
        {**code, "id": "c", "status": "failed", "outputs": []},
        {**mail, "id": "m1", "error": "no such user", "output": None},
        {**mail, "id": "m2", "error": None, "output": "sent"},
        {**mail, "id": "m3", "error": None, "output": '{"ok": false}'},
        {"type": "text", "text": "I searched."},
    )
    assert found == [
        ("The assistant called web_search(type=search, query=Lund). It succeeded.", "done"),
        ("The assistant called code_interpreter(code=1 / 0). It failed.", "failed"),
        ("The assistant called send(to=Di). It failed: no such user", "failed"),
        ("The assistant called send(to=Di). It succeeded: sent", "done"),
        ('The assistant called send(to=Di). It failed: {"ok": false}', "failed"),
    ]


def test_blocks_of_a_server_that_lack_an_id_or_an_output_are_read() -> None:
    call = {"type": "server_tool_call", "name": "look", "args": {"at": 1}}
    result = {"type": "server_tool_result", "status": "success"}
    assert of_server("", call, result) == [
        ("The assistant called look(at=1). It succeeded.", "done")
    ]
    assert [status for _, status in of_server("", {**call, "id": "other"}, result)] == ["pending"]
    assert of_server("", {"type": "server_tool_call", "id": "c"}) == [
        ("The assistant called a tool(). It is not finished.", "pending")
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "server_tool_call", "id": ["x"], "name": "look"},
        {"type": "server_tool_call", "id": "a", "name": None, "args": "x", "extras": "y"},
        {"type": "web_search_call"},
    ],
)
def test_odd_calls_of_a_server_are_calls(odd: dict[str, Any]) -> None:
    ((_, status),) = of_server("openai", odd)
    assert status == "pending"


def test_an_odd_result_of_a_server_says_nothing_of_other_calls() -> None:
    call = {"type": "server_tool_call", "id": "a", "name": "look", "args": {}}
    result = {"type": "server_tool_result", "tool_call_id": ["x"], "status": "success"}
    assert [status for _, status in of_server("", call, result)] == ["pending"]


@pytest.mark.parametrize("kind", ["tool_use", "tool_call"])
def test_a_conversation_in_anthropics_form_has_its_calls_and_results(kind: str) -> None:
    key = {"tool_use": "input", "tool_call": "args"}[kind]
    called = {"type": kind, "name": "send_mail"}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "sent"}]}
    messages = [
        {"role": "user", "content": "Please do it."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I will."},
                {**called, "id": "a", key: {"to": "Di"}},
                {**called, "id": "b", key: {"to": "Bo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {**result, "tool_use_id": "a"},
                {**result, "tool_use_id": "b", "is_error": True, "content": "no mailbox"},
            ],
        },
        {"role": "assistant", "content": "I sent one."},
    ]
    sample = sample_of(messages)
    assert sample.question == "Please do it."
    assert [one.page_content for one in sample.contexts] == [
        "sent",
        "The assistant called send_mail(to=Di). It succeeded: sent",
        "The assistant called send_mail(to=Bo). It failed: no mailbox",
    ]


def test_what_the_user_says_beside_a_result_is_the_question() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": "sent"}
    said = {"role": "user", "content": [result, {"type": "text", "text": "Thanks. To whom?"}]}
    called = {"type": "tool_use", "id": "a", "name": "send_mail", "input": {}}
    sample = sample_of([("user", "Send."), AIMessage([called]), said, ("ai", "To Di.")])
    assert sample.question == "Thanks. To whom?"
    assert [*map(status_of_call, sample.contexts)] == [None, "done"]


def test_the_models_own_calls_in_blocks_count_once() -> None:
    said = AIMessage(
        [{"type": "tool_use", "id": "a", "name": "send_mail", "input": {"to": "Di"}}],
        tool_calls=[{"name": "send_mail", "args": {"to": "Di"}, "id": "a"}],
        response_metadata={"model_provider": "anthropic"},
    )
    assert texts([ASKED, said]) == ["The assistant called send_mail(to=Di). It is not finished."]


# --- Messages -------------------------------------------------------------------------------------


def test_a_message_that_stands_there_twice_counts_once() -> None:
    asked, called = HumanMessage("Do it.", id="m1"), calls(("send_mail", {}, "a"))
    result = ToolMessage("sent", tool_call_id="a")
    once = tool_calls([asked, called, result], complete=True)
    assert tool_calls([asked, called, called, result, result, asked], complete=True) == once
    named = called.model_copy(update={"id": "m2"})
    again = called.model_copy(update={"id": "m2"})
    assert tool_calls([asked, named, result, again], complete=True) == once
    assert once[0].metadata["earlier"] is False


def test_ids_that_are_used_again_in_a_later_turn_are_kept_apart() -> None:
    messages = [
        ASKED,
        calls(("send_mail", {"to": "Di"}, "call_0")),
        ToolMessage("Error: no mailbox", tool_call_id="call_0"),
        AIMessage("It failed."),
        HumanMessage("Then to Bo."),
        calls(("send_mail", {"to": "Bo"}, "call_0")),
        ToolMessage("sent", tool_call_id="call_0"),
        HumanMessage("And to Cy."),
        calls(("send_mail", {"to": "Cy"}, "call_0")),
    ]
    assert texts(messages) == [
        "The assistant called send_mail(to=Di). It failed: Error: no mailbox",
        "The assistant called send_mail(to=Bo). It succeeded: sent",
        "The assistant called send_mail(to=Cy). It is not finished.",
    ]


def test_of_two_results_of_a_call_the_last_one_counts() -> None:
    results = [ToolMessage(said, tool_call_id="a") for said in ('{"status": "queued"}', "sent")]
    messages = [ASKED, calls(("send_mail", {}, "a")), *results]
    assert texts(messages) == ["The assistant called send_mail(). It succeeded: sent"]


@pytest.mark.parametrize(
    "result",
    [ToolMessage("sent", tool_call_id="a"), FunctionMessage(name="send_mail", content="sent")],
)
def test_a_result_without_a_call_is_no_call_and_not_nothing_either(result: AnyMessage) -> None:
    assert texts([ASKED, result, AIMessage("I sent it.")]) == []


def test_what_was_done_stays_done_if_its_message_is_removed() -> None:
    messages = [
        ASKED,
        AIMessage("", id="m", tool_calls=[{"name": "send_mail", "args": {}, "id": "a"}]),
        ToolMessage("Error: no mailbox", tool_call_id="a", id="r"),
        RemoveMessage(id="m"),
        RemoveMessage(id="r"),
    ]
    assert texts(messages) == [
        "The assistant called send_mail(). It failed: Error: no mailbox",
    ]


def test_calls_before_the_users_last_message_are_earlier_ones() -> None:
    messages = [
        HumanMessage("First."),
        calls(("send_mail", {}, "a")),
        ToolMessage("sent", tool_call_id="a"),
        AIMessage("I sent it."),
        HumanMessage("Again, please."),
        calls(("send_mail", {}, "b")),
    ]
    found = tool_calls(messages, complete=True)
    assert [one.metadata["earlier"] for one in found] == [True, False]
    assert [one.metadata["turn"] for one in found] == [1, 2]


def test_without_calls_a_complete_conversation_says_that_nothing_was_done() -> None:
    (document,) = tool_calls([ASKED, AIMessage("I sent it.")], complete=True)
    assert document.page_content == NOTHING_DONE
    assert status_of_call(document) == "none"
    assert document.metadata["earlier"] is False


def test_without_calls_a_part_of_a_conversation_says_nothing() -> None:
    assert tool_calls([ASKED, AIMessage("I sent it.")], complete=False) == ()
    assert tool_calls([], complete=False) == ()


def test_only_documents_of_calls_have_a_status() -> None:
    made = came("sent")
    assert status_of_call(made) == "done"
    for other in (
        Document("text"),
        Document("text", metadata={"tool": "search", "tool_call_id": "a", "turn": 1}),
        Document("text", metadata={"tool_call": "done"}),
        Document("text", metadata={"tool_call": "sent", "earlier": False}),
        Document("text", metadata={"tool_call": ["done"], "earlier": False}),
    ):
        assert status_of_call(other) is None


def test_calls_are_put_behind_all_other_documents() -> None:
    made, other = came("sent"), came("Error: no")
    passages = Document("one"), Document("two")
    given = [made, passages[0], other, passages[1], passages[0], made]
    assert calls_last(given) == (*passages, made, other, made)


# --- Secrets --------------------------------------------------------------------------------------


def test_arguments_with_the_name_of_a_secret_are_masked_nested_ones_too() -> None:
    document = came(
        "ok",
        user="Dana",
        api_key="abc",
        headers={"Authorization": "Basic abc"},
        options={"db": [{"password": "abc"}, {"password": 123, "port": 5432}]},
        secrets=["abc", {"x": "abc"}],
    )
    assert document.page_content == (
        "The assistant called send_mail(user=Dana, api_key=[secret], headers=[secret], "
        "options={db: [{password: [secret]}, {password: [secret], port: 5432}]}, "
        "secrets=[secret]). It succeeded: ok"
    )


def test_a_secret_is_masked_that_is_named_beside_it_or_comes_back() -> None:
    document = came(
        "The key is now pq7-lantern-44, and the password lantern-45.",
        key="API_KEY",
        value="pq7-lantern-44",
        pairs=[["password", "lantern-45"]],
    )
    assert document.page_content == (
        "The assistant called send_mail(key=API_KEY, value=[secret], pairs=[[password, [secret]]])"
        ". It succeeded: The key is now [secret], and the password [secret]."
    )


def test_a_short_secret_is_masked_that_is_named_beside_it_or_in_other_letters() -> None:
    document = came("ok", key="password", value="hunter2", more={"name": "db_pwd", "value": 123})
    assert document.page_content == (
        "The assistant called send_mail(key=password, value=[secret], "
        "more={name: db_pwd, value: [secret]}). It succeeded: ok"
    )
    assert "hunter22x" not in came("ok", **{"\uff50assword": "hunter22x"}).page_content


def test_values_of_the_environments_secrets_are_masked_wherever_they_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = "pq7-orchard-lantern-42"
    monkeypatch.setenv("DEMUR_TEST_API_KEY", value)
    document = came(f"used {value}", body=f"My key is {value}.", more={"list": [value]})
    assert document.page_content == (
        "The assistant called send_mail(body=My key is [secret]., more={list: [[secret]]}). "
        "It succeeded: used [secret]"
    )


def test_a_secret_where_a_long_result_is_cut_does_not_come_out_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = "pq7-orchard-lantern-43"
    monkeypatch.setenv("DEMUR_TEST_API_KEY", value)
    cut = came(f"{'x' * 390} {value} {'y' * 90}").page_content
    assert value[:4] not in cut
    assert cut.endswith(" ...")


def test_masking_a_header_in_an_argument_leaves_the_result() -> None:
    document = came("sent", note="Authorization: Bearer abcdef0123456789xyz", to="Dana")
    assert document.page_content == (
        "The assistant called send_mail(note=Authorization: [secret], to=Dana). It succeeded: sent"
    )


# --- Whole conversations --------------------------------------------------------------------------


def test_a_sample_has_the_question_the_answer_the_results_and_the_calls() -> None:
    messages = [
        ASKED,
        calls(("find", {"name": "Dana"}, "a"), ("send_mail", {}, "b")),
        ToolMessage("Dana is in Lund.", tool_call_id="a"),
        ToolMessage("Error: no", tool_call_id="b"),
        AIMessage("Dana is in Lund."),
    ]
    sample = sample_of(messages)
    assert (sample.question, sample.answer) == ("Please do it.", "Dana is in Lund.")
    made = tool_calls(messages, complete=True)
    assert sample.contexts == (*sources(messages), *made)
    assert [*map(status_of_call, sample.contexts)] == [None, None, "done", "failed"]


def test_messages_in_short_form_are_a_sample_too() -> None:
    sample = sample_of([("user", "Send it."), ("assistant", "I sent it.")])
    assert (sample.question, sample.answer) == ("Send it.", "I sent it.")
    assert [one.page_content for one in sample.contexts] == [NOTHING_DONE]


def test_messages_as_they_dump_themselves_are_the_same_sample() -> None:
    wrong: Any = {"type": "invalid_tool_call", "name": "book", "args": "{", "id": "b", "error": "e"}
    messages = [
        SystemMessage("Be brief."),
        ASKED,
        AIMessage("", tool_calls=calls(("find", {}, "a")).tool_calls, invalid_tool_calls=[wrong]),
        ToolMessage("Error: no", tool_call_id="a", status="error"),
        AIMessage("Nothing was done."),
    ]
    sample = sample_of([message.model_dump() for message in messages])
    assert sample == sample_of(messages)
    assert [*map(status_of_call, sample.contexts)] == ["failed", "failed"]


def test_documents_that_a_tool_returned_stay_documents_in_a_dump() -> None:
    found = [Document("Lund is a town.", metadata={"source": "x"})]
    messages = [
        ASKED,
        calls(("search", {}, "a")),
        ToolMessage("Found 1.", tool_call_id="a", artifact=found),
        AIMessage("Lund is a town."),
    ]
    sample = sample_of([message.model_dump() for message in messages])
    assert sample == sample_of(messages)
    assert sample.contexts[0].page_content == "Lund is a town."


@pytest.mark.parametrize("left_out", [{"arguments": ""}, {"arguments": "{}"}])
@pytest.mark.parametrize("content", [{}, {"content": None}])
def test_a_call_in_openais_form_may_lack_content_and_arguments(
    left_out: dict[str, Any], content: dict[str, Any]
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "list_rooms", **left_out}}
    asked = {"role": "assistant", "tool_calls": [call], **content}
    result = {"role": "tool", "tool_call_id": "a", "content": "Room 4"}
    sample = sample_of([("user", "Rooms?"), asked, result, ("ai", "Room 4.")])
    assert sample.contexts[-1].page_content == (
        "The assistant called list_rooms(). It succeeded: Room 4"
    )


def test_a_dump_may_have_none_for_what_is_not_set() -> None:
    unset: Any = {"type": "ai", "content": "Hi.", "additional_kwargs": None, "tool_calls": None}
    assert sample_of([ASKED, unset]).answer == "Hi."


@pytest.mark.parametrize(
    ("odd", "seen"),
    [
        (None, "a NoneType at index 1"),
        ({"type": "robot", "content": ""}, "a dict with the keys 'type', 'content' at index 1"),
        ({"type": "ai", "content": "x", "tool_calls": "x"}, "'tool_calls' at index 1"),
        ({"role": "assistant", "content": "x", "tool_calls": "x"}, "'tool_calls' at index 1"),
        (("user",), "a tuple at index 1"),
    ],
)
def test_the_first_value_that_is_no_message_is_named(odd: Any, seen: str) -> None:
    with pytest.raises(ValueError, match=seen):
        sample_of([ASKED, odd, AIMessage("I sent it."), 3])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [ASKED],
        [AIMessage("I sent it."), ASKED],
        [ASKED, calls(("send_mail", {}, "a"))],
        [ASKED, calls(("send_mail", {}, "a")), ToolMessage("sent", tool_call_id="a")],
        [ASKED, {"type": "robot", "content": ""}, AIMessage("I sent nothing.")],
        [ASKED, {"type": "tool", "content": "sent"}, AIMessage("I sent it.")],
        [ASKED, None, AIMessage("I sent nothing.")],
        ["not", "messages"],
        None,
        "I sent nothing.",
        AIMessage("I sent nothing."),
    ],
)
def test_messages_without_an_answer_or_beside_something_else_are_refused(messages: Any) -> None:
    with pytest.raises(ValueError, match="expected messages that end with the model's answer"):
        sample_of(messages)


def test_documents_of_calls_survive_json() -> None:
    messages = [ASKED, calls(("find", {"ä": ["☃", None]}, "a"), ("book", {}, "b"))]
    sample = Sample(answer="x", contexts=tool_calls(messages, complete=True))
    again = Sample.model_validate_json(sample.model_dump_json())
    assert again == sample
    assert [*map(status_of_call, again.contexts)] == ["pending", "pending"]


def test_lone_surrogates_in_names_and_ids_do_not_stop_json() -> None:
    messages = [
        ASKED,
        calls(("send\ud800", {"to\ud800": "\ud800"}, "a\ud800")),
        ToolMessage("ok\ud800", tool_call_id="a\ud800", name="send\ud800"),
        AIMessage("I sent it."),
    ]
    found = sample_of(messages)
    assert [*map(status_of_call, found.contexts)] == [None, "done"]
    assert Sample.model_validate_json(found.model_dump_json()) == found


# --- The parts of a call --------------------------------------------------------------------------


def test_a_call_has_its_name_and_its_arguments_as_parts() -> None:
    assert parts_of_call(came("sent", to="Di, Bo", cc=["Cy"])) == (
        "send_mail",
        "to=Di, Bo",
        "cc=[Cy]",
    )
    assert parts_of_call(came("sent")) == ("send_mail",)


@pytest.mark.parametrize("of_two", ["\u1100\uffc2", "\u3131\uffc2", "\uffa1\uffc2", "e\u0301"])
def test_the_parts_of_a_call_are_in_plain_letters_for_good(of_two: str) -> None:
    document = came("saved", author=of_two * 40, text="The tower is tall.")
    assert plain(document.page_content) is None
    assert parts_of_call(document)[2] == "text=The tower is tall."


@pytest.mark.parametrize("new", ["[name]", "Somebody whose name is much longer"])
def test_a_call_whose_text_was_changed_since_is_one_part(new: str) -> None:
    document = came("saved", author="Dana Berg", text="The tower is tall.")
    changed = document.page_content.replace("Dana Berg", new)
    found = parts_of_call(Document(changed, metadata=document.metadata))
    assert found == (changed.removeprefix("The assistant called "),)


@pytest.mark.parametrize("inner", [lambda held: [held], lambda held: {"a": held}])
def test_arguments_that_are_nested_deep_are_cut(inner: Any) -> None:
    deep: Any = "x"
    for _ in range(900):
        deep = inner(deep)
    document = came("sent", to="Di", more=deep)
    assert "..." in parts_of_call(document)[2]
    assert status_of_call(document) == "done"


# --- Whatever a model writes ----------------------------------------------------------------------

SECRET_VALUE = "Zx9-marmalade-K4-quartz"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
_NAMES = st.text(max_size=12)
_RESULTS = (
    st.none()
    | st.text(max_size=80)
    | _JSON.map(json.dumps)
    | _JSON.map(lambda value: json.dumps({"status": value, "errors": value, "ok": value}))
    | st.sampled_from([["text"], [{"type": "text", "text": "Error: x"}]])
)


@given(name=_NAMES, args=st.dictionaries(_NAMES, _JSON, max_size=4), result=_RESULTS)
def test_any_call_and_any_result_give_a_document(name: str, args: Any, result: Any) -> None:
    messages: list[AnyMessage] = [ASKED, calls((name, args, "a"))]
    if result is not None:
        messages.append(ToolMessage(result, tool_call_id="a"))
    (document,) = tool_calls(messages, complete=True)
    assert status_of_call(document) in ("done", "failed", "pending")
    assert (status_of_call(document) == "pending") or result is not None
    assert document.page_content.startswith("The assistant called ")
    assert _DOCUMENTS.validate_json(_DOCUMENTS.dump_json([document])) == [document]


@given(
    name=st.sampled_from(["api_key", "password", "X-Auth-Token", "clientSecret", "authorization"]),
    inside=st.sampled_from(["plain", "list", "mapping", "deep"]),
    value=st.text(max_size=20).map(lambda text: f"{text}{SECRET_VALUE}{text}"),
)
def test_no_value_of_a_secret_name_comes_out(name: str, inside: str, value: str) -> None:
    nested: dict[str, Any] = {
        "plain": {name: value},
        "list": {name: [[value]]},
        "mapping": {"options": {name: value}},
        "deep": {"all": [{"one": {name: {"is": [value]}}}]},
    }
    assert SECRET_VALUE not in came("sent", **nested[inside]).page_content


@given(before=st.integers(0, 500), args=st.lists(_JSON, max_size=3), wrapped=st.booleans())
def test_no_known_secret_comes_out(before: int, args: list[Any], wrapped: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEMUR_TEST_SECRET", SECRET_VALUE)
        result = json.dumps({"text": SECRET_VALUE}) if wrapped else f"{'a ' * before}{SECRET_VALUE}"
        document = came(result, given=[*args, SECRET_VALUE], text=f"it is {SECRET_VALUE}")
    for at in range(0, len(SECRET_VALUE) - 7):
        assert SECRET_VALUE[at : at + 8] not in document.page_content
