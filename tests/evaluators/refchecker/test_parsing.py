import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.refchecker.parsing import parse_triplets

# fmt: off
PIECES = [
    '("', '", "', '")', "'", "(", ")", "[", "]", ",", "|", "\\", "\n", "1. ", "- ", "a", "é", "、",
    "“", "”", "```", "{", "}", ":", "no claims", "None", " in the answer", "were made", "2", "?",
    "\x00", "\ud800", "\u202eא", "\u2028", "\r\n", "\t", "😀",
]
# fmt: on
ANY_TEXT = st.text(st.characters(), max_size=80)  # This includes surrogates and NUL.
REPLIES = ANY_TEXT | st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def with_a_letter(signs: str) -> st.SearchStrategy[str]:
    """Return a strategy for texts of these characters, with at least one letter or digit."""
    some = st.text(st.sampled_from(signs), max_size=10)
    letter = st.sampled_from([sign for sign in signs if sign.isalnum()])
    return st.builds("{}{}{}".format, some, letter, some)


PLAIN = with_a_letter("aZé7 ,'()[]|-:;.漢、（א\u0301😀")


def tidy(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in parts)


@given(REPLIES)
def test_any_reply_is_read_without_an_exception(reply: str) -> None:
    read = parse_triplets(reply)
    assert all(subject and len(rest) == 2 for subject, *rest in read.triplets)
    assert not (read.abstained and (read.triplets or read.broken))


@given(st.lists(st.tuples(PLAIN, PLAIN, PLAIN), min_size=1, max_size=4, unique_by=tidy))
def test_triplets_in_the_documented_form_come_back_the_same(rows: list[tuple[str, ...]]) -> None:
    read = parse_triplets("\n".join(f'("{s}", "{p}", "{o}")' for s, p, o in rows))
    assert read.triplets == tuple(tidy(row) for row in rows)
    assert read.readable


@given(st.tuples(*[with_a_letter("ab \"\\,)(漢'")] * 3))
def test_escaped_quotes_come_back_whatever_stands_beside_them(row: tuple[str, ...]) -> None:
    escaped = [part.replace("\\", "\\\\").replace('"', '\\"') for part in row]
    assert parse_triplets('("{}", "{}", "{}")'.format(*escaped)).triplets == (tidy(row),)


@given(st.lists(st.tuples(PLAIN, PLAIN, PLAIN), min_size=1, max_size=4, unique_by=tidy))
def test_json_lists_and_objects_hold_the_same_triplets(rows: list[tuple[str, ...]]) -> None:
    expected = tuple(tidy(row) for row in rows)
    objects = [dict(zip(("subject", "predicate", "object"), row, strict=True)) for row in rows]
    for data in (rows, objects, {"triplets": objects}):
        for indent in (None, 2):
            text = json.dumps(data, ensure_ascii=False, indent=indent)
            assert parse_triplets(f"```json\n{text}\n```").triplets == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('("the "big", red dog", "is", "tame")', ('the "big", red dog', "is", "tame")),
        ('("Ann", "said", "He (a "fan") left")', ("Ann", "said", 'He (a "fan") left')),
        ('("Ann", "wrote", ""Dune"")', ("Ann", "wrote", '"Dune"')),
        ("('Ann', 'it's', 'the dogs' tails')", ("Ann", "it's", "the dogs' tails")),
        ('("O\'Neil", "ran", "5\' 3" far")', ("O'Neil", "ran", "5' 3\" far")),
        ("“李白”, “写了”, “静夜思（诗）”", ("李白", "写了", "静夜思（诗）")),
        ("2. [Ann, runs (alone), Crumb [sic]],", ("Ann", "runs (alone)", "Crumb [sic]")),
        ("- Ann | runs | Crumb", ("Ann", "runs", "Crumb")),
        ('("Ann", "sleeps")', ("Ann", "sleeps", "")),
        ('("Ann", "has", "a", "b")', ("Ann", "has", "a, b")),
        ('("Ann", "runs", "Crumb"', ("Ann", "runs", "Crumb")),
        ('"Ann", "runs", "Crumb".', ("Ann", "runs", "Crumb")),
        ('("Ann", "runs", "Crumb") - from "the text"', ("Ann", "runs", "Crumb")),
        ('[{"subject": "Ann", "predicate": "runs", "object": null}]', ("Ann", "runs", "")),
        ('\u202b("דנה", "גרה ב", "חיפה")', None),
    ],
)
def test_a_line_in_a_tolerated_form_is_one_triplet(line: str, expected: object) -> None:
    read = parse_triplets(line)
    assert read.triplets == ((expected,) if expected else ())
    assert read.readable is bool(expected)


@pytest.mark.parametrize("between", ["", " ", ", ", "; ", " and ", "\n", "\r\n", ".\n\n- "])
def test_several_triplets_are_told_apart(between: str) -> None:
    read = parse_triplets('("a", "b", "c")' + between + '("d", "e", "f")')
    assert read.triplets == (("a", "b", "c"), ("d", "e", "f"))
    assert read.readable


@given(PLAIN, PLAIN, PLAIN, st.data())
def test_a_line_cut_before_its_last_quote_is_broken(
    s: str, p: str, o: str, data: st.DataObject
) -> None:
    line = f'("{s}", "{p}", "{o}")'
    cut = data.draw(st.integers(2, len(line) - 3))
    read = parse_triplets('("Ann", "runs", "Crumb")\n' + line[:cut])
    assert read.broken
    assert not read.readable
    assert read.triplets == (("Ann", "runs", "Crumb"),)


@pytest.mark.parametrize(
    "reply",
    [
        '("Ann", "runs", "Cr',
        '("Ann", "runs',
        "(Ann, runs",
        '("Ann", "runs", "Crumb"), ("Crumb", "is',
        '("the "big", red, dog", "is", "tame")',
        '("Ann", "calls", "f("x") (y)")',
        '("a", "b", "c") then ("d", "e", "f")',
        '("", "runs", "Crumb")',
        '("?", "!", "…")',
        '("Ann",\n"runs",\n"Crumb")',
    ],
)
def test_what_cannot_be_read_to_its_end_is_broken(reply: str) -> None:
    read = parse_triplets(reply)
    assert read.broken
    assert not read.readable


NO_CLAIMS = [
    "No claims", "no claims.", "**No claims**", '"No claims"', "No factual claims found.", "[]",
    "No claims can be extracted from this text.", "There are no claims in the answer.", "N/A",
    "The answer states no facts.", "None.", "```\nNo claims\n```", "No triplets (it greets).", "()",
    "- No claims", "1. No claims.", "No claims\n\nNo claims", "No facts are stated in this answer.",
    "There are no claims", "No claims found in the text.", "No claims to extract",
    "\u202bNo claims",
]  # fmt: skip


@pytest.mark.parametrize("reply", NO_CLAIMS)
def test_a_refusal_abstains(reply: str) -> None:
    read = parse_triplets(reply)
    assert read.abstained
    assert read.readable


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \r\n\t",
        "Ann runs a bakery, which opened in 2012.",
        "None of the Beatles was born in London.",
        "No facts were known about him.",
        "No claims were made by the company.",
        "- No claims were made by the company.",
        "No statements were made by the minister.",
        "No claims. The answer is 42.",
        "No claims (found), Ann said",
        "Nobody | knows",
        "(see above)",
        '("subject", "predicate", "object")',
        "Subject | Predicate | Object\n--- | --- | ---",
    ],
)
def test_prose_and_placeholders_are_neither_triplets_nor_an_abstention(reply: str) -> None:
    read = parse_triplets(reply)
    assert not read.triplets
    assert not read.abstained
    assert not read.readable


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        '"', "'", "(", "((", '("', '",', '")', '("a","b","c")', "(a)", "1", "1: ", "\n", " ", "|",
        ",", "\\", "` ", "No ", "no claims ", "(no", "[", "{", "é(", "- No claims\n",
    ],
)  # fmt: skip
def test_hostile_repetition_is_read_in_near_linear_time(pattern: str) -> None:
    """Read what takes less than a second; in quadratic time it takes longer than a test may."""
    repeated = pattern * (100_000 // len(pattern))
    parse_triplets(repeated)
    parse_triplets('("' + repeated)
