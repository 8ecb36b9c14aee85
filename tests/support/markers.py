"""Hold short answers that state nothing, as applications and models write them."""

from __future__ import annotations

from typing import Any

QUESTION = "Who founded it?"
CONTEXT = "Release 4.2 adds dark mode."

STATE_NOTHING = (
    *("IDK", "N/A", "n/a", "Unknown.", "unanswerable", "Insufficient context.", "Not found"),
    *("No results.", "NOT_FOUND", "NO_ANSWER", "null", "NULL", "Out of scope.", "Dunno."),
    *("Cannot be determined from the given text.", "\u00af\\_(\u30c4)_/\u00af"),
    *("OK", "Sure.", "Okay, done?", "Please contact support.", "Let me check that for you."),
    *("One moment please.", "`NOT_FOUND`", "**Unknown**", "(not found)", '{"answer": "N/A"}'),
    *('{"answer": "unknown"}', "```\nNO_ANSWER\n```", "Sorry, unknown."),
    *("Unable to determine.", "UNABLE_TO_ANSWER", "Information not available."),
)
"""Answers to `QUESTION` that state nothing."""


IN_LANGUAGES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "ar": (
        "من أسس الشركة؟",
        "ما حالة الطلب؟",
        (
            "غير معروف.",
            "غير متوفر",
            "لم يتم العثور على نتائج.",
        ),
        (
            "يرجى الاتصال بفريق الدعم.",
            "دعني أتحقق من ذلك لك.",
            "لحظة من فضلك.",
            "لا يمكن تحديد ذلك من النص المقدم.",
        ),
    ),
    "de": (
        "Wer hat sie gegründet?",
        "Wie ist der Status der Bestellung?",
        (
            "Unbekannt.",
            "NICHT GEFUNDEN",
            "k. A.",
        ),
        (
            "Bitte wenden Sie sich an den Support.",
            "Ich schaue das kurz für Sie nach.",
            "Einen Moment bitte.",
            "Lässt sich aus dem gegebenen Text nicht bestimmen.",
        ),
    ),
    "es": (
        "¿Quién la fundó?",
        "¿Cuál es el estado del pedido?",
        (
            "Desconocido.",
            "NO ENCONTRADO",
            "No disponible.",
        ),
        (
            "Por favor, contacte con el servicio de atención al cliente.",
            "Déjeme comprobarlo.",
            "Un momento, por favor.",
            "No se puede determinar a partir del texto proporcionado.",
        ),
    ),
    "fr": (
        "Qui l'a fondée ?",
        "Quel est le statut de la commande ?",
        (
            "Inconnu.",
            "NON TROUVÉ",
            "Non précisé",
        ),
        (
            "Veuillez contacter le service client.",
            "Laissez-moi vérifier cela pour vous.",
            "Un instant, s'il vous plaît.",
            "Cela ne peut pas être déterminé à partir du texte fourni.",
        ),
    ),
    "hi": (
        "कंपनी की स्थापना किसने की?",
        "ऑर्डर की स्थिति क्या है?",
        (
            "अज्ञात।",
            "नहीं मिला",
            "कोई परिणाम नहीं मिला।",
        ),
        (
            "कृपया हमारी सहायता टीम से संपर्क करें।",
            "मुझे आपके लिए यह जाँचने दीजिए।",
            "कृपया एक क्षण रुकिए।",
            "दिए गए पाठ से यह निर्धारित नहीं किया जा सकता।",
        ),
    ),
    "id": (
        "Siapa yang mendirikannya?",
        "Bagaimana status pesanan?",
        (
            "Tidak diketahui.",
            "TIDAK DITEMUKAN",
            "Tidak tersedia.",
        ),
        (
            "Silakan hubungi layanan pelanggan.",
            "Saya periksa dulu untuk Anda.",
            "Mohon tunggu sebentar.",
            "Tidak dapat ditentukan dari teks yang diberikan.",
        ),
    ),
    "it": (
        "Chi l'ha fondata?",
        "Qual è lo stato dell'ordine?",
        (
            "Sconosciuto.",
            "NON TROVATO",
            "Non specificato",
        ),
        (
            "La prego di contattare l'assistenza.",
            "Mi lasci verificare per lei.",
            "Un attimo, per favore.",
            "Non può essere determinato dal testo fornito.",
        ),
    ),
    "ja": (
        "創業者は誰ですか?",
        "注文の状況はどうなっていますか?",
        (
            "不明",
            "該当なし",
            "検索結果0件",
        ),
        (
            "サポートにお問い合わせください。",
            "お調べいたします。",
            "少々お待ちください。",
            "与えられた文章からは判断できません。",
        ),
    ),
    "ko": (
        "누가 설립했나요?",
        "주문 상태는 무엇입니까?",
        (
            "미상",
            "해당 없음",
            "검색 결과 없음",
        ),
        (
            "고객 지원팀에 문의해 주세요.",
            "제가 확인해 드리겠습니다.",
            "잠시만 기다려 주세요.",
            "주어진 글만으로는 알 수 없습니다.",
        ),
    ),
    "nl": (
        "Wie heeft het opgericht?",
        "Wat is de status van de bestelling?",
        (
            "Onbekend.",
            "NIET GEVONDEN",
            "n.v.t.",
        ),
        (
            "Neem contact op met de klantenservice.",
            "Ik kijk het even voor u na.",
            "Een ogenblik geduld alstublieft.",
            "Kan niet worden bepaald op basis van de gegeven tekst.",
        ),
    ),
    "pl": (
        "Kto ją założył?",
        "Jaki jest status zamówienia?",
        (
            "Nieznany.",
            "NIE ZNALEZIONO",
            "Nie dotyczy",
        ),
        (
            "Proszę skontaktować się z obsługą klienta.",
            "Sprawdzę to dla Ciebie.",
            "Chwileczkę, proszę.",
            "Nie można tego ustalić na podstawie podanego tekstu.",
        ),
    ),
    "pt": (
        "Quem a fundou?",
        "Qual é o estado do pedido?",
        (
            "Desconhecido.",
            "NÃO ENCONTRADO",
            "Não disponível.",
        ),
        (
            "Por favor, entre em contato com o suporte.",
            "Deixe-me verificar isso para você.",
            "Um momento, por favor.",
            "Não é possível determinar a partir do texto fornecido.",
        ),
    ),
    "ru": (
        "Кто основал компанию?",
        "Каков статус заказа?",
        (
            "Неизвестно.",
            "НЕ НАЙДЕНО",
            "0 результатов",
        ),
        (
            "Пожалуйста, обратитесь в службу поддержки.",
            "Давайте я проверю это для вас.",
            "Минуточку, пожалуйста.",
            "Из приведённого текста это определить невозможно.",
        ),
    ),
    "tr": (
        "Onu kim kurdu?",
        "Siparişin durumu nedir?",
        (
            "Bilinmiyor.",
            "BULUNAMADI",
            "Mevcut değil.",
        ),
        (
            "Lütfen destek ekibiyle iletişime geçin.",
            "Bunu sizin için kontrol edeyim.",
            "Bir saniye lütfen.",
            "Verilen metinden belirlenemiyor.",
        ),
    ),
    "uk": (
        "Хто заснував компанію?",
        "Який статус замовлення?",
        (
            "Невідомо.",
            "НЕ ЗНАЙДЕНО",
            "0 результатів",
        ),
        (
            "Будь ласка, зверніться до служби підтримки.",
            "Давайте я перевірю це для вас.",
            "Хвилиночку, будь ласка.",
            "З наведеного тексту це визначити неможливо.",
        ),
    ),
    "vi": (
        "Ai sáng lập công ty?",
        "Trạng thái đơn hàng là gì?",
        (
            "Không áp dụng.",
            "KHÔNG CÓ KẾT QUẢ",
            "Ngoài phạm vi",
        ),
        (
            "Vui lòng liên hệ bộ phận hỗ trợ.",
            "Để tôi kiểm tra giúp bạn.",
            "Vui lòng chờ một chút.",
            "Không thể xác định từ văn bản đã cho.",
        ),
    ),
    "zh": (
        "谁创立了它？",
        "订单的状态是什么？",
        (
            "未知",
            "不适用",
            "超出范围。",
        ),
        (
            "请联系客服。",
            "让我帮您查一下。",
            "请稍等片刻。",
            "无法从给定文本中确定。",
        ),
    ),
}
"""For each other language: "Who founded it?", "What is the status of the order?", markers such as
"Unknown" and "Not found", and stopgaps such as "Please contact support."."""


def asked(answer: str, question: str = QUESTION, context: str = CONTEXT) -> dict[str, Any]:
    """Return an answer to `QUESTION`, with a context about something else, as a sample."""
    return {"question": question, "answer": answer, "contexts": [context]}
