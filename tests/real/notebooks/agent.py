# ruff: noqa: F821 -- the names are the notebook's.
assert [message.type for message in bare["messages"]] == ["human", "ai", "tool", "ai"]
assert bare["messages"][-1].text == WRONG

last = guarded["messages"][-1]
assert [message.type for message in guarded["messages"]] == ["human", "ai", "tool", "ai"]
assert "1793" in last.text, last
assert all("1851" not in message.text for message in guarded["messages"]), guarded
assert last.response_metadata["demur"]["outcome"] == "recovered", last

(record,) = (one for one in records if one.outcome == "recovered")
assert record.attempts[0].answer == WRONG, record
assert record.attempts[0].verdict == "failed", record
assert record.verdict == "passed", record

assert seen, "the refusal was streamed"
assert all("90" not in text for _, text in seen), seen
assert seen[-1][0] in ("ai", "AIMessageChunk"), seen

false, honest = reports
assert (false.passed, honest.passed) == (False, True), reports
assert [claim.action for claim in false.claims] == ["failed"], false
