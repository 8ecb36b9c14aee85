"""Score with SelfCheckGPT's prompts: each sentence is compared with three sampled answers.

The samples are asked for in one request, about the same passages. Its other variants need weights.
It makes one call after the other, so threads make it score several answers at a time.
"""

from __future__ import annotations

from _serving import Sample, Score, serve

_SAMPLES = 3


def prepare() -> Score:
    """Return the score function: `SelfCheckAPIPrompt.predict` in threads."""
    from concurrent.futures import ThreadPoolExecutor

    import spacy
    from openai import OpenAI
    from selfcheckgpt.modeling_selfcheck_apiprompt import SelfCheckAPIPrompt

    client = OpenAI()
    check = SelfCheckAPIPrompt(client_type="openai", model="gpt-4o-mini")
    split = spacy.blank("en")  # the pipeline of its README is in no package registry
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
        # It gives 0 to a sentence that the samples support, and 1 to an unsupported one.
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
