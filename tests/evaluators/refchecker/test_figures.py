"""Test which parts of a text are read as figures, and with which value and kind."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.evaluators.refchecker.figures import figures

HOUR, DAY = 3600, 86400


def read(text: str) -> list[tuple[str, float, str]]:
    return [(text[one.start : one.end], float(one.value), one.kind) for one in figures(text)]


# -- What is a figure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "value", "kind"),
    [
        *((one, 12_500, "number") for one in ("12,500", "12.500", "12 500", "12'500", "12’500")),
        *((one, 12_500, "number") for one in ("12\u00a0500", "12\u202f500", "12\u2009500")),
        *((one, 12_500, "number") for one in ("12500", "１２５００", "12.5 thousand", "1.25万")),
        *((one, 1250.5, "number") for one in ("1.250,50", "1,250.50", "1 250,50", "1250.5")),
        *((one, 1_234_567, "number") for one in ("1,234,567", "1.234.567", "1 234 567")),
        ("0.125", 0.125, "number"),
        *((one, 80, "€") for one in ("€80", "80 €", "80€", "EUR 80", "80 euros", "80 Euro")),
        *((one, 45.5, "$") for one in ("$45.50", "US$ 45.50", "USD 45.50", "45,50 $", "45.5美元")),
        *((one, 1_200, "¥") for one in ("1,200円", "¥1,200", "￥1200", "1200元")),
        ("CHF 12.50", 12.5, "chf"),
        ("500 рублей", 500, "₽"),
        ("$240 million", 240_000_000, "$"),
        ("$5 m", 5_000_000, "$"),
        pytest.param("5 Mio. €", 5_000_000, "€"),
        *((one, 12.5, "%") for one in ("12.5%", "12,5 %", "12.5 percent", "12.5 per cent")),
        *((one, 12.5, "%") for one in ("12,5 Prozent", "12,5 pour cent", "12,5 por ciento")),
        *((one, 12.5, "%") for one in ("12,5 per cento", "12,5 процента", "12.5パーセント")),
        pytest.param("12,5 por cento", 12.5, "%"),
        ("%12", 12, "%"),
        ("3割", 30, "%"),
        *((one, 1_500, "m") for one in ("1.5 km", "1,500 m", "1,5 Kilometer")),
        *((one, 0.4, "m") for one in ("40 cm", "400 mm", "0.4 m")),
        *((one, 2_000, "g") for one in ("2 kg", "2,000 g", "2kg")),
        *((one, 3 * HOUR, "s") for one in ("3 hours", "3 h", "3h", "180 min", "three hours")),
        *((one, 2 * DAY, "s") for one in ("2 days", "48 hours", "two days")),
        *((one, 6300, "s") for one in ("1 hour and 45 minutes", "1 hour, 45 minutes", "105 min")),
        *((one, 36, "months") for one in ("36 months", "3 years", "three years")),
        ("2 years and 3 months", 27, "months"),
        *((one, 560, "clock") for one in ("9:20", "09:20", "9:20 am")),
        *((one, 1020, "clock") for one in ("5 pm", "5 PM", "17:00", "5:00 pm")),
        *((one, 870, "clock") for one in ("14:30", "14 h 30", "14h30", "14 Uhr 30")),
        ("12 am", 0, "clock"),
        *((one, 739_322, "date") for one in ("2025-03-12", "12.3.2025", "12 March 2025")),
        *((one, 739_322, "date") for one in ("March 12, 2025", "12th of March 2025")),
        ("Mar 12 2025", 739_322, "date"),
        ("1928", 1928, "year"),
    ],
)
def test_a_figure_is_read_with_its_sign_or_unit(said: str, value: float, kind: str) -> None:
    assert read(f"It is ({said}) in the house.") == [(said, pytest.approx(value), kind)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Es dauerte 2 Stunden und 10 Minuten.", [("2 Stunden und 10 Minuten", 7800, "s")]),
        ("Il a mis 2 heures et 35 minutes.", [("2 heures et 35 minutes", 9300, "s")]),
        ("Tardó 2 horas y 5 minutos.", [("2 horas y 5 minutos", 7500, "s")]),
        ("会議は2時間30分です。", [("2時間30分", 9000, "s")]),
        ("It was 2 hours; 10 minutes are left.", [("2 hours", 7200, "s"),
                                                  ("10 minutes", 600, "s")]),
        ("Der Zug fährt um 14 Uhr ab.", [("14", 840, "clock")]),
        ("会議は14時30分に始まります。", [("14時30", 870, "clock")]),
        ("Am 12. März 2025 und am 13. März 2025.", [("12. März 2025", 739_322, "date"),
                                                   ("13. März 2025", 739_323, "date")]),
        ("Le 5 mai 2024 et le 6 mai 2024.", [("5 mai 2024", 739_011, "date"),
                                            ("6 mai 2024", 739_012, "date")]),
        ("El 6 de febrero de 2023.", [("6 de febrero de 2023", 738_557, "date")]),
        ("2024年5月3日に始まります。", [("2024年5月3日", 739_009, "date")]),
        # Without a year, dates are of one and the same year.
        ("It runs on 3 May and 5 May only.", [("3 May", 730_608, "date"),
                                              ("5 May", 730_610, "date")]),
        ("5月3日に始まります。", [("5月3日", 730_608, "date")]),
        ("It opens on May 3.", [("May 3", 730_608, "date")]),
        ("The hall (built in 1928) has 12 rows.", [("1928", 1928, "year"), ("12", 12, "number")]),
        ("It begins at 9:20–11:05 there.", [("9:20", 560, "clock"), ("11:05", 665, "clock")]),
        ("Half of the levy goes to schools.", [("Half", 50, "%")]),
        ("Two thirds of the levy are for schools.", [("Two thirds", 200 / 3, "%")]),
        ("A quarter of it, or three quarters of it.", [("quarter", 25, "%"),
                                                      ("three quarters", 75, "%")]),
        ("Drei Viertel der Antworten sind gut.", [("Drei Viertel", 75, "%")]),
        ("La moitié des élèves est là.", [("moitié", 50, "%")]),
        ("Dos tercios de los alumnos están aquí.", [("Dos tercios", 200 / 3, "%")]),
        ("会員の半分です。", [("半分", 50, "%")]),
    ],
    ids=lambda one: one[:30] if isinstance(one, str) else "",
)  # fmt: skip
def test_figures_of_sentences(text: str, found: list[tuple[str, float, str]]) -> None:
    assert read(text) == [(said, pytest.approx(value), kind) for said, value, kind in found]


WORDS = {
    "The houses have {} rooms.": """two three four five six seven eight nine ten eleven twelve
        thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty""",
    "Die Häuser haben {} Zimmer.": """zwei drei vier fünf sechs sieben acht neun zehn elf zwölf
        dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig""",
    "Les maisons ont {} chambres.": """deux trois quatre cinq six sept huit neuf dix onze douze
        treize quatorze quinze seize dix-sept dix-huit dix-neuf vingt""",
    "Las casas tienen {} habitaciones.": """dos tres cuatro cinco seis siete ocho nueve diez once
        doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte""",
    "Le case hanno {} camere.": """due tre quattro cinque sei sette otto nove dieci undici dodici
        tredici quattordici quindici sedici diciassette diciotto diciannove venti""",
    "De huizen hebben {} kamers.": """twee drie vier vijf zes zeven acht negen tien elf twaalf
        dertien veertien vijftien zestien zeventien achttien negentien twintig""",
}
"""Without one, which is an article in some languages."""


@pytest.mark.parametrize(("sentence", "words"), WORDS.items())
def test_numbers_in_words_are_read_from_two_to_twenty(sentence: str, words: str) -> None:
    found = figures(sentence.format(", ".join(words.split())))
    assert [int(one.value) for one in found] == [*range(2, 21)]
    assert all(one.in_words for one in found)


def test_the_last_digit_says_how_exact_a_figure_is() -> None:
    said = figures("It is 12.5 km, 1,200 or $3 million.")
    assert [float(one.quantum) for one in said] == [100, 1, 1_000_000]
    assert [float(one.scale) for one in said] == [1000, 1, 1_000_000]


# -- What is none ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        *("v2", "10-12", "20th", "1st", "1990s", "1990's", "2.13.1", "10.20.4.17", "B12", "#12"),
        *("ORD-48213-B", "CVE-2024-3094", "A20931", "12a", "2019/20", "3/4", "555-0412"),
        *("12345678901234567890123", "09:20:30", "file_1234", "MP3", "DE89370400440532013000"),
        "01632",
    ],
)
def test_what_may_be_an_identifier_is_none(said: str) -> None:
    assert read(f"It is {said} in the house.") == []


# -- Any text --------------------------------------------------------------------------------------

_PIECES = """12 500 1.250,50 0 9 31 1928 . , ' - – : ; % € $ US$ km h min hours and 45 minutes pm
    Uhr 時 30分 年 5月 3日 May March Mai half thirds two drei vier deux six once ½ ² ٣ １２ | *
    million Mio. 万 割 kg m s th v _ / ( ) a Der the les las in of is ſ İ ß"""
PIECES = st.lists(st.sampled_from([*_PIECES.split(), "\u202f", "\u00a0", "\n"]), max_size=14)


@given(st.text(max_size=80) | PIECES.map("".join) | PIECES.map(" ".join))
@example("Zahlen: drei, vier.")
@example("Set 5 alarms.")
def test_figures_of_any_text_stand_in_order_and_apart(text: str) -> None:
    found = figures(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(one.value.is_finite() and one.quantum > 0 and one.scale > 0 for one in found)


@given(
    st.integers(0, 10**11),
    st.none() | st.integers(0, 99),
    st.sampled_from([*zip(",. '\u00a0\u202f\u2009", ".,,....", strict=True)]),
)
def test_a_number_with_separators_reads_back_to_its_value(
    whole: int, hundredths: int | None, signs: tuple[str, str]
) -> None:
    separator, point = signs
    behind = "" if hundredths is None else f"{point}{hundredths:02}"
    said = f"{whole:,}".replace(",", separator) + behind
    (one,) = figures(f"The towns have {said} gardens.")
    assert float(one.value) == pytest.approx(whole + (hundredths or 0) / 100, abs=1e-6)
    assert float(one.quantum) == (1 if hundredths is None else pytest.approx(0.01))
