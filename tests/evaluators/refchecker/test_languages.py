"""Test what demur knows of each language: that its files are complete, and that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from demur import RefChecker, Sample
from demur.evaluators.refchecker import languages as room
from demur.evaluators.refchecker.assertion import states_nothing
from demur.evaluators.refchecker.coverage import stating
from demur.evaluators.refchecker.languages import Language, languages, likely
from support.fakes import ScriptedModel

# Ignorance, a statement, a question, and an affirmation. An affirmation is more than a plain yes.
PHRASES = {
    "ar": ("لا أعرف", "البرج مرتفع جدا", "هل هو مجاني؟", "بالتأكيد."),
    "de": (
        "Ich weiß es nicht",
        "der Turm ist sehr hoch",
        "Ist es kostenlos?",
        "Selbstverständlich.",
    ),
    "en": ("I do not know", "the tower is very tall", "Is it free?", "Absolutely."),
    "es": ("No lo sé", "la torre es muy alta", "¿Es gratis?", "Por supuesto."),
    "fr": ("Je ne sais pas", "la tour est très haute", "Est-ce gratuit ?", "Bien sûr."),
    "hi": ("मुझे नहीं पता", "मीनार बहुत ऊँची है", "क्या यह मुफ़्त है?", "बिल्कुल।"),
    "id": ("Saya tidak tahu", "menara itu sangat tinggi", "Apakah gratis?", "Tentu saja."),
    "it": ("Non lo so", "la torre è molto alta", "È gratis?", "Certamente."),
    "ja": ("わかりません", "塔はとても高いです", "無料ですか?", "もちろんです。"),
    "ko": ("모르겠습니다", "탑은 매우 높습니다", "무료인가요?", "물론입니다."),
    "nl": ("Ik weet het niet", "de toren is heel hoog", "Is het gratis?", "Natuurlijk."),
    "pl": ("Nie wiem", "wieża jest bardzo wysoka", "Czy to jest za darmo?", "Oczywiście."),
    "pt": ("Não sei", "a torre é muito alta", "É de graça?", "Com certeza."),
    "ru": ("Я не знаю", "эта башня очень высокая", "Можно ли войти бесплатно?", "Конечно."),
    "tr": ("Bilmiyorum", "kule çok yüksek", "Ücretsiz mi?", "Elbette."),
    "uk": ("Я не знаю", "ця вежа дуже висока", "Чи можна увійти безкоштовно?", "Звичайно."),
    "vi": ("Tôi không biết", "tòa tháp rất cao", "Có miễn phí không?", "Tất nhiên."),
    "zh": ("我不知道", "这座塔非常高", "免费吗？", "当然。"),
}
PLAIN_ANSWERS = {
    "ar": "نعم|لا|للأسف لا|بالطبع لا|لا يمكن|ممنوع",
    "de": "Ja|Nein|Leider nicht|Leider nein|Natürlich nicht|Auf keinen Fall|Leider nicht möglich",
    "en": "Yes|No|Never|I'm afraid not|Unfortunately not|Not at all|Of course not|Sorry, no",
    "es": "Sí|No|Lamentablemente no|Claro que no|Me temo que no|Para nada|Lo siento, no",
    "fr": "Oui|Non|Si|Malheureusement non|Hélas non|Pas du tout|Bien sûr que non|Désolé, non",
    "hi": "हाँ|नहीं|अफ़सोस, नहीं|बिल्कुल नहीं|माफ़ कीजिए, नहीं",
    "id": "Ya|Tidak|Sayangnya tidak|Tentu tidak|Tidak bisa|Tidak boleh|Maaf, tidak",
    "it": "Sì|No|Purtroppo no|Certo che no|Per niente|Mi dispiace, no",
    "ja": "はい|いいえ|残念ながら、できません|いいえ、違います|もちろん違います|だめです|できます",
    "ko": "네|아니요|아쉽게도 아닙니다|물론 아닙니다|안 됩니다|불가능합니다|가능합니다",
    "nl": "Ja|Nee|Helaas niet|Natuurlijk niet|Jammer genoeg niet|Sorry, nee",
    "pl": "Tak|Nie|Niestety nie|Oczywiście, że nie|Wcale nie|Przykro mi, nie",
    "pt": "Sim|Não|Infelizmente não|Claro que não|De jeito nenhum|Desculpe, não",
    "ru": "Да|Нет|К сожалению, нет|Конечно нет|Увы, нет|Нельзя|Конечно, нет",
    "tr": "Evet|Hayır|Maalesef hayır|Tabii ki hayır|Olmaz|Mümkün değil|Maalesef yok",
    "uk": "Так|Ні|На жаль, ні|Звісно, ні|Не можна|Звичайно ні",
    "vi": "Có|Vâng|Không|Rất tiếc là không|Tất nhiên là không|Không được|Xin lỗi, không",
    "zh": "是的|不是|不可以|当然不行|很遗憾，不行|不能|抱歉，没有|可以|不行",
}
"""What says yes or no, with regret or not."""
# A file needs not have these: not every language has such phrases.
MAY_BE_EMPTY = {
    *("nothing.courtesies", "nothing.rest", "nothing.continued", "nothing.joined", "answer.prefix"),
    *("question.states", "question.linked", "question.goes_on", "contrast.here"),
    *("contrast.joining", "words.verbs", "words.pronouns", "words.function"),
}


def lists(data: object) -> Iterator[str]:
    """Yield the names of a file's lists."""
    assert isinstance(data, dict)
    for group, of in data.items():
        if isinstance(of, dict) and group != "parts":
            yield from (f"{group}.{name}" for name in of)


@pytest.fixture(params=languages(), ids=lambda language: language.code)
def language(request: pytest.FixtureRequest) -> Language:
    found: Language = request.param
    return found


def test_every_language_has_its_phrases_here() -> None:
    assert [language.code for language in languages()] == [*PHRASES]


def test_a_file_is_complete(language: Language) -> None:
    for name in lists(language.data):
        group, _, own = name.partition(".")
        assert language.data[group][own] or name in MAY_BE_EMPTY, name
        for whole_words in (False, True):
            pattern = language.pattern(name, whole_words=whole_words)
            assert pattern.fullmatch("") is None or name == "nothing.rest", name
    assert language.rewritten("") == ""
    assert len(language.pattern(*room.NOTHING).pattern) <= 100_000


def test_no_sentence_takes_long(language: Language) -> None:
    pieces = re.split(r"\W+", " ".join(PHRASES[language.code]))
    for times in (1, 40):
        for begin in range(len(pieces)):
            turned = pieces[begin:] + pieces[:begin]
            for order in (turned, turned[::-1], [one for one in turned for _ in range(3)]):
                text = (" " if language.spaced else "").join(order * times)[:399]
                states_nothing(text)  # Of exponential time, a test's limit would tell.


def test_a_file_that_lacks_a_list_or_has_an_unknown_one_is_refused(language: Language) -> None:
    for name in lists(language.data):
        group, _, own = name.partition(".")
        lacking = {key: one for key, one in language.data[group].items() if key != own}
        with pytest.raises(ValueError, match=rf"xx\.toml: {re.escape(name)} is missing.*README"):
            Language("xx", {**language.data, group: lacking})
    with pytest.raises(ValueError, match=r"nothing\.jokes is unknown"):
        Language("xx", {**language.data, "nothing": {**language.data["nothing"], "jokes": []}})
    with pytest.raises(ValueError, match="words is missing"):
        Language("xx", {key: one for key, one in language.data.items() if key != "words"})
    with pytest.raises(ValueError, match=r"parts\.tail is not a list of strings"):
        Language("xx", {**language.data, "parts": {"tail": ".*"}})
    with pytest.raises(ValueError, match="lacks the_sun"):
        Language(
            "xx",
            {**language.data, "question": {**language.data["question"], "asks": ["<the_sun>"]}},
        ).pattern("question.asks")


def test_the_code_knows_no_language_by_name() -> None:
    modules = [path.read_text(encoding="utf-8") for path in Path(room.__file__).parent.glob("*.py")]
    assert modules
    for one in languages():
        assert not any(one.data["name"] in text for text in modules)
        assert not any(re.search(rf"[\"']{one.code}[\"']", text) for text in modules)


def test_a_sentence_tells_its_language(language: Language) -> None:
    sentence = PHRASES[language.code][1]
    assert language in likely(sentence)
    if language.words("words.function") and language.spaced:
        assert likely(sentence) == (language,)


def test_a_word_that_cuts_every_text_is_no_ordinary_word_of_another_language(
    language: Language,
) -> None:
    cuts = language.pattern("contrast.always", whole_words=True)
    for other in languages():
        if other is not language:
            ordinary = {word for word in other.words("words.function") if cuts.fullmatch(word)}
            # Languages share a word for "but" or "because" if they are related.
            assert {word for word in ordinary if not _cuts(other, word)} == set()


def _cuts(language: Language, word: str) -> bool:
    return language.pattern(*room.CONTRAST, whole_words=True).fullmatch(word) is not None


def test_a_plain_yes_or_no_always_states_something(language: Language) -> None:
    for word in PLAIN_ANSWERS[language.code].split("|"):
        assert not states_nothing(f"{word}."), word
        assert not states_nothing(word), word


def test_ignorance_is_none_with_a_statement_behind_it(language: Language) -> None:
    ignorance, statement, question, _ = PHRASES[language.code]
    assert states_nothing(f"{ignorance}.")
    assert states_nothing(question)
    assert not states_nothing(f"{statement}.")
    for between in (", ", "; ", " – "):
        assert not states_nothing(f"{ignorance}{between}{statement}.")
        assert not states_nothing(f"{statement}{between}{ignorance}.")
    space = " " if language.spaced else ""
    if language.spaced:  # elsewhere this says what is not known
        assert not states_nothing(f"{ignorance} {statement}.")
    plain_words = re.compile(r"[^\W\d_]+(?:\|[^\W\d_]+)*")
    for words in filter(plain_words.fullmatch, language.data["contrast"]["always"]):
        for word in words.split("|"):
            assert not states_nothing(f"{ignorance}{space}{word}{space}{statement}.")


def test_an_affirmation_behind_a_question_is_checked_with_it(language: Language) -> None:
    _, statement, question, affirmation = PHRASES[language.code]
    model = ScriptedModel(
        script=lambda stage, _: "No claims" if stage == "extraction" else "1. Neutral"
    )
    checker = RefChecker(model, checker="joint", claims="triplets")
    asked_before = Sample(answer=f"{question} {affirmation}", contexts=[f"{statement}."])
    asked_by_user = Sample(answer=affirmation, question=question, contexts=[f"{statement}."])
    for sample in (asked_before, asked_by_user):
        found = checker.invoke(sample)
        assert [claim.text for claim in found.claims] == [f"{question} {affirmation}"]
        assert found.passed is False
    # Before a question or a refusal it is a courtesy.
    ignorance = PHRASES[language.code][0]
    for more in (question, f"{ignorance}."):
        polite = Sample(answer=f"{affirmation} {more}", question=question)
        assert stating(polite) == []
    assert stating(Sample(answer=affirmation)) == []
