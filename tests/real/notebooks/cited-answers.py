# ruff: noqa: F821 -- the names are the notebook's.
assert cited.trace.outcome == "passed", cited.trace
assert cited.output["answer"] == (
    "The Louvre opened as a museum in 1793 [2]. The Prado opened as a museum in 1819 [1]."
)
assert [one.number for one in cited.trace.citations] == [2, 1], cited.trace.citations
for one in cited.trace.citations:
    assert one.quote == documents[one.number - 1].page_content, one
page = cited_html(cited)
assert "https://example.org/france" in page
assert "https://example.org/spain" in page

assert trimmed.trace.outcome == "trimmed", trimmed.trace
assert "Gaudí" not in trimmed.output["answer"], trimmed.output
assert "1793 [^2]" in trimmed.output["answer"], trimmed.output
assert any("Gaudí" in text for text in trimmed.trace.attempts[-1].removed), trimmed.trace

assert evaluation.label == "unsupported", evaluation
assert evaluation.failure == "citation", evaluation
assert mended.output["answer"] == "The Louvre opened as a museum in 1793 [2].", mended.output
