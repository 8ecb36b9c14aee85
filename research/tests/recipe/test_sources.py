"""Test that each public source is read from files of its publisher's form, and own rows too."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demur_research.recipe.rows import TrainingRow, read_own, read_rows, write_rows
from demur_research.recipe.sources import SOURCES, read_sources

Files = dict[str, str | bytes]
P, Q = "The old mill stands by the river.", "The mill is at the river."
R = "The mill burnt down long ago."


def lines(*rows: Any) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def table(separator: str, *rows: tuple[str, ...]) -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def _rte() -> Files:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(
            "rte/rte1_dev.xml",
            f'<pair id="1" value="TRUE" task="IR">\n<t>{P} A &amp; B.</t>\n<h>{Q}</h></pair>\n'
            f'<pair id="2" entailment="NO" task="IR">\n<t>{P}</t>\n<h>{R}</h></pair>',
        )
    return {"packages/corpora/rte.zip": packed.getvalue()}


def _wice_row(label: str, chosen: list[list[int]]) -> dict[str, Any]:
    meta = {"id": label, "claim_title": "Mill", "claim_section": "-"}
    page = [f"Sentence {at} of the page." for at in range(300)]
    page[200] = P
    return {
        "claim": Q if chosen else R,
        "label": label,
        "evidence": page,
        "supporting_sentences": chosen,
        "meta": meta,
    }


def _fool_me_twice_row(name: str, label: str) -> dict[str, Any]:
    return {
        "id": name,
        "text": Q if label == "SUPPORTS" else R,
        "label": label,
        "gold_evidence": [{"text": P, "section_header": ""}],
        "retrieved_evidence": [{"text": "Other sentence.", "section_header": ""}],
        "wikipedia_page": "Mill",
        "category": "x",
        "total_votes": 1,
        "correct_votes": 1,
    }


def _xquad() -> Files:
    paragraph = {
        "context": P,
        "qas": [
            {"question": "Where is the mill?", "answers": [{"text": "by the river"}]},
            {"question": "What stands there?", "answers": [{"text": "the old mill"}]},
            {"question": "Where is it?", "answers": [{"text": "there"}]},
        ],
    }
    text = json.dumps({"data": [{"paragraphs": [paragraph]}]})
    names = ("en", "de", "es", "ru", "zh", "ar", "hi", "tr", "vi", "el", "th", "ro")
    return {f"xquad.{name}.json": text for name in names}


_NLI = (("E", P, Q), ("C", P, R), ("-", P, R))
_WORDS = {"E": "entailment", "C": "contradiction", "-": "-"}
_INFERRED = [(P, Q, "support"), (P, R, "contradict")]
_JUDGED = [(P, Q, "support"), (P, R, "unsupported")]


def _inferred(form: Callable[[str, str, str], dict[str, str]]) -> list[dict[str, str]]:
    return [form(_WORDS[label], premise, claim) for label, premise, claim in _NLI]


def _cells(*heads: str) -> list[tuple[str, ...]]:
    return [heads, *((premise, claim, _WORDS[label]) for label, premise, claim in _NLI)]


FORMS: dict[str, tuple[Files, list[tuple[str, str, str]]]] = {
    "fever": (
        {
            "RTE-Fever/processed/dev.raw.input0": f"{P[:-1]} .\n{P[:-1]} .\n",
            "RTE-Fever/processed/dev.raw.input1": f"{Q[:-1]} .\n{R[:-1]} .\n",
            "RTE-Fever/processed/dev.label": "entailment\nnot_entailment\n",
        },
        _JUDGED,
    ),
    "snli": (
        {
            f"dataset/eSNLI/{column}.{part}": text
            for part in ("dev", "test")
            for column, text in (
                ("s1", f"{P}\n{P}\n"),
                ("s2", f"{Q}\n{R}\n"),
                ("labels", "entailment\ncontradiction\n"),
            )
        },
        [*_INFERRED, *_INFERRED],
    ),
    "mnli": (
        {
            "data/MNLI/Corrupt-Test/MNLI-NUM.tsv": table(
                "\t", *_cells("sentence1", "sentence2", "gold_label")
            )
        },
        _INFERRED,
    ),
    "conjnli": (
        {
            "data/NLI/adversarial_train_15k.tsv": table(
                "\t", *_cells("Premise", "Hypothesis", "Label")
            )
        },
        _INFERRED,
    ),
    "counterfactual": (
        {
            f"NLI/all_combined/{part}.tsv": table(
                "\t", *_cells("sentence1", "sentence2", "gold_label")
            )
            for part in ("train", "dev")
        },
        [*_INFERRED, *_INFERRED],
    ),
    "control": (
        {
            f"data/{part}.jsonl": lines(
                {"premise": P, "hypothesis": Q, "label": "e"},
                {"premise": P, "hypothesis": R, "label": "c"},
            )
            for part in ("dev", "test")
        },
        [*_INFERRED, *_INFERRED],
    ),
    "rte": (_rte(), [(f"{P} A & B.", Q, "support"), (P, R, "unsupported")]),
    "infotabs": (
        {
            "data/maindata/infotabs_train.tsv": table(
                "\t",
                ("table_id", "hypothesis", "label"),
                ("T1", Q, "E"),
                ("T1", R, "C"),
                ("T1", P, "N"),
            ),
            "data/tables/json/T1.json": json.dumps({"Age": ["9", "10"], "title": ["Mill"]}),
        },
        [
            ("Mill\nAge: 9, 10", Q, "support"),
            ("| Mill | |\n|---|---|\n| Age | 9, 10 |", R, "contradict"),
            ('{"Age": ["9", "10"], "title": ["Mill"]}', P, "neutral"),
        ],
    ),
    "farstail": (
        {"data/Train-word.csv": table("\t", *_cells("premise", "hypothesis", "label"))},
        _INFERRED,
    ),
    "indonli": (
        {
            "data/indonli/train.jsonl": lines(
                *_inferred(lambda of, p, c: {"premise": p, "hypothesis": c, "label": of[0]})
            )
        },
        _INFERRED,
    ),
    "jnli": (
        {
            "datasets/jnli-v1.3/valid-v1.3.json": lines(
                *_inferred(lambda of, p, c: {"sentence1": p, "sentence2": c, "label": of})
            )
        },
        _INFERRED,
    ),
    "covidfact": (
        {
            "COVIDFACT_dataset.jsonl": lines(
                {"evidence": [P, "More."], "claim": Q, "label": "SUPPORTED"},
                {"evidence": [P], "claim": R, "label": "REFUTED"},
            )
        },
        [(f"{P} More.", Q, "support"), (P, R, "unsupported")],
    ),
    "healthver": (
        {
            f"data/healthver_{part}.csv": table(
                ",",
                ("evidence", "claim", "label"),
                (f'"{P}"', Q, "Supports"),
                (P, R, "Refutes"),
            )
            for part in ("dev", "test")
        },
        [*_INFERRED, *_INFERRED],
    ),
    "climate-fever": (
        {
            "dataset/climate-fever.jsonl": lines(
                {"claim": Q, "evidences": [{"evidence": P, "evidence_label": "SUPPORTS"}]},
                {"claim": R, "evidences": [{"evidence": P, "evidence_label": "NOT_ENOUGH_INFO"}]},
            )
        },
        [(P, Q, "support"), (P, R, "neutral")],
    ),
    "begin": (
        {
            name: table(
                "\t",
                ("knowledge", "response", "begin_label"),
                (P, Q, "Fully attributable"),
                (P, R, "Not fully attributable"),
                (P, "That is nice to know.", "Generic"),
            )
            for name in (
                "wow/begin_dev_wow.tsv",
                "wow/begin_test_wow.tsv",
                "cmu-dog/begin_dev_cmu.tsv",
                "topicalchat/begin_dev_tc.tsv",
            )
        },
        4 * _JUDGED,
    ),
    "fever-symmetric": (
        {
            "symmetric_v0.2/fever_symmetric_dev.jsonl": lines(
                {"id": 1, "claim": Q, "evidence_sentence": P, "label": "SUPPORTS"},
                {"id": 2, "claim": R, "evidence_sentence": P, "label": "REFUTES"},
            )
        },
        _INFERRED,
    ),
    "factcheck-bench": (
        {
            "subtasks/subtask3_claim_evidence_stance.jsonl": lines(
                {"claim": Q, "evidence": P, "stance": "completely-support"},
                {"claim": R, "evidence": P, "stance": "irrelevant"},
            )
        },
        [(P, Q, "support"), (P, R, "neutral")],
    ),
    "summedits": (
        {
            f"data/summedits/summedits_{name}.json": json.dumps(
                [
                    {"id": "1", "doc": f"{P} {name}", "summary": Q, "label": 1}
                    | {"original_summary": Q}
                ]
            )
            for name in ("samsum", "sales_email", "scitldr", "sales_call")
        },
        [
            (f"{P} {name}", Q, "support")
            for name in ("samsum", "sales_email", "scitldr", "sales_call")
        ],
    ),
    "halueval-qa": (
        {
            "data/qa_data.json": lines(
                {
                    "knowledge": P,
                    "question": "Where is it?",
                    "right_answer": "by the river",
                    "hallucinated_answer": "by the sea",
                }
            )
        },
        [
            (P, "Where is it? by the river", "support"),
            (P, "Where is it? by the sea", "unsupported"),
        ],
    ),
    "xquad": (
        _xquad(),
        12
        * [
            (P, "Where is the mill? by the river", "support"),
            (P, "Where is the mill? there", "contradict"),  # its question begins alike
            (P, "What stands there? the old mill", "support"),
            (P, "What stands there? by the river", "contradict"),
            (P, "Where is it? there", "support"),
            (P, "Where is it? by the river", "contradict"),
        ],
    ),
}


def _checkout(folder: Path, name: str, files: Files) -> None:
    for path, content in files.items():
        place = folder / SOURCES[name].repository / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)


def _read(folder: Path, name: str) -> list[TrainingRow]:
    return read_sources(folder, [SOURCES[name]])


@pytest.mark.parametrize("name", FORMS)
def test_a_source_is_read_from_its_checkout(name: str, tmp_path: Path) -> None:
    files, expected = FORMS[name]
    _checkout(tmp_path, name, files)
    found = _read(tmp_path, name)
    assert [(row.passages, row.shown, row.label) for row in found] == expected
    assert {(row.source, row.weight) for row in found} == {(name, SOURCES[name].weight)}


def test_evidence_stands_among_other_sentences(tmp_path: Path) -> None:
    rows = [_fool_me_twice_row(str(at), "SUPPORTS" if at % 2 else "REFUTES") for at in range(12)]
    _checkout(
        tmp_path,
        "fool-me-twice",
        {"dataset/dev.jsonl": lines(*rows), "dataset/test.jsonl": lines()},
    )
    found = _read(tmp_path, "fool-me-twice")
    assert {row.label for row in found} == {"support", "contradict"}
    assert all(P in row.passages for row in found)
    assert any("Other sentence." in row.passages for row in found)


def test_a_page_is_cut_to_what_was_chosen_and_other_places(tmp_path: Path) -> None:
    rows = (_wice_row("supported", [[200]]), _wice_row("not_supported", []))
    _checkout(tmp_path, "wice", {"data/entailment_retrieval/claim/dev.jsonl": lines(*rows)})
    right, wrong = _read(tmp_path, "wice")
    assert (right.label, wrong.label) == ("support", "unsupported")
    assert P in right.passages
    assert 5 < len(wrong.passages.split(". ")) < 40


def test_every_source_has_a_test_a_licence_and_a_repository() -> None:
    assert {*FORMS, "wice", "fool-me-twice"} == set(SOURCES)
    for source in SOURCES.values():
        assert source.licence
        assert source.repository.count("/") == 1


def test_all_missing_checkouts_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / SOURCES["snli"].repository).mkdir(parents=True)
    with pytest.raises(ValueError, match="2 checkouts are missing") as error:
        read_sources(tmp_path, [SOURCES[name] for name in ("snli", "rte", "conjnli")])
    for name in ("rte", "conjnli"):
        repository = SOURCES[name].repository
        command = f"git clone --depth 1 https://github.com/{repository} {tmp_path / repository}"
        assert command in str(error.value)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"data/dev.jsonl": "{}\n", "data/test.jsonl": ""},
        {"data/dev.jsonl": "no JSON\n", "data/test.jsonl": ""},
        {"data/dev.jsonl": "", "data/test.jsonl": ""},
    ],
)
def test_a_checkout_of_another_form_is_refused(files: Files, tmp_path: Path) -> None:
    (tmp_path / SOURCES["control"].repository).mkdir(parents=True)
    _checkout(tmp_path, "control", files)
    with pytest.raises(ValueError, match="ConTRoL"):
        _read(tmp_path, "control")


def test_rows_that_teach_nothing_are_left_out(tmp_path: Path) -> None:
    odd = [("", Q), (P, "Too short."), (P, 200 * "long "), (700 * "word ", Q)]
    rows = [{"premise": p, "hypothesis": c, "label": "e"} for p, c in (*odd, (P, Q))]
    _checkout(tmp_path, "control", {"data/dev.jsonl": lines(*rows), "data/test.jsonl": ""})
    assert [row.shown for row in _read(tmp_path, "control")] == [Q]


# -- your own rows ---------------------------------------------------------------------------------


def test_own_lines_are_rows_with_labels_or_documents(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(
        lines(
            {"passages": [P, "More."], "claim": "By the river.", "label": "support"},
            {"passages": P, "claim": R, "label": "neutral", "question": "What?", "note": 1},
            {"passages": "A document."},
        )
    )
    own = read_own(path)
    assert own.rows == (
        TrainingRow(f"{P}\n\nMore.", "By the river.", "support", "own"),
        TrainingRow(P, R, "neutral", "own", "What?"),
    )
    assert own.documents == (f"{P}\n\nMore.", P, "A document.")


@pytest.mark.parametrize(
    "row",
    [
        {"passages": P, "claim": Q},
        {"passages": P, "label": "support"},
        {"passages": P, "claim": Q, "label": "yes"},
        {"claim": Q, "label": "support"},
        {"passages": [], "claim": Q, "label": "support"},
    ],
)
def test_an_incomplete_own_line_is_refused(row: Any, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(lines(row))
    with pytest.raises(ValueError, match="row 1"):
        read_own(path)


def test_written_rows_are_read_as_they_were(tmp_path: Path) -> None:
    rows = [
        TrainingRow(P, Q, "support", "own"),
        TrainingRow("„Ü\u2028“", R, "unsupported", "x", "Who?", 0.25),
    ]
    write_rows(tmp_path / "rows.jsonl.gz", rows)
    assert read_rows(tmp_path / "rows.jsonl.gz") == rows
