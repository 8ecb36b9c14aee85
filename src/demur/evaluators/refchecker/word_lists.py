"""List the words that mark a short sentence, a number and a denial, in several languages."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VERBS = _words("""
    is are was were be been am has have had do does did can could will would shall should may might
    must ist sind war waren hat haben hatte wird werden kann
""")
CLAUSAL = VERBS | _words("i you he she it we they ich du er sie es wir ihr")
"""The words that distinguish a short sentence from a phrase."""

FUNCTION_WORDS = _words("""
    a an the of in on at to for by with from as and or it its he she they them his her their this
    that these those there i we you my our your yes no not about around approximately only just so
    then also very is are was were be been has have had do does did can could will would
    der die das den dem des ein eine einen einem einer im am zu von mit für auf und oder es er sie
    ihr sein ja nein nicht etwa rund nur auch ist sind war waren hat haben hatte
""")
"""The words that hold a sentence together and say nothing by themselves."""

NUMBER_WORDS = _words("""
    one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
    seventy eighty ninety hundred thousand million billion half twice zwei drei vier fünf sechs
    sieben acht neun zehn elf zwölf zwanzig hundert tausend
""")

DENIAL = re.compile(
    r"\b(?:no|not|never|none|nor|neither|nobody|nothing|nowhere|without|cannot|hardly|unable|"
    r"unlike\w*|lacks?|absent|fails?|nicht|nichts|nie|niemals|kein\w*|ohne|weder)\b|n['’]t\b"
    r"|[不没沒未无無非]|ない|ません|なかった|않|못|없|아니"
    r"|\b(?:لا|لم|لن|ليس|ليست|غير|بدون|دون)\b|(?<!\w)(?:नहीं|न|बिना|मत)(?!\w)",
    re.IGNORECASE,
)
"""The pattern of a word that turns a statement into its opposite."""
