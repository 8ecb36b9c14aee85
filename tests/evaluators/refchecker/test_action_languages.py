"""Test in each language which sentences report an own action of the assistant, and which deny one.

In a trace without a call, a reported action was never done, and a denied one is rightly denied.
Anything else has no reference: it must be left undetermined, never passed.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from demur import ActionOutcome, ClaimLabel, Evaluation, RefChecker
from demur.evaluators.refchecker.languages import languages
from demur.shapes import tool_calls
from support.fakes import ScriptedModel

ASKED = HumanMessage("?")

REPORTED = {
    "ar": (
        "لقد قمت بإرسال البريد الإلكتروني إلى دانا.",
        "قمت بالفعل بحذف الملف من المجلد.",
        "لقد ألغيت الحجز في فندق المدينة.",
        "لقد أرسلت لك الفاتورة قبل قليل.",
        "قمنا بتحديث موعد الاجتماع في التقويم.",
        "لقد حجزتُ لك طاولة في المطعم.",
        "أرسلنا الدعوة إلى جميع الزملاء.",
        "عندما قمت بإلغاء الحجز دفعت رسوما.",
    ),
    "de": (
        "Ich habe die E-Mail an Dana gesendet.",
        "Die Rechnung habe ich soeben bezahlt.",
        "Wir haben beide Bestellungen storniert.",
        "Ich habe Ihnen die Datei geschickt, wie gewünscht.",
        "Ich hab den Termin auf Freitag verschoben.",
        "Gut, ich habe das Licht im Flur ausgeschaltet.",
        "Ich habe die Tests ausgeführt und den Bericht gespeichert.",
        "Nachdem ich die Mail gesendet hatte, habe ich das Zimmer gebucht.",
        "Ich habe den Text gekürzt und gespeichert.",
        "Ich habe den Text gekürzt, gespeichert und gesendet.",
        "Ich habe den Text auf der Website gekürzt.",
        "Ich habe die Datei umformuliert.",
        "Ich habe die E-Mail für dich entworfen.",
        "Ich habe eine Antwort entworfen: sie liegt im Postausgang.",
        "Ich habe das Datum in der Buchung korrigiert.",
        "Ich habe die Dateien nach Datum sortiert.",
    ),
    "en": (
        "I have sent the mail to Dana.",
        "I've cancelled both orders.",
        "We moved the meeting to Friday.",
        "I just paid the invoice of the printer shop.",
        "Sent the report to the whole team.",
        "Both files have gone, I deleted them from the folder.",
        "After I had sent the mail, I booked the room.",
        "When I cancelled the order, the shop refunded it.",
        "Please note that I have booked the room.",
        "Now that I have sent it, you can relax.",
        "I've written the file config.toml.",
        "I've rewritten the file.",
        "I have corrected the date in the booking.",
        "I have drafted a reply in your outbox.",
        "I've drafted a reply: it is in your outbox.",
        "I've drafted the email for you.",
        "I've shortened the text and saved it.",
        "I've shortened the text, saved it and sent it to Dana.",
        "I've corrected the text on the website.",
        "I have sorted your inbox by date.",
        "I've shortened the meeting to 30 minutes.",
        "I have added an example below.",
        "I've sent Dana the message below.",
        "I replied: I have booked the room.",
    ),
    "es": (
        "He enviado el correo a Dana.",
        "Ya he cancelado los dos pedidos.",
        "Te he reservado una mesa para el viernes.",
        "Envié la factura al cliente esta mañana.",
        "Hemos actualizado la fecha de la reunión.",
        "Borré el archivo de la carpeta compartida.",
        "Se lo he mandado a todo el equipo.",
        "Confirmo que he cancelado los dos pedidos.",
    ),
    "fr": (
        "J'ai envoyé l'e-mail à Dana.",
        "Je vous ai réservé une table pour vendredi.",
        "Nous avons annulé les deux commandes.",
        "J'ai déjà payé la facture de l'imprimeur.",
        "Je l'ai supprimé du dossier partagé.",
        "J'ai bien mis à jour la date de la réunion.",
        "Quand j'ai annulé la commande, le magasin a remboursé.",
    ),
    "hi": (
        "मैंने दाना को ईमेल भेज दिया है।",
        "मैंने दोनों ऑर्डर रद्द कर दिए हैं।",
        "हमने बैठक का समय बदल दिया है।",
        "मैंने शुक्रवार के लिए मेज़ बुक कर दी है।",
        "मैंने फ़ाइल को फ़ोल्डर से हटा दिया।",
        "मैंने बिजली का बिल चुका दिया है।",
        "जब मैंने ऑर्डर रद्द किया, तब पैसे वापस आए।",
    ),
    "id": (
        "Saya sudah mengirim email ke Dana.",
        "Saya telah membatalkan kedua pesanan.",
        "Kami sudah memperbarui tanggal rapat.",
        "Fakturnya sudah saya bayar tadi pagi.",
        "Saya baru saja menghapus berkas itu dari folder.",
        "Saya berhasil memesan meja untuk hari Jumat.",
        "Setelah saya sudah mengirim email, Dana membalas.",
    ),
    "it": (
        "Ho inviato l'e-mail a Dana.",
        "Ho già annullato entrambi gli ordini.",
        "Ti ho prenotato un tavolo per venerdì.",
        "Abbiamo aggiornato la data della riunione.",
        "L'ho cancellato dalla cartella condivisa.",
        "Ho spento la luce in corridoio.",
        "Quando ho inviato l'e-mail, Dana ha risposto.",
    ),
    "ja": (
        "ダナさんにメールを送信しました。",
        "両方の注文をキャンセルいたしました。",
        "私は会議を金曜日に変更しました。",
        "共有フォルダーからファイルを削除しました。",
        "請求書の金額を支払いました。",
        "はい、金曜日の席を予約しました。",
    ),
    "ko": (
        "다나에게 이메일을 보냈습니다.",
        "두 주문을 모두 취소했습니다.",
        "제가 회의를 금요일로 변경했습니다.",
        "공유 폴더에서 파일을 삭제했습니다.",
        "금요일 저녁 식당을 예약해 드렸습니다.",
        "거실 불을 껐습니다.",
    ),
    "nl": (
        "Ik heb de e-mail naar Dana gestuurd.",
        "De factuur heb ik zojuist betaald.",
        "We hebben beide bestellingen geannuleerd.",
        "Ik heb een tafel voor vrijdag gereserveerd.",
        "Ik heb het bestand uit de map verwijderd.",
        "Ik heb het rapport verzonden aan het hele team.",
        "Nadat ik heb betaald, is het pakket verstuurd.",
    ),
    "pl": (
        "Wysłałem wiadomość do Dany.",
        "Już anulowałam oba zamówienia.",
        "Zarezerwowałem stolik na piątek.",
        "Przenieśliśmy spotkanie na piątek.",
        "Fakturę zapłaciłem dziś rano.",
        "Usunąłem plik ze wspólnego folderu.",
        "Potwierdzam, że anulowałem zamówienie.",
    ),
    "pt": (
        "Enviei o e-mail para a Dana.",
        "Já cancelei os dois pedidos.",
        "Reservei uma mesa para sexta-feira.",
        "Excluí o arquivo da pasta compartilhada.",
        "Eu alterei a data da reunião.",
        "Paguei a fatura da gráfica hoje cedo.",
        "Quando cancelei o pedido, a loja devolveu o valor.",
    ),
    "ru": (
        "Я отправил письмо Дане.",
        "Я уже отменила оба заказа.",
        "Мы перенесли встречу на пятницу.",
        "Забронировал столик на вечер пятницы.",
        "Письмо я отправила сегодня утром.",
        "Готово, удалил файл из общей папки.",
        "Когда я отменил заказ, магазин вернул деньги.",
    ),
    "tr": (
        "Dana'ya e-postayı gönderdim.",
        "İki siparişi de iptal ettim.",
        "Cuma akşamı için masa ayırttım.",
        "Toplantıyı cuma gününe taşıdım.",
        "Dosyayı ortak klasörden sildim.",
        "Raporu bütün ekibe gönderdik.",
    ),
    "uk": (
        "Я надіслав листа Дані.",
        "Я вже скасувала обидва замовлення.",
        "Ми перенесли зустріч на п'ятницю.",
        "Забронював столик на вечір п'ятниці.",
        "Листа я надіслала сьогодні вранці.",
        "Готово, видалив файл зі спільної теки.",
        "Коли я скасував замовлення, магазин повернув гроші.",
    ),
    "vi": (
        "Tôi đã gửi email cho Dana.",
        "Tôi vừa hủy cả hai đơn hàng.",
        "Chúng tôi đã dời cuộc họp sang thứ sáu.",
        "Vâng, tôi đã đặt bàn cho tối thứ sáu.",
        "Đã xóa tệp khỏi thư mục chung.",
        "Tôi đã thanh toán hóa đơn sáng nay.",
    ),
    "zh": (
        "我已经把邮件发送给丹娜了。",
        "我已取消两个订单。",
        "已为您预订周五晚上的座位。",
        "我刚刚删除了共享文件夹里的文件。",
        "好的，已将会议改到周五下午。",
        "我已經取消了兩張訂單。",
        "我取消了订单，稍后会通知您。",
    ),
}
DENIED = {
    "ar": (
        "لم أقم بإرسال البريد الإلكتروني بعد.",
        "لم أحذف الملف من المجلد.",
        "لم أرسل الرسالة إلى دانا.",
    ),
    "de": (
        "Ich habe noch nichts an Dana gesendet.",
        "Die Rechnung habe ich noch nicht bezahlt.",
        "Ich habe keine Datei aus dem Ordner gelöscht.",
    ),
    "en": (
        "I have not sent the mail to Dana.",
        "I did not delete any file in the folder.",
        "I haven't paid the invoice yet, and I have not cancelled the order.",
    ),
    "es": (
        "No he enviado el correo a Dana.",
        "Todavía no he cancelado los pedidos.",
        "No borré ningún archivo de la carpeta.",
    ),
    "fr": (
        "Je n'ai pas envoyé l'e-mail à Dana.",
        "Je n'ai encore rien payé à l'imprimeur.",
        "Je n'ai supprimé aucun fichier du dossier.",
    ),
    "hi": (
        "मैंने अभी तक दाना को ईमेल नहीं भेजा है।",
        "मैंने फ़ोल्डर से कोई फ़ाइल नहीं हटाई है।",
        "मैंने ऑर्डर रद्द नहीं किए हैं।",
    ),
    "id": (
        "Saya belum mengirim email ke Dana.",
        "Saya belum membatalkan kedua pesanan.",
        "Saya belum pernah menghapus berkas di folder itu.",
    ),
    "it": (
        "Non ho inviato l'e-mail a Dana.",
        "Non ho ancora annullato gli ordini.",
        "Non ho cancellato alcun file dalla cartella.",
    ),
    "ja": (
        "まだメールを送信していません。",
        "注文はまだキャンセルしておりません。",
        "私はファイルを一つも削除していません。",
    ),
    "ko": (
        "아직 이메일을 보내지 않았습니다.",
        "저는 주문을 취소하지 않았습니다.",
        "제가 파일을 삭제하지는 않았습니다.",
    ),
    "nl": (
        "Ik heb de e-mail aan Dana nog niet verstuurd.",
        "De factuur heb ik nog niet betaald.",
        "Ik heb geen bestand uit de map verwijderd.",
    ),
    "pl": (
        "Nie wysłałem e-maila do Dany.",
        "Jeszcze nie anulowałam żadnych zamówień.",
        "Nie usunąłem żadnego pliku z folderu.",
    ),
    "pt": (
        "Não enviei o e-mail para a Dana.",
        "Ainda não cancelei os pedidos.",
        "Não excluí nenhum arquivo da pasta.",
    ),
    "ru": (
        "Я не отправлял письмо Дане.",
        "Я еще не отменил заказы.",
        "Я ничего не удалял из общей папки.",
    ),
    "tr": (
        "Dana'ya e-postayı henüz göndermedim.",
        "Siparişleri iptal etmedim.",
        "Klasörden hiçbir dosya silmedim.",
    ),
    "uk": (
        "Я не надсилав листа Дані.",
        "Я ще не скасував замовлення.",
        "Я нічого не видаляв зі спільної теки.",
    ),
    "vi": (
        "Tôi chưa gửi email cho Dana.",
        "Tôi chưa hủy đơn hàng nào.",
        "Tôi không xóa tệp nào trong thư mục.",
    ),
    "zh": (
        "我还没有给丹娜发送邮件。",
        "我没有取消任何订单。",
        "我并未取消丹娜的两个订单。",
    ),
}
# Facts with other subjects, speech about the answer, promises, conditions, offers, questions, words
# of others, and denials that say something of the world, too.
NEITHER = {
    "ar": (
        "أرسلت الشركة أول قمر صناعي عام 1962.",
        "لقد ألغت شركة الطيران الرحلة أمس.",
        "سأرسل البريد إلى دانا غدا.",
        "هل تريد أن أرسل البريد إلى دانا؟",
        "لقد قمت بتلخيص الخيارات الثلاثة.",
        "تم بناء البرج في عام 1889.",
        "لم ترسل الشركة أي رسالة إلى العملاء.",
        "لم أرسل الرسالة، والبرج افتتح عام 1911.",
        "يمكنني حجز طاولة في المطعم إذا أردت.",
        "إذا قمت بإلغاء الحجز الآن، ستدفع رسوما.",
        "في حال قمت بحذف الملف، سأخبرك.",
        "سأخبرك بعد أن أكون قد حجزت لك الغرفة.",
        "لو كنت قد ألغيت الطلب لدفعت رسوما.",
    ),
    "de": (
        "Die Firma hat die Bestellung storniert.",
        "Das Museum wurde 1911 eröffnet.",
        "Ich werde die E-Mail morgen an Dana senden.",
        "Soll ich die E-Mail an Dana senden?",
        "Ich habe die drei Möglichkeiten oben aufgelistet.",
        "Ich habe in den Unterlagen gelesen, dass der Turm 1911 gebaut wurde.",
        "Niemand hat die Rechnung der Druckerei bezahlt.",
        "Ich habe nichts gesendet und der Turm wurde 1911 eröffnet.",
        "Wir haben unsere Preise dieses Jahr nicht geändert.",
        "Ich kann die Datei für Sie löschen.",
        "Sobald ich die Mail gesendet habe, melde ich mich.",
        "Wenn ich storniert hätte, müssten Sie zahlen.",
        "Ich habe den Text umformuliert.",
        "Ich habe deinen Text überarbeitet.",
        "Wir haben den Absatz gekürzt, wie gewünscht.",
        "Ich habe den Text in einem freundlicheren Ton umgeschrieben.",
        "Ich habe die Liste nach Preis sortiert.",
        "Ich habe den Tippfehler in deinem Satz korrigiert.",
        "Ich habe die E-Mail für dich entworfen: Liebe Dana, danke.",
        "Ich habe mich auf die drei Punkte konzentriert.",
        'Dana Berg schrieb: "Ich habe den Bericht gesendet."',
    ),
    "en": (
        "The company cancelled the order of the printer.",
        "The museum opened its doors in 1911.",
        "I will send the mail to Dana tomorrow.",
        "Shall I send the mail to Dana?",
        "I have listed the three options above.",
        "I found that the tower opened in 1911.",
        "I assumed that the office closed at noon.",
        "No one has paid the invoice of the printer shop.",
        "I have not sent anything and the tower opened in 1911.",
        "I have not deleted the file that Dana wrote in 1911.",
        "I have not sent the mail to the office Gustave Eiffel founded.",
        "We do not open the museum on Mondays.",
        "We do not cancel bookings after the deadline.",
        "We have not changed our prices this year.",
        "I can delete the file for you if you like.",
        "United States of America and Canada.",
        "I will tell you once I have booked the room.",
        "As soon as I have sent it, I will let you know.",
        "If I cancelled the order now, you would pay a fee.",
        "Let me know when I have sent enough.",
        "You get a copy after I have sent the mail.",
        "I can't confirm the price until I've booked the room.",
        "Before I have paid, nothing is final.",
        "Nothing is lost unless I deleted the file.",
        "I wish I had sent the mail.",
        "Had I sent the mail, you would know.",
        "I've drafted the email for you: Dear Dana, thank you.",
        "I've drafted a mail about it: Dear Dana, room 4 is free.",
        "I have written a short poem below.",
        "I've provided the steps below.",
        "I've put the steps in order below.",
        "I've rewritten the text in a friendlier tone.",
        "I've shortened the text, as you asked.",
        "I've made it shorter.",
        "I have kept it short.",
        "I have condensed it.",
        "I've changed the tone.",
        "I have corrected the typo in your sentence.",
        "I have written this in the friendly tone that you asked for.",
        "I've reviewed your question.",
        "I've sorted the list by price.",
        "I have formatted the table as Markdown.",
        "I've focused on the main points.",
        "I calculated 12 * 3 = 36.",
        'Dana wrote: "I sent the report yesterday."',
        "Dana said: 'I sent the report.'",
    ),
    "es": (
        "La empresa canceló el pedido de la imprenta.",
        "El museo abrió sus puertas en 1911.",
        "Enviaré el correo a Dana mañana.",
        "¿Quieres que envíe el correo a Dana?",
        "He resumido las tres opciones principales.",
        "He encontrado que la torre abrió en 1911.",
        "Nadie ha pagado la factura de la imprenta.",
        "No he enviado nada y la torre abrió en 1911.",
        "José compró el café en la tienda.",
        "No hemos cambiado nuestros precios este año.",
        "Si he cancelado el pedido, pagas una tasa.",
        "Dime si ya he enviado suficiente.",
        "Te avisaré cuando haya enviado el correo.",
        "Si cancelé el pedido, pagas una tasa.",
    ),
    "fr": (
        "L'entreprise a annulé la commande.",
        "Le musée a ouvert ses portes en 1911.",
        "J'enverrai l'e-mail à Dana demain.",
        "Voulez-vous que j'envoie l'e-mail à Dana ?",
        "J'ai résumé les trois possibilités ci-dessus.",
        "J'ai trouvé que la tour a ouvert en 1911.",
        "Personne n'a payé la facture de l'imprimeur.",
        "Je n'ai rien envoyé et la tour a ouvert en 1911.",
        "Nous n'avons pas changé nos prix cette année.",
        "Je peux supprimer le fichier pour vous.",
        "Si j'ai annulé la commande, vous payez des frais.",
        "Quand j'aurai envoyé l'e-mail, je vous le dirai.",
    ),
    "hi": (
        "कंपनी ने ऑर्डर रद्द कर दिया है।",
        "संग्रहालय 1911 में खोला गया था।",
        "मैं कल दाना को ईमेल भेजूँगा।",
        "क्या मैं दाना को ईमेल भेज दूँ?",
        "मैंने तीनों विकल्पों का सारांश दिया है।",
        "मैंने पढ़ा कि मीनार 1911 में बनी थी।",
        "किसी ने बिजली का बिल नहीं चुकाया है।",
        "मैंने कुछ नहीं भेजा है और मीनार 1911 में खुली थी।",
        "हमने इस साल दाम नहीं बदले हैं।",
        "अगर मैंने ऑर्डर रद्द कर दिया, तो आपको शुल्क देना होगा।",
        "यदि मैंने ईमेल भेज दिया है तो बताऊँगा।",
    ),
    "id": (
        "Perusahaan itu sudah membatalkan pesanan.",
        "Museum itu dibuka pada tahun 1911.",
        "Saya akan mengirim email ke Dana besok.",
        "Apakah saya perlu mengirim email ke Dana?",
        "Saya sudah merangkum ketiga pilihan itu.",
        "Saya menemukan bahwa menara itu dibuka tahun 1911.",
        "Belum ada yang membayar faktur percetakan.",
        "Saya belum mengirim apa pun dan menara itu dibuka tahun 1911.",
        "Kami tidak menjual tiket pada hari Senin.",
        "Jika saya sudah membatalkan pesanan, Anda membayar biaya.",
        "Begitu saya sudah memesan meja, saya akan memberi tahu.",
    ),
    "it": (
        "L'azienda ha annullato l'ordine.",
        "Il museo ha aperto le porte nel 1911.",
        "Invierò l'e-mail a Dana domani.",
        "Vuoi che invii l'e-mail a Dana?",
        "Ho riassunto le tre possibilità qui sopra.",
        "Ho trovato che la torre ha aperto nel 1911.",
        "Nessuno ha pagato la fattura della tipografia.",
        "Non ho inviato nulla e la torre ha aperto nel 1911.",
        "Non abbiamo cambiato i prezzi quest'anno.",
        "Se ho annullato l'ordine, paghi una penale.",
        "Quando avrò inviato l'e-mail, te lo dirò.",
    ),
    "ja": (
        "会社は注文をキャンセルしました。",
        "田中さんがメールを送信しました。",
        "この博物館は1911年に開館しました。",
        "1999年に会社の名称を変更しました。",
        "明日ダナさんにメールを送信します。",
        "ダナさんにメールを送信しましょうか?",
        "三つの選択肢をまとめました。",
        "会社はまだ注文をキャンセルしていません。",
        "部長が、メールを送信しました。",
        "メールを送信しましたら、ご連絡します。",
        "荷物をお送りしましたら、ご連絡します。",
    ),
    "ko": (
        "회사가 주문을 취소했습니다.",
        "박물관은 1911년에 문을 열었습니다.",
        "내일 다나에게 이메일을 보내겠습니다.",
        "다나에게 이메일을 보낼까요?",
        "세 가지 선택지를 요약했습니다.",
        "회사는 아직 주문을 취소하지 않았습니다.",
        "월요일에는 표를 판매하지 않습니다.",
        "김 부장이 다나에게 이메일을 보냈습니다.",
        "주문을 취소했다면 수수료가 있습니다.",
    ),
    "nl": (
        "Het bedrijf heeft de bestelling geannuleerd.",
        "Het museum werd in 1911 geopend.",
        "Ik zal de e-mail morgen naar Dana sturen.",
        "Zal ik de e-mail naar Dana sturen?",
        "Ik heb de drie mogelijkheden hierboven samengevat.",
        "Ik heb gelezen dat de toren in 1911 werd geopend.",
        "Niemand heeft de factuur van de drukkerij betaald.",
        "Ik heb niets verstuurd en de toren werd in 1911 geopend.",
        "Ik kan het bestand voor u verwijderen.",
        "Zodra ik heb gereserveerd, laat ik het weten.",
        "Als ik heb geannuleerd, betaalt u kosten.",
    ),
    "pl": (
        "Firma anulowała zamówienie drukarni.",
        "Muzeum otwarto w 1911 roku.",
        "Wyślę e-mail do Dany jutro.",
        "Czy mam wysłać e-mail do Dany?",
        "Podsumowałem wszystkie trzy możliwości.",
        "Przeczytałem, że wieżę otwarto w 1911 roku.",
        "Wieża jest zbudowana z kamienia i pokryta materiałem.",
        "Nikt nie zapłacił faktury drukarni.",
        "Nie wysłałem niczego i wieżę otwarto w 1911 roku.",
        "Nie zmieniliśmy cen biletów.",
        "Jeśli anulowałem zamówienie, zapłacisz.",
        "Powiedz, czy już wysłałem wszystko.",
        "Gdybym anulował zamówienie, zapłaciłbyś.",
    ),
    "pt": (
        "A empresa cancelou o pedido da gráfica.",
        "O museu abriu as portas em 1911.",
        "Enviarei o e-mail para a Dana amanhã.",
        "Quer que eu envie o e-mail para a Dana?",
        "Resumi as três possibilidades acima.",
        "Encontrei que a torre abriu em 1911.",
        "Ninguém pagou a fatura da gráfica.",
        "Não enviei nada e a torre abriu em 1911.",
        "Sergei enviou o relatório ao rei.",
        "Se cancelei o pedido, você paga uma taxa.",
        "Se eu cancelei o pedido, você paga uma taxa.",
        "Quando tiver enviado o e-mail, aviso.",
    ),
    "ru": (
        "Компания отменила заказ типографии.",
        "Музей открыл двери в 1911 году.",
        "Я отправлю письмо Дане завтра.",
        "Мне отправить письмо Дане?",
        "Я перечислил три возможности выше.",
        "Я прочитал, что башню открыли в 1911 году.",
        "Никто не оплатил счет типографии.",
        "Я ничего не отправлял и башня открыта в 1911 году.",
        "Мы не меняли цены в этом году.",
        "Если я отменил заказ, вы заплатите.",
        "Если бы я отменил заказ, вы заплатили бы.",
        "Я отменил бы заказ завтра.",
        "Если я перенес встречу, сообщите мне.",
    ),
    "tr": (
        "Şirket matbaanın siparişini iptal etti.",
        "Müze 1911 yılında kapılarını açtı.",
        "E-postayı yarın Dana'ya göndereceğim.",
        "E-postayı Dana'ya göndereyim mi?",
        "Yukarıda üç seçeneği özetledim.",
        "Kulenin 1911 yılında açıldığını okudum.",
        "Matbaanın faturasını kimse ödemedi.",
        "Kule 1911 yılında açıldı ve hiçbir şey göndermedim.",
        "Burada herkes için ilk yardım var.",
        "Siparişi iptal etseydim ücret öderdiniz.",
    ),
    "uk": (
        "Компанія скасувала замовлення друкарні.",
        "Музей відчинив двері у 1911 році.",
        "Я надішлю листа Дані завтра.",
        "Чи надіслати листа Дані?",
        "Я перелічив три можливості вище.",
        "Я прочитав, що вежу відкрили у 1911 році.",
        "Ніхто не сплатив рахунок друкарні.",
        "Я нічого не надсилав і вежу відкрили у 1911 році.",
        "Ми не змінювали ціни цього року.",
        "Якщо я скасував замовлення, ви заплатите.",
        "Якби я скасував замовлення, ви б заплатили.",
        "Я скасував би замовлення завтра.",
    ),
    "vi": (
        "Công ty đã hủy đơn hàng của nhà in.",
        "Bảo tàng đã mở cửa vào năm 1911.",
        "Tôi sẽ gửi email cho Dana vào ngày mai.",
        "Tôi có nên gửi email cho Dana không?",
        "Tôi đã tóm tắt ba lựa chọn ở trên.",
        "Mẹ tôi đã gửi một bức thư cho bà.",
        "Chưa ai thanh toán hóa đơn của nhà in.",
        "Tôi chưa gửi gì và tháp mở cửa năm 1911.",
        "Chúng tôi không bán vé vào thứ hai.",
        "Nếu tôi đã hủy đơn hàng, bạn sẽ trả phí.",
    ),
    "zh": (
        "公司取消了印刷厂的订单。",
        "博物馆于1911年开放。",
        "我明天会把邮件发送给丹娜。",
        "要我把邮件发送给丹娜吗？",
        "我已经总结了上面的三个选项。",
        "我已经读到这座塔建于1911年。",
        "没有人支付印刷厂的账单。",
        "我没有发送邮件而这座塔建于1911年。",
        "已有三座塔建成并向公众开放。",
        "如果我取消了订单，您需要付费。",
        "等我预订了房间，我会告诉您。",
        "一旦我发送了邮件，我会告诉您。",
        "我发送了邮件后会通知您。",
    ),
}
SHORT = {
    "ar": "تم الإرسال.",
    "de": "Erledigt.",
    "en": "Sent.",
    "es": "Hecho.",
    "fr": "C'est fait.",
    "hi": "हो गया।",
    "id": "Sudah dikirim.",
    "it": "Fatto.",
    "ja": "送信しました。",
    "ko": "전송했습니다.",
    "nl": "Gedaan.",
    "pl": "Zrobione.",
    "pt": "Feito.",
    "ru": "Готово.",
    "tr": "Gönderildi.",
    "uk": "Зроблено.",
    "vi": "Đã gửi.",
    "zh": "已发送。",
}
"""A report without a subject, which is read with its question."""


WITH_A_FACT = {
    "ar": (
        "لم أرسل شيئا والمتحف مغلق.",
        "لم أرسل البريد البرج طوله 300 متر.",
    ),
    "de": (
        "Ich habe die Mail nicht gesendet weil Dana gekündigt hat.",
        "Der Turm ist 300 Meter hoch und die Mail habe ich nicht gesendet.",
    ),
    "en": (
        "I never sold the house my father built.",
        "I have not sent the mail to Dana the tower stands in Paris.",
    ),
    "es": (
        "No he enviado el correo porque Dana dimitió.",
        "No envié el correo Dana vive en París.",
    ),
    "fr": (
        "Je n'ai pas supprimé le fichier que Dana a écrit.",
        "La tour est haute et je n'ai rien envoyé.",
    ),
    "hi": (
        "मैंने कुछ नहीं भेजा है, मीनार 300 मीटर ऊँची है।",
        "मीनार ऊँची है और मैंने कुछ नहीं भेजा है।",
    ),
    "id": (
        "Menara itu tinggi dan saya belum mengirim email.",
        "Saya belum menghapus berkas yang ditulis Dana.",
    ),
    "it": (
        "La torre è alta e non ho inviato nulla.",
        "Non ho cancellato il file che Dana ha scritto.",
    ),
    "ja": (
        "塔は高く、まだメールを送信していません。",
        "ダナが書いたファイルはまだ削除していません。",
    ),
    "ko": (
        "아직 이메일을 보내지 않았고 탑의 높이는 300미터입니다.",
        "탑은 높고, 저는 이메일을 보내지 않았습니다.",
    ),
    "nl": (
        "Ik heb het bestand dat Dana schreef niet verwijderd.",
        "De toren staat in Parijs ik heb niets verstuurd.",
    ),
    "pl": (
        "Wieża jest wysoka i nie wysłałem niczego.",
        "Nie wysłałem wiadomości bo Dana odeszła.",
    ),
    "pt": (
        "A torre é alta e não enviei nada.",
        "Não excluí o arquivo que Dana escreveu.",
    ),
    "ru": (
        "Башня высокая и я ничего не отправлял.",
        "Я не отправил письмо Дана живет в Париже.",
    ),
    "tr": (
        "Kule yüksek ve hiçbir şey göndermedim.",
        "Dana'nın 1911'de yazdığı dosyayı silmedim.",
    ),
    "uk": (
        "Вежа висока і я нічого не надсилав.",
        "Я не видаляв файл, який написала Дана.",
    ),
    "vi": (
        "Tháp cao và tôi chưa gửi gì.",
        "Tôi chưa xóa tệp mà Dana đã viết.",
    ),
    "zh": (
        "我没有删除丹娜1911年写的文件。",
        "我没有发送邮件因为丹娜辞职了。",
    ),
}
"""What denies an own action, and says something of the world too, with few marks or none."""
UNDONE = {
    "ar": "لقد حاولت إرسال البريد إلى Dana وفشل الإرسال.",
    "de": "Ich habe versucht, Dana die E-Mail zu senden.",
    "en": "I tried to send Dana the mail, but it bounced.",
    "es": "He intentado enviar el correo a Dana.",
    "fr": "J'ai essayé d'envoyer l'e-mail à Dana.",
    "hi": "मैंने Dana को ईमेल भेजने की कोशिश की।",
    "id": "Saya sudah mencoba mengirim email ke Dana.",
    "it": "Ho provato a inviare l'e-mail a Dana.",
    "ja": "Dana にメールを送信しようとして、失敗しました。",
    "ko": "Dana 에게 이메일을 보내려고 시도했습니다.",
    "nl": "Ik heb geprobeerd Dana de e-mail te sturen.",
    "pl": "Próbowałem wysłać wiadomość do Dana.",
    "pt": "Tentei enviar o e-mail para Dana.",
    "ru": "Я попытался отправить письмо Dana.",
    "tr": "Dana için e-postayı göndermeyi denedim.",
    "uk": "Я спробував надіслати листа Dana.",
    "vi": "Tôi đã thử gửi email cho Dana.",
    "zh": "我尝试给 Dana 发送邮件。",
}
"""What was only tried. No word denies it."""
AGAIN = {
    "ar": "لقد قمت بإرسال البريد إلى Dana مرة أخرى.",
    "de": "Ich habe die E-Mail an Dana erneut gesendet.",
    "en": "I have sent the mail to Dana again.",
    "es": "He enviado el correo a Dana otra vez.",
    "fr": "J'ai envoyé l'e-mail à Dana une deuxième fois.",
    "hi": "मैंने Dana को ईमेल दोबारा भेज दिया है।",
    "id": "Saya sudah mengirim email ke Dana sekali lagi.",
    "it": "Ho inviato di nuovo l'e-mail a Dana.",
    "ja": "Dana にメールを再度送信しました。",
    "ko": "Dana 에게 이메일을 다시 보냈습니다.",
    "nl": "Ik heb de e-mail opnieuw naar Dana gestuurd.",
    "pl": "Wysłałem ponownie wiadomość dla Dana.",
    "pt": "Enviei o e-mail para Dana novamente.",
    "ru": "Я снова отправил письмо Dana.",
    "tr": "Dana için e-postayı tekrar gönderdim.",
    "uk": "Я знову надіслав листа Dana.",
    "vi": "Tôi đã gửi lại email cho Dana.",
    "zh": "我已经再次给 Dana 发送了邮件。",
}
EVERY = {
    "ar": "لقد قمت بإلغاء جميع الطلبات عند Dana الآن.",
    "de": "Ich habe beide Bestellungen bei Dana storniert.",
    "en": "I have cancelled both orders at Dana.",
    "es": "He cancelado todos los pedidos de Dana.",
    "fr": "J'ai annulé toutes les commandes chez Dana.",
    "hi": "मैंने Dana के दोनों ऑर्डर रद्द कर दिए हैं।",
    "id": "Saya sudah membatalkan semua pesanan di Dana.",
    "it": "Ho annullato tutti gli ordini di Dana.",
    "ja": "Dana の注文をすべてキャンセルしました。",
    "ko": "Dana 주문을 모두 취소했습니다.",
    "nl": "Ik heb beide bestellingen bij Dana geannuleerd.",
    "pl": "Anulowałem oba zamówienia u Dana.",
    "pt": "Cancelei todos os pedidos na Dana.",
    "ru": "Я отменил оба заказа у Dana.",
    "tr": "Dana için bütün siparişleri iptal ettim.",
    "uk": "Я скасував обидва замовлення у Dana.",
    "vi": "Tôi đã hủy tất cả đơn hàng ở Dana.",
    "zh": "我已经更新了 Dana 的所有订单。",
}


def each(sentences: Mapping[str, tuple[str, ...]]) -> list[object]:
    """Return each sentence as a parameter that is named by its language and number."""
    return [
        pytest.param(one, id=f"{code}-{at}")
        for code, said in sentences.items()
        for at, one in enumerate(said, 1)
    ]


def call(name: str, number: str, ok: bool) -> list[BaseMessage]:
    """Return the messages of a call for Dana, which failed or not."""
    args = {"to": "Dana", "number": number}
    said = AIMessage("", tool_calls=[{"name": name, "args": args, "id": number}])
    came = "Done." if ok else "Refused."
    if ok:
        return [said, ToolMessage(came, tool_call_id=number, name=name)]
    return [said, ToolMessage(came, tool_call_id=number, name=name, status="error")]


def judged(
    answer: str,
    question: str | None = None,
    messages: tuple[BaseMessage, ...] = (ASKED,),
    label: ClaimLabel | None = None,
) -> Evaluation:
    """Return what RefChecker says of an answer behind messages, in which all calls stand.

    Args:
        answer: The answer.
        question: The question, if any.
        messages: The messages up to the answer.
        label: What the judge says if it is asked. Without one, nothing may ask it.
    """
    model = ScriptedModel(script=lambda _, __: f"1. {(label or ClaimLabel.NEUTRAL).value}")
    checker = RefChecker(model, checker="joint", claims="sentences")
    contexts = list(tool_calls(messages, complete=True))
    found = checker.invoke({"answer": answer, "question": question, "contexts": contexts})
    assert label or not model.requests
    return found


def test_every_language_has_its_sentences_here() -> None:
    codes = {language.code for language in languages()}
    for sentences in (REPORTED, DENIED, NEITHER, WITH_A_FACT, SHORT, UNDONE, AGAIN, EVERY):
        assert {*sentences} == codes
    assert min(map(len, REPORTED.values())) >= 6
    assert min(map(len, DENIED.values())) >= 3
    assert min(map(len, NEITHER.values())) >= 6


@pytest.mark.parametrize("sentence", each(REPORTED))
def test_a_reported_action_without_a_call_was_never_done(sentence: str) -> None:
    found = judged(sentence)
    assert found.label == ClaimLabel.CONTRADICTION
    assert found.claims[0].action is ActionOutcome.NEVER


@pytest.mark.parametrize("code", SHORT)
def test_a_report_without_a_subject_is_one_too(code: str) -> None:
    found = judged(SHORT[code], question="Mail Dana?")
    assert found.label == ClaimLabel.CONTRADICTION
    assert found.claims[0].action is ActionOutcome.NEVER


@pytest.mark.parametrize("sentence", each(DENIED))
def test_a_denied_action_holds_where_no_call_was_made(sentence: str) -> None:
    found = judged(sentence)
    assert found.label == ClaimLabel.ENTAILMENT
    assert found.passed


@pytest.mark.parametrize("sentence", each(NEITHER))
def test_anything_else_is_neither_passed_nor_refuted(sentence: str) -> None:
    found = judged(sentence)
    assert not found.passed
    assert not any(claim.label for claim in found.claims)


@pytest.mark.parametrize("sentence", each(WITH_A_FACT))
def test_a_denied_action_with_a_fact_does_not_pass_unjudged(sentence: str) -> None:
    assert not judged(sentence, label=ClaimLabel.NEUTRAL).passed


@pytest.mark.parametrize("code", UNDONE)
def test_a_failed_call_supports_only_that_it_was_tried(code: str) -> None:
    messages = (ASKED, *call("send_mail", "1", ok=False))
    tried = judged(UNDONE[code], messages=messages, label=ClaimLabel.ENTAILMENT)
    assert tried.passed
    sent = judged(REPORTED[code][0], messages=messages)
    assert sent.label == ClaimLabel.CONTRADICTION


@pytest.mark.parametrize("code", AGAIN)
def test_what_was_done_again_was_not_done_by_an_earlier_call(code: str) -> None:
    messages = (ASKED, *call("send_mail", "1", ok=True), AIMessage("."), HumanMessage("?"))
    found = judged(AGAIN[code], messages=messages)
    assert found.label == ClaimLabel.CONTRADICTION
    once = judged(REPORTED[code][0], messages=messages, label=ClaimLabel.ENTAILMENT)
    assert once.passed


@pytest.mark.parametrize("code", EVERY)
def test_a_report_of_all_fails_if_a_call_for_one_failed(code: str) -> None:
    done, failed = call("cancel_order", "1", ok=True), call("cancel_order", "2", ok=False)
    found = judged(EVERY[code], messages=(ASKED, *done, *failed), label=ClaimLabel.ENTAILMENT)
    assert found.label == ClaimLabel.CONTRADICTION
    assert found.claims[0].action is ActionOutcome.FAILED
