# ruff: noqa: F821 -- the names are the notebook's.
first = supported.trace.attempts[0]
assert supported.trace.outcome in ("passed", "recovered"), supported.trace
assert "1793" in supported.output, supported
assert first.contexts[0].page_content == texts[0], first

# The chain answers from memory, and no document supports the answer.
assert unsupported.trace.attempts[0].verdict == "failed", unsupported.trace
assert "designed by" not in unsupported.output, unsupported

assert [attempt.verdict for attempt in mended.trace.attempts][:1] == ["failed"], mended.trace
assert mended.trace.outcome == "recovered", mended.trace
assert "1793" in mended.output["answer"], mended
assert "1851" not in mended.output["answer"], mended
claim = mended.trace.attempts[0].evaluations[0].claims[0]
assert claim.evidence[0].text == texts[0], claim

assert noted["answer"].startswith("The Louvre opened as a museum in 1851."), noted
assert len(noted["answer"]) > 60, noted
