"""List the words and signs that quantities are written with, and their values."""

from __future__ import annotations

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ODD = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_POWERS = {
    2: "hundred",
    3: "thousand k tausend 千 천",
    4: "万 萬 만",
    5: "lakh lakhs",
    6: "million millions m mn mln mio millionen millones",
    7: "crore crores",
    8: "億 亿 억",
    9: "billion billions b bn milliard milliards milliarde milliarden mrd",
    12: "trillion trillions tn 兆 조",
}
_ROMAN = "II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX"
_MONTHS = "january february march april may june july august september october november december"
_YEAR = 12
_MEASURES: dict[str, dict[str, float]] = {
    "m": {
        "mm millimetre millimetres millimeter millimeters": 0.001,
        "cm centimetre centimetres centimeter centimeters": 0.01,
        "m metre metres meter meters": 1,
        "km kilometre kilometres kilometer kilometers": 1000,
        "inch inches": 0.0254,
        "ft foot feet": 0.3048,
        "yd yard yards": 0.9144,
        "mi mile miles": 1609.344,
    },
    "kg": {
        "mg milligram milligrams": 1e-6,
        "g gram grams": 0.001,
        "kg kilogram kilograms kilo kilos": 1,
        "oz ounce ounces": 0.028349523,
        "lb lbs pound pounds": 0.45359237,
        "tonne tonnes": 1000,
    },
    "s": {
        "sec secs seconds": 1,
        "min mins minute minutes": 60,
        "h hr hrs hour hours": 3600,
        "day days": 86400,
        "week weeks": 604800,
    },
    "month": {
        "month months": 1,
        "yr yrs year years": _YEAR,
        "decade decades": 10 * _YEAR,
        "century centuries": 100 * _YEAR,
    },
}

CARDINALS = {word: at for at, word in enumerate(_UNITS.split())} | {
    word: 10 * at for at, word in enumerate(_TENS.split(), 2)
}
ORDINALS = _ODD | {
    f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th": value
    for word, value in CARDINALS.items()
    if value and value not in _ODD.values()
}
LARGE = {word: 10**power for power, words in _POWERS.items() for word in words.split()}
LARGE["dozen"] = 12
LETTERS = frozenset("kmb")
"""The letters that mean large numbers only directly after digits: an m is also a metre."""
PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    word + plural: value
    for word, value in ORDINALS.items()
    if 3 <= value <= 10
    for plural in ("", "s")
}
DECADES = {f"{word[:-1]}ies": value for word, value in CARDINALS.items() if value >= 20}
IMPLIED = {
    word: value
    for value, words in {
        2: "twice double doubled both pair couple duo twin twins",
        3: "thrice triple tripled trio trilogy",
        4: "quartet quadruple",
        5: "quintet",
        10: "decade",
        12: "dozen",
        14: "fortnight",
        100: "century centenary",
    }.items()
    for word in words.split()
}
"""Words that imply a number without stating it; they serve as evidence only."""
ROMAN = {word: at for at, word in enumerate(_ROMAN.split(), 2)}
MONTHS = {word: at for at, name in enumerate(_MONTHS.split(), 1) for word in (name, name[:3])} | {
    "sept": 9
}
PERCENT = frozenset(("%", "percent", "percentage", "pct", "prozent"))
UNITS = {
    word: (kind, factor)
    for kind, units in _MEASURES.items()
    for words, factor in units.items()
    for word in words.split()
}
"""Each unit's dimension, and the unit in metres, kilograms, seconds or months."""
