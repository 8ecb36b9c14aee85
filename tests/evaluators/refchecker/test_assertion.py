"""Test whether a sentence counts as a statement; a sentence that no rule excludes does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import Sample
from demur.evaluators.refchecker.assertion import states_nothing
from demur.evaluators.refchecker.content_words import too_short
from demur.evaluators.refchecker.coverage import stating

NOTHING = [
    "I don't know.",
    "I'm sorry, but I can't help with that.",
    "Hello! How can I help you today?",
    "The passages do not mention when the bridge was opened.",
    "Based on the provided passages, I cannot determine who built the tower.",
    "I don't know who built it or when it opened.",
    "Which tower do you mean, the one in Lund or the one in Graz?",
    "Ich weiß nicht, wann die Brücke eröffnet wurde.",
    "文中没有提到这座桥的建成年份。",
    "제공된 지문에는 다리의 개통 연도가 나와 있지 않습니다.",
    "عذرًا، لا أعرف الإجابة.",
    "दिए गए अनुच्छेदों में इसका उल्लेख नहीं है।",
    "Je ne sais pas.",
    "No lo sé.",
    "Я не знаю.",
    "Los documentos no lo dicen.",
    "Bonjour ! Comment puis-je vous aider ?",
    "(Source: 2)",
    "👍",
    "Thank you! 🙏",
]
SOMETHING = [
    "No, copy.copy does not copy nested objects.",
    "Yes.",
    "42",
    "No.",
    "I don't know who built it, but it opened in 1911.",
    "I don't know who built it and it burned down in 1851.",
    "I'm not certain, however the tower stands in Lund.",
    "Although the passages do not say when, it opened in May.",
    "The passages do not say anything except that the tower is in Lund.",
    "The passages do not contradict that it is in Lund.",
    "The bridge is in Lund, isn't it?",
    "Did you know that the bridge opened in 1911?",
    "There are no subway stations nearby.",
    "The company did not say when it was founded.",
    "It is not known who painted it.",
    "There is no evidence that it works.",
    "Hello, the bridge opened in 1911.",
    "Ich weiß nicht, wer sie baute, aber sie wurde 1911 eröffnet.",
    "我不知道是谁建的，但它建于1911年。",
    "誰が建てたかはわかりませんが、1911年に開通しました。",
    "누가 지었는지 모르지만 1911년에 개통했습니다.",
    "لا أعرف من بناه، لكنه افتتح عام 1911.",
    "अगर बारिश हो तो पुल बंद है।",
    # These are statements of a company about itself, and denials that only sound like ignorance.
    "We do not offer refunds.",
    "We have no data centres in Europe.",
    "I do not see any side effects.",
    "I am not aware of any risk.",
    "The file does not contain errors.",
    "The base does not include batteries.",
    "It is not included in the price.",
    "No information is needed to enter the tower.",
    "There is no information desk in the tower.",
    "Thanks to Anna the tower was built.",
    "You are welcome to enter the tower.",
    "What a tower, it is 90 m high?",
    "See 1911",
    "Das hilft.",
    # These seem to ask, or to be ignorance, and tell all the same.
    "L'entrée est gratuite, comment puis-je vous aider ?",
    "La torre es muy alta y ¿en qué puedo ayudarle?",
    "I am not sure if you know that entry is free.",
    "Ik weet niet of u weet dat de toegang gratis is.",
    "Saya tidak tahu apakah Anda sudah mendengar bahwa bandara itu ditutup.",
    "Tôi không biết bạn đã nghe rằng sân bay cũ đã đóng cửa chưa.",
    "入場が無料だとご存じかどうか分かりません。",
    "Ai mà chẳng biết đoạn đường đó hay sạt lở?",
    "이미 단종되어 후속 제품에 대해서는 정보가 없습니다.",
    # Demur has no file of these languages, so their refusals are checked.
    "Jag vet inte.",
    "Nevím.",
    "אני לא יודע.",
    "ฉันไม่ทราบ",
]


@pytest.mark.parametrize("sentence", NOTHING)
def test_what_states_nothing(sentence: str) -> None:
    assert stating(Sample(answer=sentence)) == []


@pytest.mark.parametrize("sentence", SOMETHING)
def test_what_states_something(sentence: str) -> None:
    assert not states_nothing(sentence)
    assert stating(Sample(answer=sentence))


@pytest.mark.parametrize("contrast", ["but", "however,", "although", "except that", "because", ";"])
@pytest.mark.parametrize("sentence", NOTHING[:9])
def test_behind_a_contrast_everything_states_something(sentence: str, contrast: str) -> None:
    joined = f"{sentence.rstrip('.?')} {contrast} the tower is 84 metres tall."
    assert not states_nothing(joined)


@given(st.text())
def test_any_text_is_told(text: str) -> None:
    assert states_nothing(text) in (True, False)
    assert too_short(text) in (True, False)
    if not any(map(str.isalnum, text)):
        assert states_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        *("No.", "Yes, it does.", "42", "11 years", "In 1911.", "Paris", "It is Paris."),
        *(
            "About 40 km",
            "capital: Oslo",
            "东京。",
            "1911年",
            "是的",
            "11년",
            "서울입니다.",
            "아니요.",
        ),
    ],
)
def test_what_says_too_little_alone(text: str) -> None:
    assert too_short(text)


@pytest.mark.parametrize(
    "text",
    [
        *("Oslo is old.", "It was built in 1911.", "Ilse Korn made the clock."),
        *(
            "东京是日本的首都。",
            "서울은 한국의 수도입니다.",
            "القاهرة عاصمة مصر.",
            "दिल्ली भारत की राजधानी है।",
        ),
    ],
)
def test_what_says_enough_alone(text: str) -> None:
    assert not too_short(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    ["i do not know ", "the passages ", "sorry, ", "わかりません", "文中没有", "؟ لا اعرف ", "?"],
)
def test_no_sentence_takes_long(piece: str) -> None:
    for length in (50, 390, 400, 250_000):
        states_nothing((piece * length)[:length])  # Of quadratic time, a test's limit would tell.
