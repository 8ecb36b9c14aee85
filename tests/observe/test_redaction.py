"""Test redaction: no record has a credential, and texts only as far as the caller allows."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI

from demur import (
    FEWL,
    Calculation,
    Cascade,
    Claim,
    ClaimLabel,
    Evaluation,
    Evidence,
    MissingString,
    RefChecker,
    ReverseValidation,
    Span,
)
from demur._secrets import learn
from demur.errors import DemurError
from demur.evaluators import LMvsLM, NeighborStore, SelfCheck, ZeroShot
from demur.local import MINILM
from demur.observe import Record, Redact
from demur.observe.redaction import redactor
from demur.similarity import Similarity
from support import records
from support.vectors import Told

REDACTS: tuple[Redact, ...] = (None, "remove", "hash", str.upper)

# --- Every field of every schema ----------------------------------------------------------------

# The fields that stay when texts are removed. If you add a field here, you say that it holds no
# text under judgement.
KEPT = {
    *("id", "root", "name", "model", "response", "trace_id", "span_id"),
    *("traces.system", "traces.trace_id", "traces.span_id", "traces.project", "traces.address"),
    "attempts.recovery",
    *(f"{place}.{field}" for place in ("attempts.evaluations", "attempts.feedback.evaluations")
      for field in ("name", "label", "cause", "fingerprints")),
    *("attempts.contexts.id", "attempts.feedback.documents.id"),
}  # fmt: skip


class _Filled:
    """Build a record from the schema, with a distinct text in every place for a text."""

    def __init__(self) -> None:
        self.schema = Record.model_json_schema()
        self.texts: dict[str, str] = {}
        self.record = Record.model_validate(self._value(self.schema, ()))

    def _value(self, schema: dict[str, Any], path: tuple[str, ...]) -> Any:
        if "$ref" in schema:
            schema = self.schema["$defs"][schema["$ref"].rpartition("/")[2]]
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        if "anyOf" in schema:
            return self._value(next(o for o in schema["anyOf"] if o.get("type") != "null"), path)
        kind = schema.get("type")
        if kind == "string":
            if schema.get("format") == "date-time":
                return datetime.now(timezone.utc).isoformat()
            name = ".".join(path)
            return self.texts.setdefault(name, f"what is said at {name} by us")
        if kind == "array":
            items = schema.get("prefixItems") or [schema["items"]]
            made = [self._value(one, path) for one in items]
            return self._both(made[0]) if path[-1] == "evaluations" else made
        if kind in ("integer", "number"):
            return 1
        if kind == "boolean":
            return False
        if kind == "object" and "properties" in schema:
            return {name: self._value(one, (*path, name)) for name, one in
                    schema["properties"].items()}  # fmt: skip
        if kind == "object" and "propertyNames" in schema:
            return {"Entailment": 1.0}
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return {"one": self._value(schema["additionalProperties"], path)}
        # Metadata and details take any value. Their names must be removed here, although they are
        # kept elsewhere.
        text = self.texts.setdefault(name := ".".join(path), f"what is said at {name} by us")
        return {"name": text, "id": text, "label": [text, {"model": text}], text: 1, "n": 2.5}

    def _both(self, evaluation: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a determined and an undetermined evaluation, since none has all fields."""
        nothing = dict.fromkeys(("score", "label", "passed"))
        return [{**evaluation, "error": None}, {**evaluation, **nothing}]


def test_every_text_of_every_schema_is_redacted_but_those_that_are_listed() -> None:
    filled = _Filled()
    assert {"attempts.answer", "attempts.contexts.page_content", "reason"} < set(filled.texts)
    assert {"attempts.feedback.evaluations.claims.evidence.text"} < set(filled.texts)
    before = filled.record.as_json()
    assert all(text in before for text in filled.texts.values())

    kept = redactor("remove")(filled.record)

    after = kept.as_json()
    assert {name for name, text in filled.texts.items() if text in after} == KEPT
    assert kept.redacted
    gone = filled.texts["attempts.answer"]
    assert kept.answer == f"[removed: {len(gone)} characters]"


def test_numbers_labels_offsets_and_empty_texts_stay() -> None:
    label = ClaimLabel.NEUTRAL
    claim = Claim(text="x", span=Span(start=3, end=9), label=label)
    details = {"weights": [0.5, 1]}
    scored = records.found(claims=(claim,), details=details, explanation="")
    record = records.guarded(records.refuted(score=0.25), scored)
    kept = redactor("hash")(record)
    for field in ("id", "root", "time", "name", "model", "outcome", "usage", "seconds", "verdict"):
        assert getattr(kept, field) == getattr(record, field)
    for (place, old), (same, new) in zip(record.judged(), kept.judged(), strict=True):
        assert place == same
        for field in ("name", "score", "label", "passed", "failure", "usage"):
            assert getattr(old, field) == getattr(new, field)
        assert [claim.label for claim in old.claims] == [claim.label for claim in new.claims]
    assert (new.claims[0].span, new.details, new.explanation) == (claim.span, details, "")


def _fingerprinted() -> dict[str, dict[str, str]]:
    """Return the fingerprints of evaluators: names, digits and hashes of weights."""
    chat = ChatOpenAI(model="gpt-4o-mini", api_key="sk-hush", base_url="http://me:hush@here/v1")
    weighed = Similarity(len, "w", f"cosine:MiniLM {MINILM.sha256}")  # type: ignore[arg-type]  # not called
    joint, qg = RefChecker(chat), ReverseValidation(chat, entity=str.strip)  # type: ignore[arg-type]  # not called
    made = [
        *(joint, qg, Cascade([joint, qg]), ZeroShot(chat), LMvsLM(chat), SelfCheck(method="ngram")),
        FEWL([chat, chat], similarity=weighed, neighbors=NeighborStore(embedding=Told())),
        SelfCheck(chat, similarity=weighed),
    ]
    return {str(at): one.fingerprints for at, one in enumerate(made)}


@pytest.mark.parametrize("redact", REDACTS)
def test_what_scores_depend_on_stays_to_the_letter(redact: Redact) -> None:
    given = _fingerprinted()
    record = records.scored(*(records.found(fingerprints=one) for one in given.values()))
    kept = redactor(redact)(record)
    assert [one.fingerprints for one in kept.evaluations] == list(given.values())
    assert "hush" not in kept.as_json()


def test_tags_and_keys_stay_where_they_are_names() -> None:
    document = Document(page_content="x", metadata={"source": "a.txt", "who is it": "mary"})
    record = records.run(
        records.attempt(records.found()).model_copy(update={"contexts": (document,)}),
        tags=("prod", "seq:step:1", "asked by Mary Anning", "mary@example.org"),
        metadata={"user": "mary", "a note on Mary": 1, "a note on Anna": 2},
    )
    kept = redactor("remove")(record)
    removed = "[removed: {} characters]"
    assert kept.tags == ("prod", "seq:step:1", removed.format(20), removed.format(16))
    # Both keys are kept, although they became equal.
    assert kept.metadata == {
        "user": removed.format(4),
        removed.format(14): 1,
        f"{removed.format(14)} (2)": 2,
    }
    assert kept.contexts[0].metadata == {
        "source": removed.format(5),
        removed.format(9): removed.format(4),
    }


# --- What becomes of a text ---------------------------------------------------------------------


def _one(redact: Redact, answer: str) -> str:
    return redactor(redact)(records.scored(answer=answer)).answer


@given(st.text(min_size=1))
def test_a_hash_is_that_of_the_text(answer: str) -> None:
    seen = records.scored(answer=answer).answer
    plain = hashlib.sha256(seen.encode()).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DEMUR_HASH_KEY", raising=False)
        assert _one("hash", answer) == f"sha256:{plain}"
        patch.setenv("DEMUR_HASH_KEY", "our key of hashes")
        keyed = hmac.new(b"our key of hashes", seen.encode(), "sha256").hexdigest()
        assert _one("hash", answer) == f"sha256:{keyed}"


def test_a_function_gets_every_text_without_credentials() -> None:
    seen: list[str] = []

    def note(text: str) -> str:
        seen.append(text)
        return text.upper()

    record = records.scored(records.refuted(), answer="It is sk-abcD1234efGh5678ijKl, she said")
    kept = redactor(note)(record)
    assert kept.answer == "IT IS [SECRET], SHE SAID"
    assert {records.QUESTION, records.PASSAGE, "1 of 3 claims holds.", "rivers.txt"} <= set(seen)
    assert not any("sk-abc" in text for text in seen)


def _raises(text: str) -> str:
    raise ValueError(f"no rule for {text}")


@pytest.mark.parametrize(
    ("redact", "why"), [(_raises, "raised ValueError"), (lambda text: None, "returned NoneType")]
)
def test_a_function_that_fails_lets_no_text_out(
    redact: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    make = redactor(redact)
    with caplog.at_level(logging.WARNING, logger="demur.observe"):
        kept = [make(records.scored(records.refuted())) for _ in range(2)]
    length = len(records.ANSWER)
    assert kept[0].answer == f"[removed: redact failed, {length} characters]"
    for one in kept:
        assert "Danube" not in one.as_json()
    [said] = [record.getMessage() for record in caplog.records]
    assert why in said
    assert "Danube" not in said


@pytest.mark.parametrize("wrong", ["mask", "", True, 3, ["remove"]])
def test_other_values_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match='redact must be None, "remove", "hash" or a function'):
        redactor(wrong)


# --- Credentials --------------------------------------------------------------------------------

PEM = "-----BEGIN PRIVATE KEY-----\nPLANTED31aaaa\n-----END PRIVATE KEY-----"
HEADERS = {"Authorization": "Bearer PLANTED1aaaa", "x-api-key": "PLANTED2", "Accept": "*/*"}
NESTED = {
    "api_key": "PLANTED3",
    "config": {"headers": HEADERS, "openaiApiKey": {"value": "PLANTED4"}, "max_tokens": 512},
    "clients": [{"password": "PLANTED5"}, {"name": "Cookie", "value": "PLANTED6"}],
    "raw": [["authorization", "PLANTED7"], ["accept", "*/*"]],
    "url": "https://me:PLANTED8@example.org/?key=PLANTED9&page=1",
    "note with sk-proj-aB3dE5PLANTED10gH7jK9 in it": "session_token=PLANTED11",
    "usage": {"input_tokens": 7, "token": "PLANTED12"},
}
OF_AN_ID = (
    "request headers were Headers({'authorization': 'Bearer PLANTED14aaaa', 'x-api-key': "
    "'PLANTED15', 'cookie': 'sid=PLANTED16; b=PLANTED17'}), body {\"api_key\": \"PLANTED18\"}, "
    "proxy http://u:PLANTED19@proxy:8080, environment PLANTED20-of-the-environment, " + PEM
)
TOLD = (
    "AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided: "
    "sk-proj-aB3dE5PLANTED13gH7jK9. You can find yours in the settings.'}}; " + OF_AN_ID
)


def _planted() -> Record:
    """Return a record with credentials in every place where a text can be."""
    document = Document(page_content=f"text {TOLD}", metadata=NESTED, id=f"id {OF_AN_ID}")
    place = Span(start=0, end=4)
    evidence = Evidence(context=0, span=place, text=TOLD, label="Contradiction")
    claim = Claim(
        text=TOLD,
        triplet=(TOLD, "is", TOLD),
        label="Contradiction",
        evidence=(evidence,),
        missing_strings=(MissingString(string=TOLD, nearest=TOLD),),
        calculations=(Calculation(figure=TOLD, follows=True, text=TOLD, operands=(evidence,)),),
    )
    details: dict[str, Any] = {"request": NESTED, "said": [TOLD]}
    wrong = records.refuted(explanation=TOLD, claims=(claim,), details=details)
    odd = Evaluation(
        name=f"a {TOLD}",
        error=TOLD,
        claims=(Claim(text="x", error=TOLD),),
        fingerprints={"model": TOLD, TOLD: "1", "api_key": "PLANTED3"},
    )
    record = records.guarded(wrong, odd, metadata=NESTED, tags=(TOLD,), name=TOLD)
    attempts = [
        one.model_copy(update={"contexts": (document,), "question": TOLD, "answer": TOLD})
        for one in record.attempts
    ]
    feedback = attempts[1].feedback
    assert feedback is not None
    told = {"errors": (TOLD,), "documents": (document,), "instruction": TOLD}
    attempts[1] = attempts[1].model_copy(update={"feedback": feedback.model_copy(update=told)})
    last = {"reason": TOLD, "model": TOLD, "response": f"chatcmpl {OF_AN_ID}"}
    return record.model_copy(update={"attempts": tuple(attempts), **last})


@pytest.mark.parametrize("redact", [*REDACTS, lambda text: text])
def test_no_planted_credential_is_in_a_record(
    redact: Redact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "PLANTED20-of-the-environment")
    record = _planted()
    assert record.as_json().count("PLANTED") > 100
    for one in (record, *records.several(10), records.hostile()):
        kept = redactor(redact)(one)
        assert "planted" not in kept.as_json().lower()
        assert Record.model_validate_json(kept.as_json()) == kept
        assert kept.redacted is (redact is not None)


_FILLED = _Filled()
_SECRETS = st.tuples(
    st.text("aZ09-_.:/+=&?@%# é水", min_size=7, max_size=40), st.sampled_from("1%é")
)
_TEXTS = st.text("aZ09-_.:/+=&?@%# \né水\"'", max_size=20)


@given(
    st.sampled_from(sorted(_FILLED.texts)),
    # Shorter values are no secrets, and stripping shortens some.
    _SECRETS.map(lambda parts: parts[1] + "".join(parts).strip() + parts[1]).filter(
        lambda secret: len(secret) >= 8
    ),
    _TEXTS,
    _TEXTS,
    st.sampled_from([*REDACTS, lambda text: text]),
)
def test_no_known_secret_comes_out_of_any_place(
    place: str, secret: str, before: str, after: str, redact: Redact
) -> None:
    held = json.dumps(before + secret + after)[1:-1]
    filled = _FILLED.record.as_json().replace(_FILLED.texts[place], held)
    record = Record.model_validate_json(filled)
    assert secret in str(record.model_dump())
    learn({"api_key": secret})
    kept = redactor(redact)(record)
    assert secret not in str(kept.model_dump())
    assert Record.model_validate_json(kept.as_json()) == kept


def test_what_stands_under_a_secret_name_goes_wherever_it_stands_in_its_record() -> None:
    told = records.found(explanation="They use swordfish-of-1999 there.")
    record = records.scored(told, metadata={"config": {"password": "swordfish-of-1999"}})
    assert redactor()(record).evaluations[0].explanation == "They use [secret] there."
    other = records.scored(told)
    for clean in (other, *records.several(20)):
        assert redactor()(clean) is clean


def test_what_is_no_credential_stays_beside_them() -> None:
    kept = redactor()(records.scored(metadata=NESTED))
    assert kept.metadata == {
        "config": {"max_tokens": 512},
        "clients": [{}, {"name": "Cookie"}],
        "raw": [["authorization", "[secret]"], ["accept", "*/*"]],
        "url": "https://[secret]@example.org/?key=[secret]&page=1",
        "note with [secret] in it": "session_token=[secret]",
        "usage": {"input_tokens": 7},
    }
    assert not kept.redacted


# --- What JSON cannot hold ----------------------------------------------------------------------


def _holding(metadata: dict[str, Any]) -> Record:
    document = Document(page_content="a \ud800 text", metadata=metadata)
    given = records.attempt(records.found()).model_copy(update={"contexts": (document,)})
    return records.run(given)


@pytest.mark.parametrize("redact", REDACTS)
def test_documents_may_hold_what_json_cannot(redact: Redact) -> None:
    odd = {
        "bytes": b"\xff api_key=PLANTED3",
        "nan": float("nan"),
        "surrogate": "\ud800 password=PLANTED4",
        ("a", "pair"): {"PLANTED"} - {"PLANTED"},
        "number": 3,
        "object": object(),
    }
    kept = redactor(redact)(_holding(odd))
    assert Record.model_validate_json(kept.as_json()) == kept
    assert "PLANTED" not in kept.as_json().upper()
    assert kept.contexts[0].metadata["number"] == 3
    assert "NaN" not in kept.as_json()


def test_a_record_that_no_json_can_be_made_of_is_told_without_its_texts() -> None:
    circle: dict[str, Any] = {"note": "a text to be kept back"}
    circle["self"] = [circle]
    with pytest.raises(DemurError, match="cannot be written as JSON") as told:
        redactor()(_holding(circle))
    assert "kept back" not in str(told.value)
    assert told.value.__suppress_context__
