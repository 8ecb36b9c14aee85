import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur._undetermined import UndeterminedError
from demur.prompting import label_logprobs, mean_bias, probabilities
from demur.schema import ClaimLabel

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION

LOGPROB = st.floats(-60, 0)
BY_LABEL = st.fixed_dictionaries(dict.fromkeys(ClaimLabel, LOGPROB))


def test_each_label_has_the_mass_of_all_tokens_that_begin_its_word() -> None:
    tokens = {"Ent": 0.3, " ENTAIL": 0.1, '"Neutral': 0.2, "Con": 0.05, "Contra": 0.05, "The": 0.01}
    found = label_logprobs({token: math.log(share) for token, share in tokens.items()})
    assert found == pytest.approx({E: math.log(0.4), N: math.log(0.2), C: math.log(0.1)})


def test_a_label_that_is_not_among_the_tokens_has_the_lowest_of_theirs() -> None:
    found = label_logprobs({"Neutral": -0.1, "I": -3.0, "The": -5.0})
    assert found == pytest.approx({E: -5.0, N: -0.1, C: -5.0})


@pytest.mark.parametrize("token", ["E", "N", "entailments", "Neutron", "", " ", "Contrast", "x"])
def test_tokens_that_begin_no_label_or_too_little_of_one_do_not_count(token: str) -> None:
    with pytest.raises(UndeterminedError, match="none of the labels"):
        label_logprobs({token: -0.1})


@pytest.mark.parametrize("nothing", [None, {}])
def test_an_endpoint_without_logprobs_is_told_with_the_way_out(nothing: dict[str, float]) -> None:
    with pytest.raises(UndeterminedError, match="checker='joint' or 'per_claim'"):
        label_logprobs(nothing)


@given(st.dictionaries(st.sampled_from(["Ent", "Neutral", "Con", "The", "N"]), st.floats(-1e4, 0)))
def test_log_probabilities_are_finite_whatever_the_tokens(tokens: dict[str, float]) -> None:
    try:
        found = label_logprobs(tokens)
    except UndeterminedError:
        likely = {token for token, logprob in tokens.items() if logprob > -700}
        assert not likely & {"Ent", "Neutral", "Con"}
    else:
        assert set(found) == set(ClaimLabel)
        assert all(-70 < value <= math.log(len(tokens)) for value in found.values())


def test_the_bias_is_the_mean_by_label_less_the_mean_of_all() -> None:
    measured = [{E: -1.0, N: -2.0, C: -3.0}, {E: -3.0, N: -2.0, C: -7.0}]
    assert mean_bias(measured) == pytest.approx({E: 1.0, N: 1.0, C: -2.0})


@given(st.lists(BY_LABEL, min_size=1, max_size=4))
def test_biases_sum_to_nothing(measured: list[dict[ClaimLabel, float]]) -> None:
    assert sum(mean_bias(measured).values()) == pytest.approx(0, abs=1e-9)


def test_probabilities_are_the_softmax() -> None:
    shares = probabilities({E: math.log(6), N: math.log(3), C: 0.0})
    assert shares == pytest.approx({E: 0.6, N: 0.3, C: 0.1})


@given(st.fixed_dictionaries({label: st.floats(-1e6, 1e6) for label in ClaimLabel}))
def test_probabilities_sum_to_one_in_the_order_of_the_logprobs(
    logprobs: dict[ClaimLabel, float],
) -> None:
    shares = probabilities(logprobs)
    assert sum(shares.values()) == pytest.approx(1)
    for one in ClaimLabel:
        assert all(shares[one] >= shares[o] for o in ClaimLabel if logprobs[one] >= logprobs[o])
