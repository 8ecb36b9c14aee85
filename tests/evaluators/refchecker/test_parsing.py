import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.evaluators.refchecker.parsing import (
    NO_LABEL,
    UNREADABLE,
    parse_label,
    parse_numbered_labels,
    parse_statements,
    parse_triplets,
)
from demur.schema import ClaimLabel

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION

# fmt: off
PIECES = [
    '("', '", "', '")', "'", "(", ")", "[", "]", ",", "|", "\\", "\n", "1. ", "- ", "a", "é", "、",
    "“", "”", "```", "{", "}", ":", "no claims", "None", "Entailment", "neutral", "not ", "2",
    "claim ", "contradicted", "?", "\x00", "\ud800", "\u202eא", "\u2028", "\r\n", "\t", "😀",
]
# fmt: on
ANY_TEXT = st.text(st.characters(), max_size=80)  # surrogates and NUL too
REPLIES = ANY_TEXT | st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def with_a_letter(signs: str) -> st.SearchStrategy[str]:
    """Texts of these signs, of which one at least is a letter or a digit."""
    some = st.text(st.sampled_from(signs), max_size=10)
    letter = st.sampled_from([sign for sign in signs if sign.isalnum()])
    return st.builds("{}{}{}".format, some, letter, some)


PLAIN = with_a_letter("aZé7 ,'()[]|-:;.漢、（א\u0301😀")


def tidy(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in parts)


# -- triplets ----------------------------------------------------------------------------------


@given(REPLIES)
def test_any_reply_is_read_without_an_exception(reply: str) -> None:
    triplets = parse_triplets(reply)
    assert all(subject and len(rest) == 2 for subject, *rest in triplets.triplets)
    statements = parse_statements(reply)
    assert all(any(sign.isalnum() or sign == "_" for sign in s) for s in statements.statements)
    for read in (triplets, statements):
        assert not (read.abstained and (read.triplets or read.statements or read.broken))
    assert parse_label(reply) in (E, N, C, UNREADABLE, "the checker's reply names several labels")
    assert list(parse_numbered_labels(reply, [1, 2, 3])) == [1, 2, 3]


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
        ('("a|b", "is", "c|d")', ("a|b", "is", "c|d")),
        ("('Ann', 'it's', 'the dogs' tails')", ("Ann", "it's", "the dogs' tails")),
        ('("O\'Neil", "ran", "5\' 3" far")', ("O'Neil", "ran", "5' 3\" far")),
        ("“李白”, “写了”, “静夜思（诗）”", ("李白", "写了", "静夜思（诗）")),
        ("2. [Ann, runs (alone), Crumb [sic]],", ("Ann", "runs (alone)", "Crumb [sic]")),
        ("- Ann | runs | Crumb", ("Ann", "runs", "Crumb")),
        ('("Ann", "sleeps")', ("Ann", "sleeps", "")),
        ('("Ann", "sleeps", "")', ("Ann", "sleeps", "")),
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
        '("Ann", "runs",',
        '("Ann"',
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
]  # fmt: skip


@pytest.mark.parametrize("reply", NO_CLAIMS)
def test_a_refusal_abstains(reply: str) -> None:
    for read in (parse_triplets(reply), parse_statements(reply)):
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


def test_three_hundred_triplets_are_all_read_once() -> None:
    lines = [f'{i}. ("fact {i}", "is", "true")' for i in range(300)]
    read = parse_triplets("\n".join(["Here they are:", *lines, lines[0]]))
    assert len(read.triplets) == 300
    assert read.readable


@pytest.mark.parametrize(
    "pattern",
    [
        '"', "'", "(", "((", '("', '",', '")', '("a","b","c")', "(a)", "1", "1: ", "\n", " ", "|",
        ",", "\\", "not ", "claim ", "neutral ", "**neutral", "` ", "No ", "[", "{", "é(",
    ],
)  # fmt: skip
def test_hostile_repetition_is_read_in_near_linear_time(pattern: str) -> None:
    repeated = pattern * (100_000 // len(pattern))
    started = time.process_time()
    parse_triplets(repeated)
    parse_triplets('("' + repeated)
    parse_statements(repeated)
    parse_label(repeated)
    parse_numbered_labels("1" + repeated, [1, 2])
    # About 1 s on a slow core; by the square of the length it would be minutes.
    assert time.process_time() - started < 20


# -- statements --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("- Ann runs Crumb.\n- Crumb is in Leeds.", ("Ann runs Crumb.", "Crumb is in Leeds.")),
        ("Here they are:\n1. Ann runs Crumb.\n2) 漢字。\r\n", ("Ann runs Crumb.", "漢字。")),
        ("Ann runs Crumb.\nAnn runs Crumb.\n", ("Ann runs Crumb.",)),
        ("Facts:\nAnn runs Crumb.", ("Ann runs Crumb.",)),
        ("- None of the pupils passed.", ("None of the pupils passed.",)),
        ("- No claims were filed.\n- He left.", ("No claims were filed.", "He left.")),
        ("- It rains.\n- No claims", ("It rains.",)),
        ("- No facts are given in the report.\n- He left.",
         ("No facts are given in the report.", "He left.")),
        ("- -\n- ...", ()),
        ("No claims\n- Ann runs Crumb.", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_statements_are_read_line_by_line(reply: str, expected: tuple[str, ...]) -> None:
    read = parse_statements(reply)
    assert read.statements == expected
    assert read.readable is bool(expected)


@given(st.lists(PLAIN.map(lambda text: f"x{text} y"), min_size=1, max_size=5, unique_by=str.strip))
def test_marked_statements_come_back_the_same(statements: list[str]) -> None:
    read = parse_statements("\n".join(f"- {statement}" for statement in statements))
    assert read.statements == tuple(statement.strip() for statement in statements)


# -- one label ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Entailment", E), ("neutral.", N), ("**Contradiction**", C), ('{"label": "Neutral"}', N),
        ("The claim is entailed by the reference.", E), ("It contradicts the reference.", C),
        ("Contradiction. The reference does not say so.", C), ("entails", E), ("contradictory", C),
        ("It does not tell, so Neutral", N), ("Not entailed. Contradiction", C),
        ("Entailment or Neutral?\n\nAnswer: **Neutral**", N), ("Not entailed, hence neutral", N),
        ("\u202bNeutral\u202c", N), ("Neutral\x00", N), ("NEUTRAL\r\n", N),
    ],
)  # fmt: skip
def test_a_plain_label_is_read(reply: str, expected: ClaimLabel) -> None:
    assert parse_label(reply) is expected


@pytest.mark.parametrize(
    "reply",
    [
        "", "I cannot tell.", "Supported", "neutralized", "Entailments", "Not entailed",
        "The claim is not directly entailed by the reference.", "It isn't contradicted.",
        "It isn’t entailed", "It doesn't necessarily contradict the claim", "non-neutral",
        "Neither entailed nor contradicted", "It fails to entail the claim", "Never neutral",
        "Does the reference entail the claim? No.", "Entailment: false", "Contradiction = no",
        "Entailment or Neutral", "Neutral\nbut perhaps Entailment", "Entailment/Contradiction",
        "Entailment. It is not Entailment.", "Entailment Neutral Contradiction",
        "Entailment\nContradiction, I think",
    ],
)  # fmt: skip
def test_an_ambiguous_reply_has_no_label(reply: str) -> None:
    assert not isinstance(parse_label(reply), ClaimLabel)


@given(REPLIES, st.sampled_from(ClaimLabel))
def test_a_label_alone_on_the_last_line_counts_whatever_stands_before(
    quoted: str, label: ClaimLabel
) -> None:
    assert parse_label(f"{quoted}\n{label.value}") is label


# -- numbered labels ---------------------------------------------------------------------------

FORMS = [
    "{}. {}", "{}: {}", "{}) {}", "({}) {}", "[{}] {}", "{} - {}", "{} {}", "{},{}", "#{}: {}",
    "Claim {}: {}", "claim {} is {}", "- {}. **{}**", "**{}.** {}", "{} -> {}", "{} => {}",
    "| {} | Ann runs Crumb | {} |", "{}. Ann runs Crumb: {}", '{}. Ann "runs" Crumb - "{}".',
    '"{}": "{}",', "{}. {} (the reference says so)", "The label of claim {}: {}", "{}: {}, not X",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(labels=st.lists(st.sampled_from(ClaimLabel), min_size=2, max_size=12), data=st.data())
def test_numbered_lines_are_read_in_any_order(
    form: str, labels: list[ClaimLabel], data: st.DataObject
) -> None:
    expected = dict(enumerate(labels, 1))
    order = data.draw(st.permutations(list(expected)))
    reply = "\n".join(form.format(number, expected[number].value) for number in order)
    assert parse_numbered_labels(reply, list(expected)) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "1: Entailment, 2: Neutral", "1. entailed; 2. neutral", "1 Entailment 2 Neutral",
        '{"1": "Entailment", "2": "Neutral"}', '```json\n{"2": "Neutral",\n"1": "Entailment"}\n```',
        "Labels: 1: Entailment, 2: Neutral", "(1, 'Entailment'), (2, 'Neutral')",
        "Entailment\nNeutral", "Entailment, Neutral", '["Entailment", "Neutral"]',
        "Here they are:\n- Entailment\n- Neutral\n", "٢: Neutral\n١: Entailment",
        "1: Entailment\n2: Neutral\n3: Contradiction\n17: Entailment",
        "1: Entailment (not in doubt), 2: Neutral (not told)",
        "1: Entailment\n1. Entailment\n2: Neutral\n",
        "1. Chapter 2: Entailment\n2. Neutral",
    ],
)  # fmt: skip
def test_two_labels_are_read_from_other_layouts(reply: str) -> None:
    assert parse_numbered_labels(reply, [1, 2]) == {1: E, 2: N}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1: Entailment", {1: E, 2: None}),
        ("2: Neutral\nThe first cannot be judged.", {1: None, 2: N}),
        ("1: not entailed\n2: Neutral", {1: None, 2: N}),
        ("1: Entailment\n2: no Contradiction", {1: E, 2: None}),
        ("1: Entailment\n2: Neutral\n1: Neutral", {1: None, 2: N}),
        ("2: Entailment\n1: Entailment\n2: Neutral\n3: Neutral", {1: E, 2: None}),
        ("1: Entailment or Neutral\n2: Neutral", {1: None, 2: N}),
        ("1: Neutral?\n2: Neutral", {1: None, 2: N}),
        ("1: Entailment: false\n2: Neutral", {1: None, 2: N}),
        ("1. Sweden stayed neutral\n2. Neutral", {1: None, 2: N}),
        ("1. There were 2 neutral states\n2. Entailment", {1: None, 2: E}),
        ("1.2: Neutral", {1: None, 2: None}),
        ("1-2: Neutral", {1: None, 2: None}),
        ("1 and 2: Neutral", {1: None, 2: None}),
        ("There are 2 neutral claims.", {1: None, 2: None}),
        ("Entailment: 1, Neutral: 2", {1: None, 2: None}),
        ("Supported: 1, Neutral: 2", {1: None, 2: None}),
        ("Supported for 1, Neutral for 2", {1: None, 2: None}),
        ("Supported (1). Neutral (2).", {1: None, 2: None}),
        ('{"Supported": [1], "Neutral": [2]}', {1: None, 2: None}),
        ('{"Supported": [1, 2], "Neutral": []}', {1: None, 2: None}),
        ('{"1": {"Entailment": true, "Neutral": false}}', {1: None, 2: None}),
        ('[{"label": "Neutral", "claim": 1}, {"label": "Entailment", "claim": 2}]',
         {1: None, 2: None}),
        ("2.\nNeutral\n1.\nEntailment", {1: None, 2: None}),
        ("Neutral", {1: None, 2: None}),
        ("Entailment\nNeutral\nNeutral", {1: None, 2: None}),
        ("Neutral\nSupported\nEntailment", {1: None, 2: None}),
        ("Not entailed\nNeutral\nEntailment", {1: None, 2: None}),
        ("", {1: None, 2: None}),
    ],
)  # fmt: skip
def test_a_missing_or_doubtful_label_is_never_guessed(
    reply: str, expected: dict[int, ClaimLabel | None]
) -> None:
    found = parse_numbered_labels(reply, [1, 2])
    assert {n: v if isinstance(v, ClaimLabel) else None for n, v in found.items()} == expected


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("1: Neutral", NO_LABEL),
        ("I cannot tell.", UNREADABLE),
        ("1: Neutral\n2: Neutral\n2: Entailment", "several labels"),
        ("Neutral", "1 labels without numbers for 2 claims"),
    ],
)
def test_the_reason_for_a_missing_label_is_told(reply: str, why: str) -> None:
    found = parse_numbered_labels(reply, [1, 2])[2]
    assert not isinstance(found, ClaimLabel)
    assert why in found


@given(st.lists(st.sampled_from(ClaimLabel), min_size=1, max_size=8), st.integers(-2, 2))
def test_labels_without_numbers_count_only_if_there_is_one_for_each(
    labels: list[ClaimLabel], off: int
) -> None:
    numbers = [3 * i + 2 for i in range(max(1, len(labels) + off))]
    found = parse_numbered_labels("\n".join(label.value for label in labels), numbers)
    if len(numbers) == len(labels):
        assert list(found.values()) == labels
    else:
        assert not any(isinstance(value, ClaimLabel) for value in found.values())


LISTS = st.lists(st.tuples(*[st.sampled_from(ClaimLabel)] * 3), min_size=1, max_size=3)


@given(LISTS)
def test_of_several_whole_lists_the_last_counts(lists: list[tuple[ClaimLabel, ...]]) -> None:
    blocks = ["\n".join(f"{n}. {label}" for n, label in enumerate(of, 1)) for of in lists]
    found = parse_numbered_labels("\n\n".join(blocks), [1, 2, 3])
    assert found == dict(enumerate(lists[-1], 1))


@given(REPLIES, LISTS)
def test_what_is_quoted_before_a_list_never_changes_its_labels(
    quoted: str, lists: list[tuple[ClaimLabel, ...]]
) -> None:
    expected = dict(enumerate(lists[0], 1))
    listed = "\n".join(f"{number}. {label}" for number, label in expected.items())
    found = parse_numbered_labels(f"{quoted}\n{listed}", [1, 2, 3])
    others = [found[number] for number, label in expected.items() if found[number] is not label]
    assert not any(isinstance(other, ClaimLabel) for other in others)


@given(st.text(st.sampled_from("yesSuportdVTrf1.: \n"), max_size=60))
def test_a_verdict_that_is_not_on_the_menu_is_refused(reply: str) -> None:
    assert not isinstance(parse_label(reply), ClaimLabel)
    assert not any(isinstance(v, ClaimLabel) for v in parse_numbered_labels(reply, [1, 2]).values())
