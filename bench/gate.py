"""Measure what the pytest plugin costs: to load it, and to check an answer of a chain with it.

    make bench        or: python -m bench.gate [--rounds 9]

Runs of pytest with and without the plugin alternate. The answer has one, two or three sentences,
over the three passages that the chain's retriever returned.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial

from bench.measuring import arguments, in_turns, seconds
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from demur.testing import assert_grounded

PASSAGES = [
    "The Louvre, in Paris, opened as a museum on 10 August 1793 with 537 paintings, most of them "
    "from the king and from churches. It closed three years later, since the building was unsafe.",
    "A glass pyramid in the main courtyard has been the entrance since 1989. The architect I. M. "
    "Pei designed it. Five million people a year had come before it, and nine million came after.",
    "The museum shows about 35,000 of its half a million works. The Mona Lisa hangs in the largest "
    "room, the Salle des États, and most visitors walk straight to her.",
]
SENTENCES = [
    "The Louvre opened as a museum in 1793.",
    "I. M. Pei designed the pyramid at the entrance.",
    "The Mona Lisa hangs in the largest room.",
]


class Passages(BaseRetriever):
    """Return the passages."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        return [Document(text) for text in PASSAGES]


def checked(sentences: int) -> None:
    """Run a chain, and assert that its answer is grounded in what it retrieved."""
    prompt = ChatPromptTemplate.from_template("From {context} answer: {question}")
    model = RunnableLambda(lambda _: " ".join(SENTENCES[:sentences]))
    found = RunnablePassthrough.assign(context=lambda given: Passages().invoke(given["question"]))
    chain = found.assign(answer=prompt | model | StrOutputParser())
    output = chain.invoke({"question": "What is the Louvre?"})
    assert_grounded(output["answer"], output["context"], output["question"])


def ran(*options: str) -> None:
    """Run pytest in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", *options, folder]
        subprocess.run(command, capture_output=True, cwd=folder)


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    runs = in_turns({"with": ran, "without": partial(ran, "-p", "no:demur")}, rounds)
    low, high = (runs[name].median.wall for name in ("without", "with"))
    print(f"an empty run of pytest: {high:.3f} s with the plugin, {low:.3f} s without it")
    print(f"  the plugin takes {(high - low) * 1000:.0f} ms")
    print(f"the first check in a process: {seconds(partial(checked, 1)):.2f} s")
    for sentences in range(1, len(SENTENCES) + 1):
        taken = in_turns({"": partial(checked, sentences)}, rounds)[""].median.wall
        print(f"a chain, and its answer of {sentences} sentences checked: {taken * 1000:.0f} ms")


if __name__ == "__main__":
    main()
