# ruff: noqa: F821 -- the names are the notebook's.
assert handler.counts.recorded == len(said), handler.counts
assert totals.runs == len(said), totals
assert totals.verdicts["failed"] >= 7, totals  # of eight hallucinated answers
assert totals.verdicts["passed"] >= 2, totals  # of three right ones

assert bad.verdict == "failed", bad
assert said[bad.question][1] is True, bad

page = Path("report.html").read_text(encoding="utf-8")
assert written.rows == len(said)
assert "RefChecker" in page

assert threshold.hallucinated == 8, threshold
assert (threshold.target, threshold.confidence) == (0.2, 0.8), threshold
assert threshold.passed_hallucinated == 0, threshold
assert 0 < threshold.value <= 1, threshold
assert answers[0] == "The Louvre is in Paris.", answers
assert "1851" not in answers[1], answers
