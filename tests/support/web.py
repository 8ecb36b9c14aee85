"""Write down and serve the web service of docs/web-service.md, as a reader of the page would."""

from __future__ import annotations

import json
import re
import runpy
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from langchain_core.documents import Document

from demur import Claim, ClaimLabel, Evaluation, Evidence, Guard, Sample, Span
from demur.runtime import Steps
from support.streams import ByClaims, Telling
from support.waiting import until

DOC = Path(__file__).parents[2] / "docs" / "web-service.md"
TOWER = "The tower 🗼 is 84 metres tall."
"""The beginning of answers: its length in UTF-16 differs from its number of characters."""
DOCUMENTS = [
    Document(f"{TOWER} It was <b>opened</b> in 1911.", id="d-1", metadata={"source": "tower.md"})
]


class Quoting(ByClaims):
    """Make a claim of each sentence, and quote the first context for it."""

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        found = yield from super()._steps(sample)
        if found.undetermined:
            return found
        text = sample.answer.strip()
        start = sample.answer.index(text)
        label = ClaimLabel.ENTAILMENT if found.passed else ClaimLabel.CONTRADICTION
        quote = sample.contexts[0].page_content
        place = Span(start=0, end=len(quote))
        claim = Claim(
            text=text,
            label=label,
            span=Span(start=start, end=start + len(text)),
            evidence=(Evidence(context=0, span=place, text=quote, label=label),),
        )
        return found.model_copy(update={"claims": (claim,)})


def quoting(chain: Telling, judge: Any = None, **options: Any) -> Guard[Any, Any]:
    """Return a guard as in the recipe, which has `DOCUMENTS` as contexts of every question."""
    options = {"streaming": "sentence", "contexts": lambda output: DOCUMENTS, **options}
    return Guard(chain, judge or Quoting(), **options)


def service(folder: Path, **given: Any) -> dict[str, Any]:
    """Run the page's Python with the names that it presupposes, and return its names.

    Without any given name, run only the first block, which presupposes none.
    """
    text = DOC.read_text(encoding="utf-8")
    python = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (page,) = re.findall(r"^```html\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (folder / "page.html").write_text(page, encoding="utf-8")
    file = folder / "service.py"
    file.write_text("\n\n".join(python if given else python[:1]), encoding="utf-8")
    return runpy.run_path(str(file), init_globals=given, run_name="service")


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve the app on this machine for the length of the block, and yield the URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        # The server's logs go where all others go, so that a test can read them.
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            until(lambda: server.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


Told = tuple[str, Any]
"""The name and the data of an event."""


def read(lines: Iterator[str]) -> Iterator[Told]:
    """Yield the events in the lines of a response."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], json.loads(fields["data"])
            fields = {}


def client(url: str) -> httpx.Client:
    """Return a client of the service without a proxy, and with a timeout of 30 seconds."""
    return httpx.Client(base_url=url, trust_env=False, timeout=30)


def asked(
    url: str, question: str = "How tall is it?", left: threading.Event | None = None
) -> list[Told]:
    """Ask a question, and return all events of the answer; set `left` when the first one comes."""
    with (
        client(url) as http,
        http.stream("POST", "/ask", json={"question": question}) as response,
    ):
        response.raise_for_status()
        events = []
        for event in read(response.iter_lines()):
            events.append(event)
            if left is not None:
                left.set()
        return events


def text_of(events: list[Told]) -> str:
    """Return the final text of a client that keeps to the contract."""
    text = ""
    for name, data in events:
        if name == "text":
            text += data
        elif name == "replace":
            text = text[: data["keep"]]
    return text


def ending(events: list[Told]) -> Mapping[str, Any]:
    """Return the data of the last event, the only "done" event."""
    name, data = events[-1]
    assert name == "done"
    assert [name for name, _ in events].count("done") == 1
    found: Mapping[str, Any] = data
    return found
