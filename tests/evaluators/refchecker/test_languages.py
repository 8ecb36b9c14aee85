"""Test what demur knows of each language: that its files are complete, and that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from demur import RefChecker, Sample
from demur.evaluators.refchecker import languages as room
from demur.evaluators.refchecker.assertion import states_nothing
from demur.evaluators.refchecker.coverage import stating
from demur.evaluators.refchecker.languages import Language, languages, likely
from support.fakes import ScriptedModel
from support.waiting import until

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
NONE_OR_ALL = {
    "ar": "لا شيء|لا أحد|أبدا|ولا واحد|كلها|الكل",
    "de": "Keine|Keiner|Niemand|Nie|Nichts|Alle|Beide|Keins davon",
    "en": "None|Nobody|Never|Nothing|All|Both|None of them|Neither",
    "es": "Ninguno|Nadie|Nunca|Nada|Todos|Ambos|Ninguno de ellos",
    "fr": "Aucun|Personne|Jamais|Rien|Tous|Les deux|Aucun d’eux",
    "hi": "कोई नहीं|कभी नहीं|कुछ नहीं|सब|दोनों",
    "id": "Tidak ada|Tidak pernah|Semua|Keduanya|Tidak satu pun",
    "it": "Nessuno|Mai|Niente|Tutti|Entrambi|Nessuno di loro",
    "ja": "誰も|決して|何も|全部|両方|どれでもない|ありません",
    "ko": "아무도|전혀|없습니다|전부|둘 다|아무것도",
    "nl": "Geen|Niemand|Nooit|Niets|Alle|Beide|Geen van beide",
    "pl": "Żaden|Nikt|Nigdy|Nic|Wszystkie|Oba|Żadne z nich",
    "pt": "Nenhum|Ninguém|Nunca|Nada|Todos|Ambos|Nenhum deles",
    "ru": "Никто|Никогда|Ничего|Все|Оба|Ни один|Ни один из них",
    "tr": "Hiçbiri|Hiç kimse|Asla|Hiçbir şey|Hepsi|İkisi de|Hiç",
    "uk": "Ніхто|Ніколи|Нічого|Усі|Обидва|Жоден|Жоден з них",
    "vi": "Không ai|Không bao giờ|Không có gì|Tất cả|Cả hai|Không cái nào",
    "zh": "没有|没有人|从不|什么都没有|全部|两者都|都不是",
}
"""One-word answers to other questions than those of yes or no."""
HELP = {
    "ar": "كيف يمكنني مساعدتك؟",
    "de": "wie kann ich Ihnen helfen?",
    "en": "how can I help you?",
    "es": "¿en qué puedo ayudarle?",
    "fr": "comment puis-je vous aider ?",
    "hi": "मैं आपकी क्या मदद कर सकता हूँ?",
    "id": "ada yang bisa saya bantu?",
    "it": "come posso aiutarla?",
    "ja": "何かお手伝いできますか?",
    "ko": "무엇을 도와드릴까요?",
    "nl": "hoe kan ik u helpen?",
    "pl": "w czym mogę pomóc?",
    "pt": "como posso ajudar?",
    "ru": "чем я могу помочь?",
    "tr": "nasıl yardımcı olabilirim?",
    "uk": "чим я можу допомогти?",
    "vi": "tôi có thể giúp gì cho bạn?",
    "zh": "我能帮您什么吗？",
}
"""An offer of help, as a question."""
NO_PROBLEM = {
    "ar": "لا مشكلة.",
    "de": "Kein Problem.",
    "en": "No problem.",
    "es": "Sin problema.",
    "fr": "Pas de problème.",
    "hi": "कोई बात नहीं।",
    "id": "Tidak masalah.",
    "it": "Nessun problema.",
    "ja": "大丈夫です。",
    "ko": "문제없습니다.",
    "nl": "Geen probleem.",
    "pl": "Nie ma problemu.",
    "pt": "Sem problema.",
    "ru": "Без проблем.",
    "tr": "Sorun değil.",
    "uk": "Без проблем.",
    "vi": "Không sao.",
    "zh": "没问题。",
}
HOW_OFTEN = {
    "ar": "كم مرة يجب أن أقول إن التدخين ممنوع هناك؟",
    "de": "Wie oft soll ich noch sagen, dass es verboten ist?",
    "en": "How many times do I have to say that smoking is forbidden there?",
    "es": "¿Cuántas veces tengo que decir que está prohibido?",
    "fr": "Combien de fois faut-il dire que c'est interdit ?",
    "hi": "कितनी बार कहूँ कि वहाँ धूम्रपान मना है?",
    "id": "Berapa kali saya harus bilang bahwa itu dilarang?",
    "it": "Quante volte devo dire che è vietato?",
    "ja": "何度言えば禁煙だと分かるのですか?",
    "ko": "거기서 담배 피우면 안 된다고 몇 번을 말해야 하나요?",
    "nl": "Hoe vaak moet ik nog zeggen dat roken daar verboden is?",
    "pl": "Ile razy mam mówić, że to zabronione?",
    "pt": "Quantas vezes tenho de dizer que é proibido?",
    "ru": "Сколько раз говорить, что там нельзя курить?",
    "tr": "Orada sigara içmenin yasak olduğunu kaç kez söylemem gerekiyor?",
    "uk": "Скільки разів казати, що там не можна палити?",
    "vi": "Tôi phải nói bao nhiêu lần rằng ở đó cấm hút thuốc?",
    "zh": "要我说多少次那里禁止吸烟？",
}
"""A question that only repeats a statement."""
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


@pytest.mark.timeout(60)
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
    for word in f"{PLAIN_ANSWERS[language.code]}|{NONE_OR_ALL[language.code]}".split("|"):
        assert not states_nothing(f"{word}."), word
        assert not states_nothing(word), word


def test_a_statement_before_a_question_in_one_sentence_is_checked(language: Language) -> None:
    _, statement, question, _ = PHRASES[language.code]
    joining = [
        f" {word} "
        for words in language.data["contrast"]["joining"]
        for word in words.split("|")
        if word.isalpha() and language.spaced
    ]
    for asked in (HELP[language.code], question):
        assert states_nothing(asked)
        for between in (", ", "; ", " – ", ": ", "... ", " (", "，", "、", "\n", *joining):
            answer = f"{statement}{between}{asked[0].lower()}{asked[1:]}"
            assert stating(Sample(answer=answer)), answer


def test_a_question_that_only_repeats_a_statement_is_checked(language: Language) -> None:
    assert stating(Sample(answer=HOW_OFTEN[language.code]))


def test_no_problem_is_an_answer_to_a_question_and_else_a_courtesy(language: Language) -> None:
    said, question = NO_PROBLEM[language.code], PHRASES[language.code][2]
    assert stating(Sample(answer=said, question=question))
    assert stating(Sample(answer=f"{said} {question}", question=question)) == []


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


def test_threads_that_need_a_pattern_at_the_same_time_wait_for_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (english,) = (language for language in languages() if language.code == "en")
    fresh, compiled, together = Language("en", english.data), list[str](), Barrier(8)

    class Slow:
        """Compile so slowly that all threads come meanwhile."""

        def __getattr__(self, name: str) -> Any:
            return getattr(re, name)

        def compile(self, pattern: str) -> re.Pattern[str]:
            compiled.append(pattern)
            until(lambda: together.n_waiting == 0)
            return re.compile(pattern)

    def ask(number: int) -> re.Pattern[str]:
        together.wait()
        return fresh.pattern("nothing.refusals")

    monkeypatch.setattr(room, "re", Slow())
    with ThreadPoolExecutor(8) as pool:
        found = {id(pattern) for pattern in pool.map(ask, range(8))}
    assert len(found) == len(compiled) == 1
