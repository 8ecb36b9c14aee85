"""Test the web service of docs/web-service.md in real Chromium."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from demur import CallPolicy, Guard, RefChecker
from demur.guard import REFUSAL, UNCHECKED
from support.openai_server import openai_server
from support.reports import LAPTOP
from support.streams import Telling
from support.waiting import until
from support.web import DOCUMENTS, TOWER, Quoting, quoting, served, service

pytestmark = pytest.mark.browser

GOOD = f"{TOWER} It was opened in 1911."
STREAMED, BAD = f"{TOWER} It is red.", f"{TOWER} It is red. A bad end."

WATCH = """
    window.states = [];
    addEventListener("DOMContentLoaded", () => {
        const look = () => states.push(document.querySelector("#answer").textContent);
        const all = { subtree: true, childList: true, characterData: true, attributes: true };
        new MutationObserver(look).observe(document.body, all);
    });
"""
"""A script that keeps every text which the answer's element ever held."""


class Visit:
    """Hold the open page of the service."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def ask(self, question: str = "How tall is it?") -> None:
        self.page.get_by_label("Your question").fill(question)
        self.page.get_by_role("button", name="Ask").click()

    def shows(self, text: str) -> None:
        """Wait until this text is the answer."""
        script = "text => document.querySelector('#answer').textContent === text"
        self.page.wait_for_function(script, arg=text)

    def says(self, state: str) -> None:
        """Wait until the status begins with this text."""
        script = "state => document.querySelector('#status').textContent.startsWith(state)"
        self.page.wait_for_function(script, arg=state)

    @property
    def states(self) -> list[str]:
        """Return the texts that the answer had over time, without repeats."""
        found: list[str] = self.page.evaluate("[...new Set(states)]")
        return found

    @property
    def claims(self) -> list[str]:
        """Return the text that is shown for each claim."""
        shown: list[str] = self.page.locator("#found li").all_inner_texts()
        return shown


@pytest.fixture
def visit(tmp_path: Path, chromium: Any) -> Callable[..., None]:
    """Return a function that serves a guard and uses its page, which must show no errors.

    `ask` is an application that answers questions in the guard's place.
    """

    def go(
        guard: Guard[Any, Any], do: Callable[[Visit], None], ask: Any = None, **options: Any
    ) -> None:
        app = service(tmp_path)["make_app"](guard)

        async def routed(scope: Any, *channels: Any) -> None:
            await (ask if ask and scope["path"] == "/ask" else app)(scope, *channels)

        with served(routed) as url:

            def steps(page: Any, seen: Any) -> None:
                page.add_init_script(WATCH)
                page.goto(url)
                do(Visit(page))
                assert seen.errors == []
                assert {one.removeprefix(url) for one in seen.requests} <= {"/", "/ask"}

            chromium(steps, **{**LAPTOP, **options})

    return go


def test_a_sentence_appears_when_it_was_accepted_and_no_sooner(visit: Any) -> None:
    verdicts = {"84": threading.Event(), "1911": threading.Event()}

    def hold(answer: str) -> threading.Event | None:
        return next(verdict for words, verdict in verdicts.items() if words in answer)

    chain = Telling(GOOD)

    def do(page: Visit) -> None:
        page.ask()
        # Both sentences are written, and neither is shown.
        until(lambda: chain.told[-1:] == [" 1911."])
        page.says("Answering")
        page.shows("")
        verdicts["84"].set()
        page.shows(TOWER)
        verdicts["1911"].set()
        page.shows(GOOD)
        page.says("This answer was checked")
        assert page.states == ["", TOWER, GOOD]

    visit(quoting(chain, Quoting(hold=hold)), do)


def test_what_was_rejected_is_never_seen_and_what_replaces_it_is_right(visit: Any) -> None:
    def do(page: Visit) -> None:
        page.ask()
        page.shows(GOOD)
        page.says("This answer was checked")
        assert not [state for state in page.states if "bad" in state]
        # It was streamed first, and then cut after the sentence with the emoji.
        assert STREAMED in page.states
        assert TOWER in page.states
        assert not [claim for claim in page.claims if "red" in claim or "bad" in claim]

    visit(quoting(Telling(BAD, GOOD)), do)


def test_the_claims_are_shown_with_quotes_and_those_of_the_last_question_only(visit: Any) -> None:
    (document,) = DOCUMENTS
    quote = f"{document.page_content}\ntower.md"

    def do(page: Visit) -> None:
        page.ask()
        page.says("This answer was checked")
        first, second = page.claims
        assert first == f"{TOWER} supported\n{quote}"
        assert second == f"It was opened in 1911. supported\n{quote}"
        page.ask("Who built it?")
        page.shows(REFUSAL)
        page.says("No answer could be confirmed")
        assert not page.claims

    visit(quoting(Telling(GOOD, BAD)), do)


def test_html_is_shown_as_text(visit: Any) -> None:
    tag = "<img src=x onerror=window.pwned=1>"
    answer = f"{tag} <b>It</b>\u2028It is &lt;tall&gt;."
    found = [Document(f"</blockquote>{tag}", metadata={"source": tag})]

    def do(page: Visit) -> None:
        page.ask(tag)
        page.shows(answer)
        page.says("This answer was checked")
        assert [claim.count(tag) for claim in page.claims] == [3, 2]
        assert page.page.locator("img, b").count() == 0
        assert page.page.evaluate("window.pwned") is None

    visit(quoting(Telling([answer]), contexts=lambda output: found), do)


@pytest.mark.parametrize("leave", ["closed", "asked again"])
def test_a_reader_that_leaves_ends_the_answer_on_the_server(
    leave: str, visit: Any, caplog: Any
) -> None:
    more, chain = threading.Event(), Telling(f"{GOOD} And some more.", GOOD)
    chain.hold = lambda chunk: more if chunk == " more." else None

    def do(page: Visit) -> None:
        page.ask()
        page.shows(GOOD)
        assert chain.under_way == 1
        if leave == "closed":
            page.page.close()
        else:
            page.ask("Once more?")
            page.shows(GOOD)
            page.says("This answer was checked")
        until(lambda: chain.under_way == 0)
        more.set()
        assert " more." not in chain.told

    visit(quoting(chain), do)
    assert not caplog.records  # The server ended the answer before any timeout.


def test_a_dead_judge_is_told_as_one_and_the_server_logs_no_traceback(
    visit: Any, caplog: Any
) -> None:
    with openai_server([]) as gone:
        model = gone.model()
    judge = RefChecker(model, claims="sentences", call_policy=CallPolicy(attempts=1))

    def do(page: Visit) -> None:
        page.ask()
        page.shows(UNCHECKED)
        page.says("The answer could not be checked")
        assert page.states == ["", UNCHECKED]
        assert not page.claims

    visit(quoting(Telling(GOOD), judge), do)
    assert not [one for one in caplog.records if one.exc_info or "Traceback" in one.message]


@pytest.mark.parametrize(
    ("end", "options", "state"),
    [
        (" bad end.", {"on_fail": "block"}, "No answer could be confirmed"),
        (" odd end.", {"on_error": "raise"}, "The answer could not be checked"),
        (ValueError("broken"), {}, "Something went wrong"),
    ],
)
def test_an_error_takes_back_what_was_seen(
    end: Any, options: dict[str, Any], state: str, visit: Any
) -> None:
    chain = Telling([f"{TOWER} It", " is red.", " One", " more", end])
    go_on = threading.Event()
    chain.hold = lambda chunk: go_on if chunk == end else None

    def do(page: Visit) -> None:
        page.ask()
        page.shows(STREAMED)
        go_on.set()
        page.says(state)
        page.shows("")
        assert page.page.locator("#answer").get_attribute("aria-busy") == "false"

    visit(quoting(chain, **options), do)


def in_pieces(body: bytes) -> Any:
    """Return an application that sends its answer byte by byte, as a proxy may."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for at in range(len(body)):
            piece = body[at : at + 1]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # Most pieces leave by themselves.
        await send({"type": "http.response.body"})

    return app


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ('event: done\ndata: {"outcome": "passed"}\n\n', "This answer was checked"),
        ("event: do", "The connection was lost"),
    ],
    ids=["whole", "cut off"],
)
def test_events_may_come_in_any_pieces_and_must_come_whole(
    end: str, state: str, visit: Any
) -> None:
    text = "\u2028 🗼 née: \\n"
    body = f': ping\n\nevent: text\ndata: "{text}"\n\n{end}'

    def do(page: Visit) -> None:
        page.ask()
        page.says(state)
        page.shows(json.loads(f'"{text}"'))

    visit(quoting(Telling(GOOD)), do, ask=in_pieces(body.encode()))
