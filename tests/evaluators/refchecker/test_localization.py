import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from demur._text import replace_surrogates
from demur.evaluators.refchecker.localization import find_evidence, index, locate, word_set
from demur.evaluators.refchecker.references import Passage, passages
from demur.schema import ClaimLabel

# fmt: off
PIECES = [
    "Ann runs Crumb. ", "It opened in 2012! ", "漢字", "。", "עולם ", "😀", "\u0301", "\r\n", "\t",
    "\ud800", "\x00", "É ", "ß", "\u202e", "ค่าเข้า 20 บาท ", "السِّعر ٢٠ درهما، ", "نعم؟ ",
    "הַמּוּזֵיאוֹן פתוח. ", "पुल लंबा है। ",
]
# fmt: on
ANY_TEXT = st.text(st.characters(), max_size=40)
TEXT = ANY_TEXT | st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def said(claim: str, answer: str) -> str | None:
    span = locate(claim, index([Passage(None, 0, answer)]))
    return None if span is None else answer[span.start : span.end]


@pytest.mark.parametrize(
    ("claim", "answer", "expected"),
    [
        ("Ann runs Crumb", "Bo left. In Leeds, Ann runs the bakery Crumb now.",
         "Ann runs the bakery Crumb"),
        ("CAFE opened", "😀😀 Hm.\r\n\tThe cafe, they say, opened\r\nnow",
         "cafe, they say, opened"),
        ("李白 写 诗", "杜甫来了。李白写了诗。", "李白写了诗"),
        ("דנה גרה", "\u202bשלום. כאן דנה גרה\u202c.", "דנה גרה"),
        ("Straße", "Die STRASSE ist lang", "STRASSE"),
        ("ค่าเข้า 20 บาท", "ปิดวันจันทร์\nค่าเข้า 20 บาท", "ค่าเข้า 20 บาท"),
        ("السعر 20", "المتحف مفتوح. السعر 20 درهما.", "السعر 20"),
        ("पुल लंबा", "वह पुराना है। पुल लंबा है।", "पुल लंबा"),
        ("Bo left", "A\ud800B. Yes: Bo\ud800 left!", "Bo\ud800 left"),
        ("nothing shared", "Ann runs Crumb.", None),
        ("…!", "Ann runs Crumb…!", None),
        ("Ann", "", None),
        # "Crumb" is in one sentence only, so it weighs more than "Ann" or "the".
        ("the Crumb", "The end. Crumb. The start. The.", "Crumb"),
    ],
)  # fmt: skip
def test_a_claim_is_located_in_the_sentence_with_its_rarest_words(
    claim: str, answer: str, expected: str | None
) -> None:
    assert said(claim, answer) == expected


@given(TEXT, TEXT)
def test_the_span_of_a_claim_begins_and_ends_with_its_words(claim: str, answer: str) -> None:
    found = said(claim, answer)
    wanted = word_set(claim)
    assert (found is None) == (not wanted & word_set(answer))
    if found is not None:
        folded = found.casefold()
        assert any(folded.startswith(word) for word in wanted)
        assert any(folded.endswith(word) for word in wanted)


@given(st.lists(TEXT, max_size=3), st.none() | TEXT, TEXT, st.integers(1, 20))
def test_evidence_indexes_the_original_reference(
    contexts: list[str], reference: str | None, claim: str, size: int
) -> None:
    found = passages([Document(page_content=text) for text in contexts], reference, size, size // 3)
    quotes = find_evidence(claim, index(found), ClaimLabel.NEUTRAL)
    shared = word_set(claim) & {word for passage in found for word in word_set(passage.text)}
    assert bool(quotes) == bool(shared)
    assert len(quotes) <= 3
    held: set[str] = set()
    for evidence in quotes:
        source = reference if evidence.context is None else contexts[evidence.context]
        assert source is not None
        original = source[evidence.span.start : evidence.span.end]
        assert replace_surrogates(original) == evidence.text == evidence.text.strip()
        new = word_set(evidence.text) & shared - held
        assert new  # Each evidence adds words of the claim.
        held |= new


def quoted(claim: str, *contexts: str) -> list[str]:
    found = passages([Document(page_content=text) for text in contexts], None, 500, 5)
    return [one.text for one in find_evidence(claim, index(found), ClaimLabel.ENTAILMENT)]


def test_evidence_is_the_best_sentence_of_the_context_it_names() -> None:
    contexts = ["Bo sleeps. Ann sleeps.", "Hm.\r\n😀 Ann runs Crumb in Leeds. Bo left."]
    found = passages([Document(page_content=text) for text in contexts], "Crumb is big.", 50, 5)
    (evidence,) = find_evidence("Ann runs Crumb", index(found), ClaimLabel.ENTAILMENT)
    assert (evidence.context, evidence.label) == (1, ClaimLabel.ENTAILMENT)
    assert evidence.text == "😀 Ann runs Crumb in Leeds."
    assert contexts[1][evidence.span.start : evidence.span.end] == evidence.text


def test_what_several_sentences_say_together_is_quoted_of_each_the_best_first() -> None:
    claim = "Ann, born in Leeds, opened a bakery in 2012 and sold it in May 2020."
    told = ["Ann grew up in Leeds.", "She sold it in May 2020.", "In 2012 Ann opened a bakery."]
    expected = ["In 2012 Ann opened a bakery.", "She sold it in May 2020."]
    assert quoted(claim, " ".join(told)) == expected
    assert quoted(claim, *told) == expected


def test_a_sentence_that_shares_much_less_than_the_best_is_not_quoted() -> None:
    told = "Crumb opened in Leeds in 2012."
    assert quoted("Crumb opened in Leeds in May 2012", f"{told} It rained in May.") == [told]
