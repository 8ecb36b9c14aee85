from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from demur._text import count_tokens, replace_surrogates
from demur.evaluators.refchecker.references import Passage, pack, passages

TEXT = st.text(st.characters(), max_size=60) | st.text("ab. é漢\r\n\ud800😀", max_size=200)


def documents(*texts: str) -> list[Document]:
    return [Document(page_content=text) for text in texts]


def test_contexts_come_first_and_then_the_reference() -> None:
    assert passages(documents("Ann runs.", "  \n", "Bo left."), "Crumb.", 50, 6) == [
        Passage(0, 0, "Ann runs."), Passage(2, 0, "Bo left."), Passage(None, 0, "Crumb."),
    ]  # fmt: skip


@given(st.lists(TEXT, max_size=3), st.none() | TEXT, st.integers(1, 30))
def test_passages_index_the_original_strings(
    contexts: list[str], reference: str | None, size: int
) -> None:
    found = passages(documents(*contexts), reference, size, size // 4)
    for passage in found:
        source = reference if passage.context is None else contexts[passage.context]
        assert source is not None
        part = source[passage.start : passage.start + len(passage.text)]
        assert replace_surrogates(part) == replace_surrogates(passage.text)
        assert part.strip()
    with_text = {at for at, text in enumerate(contexts) if text.strip()}
    assert {p.context for p in found} - {None} == with_text


@given(
    st.lists(st.integers(1, 12).map(lambda words: " ".join(["ab"] * words)), max_size=12),
    st.integers(1, 20),
)
def test_packing_keeps_all_passages_in_order_and_fills_windows(texts: list[str], size: int) -> None:
    given_passages = [Passage(at, 0, text) for at, text in enumerate(texts)]
    windows = pack(given_passages, size)
    assert [passage for window in windows for passage in window] == given_passages
    tokens = [[count_tokens(passage.text) for passage in window] for window in windows]
    assert all(len(window) == 1 or sum(window) <= size for window in tokens)
    for window, following in pairwise(tokens):
        assert sum(window) + following[0] > size
