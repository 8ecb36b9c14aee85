"""Test the command line: what it reads, what it prints, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demur import (
    Claim,
    ClaimLabel,
    DemurError,
    Evaluation,
    Evidence,
    RefChecker,
    Span,
    Threshold,
    Usage,
    cli,
)
from demur.__main__ import main
from demur.errors import MissingExtraError
from demur.local import EVERY, JUDGE_FILES, Manifest, find_judge
from demur.schema import NLI_LABELS
from support.commands import flat
from support.fakes import scripted
from support.openai_server import openai_server
from support.spawned import Spawned

CHECKING = sys.modules["demur.cli.check"]  # `cli.check` is the command
FACT = "Paris is the capital of France."
USAGE = Usage(calls=3, cached=1, input_tokens=1234, output_tokens=56, seconds=2.04)


def _evaluation(**fields: Any) -> Evaluation:
    span = Span(start=0, end=len(FACT))
    quote = Evidence(context=0, span=span, text=FACT, label=ClaimLabel.ENTAILMENT)
    claims = (
        Claim(
            text="Paris is the capital of France",
            label=ClaimLabel.ENTAILMENT,
            probabilities=dict(zip(NLI_LABELS, (0.91, 0.06, 0.03), strict=True)),
            evidence=(quote,),
        ),
        Claim(text="Paris has 90 arrondissements", label=ClaimLabel.NEUTRAL),
        Claim(text="Paris is old", error="the reply had no label for it"),
    )
    return Evaluation(
        **{
            "name": "RefChecker",
            "score": 0.5,
            "label": "Neutral",
            "passed": False,
            "explanation": "1 of 2 claims is entailed.",
            "claims": claims,
            "usage": USAGE,
            **fields,
        }
    )


PASSED = _evaluation(score=1.0, label="Entailment", passed=True)
UNDETERMINED = _evaluation(score=None, label=None, passed=None, error="the model gave no labels")
NOTHING = _evaluation(score=None, label="Abstain", passed=None, claims=())

CHECK = ["check", "--question", "Q?", "--answer", "A.", "--reference", FACT]


@pytest.fixture
def judged(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Evaluation | BaseException], dict[str, Any]]:
    """Put a fixed result in the evaluator's place, and return what the evaluator was given."""

    def put(result: Evaluation | BaseException) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        def evaluate(model: str, options: dict[str, Any], sample: dict[str, Any]) -> Evaluation:
            seen.update(model=model, options=options, **sample)
            print("a library prints this")  # noqa: T201  # as some do
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(CHECKING, "_evaluate", evaluate)
        return seen

    return put


# -- exit codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evaluation", "code", "word"),
    [
        (PASSED, 0, "PASSED"),
        (_evaluation(), 1, "FAILED"),
        (UNDETERMINED, 2, "UNDETERMINED"),
        (NOTHING, 2, "NOTHING TO CHECK"),
        (_evaluation(passed=None), 2, "SCORED"),
    ],
)
def test_the_exit_code_is_the_verdict(
    judged: Any, capsys: Any, evaluation: Evaluation, code: int, word: str
) -> None:
    judged(evaluation)
    assert cli.run(CHECK) == code
    assert word in capsys.readouterr().out
    assert cli.run([*CHECK, "--json"]) == code
    assert Evaluation.model_validate_json(capsys.readouterr().out) == evaluation


def test_wrong_usage_ends_with_64_and_names_the_option(capsys: Any) -> None:
    for arguments, named in (
        ([], "Usage:"),
        (["models"], "Usage:"),
        (["chek"], "chek"),
        (["check", "--answer", "A."], "--reference"),
        (["check", "--reference", "R."], "--answer"),
        ([*CHECK, "--nonsense"], "--nonsense"),
        ([*CHECK, "--claims", "words"], "--claims"),
        ([*CHECK, "--threshold", "1.5"], "--threshold"),
        ([*CHECK, "--threshold", "nan"], "--threshold"),
        ([*CHECK, "--model", "gpt"], "--model"),
        ([*CHECK, "stray"], "stray"),
    ):
        assert cli.run(arguments) == 64
        out, err = capsys.readouterr()
        assert out == ""
        assert "Usage:" in err
        assert named in err


def test_an_argument_that_the_evaluator_refuses_is_wrong_usage(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_core.language_models import FakeListChatModel

    monkeypatch.setattr(CHECKING, "resolve_judge", lambda name: FakeListChatModel(responses=["x"]))
    assert cli.run([*CHECK, "--checker", "guess"]) == 64
    err = capsys.readouterr().err
    assert "guess" in err
    assert "For further information" not in err


def test_help_and_version_end_with_0(capsys: Any) -> None:
    for arguments in (["--help"], ["check", "--help"], ["--version"]):
        assert cli.run(arguments) == 0
        assert "demur" in capsys.readouterr().out


def test_a_model_that_cannot_be_had_is_undetermined(judged: Any, capsys: Any) -> None:
    judged(DemurError("The key is missing. Run: \x1b[31mthis"))
    assert cli.run([*CHECK, "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "The key is missing. Run: " in err
    assert "\x1b" not in err
    assert "Traceback" not in err


def test_a_fault_is_neither_a_pass_nor_a_fail_and_an_interrupt_is_none(
    judged: Any, capsys: Any
) -> None:
    judged(RuntimeError("boom"))
    assert cli.run(CHECK) == 70
    assert "boom" in capsys.readouterr().err
    judged(KeyboardInterrupt())
    assert cli.run(CHECK) == 130


# -- what it reads ---------------------------------------------------------------------------------


def test_options_reach_the_evaluator(judged: Any) -> None:
    seen = judged(PASSED)
    extra = "--model openai:m --checker joint --claims sentences --aggregation soft --threshold 0.7"
    cli.run([*CHECK, "--reference", "two", *extra.split()])
    assert seen == {
        "model": "openai:m",
        "options": {
            "checker": "joint",
            "claims": "sentences",
            "aggregation": "soft",
            "threshold": 0.7,
        },
        "question": "Q?",
        "answer": "A.",
        "contexts": [FACT, "two"],
    }
    cli.run(["check", "--answer", "A.", "--reference", FACT])
    assert (seen["model"], seen["options"], seen["question"]) == ("local", {}, None)


def _percentile(value: float, **fingerprints: str) -> Threshold:
    counts: dict[str, Any] = {"percentile": 10, "samples": 20, "passed": 18}
    return Threshold(
        on_abstain="pass", value=value, method="percentile", fingerprints=fingerprints, **counts
    )


def test_a_calibrated_threshold_decides_or_is_refused(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = scripted(
        '("Paris", "is", "old")\n("Paris", "is", "new")', joint="1. Entailment\n2. Neutral"
    )
    monkeypatch.setattr(CHECKING, "resolve_judge", lambda name: model)
    fingerprints = RefChecker(model, checker="joint").fingerprints
    at = tmp_path / "t.json"
    check = ["check", "--answer", "Paris is old and new.", "--reference", FACT]
    check += ["--checker", "joint"]
    soft = [*check, "--aggregation", "soft", "--threshold", str(at), "--json"]

    for value, code in ((0.5, 0), (0.51, 1)):
        _percentile(value, **fingerprints).save(at)
        assert cli.run(soft) == code
        found = Evaluation.model_validate_json(capsys.readouterr().out)
        assert (found.score, found.fingerprints) == (0.5, fingerprints)

    asked = len(model.requests)
    for arguments, said in (
        ([*soft, "--claims", "sentences"], "claims is sentences here and was triplets"),
        ([*check, "--threshold", str(at)], "choose aggregation='soft'"),
    ):
        assert cli.run(arguments) == 64
        out, err = capsys.readouterr()
        assert out == ""
        assert said in flat(err)
    assert len(model.requests) == asked


def test_files_stdin_and_escapes(
    judged: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a b.txt"
    file.write_bytes(b"\xef\xbb\xbfline\r\nsecond \xc3\xa9\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from stdin\n")))
    seen = judged(PASSED)
    references = ["--reference", f"@{file}", "--reference", "@@home"]
    code = cli.run(["check", "--answer", "-", *references, "--question", "a@b"])
    assert code == 0
    assert seen["answer"] == "from stdin\n"
    assert seen["contexts"] == ["line\r\nsecond é\n", "@home"]
    assert seen["question"] == "a@b"


def test_files_that_cannot_be_read_are_named(judged: Any, capsys: Any, tmp_path: Path) -> None:
    judged(PASSED)
    assert cli.run(["check", "--answer", "@-", "--reference", "-"]) == 64
    assert "standard input" in capsys.readouterr().err
    binary = tmp_path / "binary"
    binary.write_bytes(b"ok \xff\xfe")
    for name in ("missing.txt", str(tmp_path), str(binary), ""):
        assert cli.run(["check", "--answer", "A.", "--reference", f"@{name}"]) == 64
        err = re.sub(r"\s+", "", capsys.readouterr().err)
        assert name in err
        assert "--reference" in err


# -- what it prints --------------------------------------------------------------------------------


def test_json_is_the_evaluation_and_nothing_else(judged: Any, capsys: Any) -> None:
    odd = "bell \x07 csi \x9b31m override \u202e end 漢"
    evaluation = _evaluation(explanation=odd)
    judged(evaluation)
    cli.run([*CHECK, "--json"])
    out, err = capsys.readouterr()
    assert Evaluation.model_validate_json(out) == evaluation
    assert json.loads(out) == evaluation.model_dump(mode="json")
    assert out.count("\n") == 1
    assert not set("\x07\x9b\u202e") & set(out)
    assert "漢" in out
    assert "a library prints this" in err


def test_in_a_pipe_lines_are_whole_and_plain(judged: Any, capsys: Any, tmp_path: Path) -> None:
    judged(_evaluation())
    file = tmp_path / "facts.txt"
    file.write_text(FACT)
    cli.run(["check", "--answer", "A.", "--reference", f"@{file}"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines() == [
        "1. Entailment 91%: Paris is the capital of France",
        f"   reference 1 ({file}): “{FACT}”",
        "2. Neutral: Paris has 90 arrondissements",
        "3. no label: Paris is old",
        "   the reply had no label for it",
        "FAILED  Neutral, score 0.50, 1 of 2 claims is entailed.",
        "3 calls (1 more answered from a cache), 1,234 + 56 tokens, 2.0 s",
    ]


# -- models ----------------------------------------------------------------------------------------


def test_the_list_tells_files_hashes_sources_and_what_a_mirror_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path))
    (tmp_path / EVERY[1].file).touch()
    assert cli.run(["models", "list"]) == 0
    out = capsys.readouterr().out
    for manifest in EVERY:
        assert all(
            part in out for part in (manifest.file, manifest.sha256, manifest.mirror.package)
        )
    assert out.index("official source: https://huggingface.co/Qwen/") < out.index("mirror:")
    assert out.count("here: no; demur models pull") == len(EVERY) - 1
    for file in JUDGE_FILES:
        assert f"here: {find_judge(file).path}" in out
        assert f"sha256 {find_judge(file).sha256}" in out
    assert f"here: {tmp_path / EVERY[1].file}" in out
    assert "A file is used only if its sha256 is the one above" in out


def test_pull_prints_the_paths_and_reports_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def pull(progress: Callable[[str, int, int], None], *, manifest: Manifest) -> Path:
        for done in range(101):
            progress("registry", done * 1000, 100_000)
        return Path("models") / manifest.file

    monkeypatch.setattr("demur.local.pull", pull)
    monkeypatch.setattr("demur.local.prepare", lambda progress: Path("models") / "judge")
    assert cli.run(["models", "pull"]) == 0
    out, err = capsys.readouterr()
    files = [*(manifest.file for manifest in EVERY), "judge"]
    assert out.splitlines() == [str(Path("models") / file) for file in files]
    lines = err.splitlines()
    assert len(lines) == 11 * len(EVERY)
    assert f"{EVERY[0].file}, registry: 50 % of 100,000 bytes" in lines


def test_files_are_pulled_also_where_the_judge_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def prepare(progress: object) -> Path:
        raise MissingExtraError("gguf", "local", "the judge of the local model")

    monkeypatch.setattr("demur.local.pull", lambda progress, *, manifest: Path(manifest.file))
    monkeypatch.setattr("demur.local.prepare", prepare)
    assert cli.run(["models", "pull"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [manifest.file for manifest in EVERY]
    assert "was not made: the judge of the local model needs gguf" in " ".join(err.split())


# -- as a process ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.smoke
def test_check_from_end_to_end() -> None:
    replies = ['("Paris", "is the capital of", "France")', "1. Entailment"]
    command = ["check", "--question", "Capital?", "--answer", "-", "--reference", FACT, "--json"]
    with openai_server(replies) as server:
        env = {
            **os.environ,
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "key",
            "NO_PROXY": "*",
        }
        done = subprocess.run(
            [sys.executable, "-m", "demur", *command, "--model", "openai:good"],
            input=b"Paris is the capital.",
            capture_output=True,
            env=env,
        )
    assert done.returncode == 0, done.stderr.decode()
    evaluation = Evaluation.model_validate_json(done.stdout)
    assert evaluation.passed
    assert evaluation.usage.calls > 0
    assert evaluation.claims[0].triplet == ("Paris", "is the capital of", "France")
    assert evaluation.claims[0].evidence[0].text in FACT


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        *((name, 64, "pip install 'demur[cli]'") for name in ("typer", "rich")),
        ("demur.observe.log", 70, "Traceback"),
    ],
)
def test_without_its_packages_it_names_the_extra(
    module: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name in [*sys.modules]:
        if name.startswith("demur.cli"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    err = capsys.readouterr().err
    assert said in err
    assert ("Traceback" in err) == (code == 70)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
def test_a_closed_pipe_does_not_change_the_verdict(tmp_path: Path) -> None:
    code = """
        import os
        from demur.__main__ import main
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
        main()
    """
    command = ["check", "--answer", "Paris.", "--reference", FACT, "--model", "openai:none"]
    with openai_server(["No claims"]) as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key", "NO_PROXY": "*"}
        process = Spawned(textwrap.dedent(code), tmp_path, *command, **environment)
        assert process.end() == 2
    assert "Traceback" not in process.err
