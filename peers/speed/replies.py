"""Reply to each peer's prompts as a model without mistakes, in the format that the prompt asks for.

The words of a prompt, or the schema that comes with it, identify the peer. The reply follows from
the request's own text: claims are the answer's clauses. A claim holds if all of its numbers and
names are in the text that the request shows for comparison.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.serving import tagged, text_of

# The numbers and names, which distinguish the statements of these texts.
_MARK = re.compile(r"\d[\d,]*\b|\b[A-Z]\w+")
_NO_NAMES = frozenset({"It", "Its", "The"})
# The words of a name in these texts, such as "The Alder mill".
_NAME_WORDS = 3
# Words that are longer than this say what a statement is about.
_SHORT = 3


class UnknownPromptError(ValueError):
    """Say that a prompt is from none of the peers."""


def reply_to(request: Mapping[str, Any]) -> str:
    """Return the reply to a chat request of OpenAI's protocol.

    Raises:
        UnknownPromptError: No known peer sends such a prompt.
    """
    prompt = "\n\n".join(text_of(message) for message in request["messages"])
    for words, reply in _BY_WORDS.items():
        if words in prompt:
            return reply(prompt)
    asked = _properties(request)
    if asked in _BY_SCHEMA:
        return json.dumps(_BY_SCHEMA[asked](prompt))
    if texts := tagged(prompt):
        return _demur(texts)
    raise UnknownPromptError(f"expected a prompt of one of the peers, got: {prompt[:300]!r}")


def statements(answer: str) -> list[str]:
    """Return the statements of an answer: one for each clause, with the name in place of "it"."""
    return [" ".join(part) for part in _parts(answer)]


def holds(statement: str, text: str) -> bool:
    """Return whether all numbers and names of a statement are in a text."""
    return _marks(statement) <= _marks(text)


def _marks(text: str) -> set[str]:
    return {*_MARK.findall(text)} - _NO_NAMES


def _parts(answer: str) -> list[tuple[str, str, str]]:
    """Return the subject, the verb and the rest of each clause."""
    subject = " ".join(answer.split()[:_NAME_WORDS])
    found = []
    for clause in re.split(r"\.\s+|, and |\.$", answer):
        words = clause.removeprefix(subject).split()
        if not words:
            continue
        owned = words[0] == "Its"
        begin = words[0].lower() in ("it", "its")
        verb, rest = words[begin : begin + 2], words[begin + 2 :]
        found.append((subject + "'s" * owned, " ".join(verb), " ".join(rest)))
    return found


def _triplets(answer: str) -> str:
    return "\n".join(f'("{who}", "{does}", "{what}")' for who, does, what in _parts(answer))


def _between(prompt: str, begin: str, end: str) -> str:
    """Return the text between the last `begin` and the `end` that follows it."""
    return prompt.rpartition(begin)[2].partition(end)[0].strip()


def _yes_no(statement: str, text: str) -> str:
    return "Yes" if holds(statement, text) else "No"


def _reason(held: bool) -> str:
    if held:
        return "The text says the same of this place, with the same names and numbers."
    return "The text gives another number for this place, and so it does not support the claim."


# -- demur -----------------------------------------------------------------------------------------


def _demur(texts: Mapping[str, str]) -> str:
    if "answer" in texts:
        return _triplets(texts["answer"])
    if "claims" in texts:
        numbered = re.findall(r"^(\d+)\. (.*)$", texts["claims"], re.MULTILINE)
        return "\n".join(f"{at}. {_label(claim, texts['reference'])}" for at, claim in numbered)
    return _label(texts["claim"], texts["reference"])


def _label(claim: str, reference: str) -> str:
    return "Entailment" if holds(claim, reference) else "Contradiction"


# -- RefChecker ------------------------------------------------------------------------------------


def _extraction(prompt: str) -> str:
    return _triplets(_between(prompt, "### Candidate Answer:", "### KG:"))


def _joint(prompt: str) -> str:
    claims = _between(prompt, "### Claims:", "Your answer should").splitlines()
    reference = _between(prompt, "### Reference:", "### Claims:")
    return "\n".join(_label(claim, reference) for claim in claims)


def _per_claim(prompt: str) -> str:
    claim = _between(prompt, "### Claim:", "Your answer should")
    return _label(claim, _between(prompt, "### Reference:", "### Claim:"))


# -- ragas -----------------------------------------------------------------------------------------


def _input(prompt: str) -> dict[str, Any]:
    told, _ = json.JSONDecoder().raw_decode(prompt.rpartition("input: ")[2])
    return dict(told)


def _ragas_statements(prompt: str) -> str:
    return json.dumps({"statements": statements(_input(prompt)["answer"])})


def _ragas_verdicts(prompt: str) -> str:
    told = _input(prompt)
    judged = {statement: holds(statement, told["context"]) for statement in told["statements"]}
    verdicts = [
        {"statement": statement, "reason": _reason(held), "verdict": int(held)}
        for statement, held in judged.items()
    ]
    return json.dumps({"statements": verdicts})


# -- deepeval --------------------------------------------------------------------------------------


def _properties(request: Mapping[str, Any]) -> tuple[str, ...]:
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    return tuple(schema.get("properties", ()))


def _truths(prompt: str) -> dict[str, Any]:
    said = _between(prompt, "\nText:\n", "\n\nJSON:")
    return {"truths": re.split(r"(?<=\.)\s+", said)}


def _claims(prompt: str) -> dict[str, Any]:
    return {"claims": statements(_between(prompt, "AI Output:\n", "\n\nJSON:"))}


def _verdicts(prompt: str) -> dict[str, Any]:
    if "Actual Output:\n" in prompt:
        return _of_passages(prompt)
    truths = _between(prompt, "Retrieval Contexts:\n", "\n\nClaims:")
    claims = ast.literal_eval(_between(prompt, "\nClaims:\n", "\n\nJSON:"))
    return {"verdicts": [_verdict(holds(claim, truths)) for claim in claims]}


def _verdict(held: bool) -> dict[str, Any]:
    # A reason is needed only if the verdict is not "yes", but the schema requires the key.
    return {"verdict": "yes" if held else "no", "reason": None if held else _reason(held)}


def _of_passages(prompt: str) -> dict[str, Any]:
    """Return a verdict on each passage: no if it shares most words with a wrong claim."""
    passages: Sequence[str] = ast.literal_eval(_between(prompt, "\nContexts:\n", "\n\nActual"))
    claims = statements(_between(prompt, "Actual Output:\n", "\n\nJSON:"))
    wrong = [claim for claim in claims if not holds(claim, " ".join(passages))]

    def shared(claim: str, passage: str) -> int:
        told = claim.split()[_NAME_WORDS:]
        return sum(word in passage for word in told if len(word) > _SHORT)

    against = {max(passages, key=lambda one, claim=claim: shared(claim, one)) for claim in wrong}
    return {
        "verdicts": [
            {"verdict": "no" if one in against else "yes", "reason": _reason(one not in against)}
            for one in passages
        ]
    }


def _why(prompt: str) -> dict[str, Any]:
    score = re.findall(r"\d\.\d\d", prompt)[-1]
    held = score == "1.00"
    return {"reason": f"The score is {score} because of this: {_reason(held)}"}


# -- LlamaIndex, uqlm and SelfCheckGPT -------------------------------------------------------------


def _llama_index(prompt: str) -> str:
    information = _between(prompt, "\nInformation: ", "\nContext: ")
    return _yes_no(information, _between(prompt, "\nContext: ", "\nAnswer: ")).upper()


def _uqlm(prompt: str) -> str:
    asked, _, answer = prompt.rpartition("Proposed Answer: ")
    return "Correct" if holds(answer.partition("Your task")[0], asked) else "Incorrect"


def _self_check(prompt: str) -> str:
    sentence = _between(prompt, "\nSentence: ", "\n\nIs the sentence")
    return _yes_no(sentence, _between(prompt, "Context: ", "\n\nSentence: "))


def _sampled(prompt: str) -> str:
    """Return another answer to the same question: the first two sentences of each passage."""
    passages = _between(prompt, "Passages:\n", "\n\nQuestion:").split("\n\n")
    return " ".join(" ".join(re.split(r"(?<=\.)\s+", one)[:2]) for one in passages)


_BY_WORDS: Mapping[str, Callable[[str], str]] = {
    "extract a KG from the candidate answer": _extraction,
    "I have a list of claims that made by": _joint,
    "I have a claim that made by": _per_claim,
    "Break down each sentence into one or more": _ragas_statements,
    "judge the faithfulness of a series of statements": _ragas_verdicts,
    "tell if a given piece of information": _llama_index,
    "Proposed Answer: ": _uqlm,
    "Is the sentence supported by the context above?": _self_check,
    "Answer the question from these passages.": _sampled,
}
_BY_SCHEMA: Mapping[tuple[str, ...], Callable[[str], dict[str, Any]]] = {
    ("truths",): _truths,
    ("claims",): _claims,
    ("verdicts",): _verdicts,
    ("reason",): _why,
}
