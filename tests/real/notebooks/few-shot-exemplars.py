# ruff: noqa: F821 -- the names are the notebook's.
import json
from pathlib import Path

# The small model may answer one of the four questions wrongly.
words = {"planet": "Mercury", "violin": "four", "spider": "eight", "Rome": "Italy"}
best = {entry.question: entry.best.answer for entry in store.entries()}
assert best.keys() == dict(past).keys(), best
assert added.failed == ()
right = [words[key] in answer for key in words for asked, answer in best.items() if key in asked]
assert len(right) == 4, best
assert sum(right) >= 3, best
assert all(len(entry.candidates) == 2 for entry in store.entries())

assert {question: len(chosen) for question, chosen in examples.items()} == dict.fromkeys(new, 3)
for chosen in examples.values():
    assert all(best[one["question"]] == one["answer"] for one in chosen), chosen
assert all(text.strip() for told in answers.values() for text in told.values()), answers

assert len(verdicts) == len(new), verdicts
assert all(one.error is None for one in verdicts), verdicts

lines = {
    json.dumps(json.loads(line), sort_keys=True)
    for side in ("train", "test")
    for line in Path(f"training-data/{side}.jsonl").read_text().splitlines()
}
assert lines == {
    json.dumps(
        {
            "completion": [{"content": answer, "role": "assistant"}],
            "prompt": [{"content": question, "role": "user"}],
        }
    )
    for question, answer in best.items()
}, lines
