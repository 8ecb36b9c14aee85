import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from demur._text import count_tokens, replace_surrogates, sentences, windows, words
from demur._text.cutting import least_tokens

ANY_TEXT = st.text(st.characters(), max_size=60)
# fmt: off
PIECES = [
    "Ann runs Crumb. ", "Dr. No", "e.g. ", "漢字。", "ไทย", "שלום עולם. ", "😀", "\u0301", "\r\n",
    "\t", "\n\n", " ", "é", "a" * 30, "1234567", "³²", "\ud800", "\x00", "\u2028", "?!", '"',
    "ค่าเข้า 20 บาท ", "هل المتحف مفتوح؟ ", "السِّعر ٢٠ درهما، ", "הַמּוּזֵיאוֹן פתוח. "
    "पुल लंबा है। ",
]
# fmt: on
TEXT = ANY_TEXT | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(ANY_TEXT)
def test_surrogates_are_replaced_one_for_one(text: str) -> None:
    replaced = replace_surrogates(text)
    replaced.encode()
    assert len(replaced) == len(text)
    assert all(a == b or (0xD800 <= ord(a) < 0xE000 and b == "\ufffd")
               for a, b in zip(text, replaced, strict=True))  # fmt: skip


# -- sentences and words -----------------------------------------------------------------------


@given(TEXT)
@example("Dr. G\xa0. It is.")  # behind an initial, a space of two bytes
def test_sentences_cover_all_that_is_not_blank_and_index_the_text(text: str) -> None:
    spans = sentences(text)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    covered = "".join(text[start:end] for start, end in spans)
    assert [s for s in covered if not s.isspace()] == [s for s in text if not s.isspace()]


@pytest.mark.parametrize(
    "sentences_of",
    [
        ["هل المتحف مفتوح؟", "نعم.", "السعر 20 درهما، والدخول مجاني يوم الجمعة."],
        ["המוזיאון פתוח בשבת.", "המחיר הוא 20 שקל?", "כן!"],
        ["पुल 1911 में खुला।", "यह लंबा है।", "क्या?"],
        ["یہ پل 1911 میں کھلا۔", "یہ لمبا ہے۔"],
        ["¿Es gratis?", "Sí.", "¡Claro!"],
        ["The tower is tall.", "برج طويل.", "塔很高。", "Он открыт.", "מגדל גבוה."],
        ["ค่าเข้า 20 บาท ปิดวันจันทร์"],  # Thai has no mark for the end of a sentence.
    ],
)
def test_sentences_end_with_the_marks_of_their_script(sentences_of: list[str]) -> None:
    text = " ".join(sentences_of)
    assert [text[start:end] for start, end in sentences(text)] == sentences_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann left. Dr. Bo came at 5 p.m. sharp.", ["Ann left.", "Dr. Bo came at 5 p.m. sharp."]),
        ("😀 Cafe\u0301 open. 漢字。次", ["😀 Cafe\u0301 open.", "漢字。", "次"]),
        ("one\r\n\r\n\ttwo\u2028three\n", ["one", "two", "three"]),
        ("A\ud800B. C\udfffD.", ["A\ud800B.", "C\udfffD."]),
        ("שלום עולם. מה נשמע?", ["שלום עולם.", "מה נשמע?"]),
        (" \t\r\n", []),
        (
            "collections.Counter counts. See `pathlib.Path.glob`.It opened in 1793.It is old.",
            [
                "collections.Counter counts.",
                "See `pathlib.Path.glob`.",
                "It opened in 1793.",
                "It is old.",
            ],
        ),
        ("No.Yes, and a.B(). C.", ["No.Yes, and a.B().", "C."]),
    ],
)
def test_sentences_of_many_scripts(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The wall of the old town was torn down in the\nspring of 1890. It is gone.",
            ["The wall of the old town was torn down in the\nspring of 1890.", "It is gone."],
        ),
        ("Opening hours of the library in town\nMonday to Friday", None),
        ("We sell these things in our shop, among others:\n- umbrellas\n- hats", None),
        (
            "A first step that takes a while to carry out\n2. A second step",
            ["A first step that takes a while to carry out", "2.", "A second step"],
        ),
        ("def f(x):\n    return x", None),
        ("A paragraph that is long enough to be wrapped\n\nAnother one", None),
    ],
    ids=["wrapped", "heading", "list", "numbers", "code", "paragraphs"],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_break_ends_a_sentence_unless_it_wraps_a_paragraph(
    text: str, expected: list[str] | None, newline: str
) -> None:
    given = text.replace("\n", newline)
    wanted = [s.replace("\n", newline) for s in expected or filter(str.strip, text.split("\n"))]
    assert [given[start:end] for start, end in sentences(given)] == [s.strip() for s in wanted]


def test_a_long_line_has_the_same_sentences_as_its_parts() -> None:
    sentence = "Ann runs the bakery Crumb, which opened in 2012. "
    found = sentences(sentence * 400)
    assert found == [(49 * i, 49 * i + 48) for i in range(400)]


@given(TEXT)
def test_words_index_the_text_and_are_case_folded(text: str) -> None:
    found = list(words(text))
    assert all(word == text[start:end].casefold() for word, start, end in found)
    assert all(end <= start for (_, _, end), (_, start, _) in pairwise(found))
    within = {at for _, start, end in found for at in range(start, end)}
    assert all(at in within for at, sign in enumerate(text) if sign.isalnum() or sign == "_")
    # Beside letters and digits, words have only the marks that scripts put on letters.
    others = {text[at] for at in within if not (text[at].isalnum() or text[at] == "_")}
    assert all(unicodedata.category(sign)[0] in "MC" for sign in others)


def test_marks_on_letters_do_not_cut_words() -> None:
    text = "नहीं है। السِّعر הַמּוּזֵיאוֹן café"
    assert [text[start:end] for _, start, end in words(text)] == re.split("।? ", text)


def test_unspaced_scripts_have_one_word_per_sign() -> None:
    text = "Straße ABC漢字 42"
    assert list(words(text)) == [
        ("strasse", 0, 6), ("a", 7, 8), ("b", 8, 9), ("c", 9, 10), ("漢", 10, 11), ("字", 11, 12),
        ("42", 13, 15),
    ]  # fmt: skip


# -- tokens and windows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0), (" ", 0), ("   ", 1), ("cat", 1), ("bakery", 1), ("bakers' dozen", 3),
        ("2012", 2), ("12345", 3), ("漢字", 2), ("café", 4), ("a, b", 3), ("😀😀", 2), ("____", 1),
    ],
)  # fmt: skip
def test_token_estimates_worked_by_hand(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(TEXT)
def test_the_least_number_of_tokens_is_never_above_the_estimate(text: str) -> None:
    assert least_tokens(text) <= count_tokens(text)


@given(TEXT.filter(str.isascii))
def test_a_text_in_plain_letters_has_as_many_tokens_beside_other_letters(text: str) -> None:
    assert count_tokens(f"{text}!漢") == count_tokens(text) + 2


def check_windows(text: str, size: int, overlap: int) -> list[tuple[int, int]]:
    spans = windows(text, size, overlap)
    covered = set().union(*(range(*span) for span in spans)) if len(text) < 2000 else None
    if covered is not None:
        assert all(at in covered for at, sign in enumerate(text) if not sign.isspace())
    bounds = sentences(text)
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert text[start:end].strip()
        # The white space between two sentences is at most one token.
        gaps = sum(start < other <= end for other, _ in bounds)
        assert count_tokens(text[start:end]) <= size + gaps
    for (start, end), (following, further) in pairwise(spans):
        assert start < following
        assert end < further
        shared = text[following:end] if following < end else ""
        gaps = sum(following < other < end for other, _ in bounds)
        assert count_tokens(shared) <= overlap + gaps
    return spans


@pytest.mark.slow
@given(TEXT, st.integers(1, 40), st.data())
@example("aaaaaaaaaa" * 4 + "é", 10, None)  # ASCII parts beside an accent have fewer tokens.
@example("a" * 90 + " " + "b" * 90, 3, None)
@settings(max_examples=100)
def test_windows_cover_the_text_within_their_size(
    text: str, size: int, data: st.DataObject | None
) -> None:
    overlap = data.draw(st.integers(0, size - 1)) if data else 0
    spans = check_windows(text, size, overlap)
    assert bool(spans) == bool(text.strip())


def test_windows_end_with_sentences_and_share_whole_ones() -> None:
    text = "Ann saw Bo. Cy fed Di. Ed met Flo. Gus hit Hal."  # Each sentence has four tokens.
    assert [text[s:e] for s, e in windows(text, 8, 4)] == [
        "Ann saw Bo. Cy fed Di.", "Cy fed Di. Ed met Flo.", "Ed met Flo. Gus hit Hal."
    ]  # fmt: skip
    assert [text[s:e] for s, e in windows(text, 8, 3)] == [text[:22], text[23:]]
    assert windows(f" {text} ", 16, 0) == [(0, len(text) + 2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000, "漢" * 200_000, "a " * 100_000, "." * 200_000, "\r\n" * 100_000 + "x",
        "\u0301" * 200_000, "A. " * 60_000,
    ],
    ids=lambda text: repr(text[:4]),
)  # fmt: skip
def test_windows_of_a_hostile_text_end_soon(text: str) -> None:
    # This takes about 1 s; in quadratic time it would take longer than a test may.
    spans = windows(text, 700, 87)
    assert spans[0][0] == text.index(text.strip()[0]) or len(spans) == 1
    assert spans[-1][1] >= len(text.rstrip())
    assert all(following <= end + 1 for (_, end), (following, _) in pairwise(spans))
    assert max(count_tokens(text[s:e]) for s, e in spans) <= 700 + text.count("A")


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 0), (5, 5), (5, -1)])
def test_windows_refuse_sizes_out_of_range(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match=f"size={size} and overlap={overlap}"):
        windows("a", size, overlap)
