# ruff: noqa: F821 -- the names are the notebook's.
assert refchecker[wrong].passed is False, refchecker[wrong]
assert refchecker[right].passed is True, refchecker[right]
claim = refchecker[wrong].claims[0]
assert claim.label != "Entailment", claim
assert all(one.text in documents[0] for one in claim.evidence), claim

assert reverse[wrong].passed is False, reverse[wrong]
assert "shakespeare" not in str(reverse[wrong].details["query"]).lower(), reverse[wrong]
assert "shakespeare" not in str(reverse[wrong].details["reply"]).lower(), reverse[wrong]
assert reverse[right].passed is not False, reverse[right]

assert fewl[right].score > fewl[wrong].score, fewl
assert fewl[wrong].passed is None, fewl[wrong]
assert (fewl[wrong].usage.calls, fewl[right].usage.calls) == (2, 0), fewl
