from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from demur import RefChecker
from demur.evaluators.refchecker.labels import (
    NO_LABEL,
    QUALIFIED,
    SEVERAL,
    UNREADABLE,
    parse_label,
    parse_numbered_labels,
)
from demur.schema import NLI_LABELS, ClaimLabel
from support.fakes import ScriptedModel

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION

# fmt: off
PIECES = [
    "'", '"', "(", ")", "[", "]", ",", "|", "\\", "\n", "1. ", "0. ", "- ", "a", "é", "```", "{",
    "}", ":", "None", "Entailment", "neutral", "not ", "2", "claim ", "contradicted", "?", "\x00",
    "\ud800", "\u202eא", "\u2028", "\r\n", "\t", "😀", "but ", "partially ", "label: ", ". ",
]
# fmt: on
ANY_TEXT = st.text(st.characters(), max_size=80)  # This includes surrogates and NUL.
REPLIES = ANY_TEXT | st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@given(REPLIES)
def test_any_reply_is_read_without_an_exception(reply: str) -> None:
    assert parse_label(reply) in (E, N, C, UNREADABLE, SEVERAL, QUALIFIED)
    assert list(parse_numbered_labels(reply, [1, 2, 3])) == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        '"', "((", "(a)", "1", "1. Entailment", "\n", " ", ",", "not ", "claim ", "**neutral", "` ",
        "Entailment, x", "the my ", "1. a\n", "x?......entailment", ", so ", "a_", "\u0300",
    ],
)  # fmt: skip
def test_hostile_repetition_is_read_in_near_linear_time(pattern: str) -> None:
    """Read what takes about a second; a regex of quadratic time takes longer than a test may."""
    repeated = pattern * (100_000 // len(pattern))
    parse_label(f"Entailment. {repeated}")
    parse_numbered_labels(f"1. {repeated} Entailment", [1, 2])


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


@given(REPLIES, st.sampled_from(NLI_LABELS))
def test_a_label_alone_in_the_last_paragraph_counts_whatever_stands_before(
    quoted: str, label: ClaimLabel
) -> None:
    assert parse_label(f"{quoted}\n\n{label.value}") is label


# -- Entailment with reservations --------------------------------------------------------------

QUALIFIED_REPLIES = [
    "Entailment (partially)", "partially Entailment", "mostly Entailment", "largely Entailment",
    "partly Entailment", "unlikely to be Entailment", "far from entailment", "Far from entailed.",
    "Entailment, except that the date is wrong", "Entailment but the date is wrong",
    "Entailment? No", "Entailment? No.", "hardly entailed", "would be Entailment if it said so",
    "close to entailment", "almost Entailment", "Entailment in part",
    "Entailment: the first half only", "Entailment: the first half", "Entailment (the name)",
    "Entailment for the name", "Entailment, as far as the name goes", "Entailment minus the date",
    "Entailment with reservations", "Entailment (50%)", "Entailment: 50 % of it is stated",
    "Entailment - mostly", "Entailment. Mostly.", "Entailment\nbut only of the first half",
    "Entailment is ruled out", "Entailment does not hold", "Entailment excluded", "~Entailment",
    "¬Entailment", "!= Entailment", "Entailment ❌", "Possibly: Entailment", "Maybe. Entailment",
    "The closest label: Entailment", "If pressed, label: Entailment", "Neutral\nEntailment?",
    "The first half of the claim is entailed by the reference.", "Probably Entailment",
    "The claim is entailed by the reference in part.", "The reference nearly entails the claim.",
    "The claim would be entailed by the reference.", "It is only partly stated, so Entailment",
    "Entailment. Wait, the year differs.", "Entailment (teilweise)", "Entailment, mais la date",
    "Entailment (halbwegs)", "Entailment. Aber das Jahr ist falsch.", "Entailment，但日期不对",
    "Entailment.\n\nThe year is unsupported.", "It is far from\nEntailment",
    "Entailment. The reference says that this is not true.", "Half of it. Entailment",
    "Quasi Entailment", "semi-entailed", "The name is entailed.", "Halbwegs: Entailment",
    '{"label": "Entailment", "confidence": 0.4}', '{"label": "Entailment", "partial": true}',
]  # fmt: skip


@pytest.mark.parametrize("reply", QUALIFIED_REPLIES, ids=repr)
def test_a_qualified_entailment_is_none(reply: str) -> None:
    assert parse_label(reply) is not E
    for listed in (f"1. {reply}\n2. Neutral", f"Claim 1: {reply}\nClaim 2: Neutral"):
        assert parse_numbered_labels(listed, [1, 2])[1] is not E


@pytest.mark.parametrize(
    "reply",
    [
        "Label: Entailment", "**Label:** Entailment", "The label is Entailment.", "- Entailment",
        "1. Entailment", "Claim 1: Entailment", "<label>Entailment</label>", "Entailment!",
        "\\boxed{Entailment}", "The final answer is: **Entailment**.", "It is entailed.",
        "The claim is clearly entailed by the reference.", "The reference entails the claim.",
        "Entailment, not Neutral", "Entailment (not a contradiction)", "Entailment\n",
        "Entailment (the reference says so)", "Entailment - stated in the first sentence.",
        "Entailment because the passage states it", "Entailment. Ann runs Crumb.",
        "Entailment: the reference says that Ann never ran it.", "It is stated, so Entailment",
        "Entailment\n\nThe reference states that Ann does not run Crumb.",
        "Ann runs Crumb. Therefore, the label is Entailment.", "Entailment (directly stated)",
        "Entailment: the provided reference mentions it.", "Entailment. Sie leitet Crumb.",
        '{"label": "Entailment", "reason": "the reference says so"}',
        '{"reason": "Ann runs it.", "label": "Entailment"}', '```\n{"label": "Entailment"}\n```',
        "Could it be Neutral?\n\nEntailment", "Based on the reference, the claim is entailed.",
    ],
    ids=repr,
)  # fmt: skip
def test_a_plain_entailment_is_read(reply: str) -> None:
    assert parse_label(reply) is E


HEDGES = [
    "partially {}", "{} (partially)", "{}, but not the date", "{} except for the date",
    "{} in part", "mostly {}", "{}, mostly", "far from {}", "unlikely {}", "not {}", "{}? No",
    "probably {}", "would be {}", "{} if the date is left out", "{}: no", "almost {}",
    "{}, although it differs", "{} only of a part", "hardly {}", "{} - but unclear",
    "{} unless it was 1911", "{}, perhaps",
]  # fmt: skip
PLAIN_ENTAILMENTS = st.sampled_from(
    ["Entailment", "**Entailment**", "entailed", "entails", "'Entailment'", "ENTAILMENT"]
)
IN_A_REPLY = st.sampled_from(["{}", "Label: {}", "The label is {}", "- {}", "{}.", "{}\n", "({})"])


@given(PLAIN_ENTAILMENTS, st.sampled_from(HEDGES), IN_A_REPLY, st.integers(1, 3))
def test_no_hedged_line_is_ever_entailment(said: str, hedge: str, form: str, number: int) -> None:
    hedged = form.format(hedge.format(said))
    assert parse_label(hedged) is not E
    lines = [f"{at}. {hedged if at == number else 'Entailment'}" for at in (1, 2, 3)]
    assert parse_numbered_labels("\n".join(lines), [1, 2, 3])[number] is not E
    assert E not in parse_numbered_labels(f"{hedged}\n{hedged}", [1, 2]).values()


# -- numbered labels ---------------------------------------------------------------------------

FORMS = [
    "{}. {}", "{}: {}", "{}) {}", "({}) {}", "[{}] {}", "{} - {}", "{} {}", "{},{}", "#{}: {}",
    "Claim {}: {}", "claim {} is {}", "- {}. **{}**", "**{}.** {}", "{} -> {}", "{} => {}",
    "| {} | Ann runs Crumb | {} |", "{}. Ann runs Crumb: {}", '{}. Ann "runs" Crumb - "{}".',
    '"{}": "{}",', "{}. {} (the reference says so)", "The label of claim {}: {}",
    "{}: {} - the reference states it", "{}: {}\n   The passage states so.",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(labels=st.lists(st.sampled_from(NLI_LABELS), min_size=2, max_size=12), data=st.data())
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
        "1: Entailment (it is stated), 2: Neutral (not told)",
        "1: Entailment, not Neutral\n2: Neutral",
        "1: Entailment\n1. Entailment\n2: Neutral\n",
        "1. Chapter 2 ends: Entailment\n2. Neutral", "1. 李白写了: Entailment\n2. Neutral",
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
        ("2: Entailment\n1: Entailment\n2: Neutral", {1: E, 2: None}),
        ("1: Entailment\n1: not entailed\n2: Neutral", {1: None, 2: N}),
        ("1: Entailment\n   of the first half only\n2: Neutral", {1: None, 2: N}),
        ("1: Neutral\n2: Entailment\n\nBoth are only partly stated.", {1: N, 2: None}),
        ("1: Entailment\n2: Entailment\n\nClaim 1 is only partly stated.", {1: None, 2: E}),
        ("1: Neutral, probably 2: Entailment", {1: N, 2: None}),
        ("1. Closest: Entailment\n2 != Entailment", {1: None, 2: None}),
        ("Entailment?\nNeutral", {1: None, 2: None}),
        ("1: Entailment or Neutral\n2: Neutral", {1: None, 2: N}),
        ("1: Entailment: false\n2: Neutral", {1: None, 2: N}),
        ("1. Sweden stayed neutral\n2. Neutral", {1: None, 2: N}),
        ("1. There were 2 neutral states\n2. Entailment", {1: None, 2: E}),
        ("1.2: Neutral", {1: None, 2: None}),
        ("1 and 2: Neutral", {1: None, 2: None}),
        ("There are 2 neutral claims.", {1: None, 2: None}),
        ("Entailment: 1, Neutral: 2", {1: None, 2: None}),
        ("Supported: 1, Neutral: 2", {1: None, 2: None}),
        ('{"Supported": [1], "Neutral": [2]}', {1: None, 2: None}),
        ('{"1": {"Entailment": true, "Neutral": false}}', {1: None, 2: None}),
        ('[{"label": "Neutral", "claim": 1}, {"label": "Entailment", "claim": 2}]',
         {1: None, 2: None}),
        ("2.\nNeutral\n1.\nEntailment", {1: None, 2: None}),
        ("Neutral", {1: None, 2: None}),
        ("Entailment\nNeutral\nNeutral", {1: None, 2: None}),
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
        ("1: Neutral\n2: Neutral\n2: Entailment", "several labels"),
        ("1: Neutral\n2: Entailment (partially)", QUALIFIED),
        ("0: Neutral\n1: Neutral\n2: Neutral", "numbers that were not asked for: 0"),
    ],
)
def test_the_reason_for_a_missing_label_is_told(reply: str, why: str) -> None:
    found = parse_numbered_labels(reply, [1, 2])[2]
    assert not isinstance(found, ClaimLabel)
    assert why in found


@given(st.lists(st.sampled_from(NLI_LABELS), min_size=1, max_size=8), st.integers(-2, 2))
def test_labels_without_numbers_count_only_if_there_is_one_for_each(
    labels: list[ClaimLabel], off: int
) -> None:
    numbers = [3 * i + 2 for i in range(max(1, len(labels) + off))]
    found = parse_numbered_labels("\n".join(label.value for label in labels), numbers)
    if len(numbers) == len(labels):
        assert list(found.values()) == labels
    else:
        assert not any(isinstance(value, ClaimLabel) for value in found.values())


LISTS = st.lists(st.tuples(*[st.sampled_from(NLI_LABELS)] * 3), min_size=1, max_size=3)


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


# -- numbers that were not asked for -----------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "0. Entailment\n1. Neutral", "0. Entailment\n1. Neutral\n2. Neutral", "0: E\n1: Entailment",
        "0. Supported\n1. Entailment\n2. Entailment", "0. not entailed\n1. Entailment",
        "0. Entailment (partially)\n1. Entailment\n2. Entailment", "0 - no entailment\n1 - Neutral",
        '{"0": "Entailment", "1": "Entailment"}', "0: Entailment, 1: Entailment, 2: Entailment",
        "1: Entailment\n2: Neutral\n3: Contradiction", "1: Entailment\n2: Neutral\n17: Neutral",
        "1: Entailment\n2: Neutral\n\n0: Entailment\n1: Entailment\n2: Entailment",
        "Claim 0: Entailment\nClaim 1: Entailment", "**0.** Entailment\n**1.** Entailment",
    ],
    ids=repr,
)  # fmt: skip
def test_a_number_that_was_not_asked_for_voids_the_reply(reply: str) -> None:
    found = parse_numbered_labels(reply, [1, 2])
    assert list(found) == [1, 2]
    assert all("not asked for" in str(why) for why in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(
    labels=st.dictionaries(st.integers(0, 30), st.sampled_from(NLI_LABELS), min_size=1),
    asked=st.sets(st.integers(1, 30), min_size=1),
)
def test_labels_are_only_read_from_a_list_of_the_numbers_asked_for(
    form: str, labels: dict[int, ClaimLabel], asked: set[int]
) -> None:
    reply = "\n".join(form.format(number, label.value) for number, label in labels.items())
    found = parse_numbered_labels(reply, sorted(asked))
    read = {number: value for number, value in found.items() if isinstance(value, ClaimLabel)}
    assert read == (labels if labels.keys() <= asked else {})


def test_a_list_that_starts_at_0_is_asked_for_again_and_not_read_off_by_one() -> None:
    facts = ["Oslo is a capital.", "Oslo has rivers.", "Oslo has bears."]
    right = dict(enumerate((E, C, N), 1))

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        asked = [number for number in right if f"{number}. {facts[number - 1]}" in str(messages)]
        off = 1 if len(asked) == len(facts) else 0
        return "\n".join(f"{number - off}. {right[number]}" for number in asked)

    model = ScriptedModel(script=script)
    found = RefChecker(model, checker="joint", claims="sentences").invoke(
        {"answer": " ".join(facts), "contexts": ["Oslo is the capital of Norway."]}
    )
    assert [claim.label for claim in found.claims] == [E, C, N]
    assert model.stages == ["joint", "joint", "joint"]
