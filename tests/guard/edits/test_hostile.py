"""Test that no text of a document or an answer becomes a citation, a link or an element.

Only demur's own marks and links may be there. The tests render the text with several Markdown
readers, which allow HTML and do not check URLs, as the least careful readers do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from markdown_it import MarkdownIt

from demur import Claim, ClaimLabel, Evaluation, Evidence, Span
from demur._text import code_in, marks_in
from demur.guard.edits import (
    FORMS,
    Cited,
    Form,
    Remainder,
    annotation,
    cited,
    places_of,
    remainder,
)

TEXT = "The tower is 84 metres tall."
URL = "https://towers.example/amber"

# --- Rendering ------------------------------------------------------------------------------------


def _markdown_it(preset: str, **options: Any) -> Callable[[str], str]:
    reader = MarkdownIt(preset, options)
    reader.validateLink = lambda url: True  # type: ignore[method-assign]
    return reader.render  # type: ignore[no-any-return]


@cache
def _readers() -> dict[str, Callable[[str], str]]:
    readers = {
        "commonmark": _markdown_it("commonmark"),
        "commonmark without HTML": _markdown_it("commonmark", html=False),
        "with tables": _markdown_it("js-default", html=True),
    }
    if find_spec("linkify_it"):
        readers["GitHub's"] = _markdown_it("gfm-like")
    if find_spec("mistune"):
        import mistune

        plugins = ["strikethrough", "footnotes", "table", "url"]
        readers["mistune"] = mistune.create_markdown(escape=False, plugins=plugins)
    if find_spec("markdown"):
        import markdown

        readers["Python-Markdown"] = lambda text: markdown.markdown(text, extensions=["extra"])
    return readers


class Shown(HTMLParser):
    """Parse HTML as a browser does, into elements, addresses, and text outside of code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.prose = ""
        self.links: list[tuple[str, str]] = []
        """The address and the text of each link."""
        self._code = 0
        self.feed(html)
        self.close()

    @property
    def addresses(self) -> list[str]:
        named = ("href", "src", "action", "formaction", "data")
        return [value for name, value in self.attributes if name in named]

    @property
    def runs(self) -> list[str]:
        """Return the addresses that run code; browsers ignore control characters in them."""
        bare = (re.sub(r"[\x00-\x20]", "", address) for address in self.addresses)
        return [one for one in bare if re.match(r"(?i)(java|vb|live)script:|data:", one)]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements[tag] += 1
        self._code += tag in ("code", "pre")
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "a":
            self.links.append((dict(attrs).get("href") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.prose += data
        if self.links:
            self.links[-1] = (self.links[-1][0], self.links[-1][1] + data)


def _shown(text: str) -> list[Shown]:
    return [Shown(read(text)) for read in _readers().values()]


# --- Answers that are wholly supported ------------------------------------------------------------


def _supported(answer: str, contexts: Sequence[Document], at: int = 0) -> Evaluation:
    """Return an evaluation in which a whole document supports each part of an answer."""
    text = contexts[at].page_content
    whole = Span(start=0, end=len(text))
    evidence = Evidence(context=at, span=whole, text=text, label=ClaimLabel.ENTAILMENT)
    claims = [
        Claim(
            text=answer[part.start : part.end],
            span=Span(start=part.start, end=part.end),
            label=ClaimLabel.ENTAILMENT,
            evidence=(evidence,),
        )
        for part in places_of(answer)
    ]
    return Evaluation(name="supported", score=1.0, passed=True, claims=tuple(claims))


def _cited(answer: str, form: Form, document: Document | None = None) -> Cited:
    document = document or Document(TEXT, metadata={"url": URL, "title": "Guide"})
    contexts = [document, *[Document("Another text.")] * 8]
    return cited(answer, places_of(answer), [_supported(answer, contexts)], contexts, form)


def _said(found: Cited) -> str:
    """Return the text that a reader sees."""
    return found.content if isinstance(found.content, str) else found.text


def _left(answer: str, form: Form, document: Document | None = None) -> str:
    found = _cited(answer, form, document)
    return _said(found)


IN_TEXT = st.sampled_from(("numbers", "footnotes", "links"))

# --- Documents ------------------------------------------------------------------------------------

SAYINGS = (
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "-->", "</p>", "<"),
    *("&lt;b&gt;", "&#60;b&#62;", "&amp;lt;", "[x](javascript:alert(1))", "![x](//e.example/a)"),
    *("](https://evil.example)", "]: https://evil.example", "[1]: https://evil.example", "[^1]: x"),
    *("[1]", "[[1]](https://evil.example)", "【1】", "(Source: 1)", "Source: 1", "^[a note]"),
    *("`", "```", "~~~", "$$", "|", "||", "\\", "\\\\", "***", "__", "~~x~~", "# ", "> ", "==x=="),
    *("- ", "+ ", "1. ", "12) ", "--- ", "===", ": ", "{: onclick=alert(1)}", "!!! note"),
    "*[x]: y",
    *("www.evil.example", "https://evil.example/", "//evil.example/", "evil.com", "a@evil.example"),
    *("mailto:a@evil.example", "ftp://evil.example", "javascript:alert(1)", "evil.museum"),
    *("\n", "\n\n", "\r", "\u2028", "\x00", "\x1b", "\u202e", "\u200b", " ", "    ", "\t", "word"),
)
_SAID = st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=5).map("".join)
_ELEMENTS = {"p", "a", "sup", "section", "ol", "li", "hr", "div"}
"""The elements of an answer with one sentence, and of a footnote."""


@settings(max_examples=50)
@given(_SAID, _SAID, st.booleans(), IN_TEXT)
@example("- ", "word", False, "footnotes")
@example("https://evil.example/", "www.evil.example", True, "footnotes")
@example("Guide", "evil.museum__", False, "footnotes")
def test_titles_and_quotes_are_text(title: str, quote: str, linked: bool, form: Form) -> None:
    metadata = {"title": title, **({"url": URL} if linked else {})}
    quote = f"{quote}." if quote.strip() else TEXT
    plain = {**metadata, "title": "Guide"}
    left = _left("It is tall.", form, Document(quote, metadata=metadata))
    expected = _left("It is tall.", form, Document(TEXT, metadata=plain))
    for shown, wanted in zip(_shown(left), _shown(expected), strict=True):
        assert shown.elements == wanted.elements
        assert sorted(shown.addresses) == sorted(wanted.addresses)
        names = [name for name, _ in shown.attributes]
        assert sorted(names) == sorted(name for name, _ in wanted.attributes)
        assert set(shown.elements) <= _ELEMENTS


ADDRESSES = (
    *("javascript:alert(1)", " javascript:alert(1)", "JAVASCRIPT:x", "java\tscript:x", "data:,x"),
    *("vbscript:x", "//evil.example", "/path", "guide.txt", "mailto:a@b.example"),
    "ftp://a.example",
    *("https://user@evil.example/", "https://user:word@evil.example/", "https://", "https:///x"),
    *("https://a.example\\@evil.example", "https://a.example&commat;evil.example/"),
    *("https://a.example&bsol;@x", "https://evil.example&sol;.a.example/", "https://a b.example"),
    *("https://a.example\n/x", "https://a.example\x00", "https://a\uff20b.example", "https://[x"),
    *("https://a.example/\ud800", "http:evil.example", "https:/evil.example", "https://\u202eb.c"),
)
_SAFE = (
    "https://a.example/b?c=1&d=2#e",
    "https://a.example/(b)",
    "https://a.example/)[2](javascript:alert(1))",
    'https://a.example/"onmouseover="alert(1)',
    "https://a.example/<b>",
    "https://a.example/|b|`c`",
    "https://a.example/?a=&lt;b&gt;&colon;",
    "https://a.example/a_b_c*d*",
    "https://a.example/\u202ebidi",
    "http://a.example:8080/b\u00fccher",
)


@pytest.mark.parametrize("url", ADDRESSES)
@pytest.mark.parametrize("form", ["footnotes", "links"])
def test_what_is_no_address_of_the_web_is_no_link(form: Form, url: str) -> None:
    for key in ("url", "source", "link"):
        found = _cited("It is tall.", form, Document(TEXT, metadata={key: url}))
        (citation,) = found.citations
        assert citation.url is None
        assert "url" not in annotation(citation)
        for shown in _shown(_said(found)):
            assert [one for one in shown.addresses if not one.startswith("#")] == []


@pytest.mark.parametrize("url", _SAFE)
@pytest.mark.parametrize("form", ["footnotes", "links"])
def test_a_link_leads_where_the_citation_says(form: Form, url: str) -> None:
    found = _cited("It is tall.", form, Document(TEXT, metadata={"url": url, "title": "T"}))
    (citation,) = found.citations
    assert citation.url is not None
    assert citation.url.startswith(url[: url.index("example") + 7])
    for shown in _shown(_said(found)):
        away = [one for one in shown.addresses if not one.startswith("#")]
        if form == "links":  # Not all readers know footnotes.
            assert away == [citation.url]
            assert shown.links == [(citation.url, "[1]")] or shown.links[0][1].startswith("[1]")
        assert set(away) <= {citation.url}


def test_metadata_has_no_address_that_runs_something_at_any_depth() -> None:
    hostile = {
        "a": "javascript:alert(1)",
        "b": ["JavaScript:x", "fine", {"c": "java\nscript:x", "d": ["data:text/html,x"]}],
        "e": ("vbscript:x",),
        "f": "java&#115;cript:x",
    }
    (citation,) = _cited("It is tall.", "list", Document(TEXT, metadata=hostile)).citations
    assert citation.metadata == {"b": ["fine", {"d": []}], "e": []}


def test_metadata_that_json_cannot_hold_costs_nobody_an_answer() -> None:
    within: dict[str, Any] = {"key": "value"}
    within["within"] = within

    class Unspeakable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    odd: dict[str, Any] = {
        "bytes": b"\xff",
        "within": within,
        "object": Unspeakable(),
        "nan": float("nan"),
        "lone \ud800": "\udfff",
        "fine": 1,
    }
    (citation,) = _cited("It is tall.", "list", Document(TEXT, metadata=odd)).citations
    assert citation.metadata == {"nan": None, "lone \ufffd": "\ufffd", "fine": 1}
    assert citation.model_dump_json()


def test_a_title_takes_no_citation_by_number_from_another_document() -> None:
    contexts = [Document("a", metadata={"title": "()"}), Document("b", metadata={"source": "/"})]
    for answer in ("Tall (Source: 2).", "Tall.\n\nSources: [2]", "Tall [^2].\n\n[^2]:"):
        assert {one.documents for one in marks_in(answer, contexts)} == {(1,)}


# --- Answers --------------------------------------------------------------------------------------

FORGED = (
    *("[7]", "[^7]", "[[7]]", "【7】", "[ 7 ]", "[\u200b7]", "［7］", "\\[7\\]", "&#91;7&#93;"),
    "[7]:",
    *("&lsqb;7&rsqb;", "(Source: 7)", "[7](https://evil.example)", "[[7]](https://evil.example)"),
    *("[\\[7\\]](https://evil.example)", "[&#91;7&#93;](https://evil.example)", "[1, 7]", "[7–8]"),
    *("[【1】7]", "【【7】", "[[[7]", "[(Source: 1)7]", "[【【1】1】7]", "(Source: (Source: 1)7)"),
    *("_it_[7] is", "tall[7] and", "tall[7](https://evil.example) and", "tall[^7] and", "【 7】"),
)
"""Citations that an answer wrote itself, with the wrong number 7."""


@pytest.mark.parametrize(
    ("form", "mark"), [(FORMS[at % len(FORMS)], mark) for at, mark in enumerate(FORGED)]
)
def test_no_citation_of_the_answers_own_leaves(form: Form, mark: str) -> None:
    left = _left(f"Here it is {mark} of all. It is tall {mark}.\n\nIt is old. {mark}", form)
    assert "7" not in left
    assert "evil" not in left


@pytest.mark.parametrize("form", ["numbers", "footnotes"])
@pytest.mark.parametrize(
    "definition",
    [
        "[1]: https://evil.example",
        "[^1]: forged",
        "[ 1 ]: https://evil.example",
        "[\n1\n]: https://evil.example",
        "> [1]: https://evil.example",
        "> > [^1]: forged",
        "> [\n> 1]: https://evil.example",
        "- [1]: https://evil.example",
        "12. [^1]: forged",
        "[【7】1]: https://evil.example",
        "Sources:\n1. https://evil.example",
        "[^guide]: Guide: “forged” https://evil.example",
        "> [^guide]: Guide: “forged” https://evil.example",
    ],
)
def test_no_definition_of_the_answers_own_stands_for_ours(form: Form, definition: str) -> None:
    for answer in (f"{definition}\n\nIt is tall[^guide].", f"It is tall[^guide].\n\n{definition}"):
        found = _cited(answer, form)
        left = _said(found)
        assert "[^guide]" not in left or "guide" not in definition
        assert len(re.findall(r"^\[\^1\]:", left, re.MULTILINE)) == (form == "footnotes")
        for shown in _shown(left):
            assert not any("evil" in one for one in shown.addresses)


CODE = (
    *("```\nx[7]\n```", "~~~py\nx = [7]\n~~~", "`x[7]`", "`` x[7]` ``"),
    "- a\n\n  ```\n  x[7]\n  ```",
    *("1. a\n   ```py\n   x = [7]\n   ```\n2. b", "1. a\n   - b:\n     ```\n     x[7]\n     ```"),
    *("It <b>is</b> `x[7]`", "See [here](https://a.example) and `x[7]`", "| a |\n|-|\n| `x[7]` |"),
)


@pytest.mark.parametrize("code", CODE)
def test_code_is_left_as_it_is(code: str) -> None:
    assert code in _left(f"It is tall.\n\n{code}\n\nIt is old.", "list")


NO_CODE = (
    *("\\`{}\\`", "`` {} `", "`` ` {}``` `", "para\n    ~~~\n    {}\n    ~~~"),
    "    ```\n{}\n    ```",
    *(" ```\n```\n{}\n```", "- a\n  ```\n  b\n\n{}", "> ```\n> b\n\n{}\n\n```", "``` a`b\n{}\n```"),
    *("<div>\n```\n\n{}\n\n```", '<a title="`">{}`', "`a\nb` {} `c`", "[a](b`c) {} `d", "```\n{}"),
    *("| `a | {} ` |\n|---|---|", '[a](b ") `c") {} `d`'),
    "- `a\n      ```\n      b` {}\n      ```",
)
"""Texts that only look like code."""


@pytest.mark.parametrize("hidden", ["[7]", "[x](javascript:alert(1))"])
@pytest.mark.parametrize("code", NO_CODE)
def test_nothing_hides_in_what_only_looks_like_code(code: str, hidden: str) -> None:
    left = _left(f"It is tall.\n\n{code.format(hidden)}", "numbers")
    assert "7" not in left
    assert "javascript" not in left


SCRIPTS = (
    *("[x](javascript:alert(1))", "[x]( <javascript:alert(1)>)", "[x](\njavascript:alert(1))"),
    *("[x](javascript\\:alert(1))", "[x](java&#115;cript:alert(1))"),
    "[x](javascript&colon;alert(1))",
    *("[x](&Tab;javascript:alert(1))", "[x](\x01javascript:alert(1))", "![x](javascript:alert(1))"),
    *("[x](<java\tscript:alert(1)>)", "[x](JaVaScRiPt:alert(1))", "[x](vbscript:x)"),
    "[x](data:,x)",
    *("[x](java【7】script:alert(1))", "<java【7】script:alert(1)>", "<javascript:alert(1)>"),
    *("[x]: javascript:alert(1)\n\n[x]", "> [x]: javascript:alert(1)\n\n[x]"),
    "- [x]: javascript:a\n",
    *("[x]:\njavascript:alert(1)\n\n[x]", "[a\\]b]: javascript:alert(1)\n\n[a\\]b]", "x" * 1000),
    f"[{'x' * 200}]: javascript:alert(1)\n\n[{'x' * 200}]",
    *('href="[x](javascript:alert(1))"', "data=' [x](javascript:alert(1)) '"),
    *("y](a[x](javascript:alert(1)))", "href=[x](javascript:alert(1))"),
    "[[7]](x)[x](javascript:y)",
    *('<a href="javascript:alert(1)">x</a>', "<a href = 'java\nscript:x'>x</a>"),
    "<a href=data:,x>x</a>",
    '<a href="x" href=\'"\' HREF="&#106;avascript:alert(1)">x</a>',
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_address_in_an_answer_runs_anything(script: str) -> None:
    left = _left(f"It is tall.\n\n{script}\n\nIt is old {script}.", "numbers")
    assert [shown.runs for shown in _shown(left)] == [[]] * len(_readers())


@pytest.mark.parametrize(
    "answer",
    [
        "See [a](https://a.example/b) and [c](mailto:d@e.example) or <https://a.example>.",
        "Use std::vector, C:\\dir, 10:30 and note: this.",
        "[note]: Beware: of the dog",
        "It holds data = x and src = y.",
    ],
)
def test_other_addresses_and_colons_stay(answer: str) -> None:
    assert _left(answer, "list") == answer


_SIGNS = (
    *("`", "``", "```", "~~~", "\n", "\n\n", " ", "    ", "\t", "> ", "- ", "1. ", "|"),
    "\n|-|-|\n",
    *("[7]", "[^7]", "[[7]]", "[7](https://evil.example)", "【7】", "(Source: 7)", "[7]: "),
    "[^7]: ",
    *("[", "]", "(", ")", "[^a]", "[^a]: ", "javascript:alert(1)", "](javascript:alert(1))", "[x]"),
    *("[x](javascript:alert(1))", "[x]: javascript:alert(1)", "<", "<javascript:alert(1)>", ">"),
    "\\",
    *('<a href="javascript:alert(1)">', 'href="', "href='", "'", '"', "&#91;", "&lsqb;", "&colon;"),
    *("java", "script:alert(1)", "【1】", "7", "!", "# ", "<b>", "</b>", "<!--", "-->", "<div>"),
    *("<https://e.example/", "http://e.example/", "www.e.example", TEXT, "word", "word. ", ":"),
    "_",
    *("\u200b", "&Tab;", "***"),
)
_HOSTILE = st.lists(st.sampled_from(_SIGNS), min_size=1, max_size=12).map("".join)
_FORGERY = re.compile(r"(?<!\w)\[[\s\u200b]*\^?7[\s\u200b]*\]|【\s*7\s*】")


@settings(max_examples=100, deadline=None)
@example(said="[7<b>]", form="numbers")
@example(said="[<b>7</b>]", form="numbers")
@given(_HOSTILE, IN_TEXT)
def test_whatever_an_answer_says_nothing_runs_and_no_mark_is_its_own(said: str, form: Form) -> None:
    left = _left(f"Tall. {said}", form)
    for shown in _shown(left):
        assert shown.runs == []
        assert _FORGERY.search(shown.prose) is None


@settings(max_examples=50, deadline=None)
@given(_HOSTILE, st.sampled_from(FORMS))
def test_every_citation_holds_whatever_the_answer_says(said: str, form: Form) -> None:
    answer = f"Tall. {said}"
    found = _cited(answer, form)
    without = _cited(answer, "list")
    marks = r" ?(?:\[\^1\]|\[\[1\]\]\(" + re.escape(URL) + r"\)|\[1\]) ?"
    assert _squeezed(re.sub(marks, "", found.text)) == _squeezed(re.sub(marks, "", without.text))
    for citation in found.citations:
        assert citation.quote == TEXT[citation.document_start : citation.document_end]
        assert 0 <= citation.start < citation.end <= len(found.text)
        held = found.text[citation.start : citation.end]
        assert held == held.strip()
    for citation, plain in zip(found.citations, without.citations, strict=True):
        held = re.sub(marks, "", found.text[citation.start : citation.end])
        assert _squeezed(held) == _squeezed(
            re.sub(marks, "", without.text[plain.start : plain.end])
        )
    if form == "blocks":
        (block,) = found.content
        assert block["text"] == without.text


def _squeezed(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=50, deadline=None)
@given(_HOSTILE)
def test_what_was_cleaned_stays_as_it_is(said: str) -> None:
    left = _left(f"Tall. {said}", "list")
    assert _left(left, "list") == left


# --- Time -----------------------------------------------------------------------------------------

LONG = (
    *("\n", "[", "[[1", "[1](", "`", "~~~\n", "( source", "| a |\n", "Source: a\n", "- a\n"),
    *("【1", "href=", "<", "[x](javascript:y) ", '"a": ', "It is. "),
)
_LENGTH = 30_000


@pytest.mark.slow
@pytest.mark.parametrize("piece", LONG)
def test_a_long_answer_is_cited_and_stripped_in_linear_time(piece: str) -> None:
    """Take seconds; in quadratic time, it would take minutes, and reach the time limit."""
    answer = (piece * _LENGTH)[:_LENGTH]
    contexts = [Document(TEXT, metadata={"url": URL})] * 3
    parts, evaluation = places_of(answer), _supported(answer, contexts)
    assert marks_in(answer, contexts) is not None
    assert code_in(answer) is not None
    assert cited(answer, parts, [evaluation], contexts, "links").citations is not None
    answer = f"It was. {answer[: _LENGTH // 2]}\nSo it is."
    claims = _supported(answer, [Document(TEXT)]).claims
    for claim in (claims[0], claims[-1]):
        left = remainder(answer, [claim])
        assert isinstance(left, Remainder)
        assert left.without_lost().text != answer


@pytest.mark.slow
def test_a_value_of_a_long_structured_answer_is_found_in_linear_time() -> None:
    answer = "[" + ", ".join(['{"tall": 84}'] * (_LENGTH // 14)) + "]"
    contexts = [Document(TEXT)]
    parts, evaluation = places_of(answer), _supported(answer, contexts)
    assert len(cited(answer, parts, [evaluation], contexts, "list").citations) == _LENGTH // 14
