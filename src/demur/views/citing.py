"""Show an answer to its readers, with numbered marks that lead to its sources and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from demur._text import one_line
from demur.guard import Attempt, Guarded, Trace
from demur.shapes import find_answer
from demur.views.elements import Element, element, prefix_of, separated
from demur.views.folds import fold, quotation, shortened
from demur.views.sources import Part, Source, Sourced, sourced
from demur.views.styling import styled

_LEFT_AS_IT_WAS = ("nothing_to_check", "abstained")
"""The verdicts on answers that a guard lets through without citations."""


def cited_html(answer: Guarded[Any] | Trace | Attempt, *, style: bool = False) -> Element:
    """Show an answer to its readers: the text with numbered marks, and the sources with quotes.

    Each supported sentence has a mark for each document that supports it. A mark leads to its
    source, which shows the document's title, the quotes, and links back. The title is a link if the
    document has an http or https address. Texts are escaped, and there is no script. The style is
    `stylesheet()`, whose rules all apply to the class `demur` only.

    Sentences that the guard took out of the answer are not shown. Sources are shown whether or not
    the guard has `on_pass=Cite()`.

    Args:
        answer: The value that `with_trace()` returned, or a trace: the view shows the answer that
            the guard returned. If this was a refusal or an answer with a note, the view shows its
            text without sources. An attempt: the view shows its answer, whatever the verdict.
        style: Whether to put the style sheet in front, in an element of its own. A page that
            already has the style sheet does not need it.

    Raises:
        TypeError: `answer` is none of these.
        ValueError: `answer` is the trace of a call whose answer did not pass. The trace does not
            hold the output; the value that `with_trace()` returned does.
        DemurError: The text cannot be found in the output of such a call.
    """
    view = element("article", *_view(_shown(answer)), class_="demur")
    return styled(view) if style else view


def reader_view(trace: Trace) -> Element | None:
    """Show the answer of a guarded call as readers see it; return None if it has no citations."""
    last = trace.attempts[-1]
    if not trace.citations or last.verdict != "passed":
        return None
    return element(
        "section",
        element("p", "As a reader sees it", class_="demur-title"),
        *_view(sourced(last), f"reader {trace.time.isoformat()}"),
        class_="demur-reader",
    )


def sources_fold(attempt: Attempt, salt: str = "") -> Element | None:
    """Make a fold with the answer and its sources; return None if it did not pass or has none.

    It is folded because an attempt does not say whether its readers saw the sources.
    """
    shown = sourced(attempt) if attempt.verdict == "passed" else None
    if shown is None or not shown.sources:
        return None
    return fold("The answer with its sources", *_view(shown, f"fold {salt}"))


def removed_view(removed: Sequence[str]) -> Element | None:
    """Show the texts that were taken out of an answer; return None if there are none.

    They are for the developers of the chain; readers of the answer do not see them.
    """
    if not removed:
        return None
    return element(
        "div",
        element("p", "Taken out of the answer", class_="demur-title"),
        element(
            "ul",
            *(element("li", element("del", text), dir="auto") for text in removed),
            class_="demur-removed",
        ),
    )


def _shown(answer: Guarded[Any] | Trace | Attempt) -> Sourced:
    if isinstance(answer, Attempt):
        return sourced(answer)
    trace = answer.trace if isinstance(answer, Guarded) else answer
    if not isinstance(trace, Trace):
        given = type(answer).__name__
        raise TypeError(f"answer: expected Guarded, Trace or Attempt, got {given}")
    last = trace.attempts[-1]
    if last.verdict == "passed":
        return sourced(last)
    if isinstance(answer, Guarded):
        text = find_answer(answer.output).text
    elif last.verdict in _LEFT_AS_IT_WAS:
        text = last.answer
    else:
        raise ValueError(
            f"the answer did not pass ({trace.outcome}), and a trace does not hold what the guard "
            "returned instead: give the value that with_trace() returned"
        )
    return Sourced(text)


def _view(shown: Sourced, salt: str = "") -> Iterator[Element]:
    """Yield the text with its marks, and then the list of sources.

    Args:
        shown: The answer with its sources.
        salt: A text that makes the ids differ from those of an equal answer.
    """
    view = _View(shown, salt)
    yield element("div", *view.text(), class_="demur-text demur-cited", dir="auto")
    if shown.sources:
        yield view.list()


class _View:
    """Make the ids, links and texts of one answer's view."""

    def __init__(self, shown: Sourced, salt: str) -> None:
        self._shown = shown
        self._prefix = prefix_of(("cited", salt, repr(shown)))
        self._titles = {source.number: source.title for source in shown.sources}

    def text(self) -> Iterator[str]:
        end = 0
        for at, part in enumerate(self._shown.parts):
            yield self._shown.text[end : part.at]
            yield element(
                "sup",
                *(self._mark(at, part, number) for number in part.quotes),
                class_="demur-note demur-good",
            )
            end = part.at
        yield self._shown.text[end:]

    def list(self) -> Element:
        return element(
            "section",
            element("p", "Sources", class_="demur-title", id=f"{self._prefix}-s"),
            element(
                "ol",
                *map(self._entry, self._shown.sources),
                class_="demur-sources",
                role="list",
            ),
            role="doc-endnotes",
            aria_labelledby=f"{self._prefix}-s",
        )

    def _mark(self, at: int, part: Part, number: int) -> Element:
        title = one_line(self._titles[number])
        quotes = " ".join(f"“{shortened(one_line(quote))}”" for quote in part.quotes[number])
        return element(
            "a",
            f"[{number}]",
            href=f"#{self._prefix}-s{number}",
            id=self._id_of_mark(at, number),
            title=shortened(f"{title}: {quotes}", 600),
            aria_label=f"source {number}: {title}, for {part.name}",
            role="doc-noteref",
        )

    def _entry(self, source: Source) -> Element:
        back = (
            self._back(at, part, source.number)
            for at, part in enumerate(self._shown.parts)
            if source.number in part.quotes
        )
        return element(
            "li",
            element("span", f"[{source.number}]", class_="demur-number"),
            element(
                "div",
                _title(source),
                *map(quotation, source.quotes),
                element(
                    "p",
                    element("span", "↩ ", aria_hidden="true"),
                    separated(back, ", "),
                    class_="demur-quiet",
                ),
            ),
            id=f"{self._prefix}-s{source.number}",
            class_="demur-entry demur-good",
        )

    def _back(self, at: int, part: Part, number: int) -> Element:
        return element(
            "a",
            part.name,
            href=f"#{self._id_of_mark(at, number)}",
            aria_label=f"back to {part.name}",
            role="doc-backlink",
        )

    def _id_of_mark(self, at: int, number: int) -> str:
        return f"{self._prefix}-m{at + 1}-{number}"


def _title(source: Source) -> Element:
    title = one_line(source.title)
    if source.url is None:
        return element("p", element("cite", title, dir="auto"))
    # A title may look like another address, so the host shows where the link leads.
    return element(
        "p",
        element(
            "cite",
            element(
                "a",
                title,
                href=source.url,
                rel="noopener noreferrer nofollow",
                target="_blank",
                aria_label=f"{title}, on {_host(source.url)}, opens in a new tab",
            ),
            dir="auto",
        ),
        " ",
        element("span", f"{_host(source.url)} ↗", class_="demur-quiet", aria_hidden="true"),
    )


def _host(url: str) -> str:
    return urlsplit(url).netloc
