"""Test what follows for figures that stand in no reference, and are worked out from its figures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur import ClaimLabel, RefChecker, Sample
from demur.evaluators.refchecker.calculations import WorkedOut, worked_out
from demur.evaluators.refchecker.exact_strings import missing_strings
from support.fakes import ScriptedModel, deciding

OFFICES = "The office in Leeds has 12 employees and the office in York has 17 employees."
TEAMS = "Leeds has 12 employees, York has 17 employees and Hull has 31 employees."
VANS = """| Depot | Vans |
|---|---|
| Leeds | 14 |
| York | 9 |
| Hull | 18 |"""
STALLS = "The fair\n\n- cake stall: £128\n- raffle: £75\n- car wash: £94"
LICENCE = "A licence for the editor costs $149 a year. Support is free."
ANSWERED = "Of the 360 people who answered, 252 would book again."
HALVES = "Of the 360 people who answered, 180 would book again."
JACKET = "The jacket costs €80. The code RAINY takes 15% off the price of the jacket."
INCLUDED = "The net total of the invoice is £1,250. VAT is 20% of the net total of the invoice."
ROOM = "A room costs €86 a night."
TALK = "The talk lasts 60 minutes and the quiz lasts 30 minutes."
FINAL = "61,204 people came to the final."
NIGHT = "The night shift begins at 22:00 and ends at 6:00."
REVENUE = "Revenue rose from $240 million in 2022 to $276 million in 2023."
GAMES = "Games\n\n- against Ropley: 78 points\n- against Hay: 91 points\n- against Tarn: 98 points"
TRAIN = "The train leaves Ashdene at 9:20 and arrives in Callow at 11:05."
TRIAL = "The field test of the probe begins on 12 May 2025 and ends on 23 June 2025."
BRIDGE = "The bridge was built in 1928 and widened in 1964."
RENT = "The rent of the shop is £1,120 a month."
INVOICE = """| Article | Count | Price |
|---|---|---|
| chair | 4 | $189.00 |
| desk | 2 | $312.50 |
| lamp | 6 | $24.90 |"""
BUERO = "Das Büro in Köln hat 12 Angestellte und das Büro in Bonn hat 17 Angestellte."
BUREAU = "Le bureau de Lyon a 12 employés et le bureau de Nantes a 17 employés."
OFICINA = "La oficina de Lugo tiene 12 empleados y la oficina de Vigo tiene 17 empleados."
MISE = "東京の店の社員は12人、大阪の店の社員は17人です。"

Case = tuple[str, str, str, str | None, float, str]
"""A reference, a claim, the figure that follows, one that is contradicted (None: not surely), and
the value and the operands of the calculation."""

CASES: Sequence[Case] = [
    # -- A sum
    (OFFICES, "The two offices have {} employees together.", "29", "31", 29, "12; 17"),
    (OFFICES, "The offices in York and Leeds have {} employees in all.", "29", "28", 29, "12; 17"),
    (TEAMS, "The three teams have {} employees together.", "60", None, 60, "12; 17; 31"),
    (VANS, "The depots have {} vans in total.", "41", "42", 41, "14; 9; 18"),
    (VANS, "The depots in Leeds and York have {} vans in total.", "23", None, 23, "14; 9"),
    (STALLS, "The fair made {} in total.", "£297", "£287", 297, "£128; £75; £94"),
    (TALK, "The talk and quiz last {} in all.", "1 hour and 30 minutes", "100 minutes", 5400,
     "60 minutes; 30 minutes"),
    # -- A difference
    (OFFICES, "York has {} more employees than Leeds.", "5", "6", 5, "17; 12"),
    (STALLS, "The cake stall made {} more than the car wash.", "£34", "£43", 34, "£128; £94"),
    (REVENUE, "Revenue rose by {}.", "$36 million", "$46 million", 36_000_000,
     "$276 million; $240 million"),
    # -- A product
    (LICENCE, "Five licences cost {} a year.", "$745", "$755", 745, "$149"),
    (ROOM, "A room costs {} for five nights.", "€430", "€470", 430, "€86"),
    (RENT, "The rent for a year comes to {}.", "£13,440", "£12,320", 13_440, "£1,120"),
    (INVOICE, "The invoice comes to {} in total.", "$1,530.40", None, 1530.4,
     "$189.00; $312.50; $24.90"),
    # -- Percent
    (ANSWERED, "{} of those who answered would book again.", "70%", None, 70, "252; 360"),
    (ANSWERED, "{} of those who answered would not book again.", "30 %", None, 30, "252; 360"),
    (HALVES, "{} of the people would book again.", "Half", None, 50, "180; 360"),
    (JACKET, "With the code, the jacket costs {}.", "€68", None, 68, "15%; €80"),
    (JACKET, "The code saves {} on the jacket.", "€12", None, 12, "15%; €80"),
    (INCLUDED, "With VAT, the invoice is {}.", "£1,500", None, 1500, "20%; £1,250"),
    (REVENUE, "Revenue grew by {} from 2022 to 2023.", "15%", "13%", 15,
     "$240 million; $276 million"),
    ("The recall of alder is 0.47 of the pages.", "Alder finds {} of the pages.", "47%", "45%", 47,
     "0.47"),
    ("Alder finds 47% of the pages, its recall.", "The recall of alder is {}.", "0.47", "0.49",
     0.47, "47%"),
    # -- A mean, a rounding
    (GAMES, "The team averaged {} points in these games.", "89", "87", 89, "78; 91; 98"),
    (OFFICES, "On average, the offices have {} employees.", "14.5", None, 14.5, "12; 17"),
    (FINAL, "About {} people came to the final.", "61,000", None, 61_000, "61,204"),
    # -- Time
    (TRAIN, "The train takes {}.", "1 hour and 45 minutes", "2 hours and 45 minutes", 6300,
     "9:20; 11:05"),
    (TRAIN, "The train takes {}.", "105 minutes", "115 minutes", 6300, "9:20; 11:05"),
    (NIGHT, "The night shift lasts {}.", "8 hours", "9 hours", 8 * 3600, "22:00; 6:00"),
    (TRIAL, "The field test takes {}.", "6 weeks", "8 weeks", 42 * 86400,
     "12 May 2025; 23 June 2025"),
    (TRIAL, "The field test takes {}.", "42 days", "52 days", 42 * 86400,
     "12 May 2025; 23 June 2025"),
    (BRIDGE, "The bridge was widened {} after it was built.", "36 years", "46 years", 36 * 12,
     "1928; 1964"),
    # -- Units
    ("The parcel weighs 3.2 kg.", "The parcel weighs {}.", "3,200 g", None, 3200, "3.2 kg"),
    ("The guarantee runs for two years.", "The guarantee runs for {}.", "24 months", None, 24,
     "two years"),
    # -- Other languages
    (BUERO, "Köln und Bonn haben zusammen {} Angestellte.", "29", "31", 29, "12; 17"),
    (BUERO, "Bonn hat {} Angestellte mehr als Köln.", "5", "6", 5, "17; 12"),
    ("Die Miete beträgt 1.120 € im Monat.", "Die Miete für ein Jahr beträgt {}.", "13.440 €",
     "12.320 €", 13_440, "1.120 €"),
    ("Der Zug fährt um 9:20 Uhr ab und kommt um 11:05 Uhr an.", "Der Zug braucht {}.",
     "1 Stunde und 45 Minuten", "2 Stunden und 45 Minuten", 6300, "9:20; 11:05"),
    ("Von 240 Antworten lauten 84 zufrieden.", "{} der Antworten lauten zufrieden.", "35 %", None,
     35, "84; 240"),
    (BUREAU, "Les bureaux de Lyon et Nantes ont {} employés au total.", "29", "31", 29, "12; 17"),
    ("Le car part à 7 h 50 et arrive à 10 h 25.", "Le car met {}.", "2 heures et 35 minutes",
     "3 heures et 35 minutes", 9300, "7 h 50; 10 h 25"),
    ("Le car pour Lyon part à 7 h 50 et arrive à 10 h 25.", "Le trajet de Lyon dure {}.", "2 h 35",
     None, 9300, "7 h 50; 10 h 25"),
    (OFICINA, "Las oficinas de Lugo y Vigo suman {} empleados.", "29", "31", 29, "12; 17"),
    ("La población de la villa subió de 4.000 en 2012 a 4.600 en 2022.",
     "La población subió un {} entre 2012 y 2022.", "15 %", "13 %", 15, "4.000; 4.600"),
    (MISE, "東京と大阪の店の社員は合わせて{}人です。", "29", "31", 29, "12; 17"),
    ("本は1,200円、地図は1,800円です。", "本と地図は合わせて{}です。", "3,000円", "3,100円", 3000,
     "1,200円; 1,800円"),
    ("この橋は1928年に架けられ、1964年に拡幅されました。",
     "橋は、架けられてから{}後に拡幅されました。", "36年", "46年", 36 * 12, "1928; 1964"),
]  # fmt: skip


def found(claim: str, *contexts: str, **fields: str | None) -> tuple[WorkedOut, ...]:
    return worked_out(claim, claim, Sample(answer=claim, contexts=contexts, **fields))


def about(figure: str, claim: str, *contexts: str, **fields: str | None) -> WorkedOut:
    """Return what is found about one figure of a claim."""
    every = found(claim, *contexts, **fields)
    (one,) = (one for one in every if claim[one.start : one.end].strip() == figure)
    return one


def split(operands: str) -> list[str]:
    return sorted(operands.split("; "))


def value_and_operands(one: WorkedOut, claim: str) -> tuple[float, list[str]]:
    quoted = one.calculation(claim).operands
    return float(abs(one.meant[0].value)), sorted(evidence.text for evidence in quoted)


# -- Right and wrong figures -----------------------------------------------------------------------


@pytest.mark.parametrize(("reference", "claim", "right", "wrong", "value", "operands"), CASES)
def test_a_right_figure_follows_and_a_wrong_one_is_contradicted_by_the_same_calculation(
    reference: str, claim: str, right: str, wrong: str | None, value: float, operands: str
) -> None:
    said = claim.format(right)
    one = about(right, said, reference)
    assert one.follows is True
    assert len(one.lines) == 1
    figure_given = pytest.approx(value, rel=0.01)  # the figure itself may be rounded
    assert value_and_operands(one, said) == (figure_given, split(operands))
    if wrong is not None:
        said = claim.format(wrong)
        one = about(wrong, said, reference)
        assert one.follows is False
        assert value_and_operands(one, said) == (figure_given, split(operands))


@pytest.mark.parametrize(
    ("claim", "follows"),
    [("The licences cost $745 a year.", True), ("The licences cost $735 a year.", False)],
)
def test_a_count_may_stand_in_the_question(claim: str, follows: bool) -> None:
    (one,) = found(claim, LICENCE, question="What do 5 licences cost?")
    assert one.follows is follows
    assert one.meant[0].value == 745


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        # A bound or an estimate is true of other figures too.
        ("The offices in Leeds and York have about 30 employees in total.", OFFICES),
        ("The offices in Leeds and York have nearly 30 employees in total.", OFFICES),
        ("The offices in Leeds and York have over 25 employees in total.", OFFICES),
        ("The offices in Leeds and York have fewer than 40 employees in total.", OFFICES),
        ("The offices in Leeds and York have up to 40 employees in total.", OFFICES),
        ("The offices in Leeds and York have no fewer than 20 employees in total.", OFFICES),
        ("The offices in Leeds and York have between 25 and 35 employees in total.", OFFICES),
        ("The offices in Leeds and York have 25 to 35 employees in total.", OFFICES),
        ("The offices in Leeds and York have ~30 employees in total.", OFFICES),
        ("The offices in Leeds and York have >20 employees in total.", OFFICES),
        ("The offices in Leeds and York have 25+ employees in total.", OFFICES),
        ("The offices in Leeds and York do not have 31 employees in total.", OFFICES),
        ("York has at least 3 more employees than Leeds.", OFFICES),
        ("Köln und Bonn haben zusammen knapp 30 Angestellte.", BUERO),
        ("Köln und Bonn haben zusammen weniger als 40 Angestellte.", BUERO),
        ("Köln und Bonn haben zusammen höchstens 40 Angestellte.", BUERO),
        ("The train takes more than 1 hour.", TRAIN),
        ("The chairman was in office for more than 4 years.",
         "The chairman was in office from 2001 to 2006."),
        # Years and days may be counted in two ways.
        ("Anna Berg died at the age of 69 years.", "Anna Berg was born in 1950 and died in 2020."),
        ("The festival in Lund lasts 3 days.",
         "The festival in Lund is from 3 May 2025 to 5 May 2025."),
        # Another thing.
        ("York hired 3 more employees.", OFFICES),
        # The last ones hold.
        ("The train takes less than 2 hours.", TRAIN),
        ("The parcel weighs more than 3,000 g.", "The parcel weighs 3.2 kg."),
        ("Cut off 200 g of the cheese.", "The cheese weighs 3.2 kg."),
        ("The box of the parcel weighs 200 g.", "The parcel weighs 3.2 kg."),
        ("With the code for students, the jacket costs €60.", JACKET),
    ],
)  # fmt: skip
def test_a_figure_that_may_be_right_is_not_contradicted(claim: str, reference: str) -> None:
    model = ScriptedModel(script=lambda stage, messages: deciding(ClaimLabel.ENTAILMENT))
    judge = RefChecker(model, checker="per_claim", claims="sentences")
    (judged,) = judge.invoke({"answer": claim, "contexts": [reference]}).claims
    assert judged.label is not ClaimLabel.CONTRADICTION
    assert all(one.follows for one in judged.calculations)


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("About 65,000 people came to the final.", FINAL),
        (
            "About 62,000 people came to the final.",
            FINAL,
        ),
        ("More than 70,000 people came to the final.", FINAL),
    ],
)
def test_a_wrong_estimate_or_direction_does_not_follow(claim: str, reference: str) -> None:
    assert not any(one.follows for one in found(claim, reference))


def test_a_claim_whose_figures_all_stand_has_nothing_to_work_out() -> None:
    for claim in (
        "The office in Leeds has 12 employees.",
        "York has 17 and Leeds twelve employees.",
        "The code takes 15 percent off, and the jacket costs 80 €.",
        "On 12 May 2025, it was 1928 and 9:20.",
        "Leeds is a town.",
    ):
        assert found(claim, OFFICES, JACKET) == ()
    assert found("They have 29 employees.", OFFICES, question="Are they 29?") == ()
    assert found("They have 29 employees together.", "Nothing is said.") == ()


@pytest.mark.parametrize(
    ("claim", "reference", "string"),
    [
        ("With the code, the jacket costs €65.30.", JACKET, "65.30"),
        ("The cellar in Leeds has 4,444 bottles.", OFFICES, "4,444"),
    ],
)
def test_a_figure_of_which_nothing_is_known_is_a_missing_string_as_before(
    claim: str, reference: str, string: str
) -> None:
    (one,) = found(claim, reference)
    assert one.follows is None
    assert one.meant
    assert [missed.string for missed in missing_strings(claim, [reference])] == [string]
    explained = [(one.start, one.end)]
    assert missing_strings(claim, [reference], explained) == ()


def test_a_time_that_stands_there_is_neither_sought_as_a_time_of_day_nor_as_a_duration() -> None:
    train = "Le premier car part à 7 h 50 et arrive à 10 h 25. Le trajet dure 2 h 35."
    assert found("Le car arrive à 10 h 25.", train) == ()
    assert found("Le trajet dure 2 h 35.", train) == ()
    (one,) = found("Le trajet dure 3 h 35.", "Le car part à 7 h 50 et arrive à 10 h 25.")
    assert not one.follows


def test_a_share_is_another_one_where_nothing_else_is_near() -> None:
    (one,) = found("80 % of those who answered would book again.", ANSWERED)
    assert (one.follows, one.lines[0]) == (False, "252 of 360 is 70 %")


# -- Accident --------------------------------------------------------------------------------------


def table(staff: Mapping[str, int]) -> str:
    rows = [f"| {town} | {count} |" for town, count in staff.items()]
    return "\n".join(["| Office | Employees |", "|---|---|", *rows])


def sentences(staff: Mapping[str, int]) -> str:
    return " ".join(f"The office in {town} has {n} employees." for town, n in staff.items())


@pytest.mark.parametrize("form", [table, sentences])
@pytest.mark.parametrize(("low", "high"), [(10, 24), (50, 240)])
@given(drawn=st.data())
@settings(max_examples=10)
def test_of_all_figures_only_the_right_sum_follows(
    form: Callable[[Mapping[str, int]], str], low: int, high: int, drawn: st.DataObject
) -> None:
    """Some of the counts give most of the figures that are near."""
    towns = ["Leeds", "York", "Hull", "Bath"]
    counts = drawn.draw(st.lists(st.integers(low, high), min_size=4, max_size=4, unique=True))
    staff = dict(zip(towns, counts, strict=True))
    some = [sum(of) for size in (2, 3, 4) for of in itertools.combinations(counts, size)]
    others = drawn.draw(st.lists(st.integers(10, 999), max_size=10))
    follow = set()
    for figure in {*some, *others} - {*counts}:
        claim = f"Together the offices have {figure} employees."
        follow |= {figure for one in found(claim, form(staff)) if one.follows}
    assert follow == {sum(counts)} - {*counts}


# -- Places ----------------------------------------------------------------------------------------


def test_operands_stand_where_they_are_said_to_stand() -> None:
    contexts = [f"Nothing.\n\n{OFFICES}", f"Über {VANS}\n\nEnd.", f"Etwa\u202f🙂.\n\n{STALLS}"]
    reference = "Last year, the shop in Bath had 40 employees, and the one in Hull 23 employees."
    sample = Sample(answer="-", contexts=contexts, reference=reference)
    texts = {None: reference, **dict(enumerate(contexts))}
    places: list[int | None] = []
    for claim in (
        "The offices in Leeds and York have 29 employees in total.",
        "The depots have 41 vans in total.",
        "The fair made £297 in total.",
        "The shops in Bath and Hull had 63 employees in total.",
        "The offices in Leeds and York have 28 employees in total.",
        "The depots have 47 vans.",
    ):
        for one in worked_out(claim, claim, sample):
            assert one.lines == [working.text for working in one.meant]
            label = ClaimLabel.ENTAILMENT if one.follows else ClaimLabel.CONTRADICTION
            for quote in (*one.calculation(claim).operands, *one.quotes(label)):
                text = texts[quote.context]
                assert text[quote.span.start : quote.span.end] == quote.text
                assert quote.label is label
                places.append(quote.context)
    assert {*places} == {None, 0, 1, 2}


@pytest.mark.parametrize("operation", ["in total", "on average", "more"])
def test_a_figure_of_every_length_is_no_error(operation: str) -> None:
    """REPORTED: decimal.InvalidOperation."""
    nines = "9" * 20
    for number in (nines, f"{nines} trillion", "0", "0.0000000000000001"):
        for other in ("12", "0.00000000000000001", "12%", "12 km", "$12"):
            claim = f"The towns have {other} people {operation}."
            found(claim, f"The towns have {number} people and {number} people.")


PIECES = st.lists(
    st.sampled_from(
        [OFFICES, VANS, STALLS, TRAIN, RENT, ANSWERED, BRIDGE, "in total", "on average", "more",
         "29 ", "€0.5 ", "70% ", "0 km ", "| 5 | - |\n", "3 h ", "9:20", "\n", "· ", "12.", "0"]
    ) | st.text(max_size=8),
    max_size=5,
).map("".join)  # fmt: skip


@given(PIECES, PIECES)
def test_no_text_is_an_error(claim: str, text: str) -> None:
    for one in found(claim or "-", text):
        assert 0 <= one.start < one.end <= len(claim)
        assert one.follows in (True, False, None)
        assert 1 <= len(one.meant) <= 3


@pytest.mark.timeout(60)
def test_a_table_of_hundreds_of_rows_is_no_error() -> None:
    rows = [
        f"| Town {at} | {at * 37 % 1000} | {at * 91 % 500 + 1} | €{at}.50 |" for at in range(300)
    ]
    table = "\n".join(["| Town | People | Houses | Rent |", "|---|---|---|---|", *rows])
    for claim in (
        "Town 3 has 4,321 people in total.",
        "The rents of all towns come to €44,850.00 in total.",
        "Town 120 has 1,234% more people than Town 121, and 4,321 more gardens.",
    ):
        assert len(found(claim, table)) >= 1
