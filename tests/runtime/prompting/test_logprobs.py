import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.runtime import UndeterminedError
from demur.runtime.prompting import label_shares
from demur.schema import NLI_LABELS, ClaimLabel

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION


def test_each_label_has_the_mass_of_all_tokens_that_begin_its_word() -> None:
    tokens = {"Ent": 0.3, " ENTAIL": 0.1, '"Neutral': 0.2, "Con": 0.05, "Contra": 0.05, "The": 0.01}
    found = label_shares({token: math.log(share) for token, share in tokens.items()})
    assert found == pytest.approx({E: 4 / 7, N: 2 / 7, C: 1 / 7})


def test_a_label_that_is_not_among_the_tokens_has_the_lowest_of_theirs() -> None:
    found = label_shares({token: math.log(p) for token, p in (("Neutral", 0.8), ("The", 0.1))})
    assert found == pytest.approx({E: 0.1, N: 0.8, C: 0.1})


@pytest.mark.parametrize("token", ["E", "N", "entailments", "Neutron", "", " ", "Contrast", "x"])
def test_tokens_that_begin_no_label_or_too_little_of_one_do_not_count(token: str) -> None:
    with pytest.raises(UndeterminedError, match="none of the labels"):
        label_shares({token: -0.1})


@pytest.mark.parametrize("nothing", [None, {}])
def test_an_endpoint_without_logprobs_is_told_with_the_way_out(nothing: dict[str, float]) -> None:
    with pytest.raises(UndeterminedError, match="checker='joint' or 'per_claim'"):
        label_shares(nothing)


@given(st.dictionaries(st.sampled_from(["Ent", "Neutral", "Con", "The", "N"]), st.floats(-1e4, 0)))
def test_the_probabilities_sum_to_one_whatever_the_tokens(tokens: dict[str, float]) -> None:
    try:
        found = label_shares(tokens)
    except UndeterminedError:
        likely = {token for token, logprob in tokens.items() if logprob > -700}
        assert not likely & {"Ent", "Neutral", "Con"}
    else:
        assert set(found) == set(NLI_LABELS)
        assert all(0 <= share <= 1 for share in found.values())
        assert sum(found.values()) == pytest.approx(1)
