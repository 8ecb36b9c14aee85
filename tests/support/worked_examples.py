"""Hold worked examples of the methods' papers: their facts in our words, and the right decisions.

RefChecker: ibuprofen (notes on arXiv 2405.14486) and "Andre Weiss" (its extraction prompt). FEWL:
watermelon seeds (arXiv 2402.10412, section 2 and D.2). Reverse Validation: tables 7 and 8 of Yang
et al. 2023, two answers that were wrongly rejected and two that were wrongly passed.
"""

from __future__ import annotations

from dataclasses import dataclass

from demur import ClaimLabel, Sample

# --- RefChecker ----------------------------------------------------------------------------------

IBUPROFEN = Sample(
    question="Which side effects does ibuprofen often have?",
    answer=(
        "Ibuprofen is a nonsteroidal anti-inflammatory drug (NSAID). It eases inflammation, pain "
        "and fever. Its common side effects are nausea, giddiness and trouble with breathing."
    ),
    reference=(
        "Headaches, dizziness and nausea are common side effects of ibuprofen. Trouble with "
        "breathing is not a common side effect of it."
    ),
)
IBUPROFEN_LABELS = {
    '("Ibuprofen", "is", "nonsteroidal anti-inflammatory drug (NSAID)")': ClaimLabel.NEUTRAL,
    '("Ibuprofen", "eases", "inflammation")': ClaimLabel.NEUTRAL,
    '("Ibuprofen", "eases", "pain")': ClaimLabel.NEUTRAL,
    '("Ibuprofen", "eases", "fever")': ClaimLabel.NEUTRAL,
    '("Ibuprofen", "has common side effect", "nausea")': ClaimLabel.ENTAILMENT,
    '("Ibuprofen", "has common side effect", "giddiness")': ClaimLabel.NEUTRAL,
    '("Ibuprofen", "has common side effect", "trouble with breathing")': ClaimLabel.CONTRADICTION,
}
"""The labels that the source gives to the claims."""

WEISS = Sample(
    question="For how many years did Andre Weiss teach at the University of Dijon?",
    answer="11 years",
    reference="Andre Weiss taught at the University of Dijon for eleven years.",
)

# --- FEWL ----------------------------------------------------------------------------------------

SEEDS = "What happens when you eat watermelon seeds?"
SEEDS_PAIRS = {
    "Watermelon seeds grow inside you.": "No plant comes of watermelon seeds in your body.",
    "Watermelon seeds poison you.": "There is no poison in watermelon seeds to fear.",
    "Watermelon seeds give you stomach ulcers.": "Stomach ulcers do not come of watermelon seeds.",
}
"""The wrong answers with their corrections."""
SEEDS_RIGHT = "Nothing happens: watermelon seeds pass through you."
SEEDS_WRONG = "You fall ill, since watermelon seeds are toxic."

# --- Reverse Validation --------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Describe an answer about an entity, and how its validation went in the paper."""

    entity: str
    passage: str
    requirements: tuple[str, ...]
    """The requirements that stage 1 makes of the passage."""
    named: str
    """The entity that stage 2 names, with 100% of the requirements met."""


MAXIMILIAN = Case(
    "Maximilian II Emanuel",
    "Maximilian II Emanuel was an elector of Bavaria of the house of Wittelsbach, who also "
    "governed the Spanish Netherlands.",
    ("An elector of Bavaria", "Of the house of Wittelsbach", "Governed the Spanish Netherlands"),
    "Max Emanuel, Elector of Bavaria",
)
JORDAN = Case(
    "History of Jordan",
    "The history of Jordan reaches from the Nabataeans of Petra to the emirate of 1921 and the "
    "kingdom of 1946.",
    ("The Nabataeans of Petra", "An emirate in 1921", "A kingdom in 1946"),
    "Jordan",
)
HOCKEY = Case(
    "National Hockey League",
    "The National Hockey League is a professional ice hockey league of 31 teams in North America: "
    "24 in the United States and 7 in Canada.",
    ("Professional ice hockey league in North America", "Has 31 teams", "24 of them in the US"),
    "National Hockey League",
)
"""An outdated answer: a team joined in 2021."""
LACRIMOSA = Case(
    "Lacrimosa",
    "The band Lacrimosa has released 13 studio albums, and is known for dramatic performances.",
    ("A band", "Has released 13 studio albums", "Known for dramatic performances"),
    "Lacrimosa",
)
"""An outdated answer: an album came out in 2021."""
