# ruff: noqa: F821 -- the names are the notebook's.
best = {entry.question: entry.best.answer for entry in store.entries()}
words = {"planet": "Mercury", "spider": "eight", "Japan": "Tokyo", "violin": "four"}
right = [words[key] in answer for key in words for asked, answer in best.items() if key in asked]
assert len(right) == 4, best
assert sum(right) >= 3, best  # A small model may get one wrong.

assert (exported.train, exported.test, exported.single, exported.unscored) == (3, 1, 0, 0), exported
for side in ("train", "test"):
    for row in rows(side):
        assert row["completion"][0]["content"] == best[row["prompt"][0]["content"]], row

# Only the answer and its end token count in the loss, not the question.
for row in trainer.train_dataset:
    counted = tokenizer.decode([label for label in row["labels"] if label != -100])
    assert counted.removesuffix("</s>") in best.values(), counted

assert before["train"] > 4, before  # Chance is 5.6, with 258 tokens.
assert after["train"] < 0.5, after
assert after["test"] > after["train"] + 0.5, after
learnt = [
    says(row["prompt"][0]["content"]) == row["completion"][0]["content"] for row in rows("train")
]
assert sum(learnt) >= 2, learnt
