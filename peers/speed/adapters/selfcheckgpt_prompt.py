"""SelfCheckGPT by prompts: an answer's sentences, each held against three sampled answers.

The samples are asked for in one request, for the same passages. Its other variants need weights.
It works one call after the other: threads are what makes it score several answers at a time.
"""

from __future__ import annotations

from _serving import Sample, Score, serve

_SAMPLES = 3


def prepare() -> Score:
    """`SelfCheckAPIPrompt.predict` in threads."""
    from concurrent.futures import ThreadPoolExecutor

    import spacy
    from openai import OpenAI
    from selfcheckgpt.modeling_selfcheck_apiprompt import SelfCheckAPIPrompt

    client = OpenAI()
    check = SelfCheckAPIPrompt(client_type="openai", model="gpt-4o-mini")
    split = spacy.blank("en")  # its README's pipeline is not in a package registry
    split.add_pipe("sentencizer")

    def one(sample: Sample) -> float:
        passages = "\n\n".join(sample.contexts)
        asked = "Answer the question from these passages.\n\nPassages:\n"
        drawn = client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[
                {"role": "user", "content": f"{asked}{passages}\n\nQuestion: {sample.question}"}
            ],
            n=_SAMPLES,
            temperature=1,
        )
        sampled = [choice.message.content for choice in drawn.choices]
        sentences = [sentence.text for sentence in split(sample.answer).sents]
        # 0 for a sentence that the samples support, 1 for one that they do not.
        return 1 - float(check.predict(sentences, sampled).mean())

    def held(sample: Sample) -> object:
        try:
            return one(sample)
        except Exception as error:
            return error

    def score(samples: list[Sample], at_once: int) -> list:
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(held, samples))

    return score


if __name__ == "__main__":
    serve(prepare)
