# ruff: noqa: F821 -- the names are the notebook's.
assert "1793" in str(response), response
assert result.passing is True, result.evaluation
assert result.evaluation.claims[0].evidence[0].text == texts[0], result.evaluation
assert other.passing is False, other.evaluation

found = unsupported.metadata["demur"]
assert found["outcome"] in ("abstained", "nothing_to_check", "recovered"), found
assert trace_of(unsupported).attempts[0].verdict in ("failed", "nothing_to_check")

assert cited.metadata["demur"]["outcome"] in ("passed", "recovered"), cited.metadata
assert "[1]" in str(cited), cited
assert all(one["quote"] in texts for one in cited.metadata["demur"]["citations"]), cited.metadata
