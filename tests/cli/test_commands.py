"""Test the command line: what it reads, what it prints, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demur import (
    Claim,
    ClaimLabel,
    DemurError,
    Evaluation,
    Evidence,
    LocalModelError,
    RefChecker,
    Span,
    Threshold,
    Usage,
    cli,
)
from demur.local import EVERY, Manifest
from support.fakes import scripted
from support.openai_server import openai_server

FACT = "Paris is the capital of France."
USAGE = Usage(calls=3, cached=1, input_tokens=1234, output_tokens=56, seconds=2.04)


def _evaluation(**fields: Any) -> Evaluation:
    claims = (
        Claim(
            text="Paris is the capital of France",
            label=ClaimLabel.ENTAILMENT,
            probabilities={
                ClaimLabel.ENTAILMENT: 0.91,
                ClaimLabel.NEUTRAL: 0.06,
                ClaimLabel.CONTRADICTION: 0.03,
            },
            evidence=(
                Evidence(
                    context=0,
                    span=Span(start=0, end=len(FACT)),
                    text=FACT,
                    label=ClaimLabel.ENTAILMENT,
                ),
            ),
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
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Evaluation | Exception], dict[str, Any]]:
    """Put a fixed result in the evaluator's place, and return what the evaluator was given."""

    def put(result: Evaluation | Exception) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        def evaluate(model: str, options: dict[str, Any], sample: dict[str, Any]) -> Evaluation:
            seen.update(model=model, options=options, **sample)
            print("a library prints this")  # noqa: T201  # as some do
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(cli, "_evaluate", evaluate)
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
@pytest.mark.parametrize("as_json", [False, True])
def test_the_exit_code_is_the_verdict(
    judged: Any, capsys: Any, evaluation: Evaluation, code: int, word: str, as_json: bool
) -> None:
    judged(evaluation)
    assert cli.run([*CHECK, *(["--json"] if as_json else [])]) == code
    out = capsys.readouterr().out
    assert Evaluation.model_validate_json(out) == evaluation if as_json else word in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["models"],
        ["chek"],
        ["check"],
        ["check", "--answer", "A."],
        ["check", "--reference", "R."],
        [*CHECK, "--nonsense"],
        [*CHECK, "--claims", "words"],
        [*CHECK, "--aggregation", "mean"],
        [*CHECK, "--threshold", "much"],
        [*CHECK, "--threshold", "1.5"],
        [*CHECK, "--threshold", "nan"],
        [*CHECK, "--threshold", "."],
        [*CHECK, "--model", "gpt"],
        [*CHECK, "stray"],
        ["models", "push"],
    ],
)
def test_wrong_usage_ends_with_64_and_says_so_on_stderr(capsys: Any, arguments: list[str]) -> None:
    assert cli.run(arguments) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage:" in err


def test_wrong_usage_names_the_option(capsys: Any) -> None:
    cli.run([*CHECK, "--model", "gpt"])
    assert "--model" in capsys.readouterr().err
    cli.run(["check", "--answer", "A."])
    assert "--reference" in capsys.readouterr().err


def test_an_argument_that_the_evaluator_refuses_is_wrong_usage(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_core.language_models import FakeListChatModel

    monkeypatch.setattr(cli, "resolve_model", lambda name: FakeListChatModel(responses=["x"]))
    assert cli.run([*CHECK, "--checker", "guess"]) == 64
    err = capsys.readouterr().err
    assert "guess" in err
    assert "For further information" not in err


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["--version"]])
def test_help_and_version_end_with_0(capsys: Any, arguments: list[str]) -> None:
    assert cli.run(arguments) == 0
    assert "demur" in capsys.readouterr().out


@pytest.mark.parametrize(
    "error",
    [
        LocalModelError("No weights. Run: demur models pull"),
        DemurError("The key is missing. Run: \x1b[31mthis"),
    ],
)
def test_a_model_that_cannot_be_had_is_undetermined(
    judged: Any, capsys: Any, error: DemurError
) -> None:
    judged(error)
    assert cli.run([*CHECK, "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert str(error).partition("\x1b")[0] in err
    assert "\x1b" not in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_fault_is_neither_a_pass_nor_a_fail(judged: Any, capsys: Any) -> None:
    judged(RuntimeError("boom"))
    assert cli.run(CHECK) == 70
    assert "boom" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any) -> Evaluation:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_evaluate", interrupted)
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


def _percentile(value: float, **fingerprints: str) -> Threshold:
    counts: dict[str, Any] = {"percentile": 10, "samples": 20, "passed": 18}
    return Threshold(
        on_abstain="pass", value=value, method="percentile", fingerprints=fingerprints, **counts
    )


def test_a_threshold_may_be_a_file(judged: Any, tmp_path: Path) -> None:
    seen = judged(PASSED)
    threshold = _percentile(0.7, model="m")
    threshold.save(tmp_path / "t.json")
    assert cli.run([*CHECK, "--threshold", str(tmp_path / "t.json")]) == 0
    assert seen["options"] == {"threshold": threshold}


def test_a_calibrated_threshold_decides_or_is_refused(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = scripted(
        '("Paris", "is", "old")\n("Paris", "is", "new")', joint="1. Entailment\n2. Neutral"
    )
    monkeypatch.setattr(cli, "resolve_model", lambda name: model)
    fingerprints = RefChecker(model, checker="joint").fingerprints
    at = tmp_path / "t.json"
    check = [
        "check",
        "--answer",
        "Paris is old and new.",
        "--reference",
        FACT,
        "--checker",
        "joint",
    ]
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
        assert said in re.sub(r"[\s│]+", " ", err)
    assert len(model.requests) == asked


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot read"), (b"{}", "holds no threshold"), (b"\x1b[31m", "holds no threshold")],
)
def test_a_file_that_holds_no_threshold_is_wrong_usage(
    judged: Any, capsys: Any, tmp_path: Path, content: bytes | None, said: str
) -> None:
    judged(PASSED)
    at = tmp_path / "t.json"
    if content is not None:
        at.write_bytes(content)
    assert cli.run([*CHECK, "--threshold", str(at)]) == 64
    err = re.sub(r"[\s│]+", " ", capsys.readouterr().err)
    assert said in err
    assert "--threshold" in err
    assert "Expected a number, or a file that demur calibrate wrote" in err
    assert "\x1b" not in err


def test_what_is_not_given_is_left_to_the_evaluator(judged: Any) -> None:
    seen = judged(PASSED)
    cli.run(["check", "--answer", "A.", "--reference", FACT])
    assert seen["model"] == "local"
    assert seen["options"] == {}
    assert seen["question"] is None


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


@pytest.mark.parametrize("second", ["-", "@-"])
def test_stdin_is_read_once_only(judged: Any, capsys: Any, second: str) -> None:
    judged(PASSED)
    assert cli.run(["check", "--answer", "@-", "--reference", second]) == 64
    assert "standard input" in capsys.readouterr().err


def test_files_that_cannot_be_read_are_named(judged: Any, capsys: Any, tmp_path: Path) -> None:
    judged(PASSED)
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
    lines = out.splitlines()
    assert lines[0] == "1. Entailment 91%: Paris is the capital of France"
    assert lines[1] == f"   reference 1 ({file}): “{FACT}”"
    assert lines[2] == "2. Neutral: Paris has 90 arrondissements"
    assert lines[3] == "3. no label: Paris is old"
    assert lines[4] == "   the reply had no label for it"
    assert lines[5] == "FAILED  Neutral, score 0.50, 1 of 2 claims is entailed."
    assert lines[6] == "3 calls (1 more answered from a cache), 1,234 + 56 tokens, 2.0 s"


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
    assert cli.run(["models", "pull"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [str(Path("models") / manifest.file) for manifest in EVERY]
    lines = err.splitlines()
    assert len(lines) == 11 * len(EVERY)
    assert f"{EVERY[0].file}, registry: 50 % of 100,000 bytes" in lines


# -- as a process ----------------------------------------------------------------------------------

REPLIES = {
    "good": ['("Paris", "is the capital of", "France")', "1. Entailment"],
    "none": ["No claims"] * 2,
}


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Start a server that replies in turn what the model's name stands for."""
    with openai_server(lambda request, at: REPLIES[request["model"]][at]) as server:
        yield server.url


def _demur(*arguments: str, endpoint: str = "", stdin: bytes = b"", code: str = "") -> Any:
    env = {**os.environ, "OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": "key", "NO_PROXY": "*"}
    command = ["-c", code] if code else ["-m", "demur"]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        input=stdin,
        capture_output=True,
        env=env,
        timeout=60,
    )


@pytest.mark.slow
def test_check_from_end_to_end(endpoint: str) -> None:
    done = _demur(
        *("check", "--question", "Capital?", "--answer", "-", "--reference", FACT, "--json"),
        *("--model", "openai:good"),
        endpoint=endpoint,
        stdin=b"Paris is the capital.",
    )
    assert done.returncode == 0, done.stderr.decode()
    evaluation = Evaluation.model_validate_json(done.stdout)
    assert evaluation.passed
    assert evaluation.usage.calls > 0
    assert evaluation.claims[0].triplet == ("Paris", "is the capital of", "France")
    assert evaluation.claims[0].evidence[0].text in FACT


@pytest.mark.slow
def test_wrong_usage_as_a_process() -> None:
    done = _demur("check", "--answer")
    assert done.returncode == 64
    assert done.stdout == b""


@pytest.mark.slow
@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_packages_it_names_the_extra(package: str) -> None:
    code = f"import sys; sys.modules['{package}'] = None; import demur.__main__ as m; m.main()"
    done = _demur("check", code=code)
    assert done.returncode == 64
    assert b"pip install 'demur[cli]'" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_an_import_that_fails_is_a_fault() -> None:
    done = _demur(
        code="import sys; import demur.__main__ as m\n"
        "sys.modules['demur.views.terminal'] = None; m.main()"
    )
    assert done.returncode == 70


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
def test_a_closed_pipe_does_not_change_the_verdict(endpoint: str) -> None:
    env = {**os.environ, "OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": "key", "NO_PROXY": "*"}
    reading, writing = os.pipe()
    os.close(reading)
    command = ["check", "--answer", "Paris.", "--reference", FACT, "--model", "openai:none"]
    done = subprocess.run(
        [sys.executable, "-m", "demur", *command],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=env,
        timeout=60,
    )
    os.close(writing)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are others on Windows")
def test_an_interrupt_does_not_wait_for_the_replies() -> None:
    asked, answer = threading.Barrier(3), threading.Event()

    def script(request: dict[str, Any], number: int) -> str:
        if number == 0:
            return '("Paris", "is in", "France")\n("Paris", "has", "a river")'
        asked.wait(timeout=60)
        answer.wait()
        return "Entailment"

    with openai_server(script) as server:
        env = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k", "NO_PROXY": "*"}
        command = ["check", "--answer", "Paris is in France and has a river.", "--reference", FACT]
        command += ["--model", "openai:x", "--checker", "per_claim"]
        # A shell's background job, as in CI, would pass on that interrupts are ignored.
        listen = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
        running = subprocess.Popen(
            [sys.executable, "-m", "demur", *command], env=env, preexec_fn=listen
        )
        try:
            asked.wait(timeout=60)
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) == 130
        finally:
            running.kill()
            answer.set()
