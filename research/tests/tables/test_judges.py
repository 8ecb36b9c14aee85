"""Test demur's own judges on labelled claims: by hand, with scripted judges, and the small one."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches import LocalJudge, Small, made, row_of, says_its_support, sure, values
from demur.recording import Recording
from demur_research.bench import Bench, Result
from demur_research.commands import run
from demur_research.datasets.rows import LabelledRow, Reading
from demur_research.resampling import balanced_accuracy
from demur_research.tables import judges
from demur_research.tables.claims import Claimed, Judged


def rows(name: str | None, right: Sequence[object], wrong: Sequence[object]) -> list[LabelledRow]:
    return [
        sure(f"{name} {kind} {support}", support, kind == "right", name)
        for kind, supports in (("right", right), ("wrong", wrong))
        for support in supports
    ]


# Any limit that a judge may have is above 0.1 and not above 0.96.
ONE = rows("agg_one", right=[0.98, 0.97, 0.1], wrong=[0.96, 0.05, 0.02])
TWO = rows("agg_two", right=[0.03, 0.025], wrong=[0.015, 0.01])
OTHER = rows("other", right=[0.98], wrong=[0.01])


def make(table: str, path: Path, data: Sequence[LabelledRow], **options: str) -> Result:
    model = LocalJudge(script=says_its_support)
    found = made(table, path, model, {"aggrefact": data}, options=options)
    assert all(given["extra_body"] == {"lora": "ours"} for given in model.given)
    return found


def local(path: Path, data: Sequence[LabelledRow], **options: str) -> Result:
    return make("judges", path, data, judges="local", **options)


def test_each_set_has_figures_of_its_own_and_those_of_aggrefact_a_macro_mean(
    tmp_path: Path,
) -> None:
    path, data = tmp_path / "r.jsonl", [*ONE, *OTHER, *TWO]
    found = local(path, data)
    third = 100 / 3
    one = [8 / 9, 2 * third, 250 / 3, third, third]
    assert values(found, "agg_one, local") == pytest.approx(one)
    assert values(found, "agg_two, local") == pytest.approx([1, 50, 100, 0, 100])
    assert values(found, "other, local") == pytest.approx([1, 100, 100, 0, 0])
    # The limit that is best for both sets together is 0.025. In the first set, it lets two of three
    # wrong claims pass.
    macro = [17 / 18, 350 / 6, (2 * third + 100) / 2, third / 2, (third + 100) / 2]
    assert values(found, "AggreFact, macro, local") == pytest.approx(macro)
    judged = row_of(found, "AggreFact, macro, local")
    assert (judged.items, judged.undetermined, judged.floor) == (10, 0, False)
    of_two = row_of(found, "agg_two, local").spent
    assert of_two is not None
    assert of_two.calls == 1
    again = made("judges", path, None, {"aggrefact": data}, options={"judges": "local"})
    assert again == found


def test_the_floors_stand_beside_each_set_and_the_mean(tmp_path: Path) -> None:
    found = local(tmp_path / "r", [*ONE, *TWO])
    for of in ("agg_one", "agg_two", "AggreFact, macro"):
        assert values(found, f"{of}, everything passes") == [0.5, 50, 50, 100, 0]
        assert values(found, f"{of}, nothing passes") == [0.5, 50, 50, 0, 100]
        overlap = values(found, f"{of}, overlap with the reference")
        assert (overlap[1], *overlap[3:]) == (None, None, None)
        assert overlap[0] is not None
    assert [row.floor for row in found.rows] == [False, True, True, True] * 3


def test_other_sets_have_a_mean_of_all_and_a_single_set_has_none(tmp_path: Path) -> None:
    other = rows("more", right=[0.99], wrong=[0.98])
    found = local(tmp_path / "two", [*OTHER, *other])
    assert values(found, "all sets, macro, local") == pytest.approx([1, 75, 75, 50, 0])
    found = local(tmp_path / "one", rows(None, right=[0.99], wrong=[0.98]))
    assert [row.name for row in found.rows if not row.floor] == ["no set, local"]
    found = local(tmp_path / "chosen", [*ONE, *TWO, *OTHER], sets="agg_two, other")
    assert [row.name for row in found.rows if not row.floor] == [
        *("agg_two, local", "other, local", "all sets, macro, local")
    ]


def test_a_model_judges_by_log_probabilities_without_the_adapter(tmp_path: Path) -> None:
    model = LocalJudge(script=says_its_support)
    options = {"judge": "logprobs"}
    found = made("judges-limits", tmp_path / "r", model, {"aggrefact": ONE}, options=options)
    assert model.given
    assert not any("extra_body" in given for given in model.given)
    assert values(found, "0.50 (what RefChecker does)")[1] == pytest.approx(100 / 3)
    assert row_of(found, judges.AT_BEST).floor


def test_the_words_alone_pass_claims_from_the_limit_that_is_best_for_all_sets() -> None:
    def claim(key: str, text: str, supported: bool) -> Claimed:
        return Claimed(key, key, None, text, ("the old mill is red",), supported)

    sets = {
        "a": [claim("1", "the mill is red", True), claim("2", "the dog ran off", False)],
        "b": [claim("3", "the mill is old", True), claim("4", "red mill burnt down", False)],
    }
    passed = {of: [passes for _, passes in one] for of, one in judges.overlap_at_best(sets).items()}
    assert passed == {"a": [True, False], "b": [True, False]}


def test_what_cannot_be_decided_is_counted_and_not_scored(tmp_path: Path) -> None:
    data = [*ONE, *rows("agg_one", right=["unreadable"], wrong=[])]
    found = local(tmp_path / "r", data)
    assert values(found, "agg_one, local") == values(local(tmp_path / "all", ONE), "agg_one, local")
    judged = row_of(found, "agg_one, local")
    assert (judged.items, judged.undetermined) == (6, 1)


def test_a_mean_has_an_interval_and_none_where_a_set_lacks_a_kind(tmp_path: Path) -> None:
    many = [0.97 - at / 1000 for at in range(10)]
    few = [0.03 + at / 1000 for at in range(10)]
    sets = [rows(name, [*many, *few[:5]], [*few[5:], *many[:2]]) for name in ("agg_a", "agg_b")]
    macro = row_of(local(tmp_path / "r", [*sets[0], *sets[1]]), "AggreFact, macro, local")
    single = row_of(local(tmp_path / "r1", sets[0]), "agg_a, local")
    for mean, one in zip(macro.figures, single.figures, strict=True):
        assert mean is not None
        assert one is not None
        assert mean.value == pytest.approx(one.value)
        assert mean.low is not None
        assert mean.high is not None
        assert one.low is not None
        assert one.high is not None
        assert mean.low <= mean.value <= mean.high
        # Two sets say more than one.
        assert mean.high - mean.low < one.high - one.low
    lacking = [*ONE, *rows("agg_right", right=[0.98], wrong=[])]
    found = local(tmp_path / "r2", lacking)
    assert values(found, "agg_right, local") == [None, None, None, None, 0]
    assert values(found, "AggreFact, macro, local")[:4] == [None] * 4


@pytest.mark.parametrize(
    ("table", "option", "value", "told"),
    [
        (
            "judges",
            "judges",
            "large",
            "judges: expected one of small, local, logprobs, .* got 'large'",
        ),
        ("judges", "sets", "agg_on", "sets: expected one of agg_one, got 'agg_on'"),
        ("judges-limits", "judge", "small,local", "judge: expected one of .*'small,local'"),
    ],
)
def test_a_wrong_name_is_refused(
    tmp_path: Path, table: str, option: str, value: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        make(table, tmp_path / "r", ONE, **{option: value})


# -- Limits ----------------------------------------------------------------------------------------


def test_a_limit_is_held_against_the_recorded_probabilities(tmp_path: Path) -> None:
    path, data = tmp_path / "r.jsonl", [*ONE, *OTHER, *TWO]
    whole = local(path, data)
    sets, options = {"aggrefact": data}, {"judge": "local"}
    found = made("judges-limits", path, None, sets, options=options)
    third = 100 / 3
    assert values(found, "0.20") == pytest.approx([350 / 6, third / 2, (third + 100) / 2])
    assert values(found, "everything passes") == [50, 100, 0]
    assert values(found, "nothing passes") == [50, 0, 100]
    (shipped,) = [row for row in found.rows if row.name.endswith("(what RefChecker does)")]
    of_judge = row_of(whole, "AggreFact, macro, local")
    assert list(shipped.figures) == [of_judge.figures[at] for at in (1, 3, 4)]
    assert (shipped.items, shipped.undetermined) == (10, 0)


def test_a_higher_limit_lets_fewer_claims_pass(tmp_path: Path) -> None:
    data = rows(None, right=[0.11 + at / 20 for at in range(17)], wrong=[0.05, 0.4, 0.6, 0.9])
    found = [
        (float(row.name.split()[0]), [figure and figure.value for figure in row.figures])
        for row in make("judges-limits", tmp_path / "r", data, judge="local").rows
        if not row.floor
    ]
    limits = [limit for limit, _ in found]
    assert {0.2, 0.35, 0.5, 0.65, 0.8} <= {*limits}
    assert limits == sorted(limits)
    for limit, (_, wrong, right) in found:
        assert wrong == 25 * sum(support >= limit for support in (0.05, 0.4, 0.6, 0.9))
        fail = sum(0.11 + at / 20 < limit for at in range(17))
        assert right == pytest.approx(100 * fail / 17)


CLAIMS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.25, 0.5, 1.0]), st.booleans()), min_size=1, max_size=8
).filter(lambda of: len({right for _, right in of}) == 2)


@given(st.lists(CLAIMS, min_size=1, max_size=3))
def test_no_limit_is_better_than_the_best_and_none_above_it_as_good(
    sets: list[list[tuple[float, bool]]],
) -> None:
    def accuracy(limit: float) -> float:
        return float(
            np.mean(
                [
                    balanced_accuracy([of >= limit for of, _ in one], [right for _, right in one])
                    for one in sets
                ]
            )
        )

    claimed = [[(Claimed("", "", None, "", (), right), of) for of, right in one] for one in sets]
    best = judges.best_limit(claimed)
    for limit in (0.0, 0.2, 0.25, 0.5, 1.0, math.inf):
        assert accuracy(limit) <= accuracy(best) + 1e-9
        if limit > best:
            assert accuracy(limit) < accuracy(best)


# -- The choice of claims --------------------------------------------------------------------------


def test_both_kinds_take_turns_and_a_small_choice_is_part_of_a_larger_one() -> None:
    (every,) = judges.by_set(rows("a", [*range(10)], [*range(30)])).values()
    chosen = judges.choose(every, 20, seed=1)
    assert [one.supported for one in chosen].count(True) == 10
    assert judges.choose(every[::-1], 20, seed=1) == chosen
    assert judges.choose(every, 7, seed=1) == chosen[:7]
    assert judges.choose(every, 20, seed=2) != chosen
    for limit in (None, 40, 100):
        assert sorted(one.key for one in judges.choose(every, limit, 1)) == sorted(
            one.key for one in every
        )


# -- The small judge -------------------------------------------------------------------------------


def read(known: Sequence[float | None]) -> Judged:
    """Return what `Judge` says of a claim whose windows support it so; None is unreadable."""

    def support(window: str, claim: str) -> float | str:
        of_window = known[int(window.split()[1])]
        return "unreadable" if of_window is None else of_window

    texts = tuple(f"Window {at} of several." for at in range(len(known)))
    with pytest.MonkeyPatch.context() as at:
        small = Small(support).stands_in(at)
        bench = Bench(lambda name: Reading(()), Recording(Path("none"), writes=False))
        found = judges.Judge(bench, "small")(Claimed("", "", None, "It holds.", texts, True), {})
    assert len(small.asked) == len(known)  # no window is judged twice
    return found


@given(st.lists(st.sampled_from([0.0, 0.01, 0.45, 0.5, 0.55, 0.9, None]), min_size=1, max_size=4))
def test_the_support_is_that_of_the_best_window_and_the_verdict_is_refcheckers(
    known: list[float | None],
) -> None:
    readable = [support for support in known if support is not None]
    passes = any(support >= 0.5 for support in readable)
    found = read(known)
    if None in known and not passes:
        assert (found.score, found.passed) == (None, None)
    else:
        assert (found.score, found.passed) == (pytest.approx(max(readable)), passes)


LINES = [
    ("agg_a", "The mill was built in 1911.", True),
    ("agg_a", "The mill is made of brick.", 1),
    ("agg_a", "The mill was built in 1950.", False),
    ("agg_a", "The mill is made of glass.", 0),
    ("agg_b", "The mill was built in 1911.", True),
    ("agg_b", "The mill was built in 1950.", False),
]


def test_the_commands_measure_the_small_judge_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    passages = "The mill was built in 1911. It is made of brick."
    lines = [
        {"id": at, "set": of, "passages": passages, "claim": said, "supported": supported}
        for at, (of, said, supported) in enumerate(LINES)
    ]
    packed = gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    Path("eval.jsonl.gz").write_bytes(packed)

    def told(*arguments: str) -> dict[str, list[float]]:
        assert run([*arguments, "--data", "eval.jsonl.gz", "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        return {
            row["row"]: [one and one["value"] for one in row["figures"]] for row in found["rows"]
        }

    found = told("judges", "-O", "judges=small")
    for of in ("agg_a", "agg_b", "AggreFact, macro"):
        assert found[f"{of}, small"] == [1, 100, 100, 0, 0]
    assert told("judges-limits")["0.50 (what RefChecker does)"] == [100, 0, 0]
