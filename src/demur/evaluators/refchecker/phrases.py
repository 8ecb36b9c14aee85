"""List the phrases that state nothing: greetings, ignorance, refusals, silence of the sources.

Each language has one `Language`. Text in any other language is checked like a statement. Each
pattern must match a whole clause in lower case, with plain apostrophes and without contractions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Language:
    """Hold a language's patterns for clauses that state nothing.

    They are compiled at their first use, since compiling all of them takes 0.1 s.
    """

    clauses: Sequence[str]
    asking: str
    turning: str
    spaced: bool = True

    @cached_property
    def nothing(self) -> re.Pattern[str]:
        """Return the pattern of a clause that states nothing."""
        return re.compile(rf"(?:{'|'.join(self.clauses)})")

    @cached_property
    def question(self) -> re.Pattern[str]:
        """Return the pattern that marks a sentence with a question mark as a question."""
        return re.compile(self.asking)

    @cached_property
    def contrast(self) -> re.Pattern[str]:
        """Return the pattern of words after which something else is said, such as "but"."""
        edge = r"\b" if self.spaced else ""
        return re.compile(rf"{edge}(?:{self.turning}){edge}")


# --- English -------------------------------------------------------------------------------------

_ADVERB = (
    r"(?:currently|really|actually|yet|still|explicitly|specifically|directly|clearly|exactly|"
    r"seem to|appear to|even|unfortunately|personally|reliably|confidently|definitively|fully|"
    r"accurately|honestly|simply|just|quite|entirely|completely|also|therefore|further) "
)
_NOT = rf"(?:{_ADVERB})*(?:do|does|did|can|could|am|are|is|was|were|will|would|have|has|may)(?: {_ADVERB.strip()})* not (?:{_ADVERB})*"
_EN_SOURCE = (
    r"(?:(?:any of |either of |one of )?(?:the |these |those |this |that |your |my |our |its )*"
    r"(?:(?:provided|given|available|supplied|retrieved|above|attached|relevant|following|"
    r"current|quoted|shared|search|knowledge|reference|source|context|two|three|uploaded) )*"
    r"(?:passages?|contexts?|documents?|documentation|texts?|sources?|references?|excerpts?|"
    r"snippets?|articles?|paragraphs?|knowledge base|search results|"
    r"(?<=provided )(?:information|content|materials?|files?)|"
    r"(?<=given )(?:information|content|materials?)|(?<=available )information|"
    r"information(?= (?:provided|given|available)))"
    r"(?: \d{1,2}\b)?"
    r"(?: (?:provided|given|above|available|here|i (?:have|was given|can see|have access to)|"
    r"you (?:have )?(?:provided|gave|gave me|shared|quoted|sent)(?: me)?|supplied|at hand|"
    r"that (?:i have|you (?:provided|shared|gave me)|(?:was|were) (?:provided|given))))*)"
)
_SAY = (
    r"(?:say|tell|mention|state|specify|cover|discuss|describe|name|"
    r"explain|indicate|address|answer|reveal|refer to|go into|talk about|note|"
    r"speak of|make clear|make it clear|touch on|disclose)"
)
_SAID = (
    r"(?:said|mentioned|stated|specified|provided|given|included|covered|discussed|described|"
    r"contained|found|named|explained|indicated|addressed|available|clear|answered|listed|told|"
    r"disclosed|present)"
)
_KNOW = (
    r"(?:know|recall|remember|answer|say|tell|help|provide|determine|confirm|verify|give|"
    r"(?:find|locate|see|identify) (?:any (?:\w+ )?(?:information|mention|details?|reference|answer)|"
    r"information|mention|details|that|this|it|out|an? answer|the (?:answer|information|relevant)|"
    r"who|what|when|where|which|how|whether)\b|comment|assist|speak|understand|work out|figure out|"
    r"infer|conclude|establish|respond|share|advise|discuss|fulfil|fulfill|comply|do that|do this|"
    r"make out|look (?:it |that |this )?up|be (?:sure|certain|confident|of (?:any )?help))"
)
_INFORMATION = (
    r"(?:(?:any|enough|sufficient|the|that|this|specific|further|more|additional|reliable|much|"
    r"relevant|up-to-date|necessary|an?|real-time|verified|other) )*(?:information|details?|data|"
    r"knowledge|context|answers?|idea|clue|records?|access|mention|references?|way|sources?|"
    r"basis|memory|means)"
)
_TAIL = r"(?: .*)?"
_PLAIN_TAIL = r"(?: \D*)?"

_ENGLISH = Language(
    [
        # Greetings, thanks, and phrases that go with them.
        r"(?:hi|hello|hey|dear|welcome|greetings|nice to meet you|good (?:morning|afternoon|evening|day|night|luck))"
        r"(?: (?:there|again|everyone|all|to you|user|friend|back))?",
        r"(?:many )?thanks?(?: you)?(?: (?:so|very) much| a lot)?(?: again)?"
        r"(?: (?:for|in advance)\D*)?",
        r"(?:you are (?:very |most )?welcome|my pleasure|no problem|bye|goodbye|see you|take care|"
        r"cheers|glad i could help|glad to (?:help|hear that))(?: (?:then|soon|later|again|at all))?",
        r"have a (?:nice|great|good|lovely|wonderful) (?:day|evening|night|weekend|week|time|trip|one)"
        r"(?: (?:too|then|ahead|yourself|in \w+))?",
        r"(?:great|good|excellent|interesting|nice) question(?: there)?",
        r"(?:sure|certainly|of course|okay|ok|alright|all right|absolutely|understood|got it|"
        r"no worries|well|hm+|ah|oh|please)",
        r"(?:i )?(?:really |sincerely )?(?:hope (?:this|that|it) (?:helps|is helpful|was helpful"
        r"|clarifies)|appreciate your)\D*",
        r"(?:please )?(?:do not hesitate|feel free|let (?:me|us) know)\D*",
        r"if you (?:have|need|want|would like)(?: to know)? (?:any|more|some|further|other|additional|"
        r"help|anything|to (?:know|ask|share|provide))\D*",
        r"if you (?:can |could |would )?(?:share|provide|tell|give|send|paste|upload|rephrase|clarify) "
        r"(?:me|us|it|the|more|a|your|some|additional)\D{0,60}",
        r"i (?:am|are|would be|will be|can be|can) (?:always )?(?:happy|glad|here|pleased|"
        r"ready|available|try|delighted)(?: again)? to (?:help|assist|answer|look|chat|try)\D*",
        r"i (?:am|are) (?:always )?here(?: (?:for you|if you \D*))?",
        r"i (?:can|will|would|could)(?: then)? (?:gladly |happily |be able to |certainly |"
        r"try to )?(?:help|try|assist|look)\D*",
        r"please (?:provide|share|clarify|rephrase|ask|tell (?:me|us)|give (?:me|us)|let|specify|"
        r"send|paste|upload|feel)\D*",
        r"please (?:check|consult|contact|refer to|see|ask) \D*(?:website|sources?|"
        r"documentation|support|experts?|professionals?|doctor|lawyer|provider|staff|elsewhere)\D*",
        r"as an? (?:\w+ )?(?:ai|assistant|language model)(?: (?:\w+ )*)?(?:model|assistant)?",
        # Apologies and lead-ins.
        r"(?:i am )?(?:very |so |really |terribly )?(?:sorry|afraid)"
        r"(?: (?:about|for) (?:that|this|the \w+))?",
        r"(?:my |our )?(?:sincere )?apolog(?:ies|y)(?: for (?:that|this|the \w+))?|i apologi[sz]e"
        r"(?: for (?:that|this|the \w+))?|unfortunately|regrettably|sadly|excuse me|alas",
        rf"(?:based (?:only |solely )?(?:up)?on|according to|from|in|given|within|going by|"
        rf"judging by|using|with|after (?:reading|reviewing|checking|searching)) {_EN_SOURCE}"
        r"(?: alone| only)?",
        # First-person ignorance and refusal.
        rf"(?:that is |this is |it is )?(?:something )?(?:that )?i {_NOT}"
        rf"(?:be able to )?(?:{_KNOW}|able to {_KNOW}|sure|certain|"
        rf"familiar|confident|allowed|permitted|comfortable|in a position|have {_INFORMATION}|"
        rf"(?:had|been given|given|been provided with) {_INFORMATION}|have (?:been )?(?:any|the|an?|"
        rf"that|enough)){_TAIL}",
        r"i (?:can|could|would|will|have|am|are) (?:also )?only (?:help|assist|answer|speak)\D*",
        rf"i (?:have|had|see|find|found|can find|could find|can see|was given|were given) "
        rf"(?:absolutely )?(?:no|not enough|too little|insufficient|little) "
        rf"{_INFORMATION}{_TAIL}",
        rf"i (?:am|are|was|were) (?:currently |still )?(?:unable|not able|unsure|uncertain|"
        rf"not sure|not certain|unfamiliar)(?: to {_KNOW}{_TAIL}| (?!to\b).*)?",
        rf"i (?:must|have to|need to|will have to|would rather|prefer to) (?:decline|refuse|"
        rf"pass|not {_KNOW}){_PLAIN_TAIL}",
        rf"i (?:lack|would need|need|would have to see|will need) (?:to (?:know|see) )?"
        rf"{_INFORMATION}{_PLAIN_TAIL}",
        r"(?:i have )?no idea(?: .*)?|(?:it |that |this )?(?:is )?beyond (?:my|our) \w+",
        rf"(?:it is |it was )?(?:not possible|impossible)(?: for me)? to {_KNOW}{_TAIL}",
        rf"(?:this|that|the|your) (?:question )?can not be (?:answered|determined|confirmed|"
        rf"established|verified)(?: (?:from|by|with|using|based on) {_EN_SOURCE})?(?: alone)?",
        rf"(?:the |an )?(?:answer|question|query)(?: to (?:your|this|that|the) \w+)? (?:is not|can not"
        rf" be|could not be) (?:\w+ )?(?:in|from|by|with|using|answered|found|determined)"
        rf"(?: (?:in|from|by|with|using|based on))?(?: {_EN_SOURCE})?(?: alone)?",
        # The sources are silent.
        rf"(?:none of )?{_EN_SOURCE} {_NOT}{_SAY}{_TAIL}",
        rf"(?:none of )?{_EN_SOURCE} {_NOT}(?:contain|include|provide|give|offer|have|list) "
        rf"(?:anything|{_INFORMATION}|an? (?:clear )?answer){_TAIL}",
        rf"(?:none|neither) of {_EN_SOURCE} (?:{_SAY}s?){_TAIL}",
        rf"nothing (?:in|within|from) {_EN_SOURCE} (?:{_SAY}s?){_TAIL}",
        rf"(?:not|nowhere) {_SAID} (?:in|by) {_EN_SOURCE}",
        rf"{_EN_SOURCE} (?:says?|mentions?|states?|contains?|includes?|provides?|gives?|has|have|"
        rf"offers?|is|are|makes?|remains?) (?:nothing|no (?:mention|details?|information|answers?|"
        rf"data|indication|references?|clues?)|silent){_TAIL}",
        rf"(?:.* )?(?:is|are|was|were|has|have) (?:{_ADVERB})*(?:not|nowhere|never) (?:{_ADVERB})*"
        rf"(?:been )?{_SAID}(?: anywhere)?(?: (?:in|by|from|within) {_EN_SOURCE})(?: alone)?",
        rf"(?:it|this|that|the answer|which|(?:the |such )(?:requested |relevant )?information) "
        rf"(?:is|was|are) (?:{_ADVERB})*(?:not|nowhere) (?:{_ADVERB})*(?:said|mentioned|stated|"
        rf"specified|answered|clear|indicated|explained)(?: anywhere)?(?: (?:in|by|from) {_EN_SOURCE}"
        rf"(?: .*)?)?",
        rf"(?:there (?:is|was|are|were|seems to be|appears to be) )?(?:simply |just )?(?:no|not "
        rf"enough|not any|insufficient|too little) (?:(?:specific|explicit|direct|clear|relevant|"
        rf"further|detailed|such|sufficient|other|additional) )*(?:information|mention|details?)"
        rf"(?: (?:(?:is|are|was|were) )?(?:available|provided|given|found|mentioned|included|stated))?"
        rf"(?: (?:about|on|regarding|concerning|as to|of|for|whether|that|who|when|where|why|how|what|"
        rf"to (?:answer|say|tell|determine|know))\b.*)?(?: (?:in|from|within) {_EN_SOURCE}(?: .*)?)?",
        rf"there (?:is|was) nothing (?:\w+ )?(?:in|about|on) {_EN_SOURCE}?{_TAIL}",
        rf"(?:{_EN_SOURCE} (?:is|are) )?(?:not (?:helpful|relevant|sufficient|enough|clear)|unrelated|"
        rf"insufficient|silent|irrelevant)(?: (?:to|for|on|about|enough)\D*)?",
    ],
    asking=(
        r"^(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|"
        r"would|will|should|shall|may|might|have|has|had|in what|in which|for which|on which|to "
        r"which|of which|by which|about which|at what|anything else)\b"
        r"(?! not\b)(?! an? )(?!.*, (?:yes|no|it|he|she|they|there) )(?!.*\b(?:you know|you aware|you realise|you realize|true that) )"
    ),
    turning=(
        r"but|however|although|though|nevertheless|nonetheless|whereas|while|except|unless|"
        r"other than|apart from|aside from|besides|beyond that|more than|only that|because|since|"
        r"still|yet|instead|rather|despite|anyway|and|"
        r"(?:so|as) (?=i\b|the\b|there\b|it\b|they\b|he\b|she\b|this\b|that\b|you\b|we\b)"
    ),
)

# --- German ------------------------------------------------------------------------------------

_DE_SOURCE = (
    r"(?:(?:der|die|das|den|dem|des|diese[rnms]?|mir|ihre[rnms]?|keine[rnms]?|vorliegende[nrm]?|"
    r"bereitgestellte[nrm]?|angegebene[nrm]?|gegebene[nrm]?|zitierte[nrm]?|genannte[nrm]?|"
    r"verfügbare[nrm]?|obige[nrm]?) )*(?:text(?:e[ns]?|stellen?|passagen?|abschnitte?n?)?|"
    r"passagen?|abschnitte?n?|auszüge?n?|dokumente?n?|quellen?|kontext|unterlagen|materialien|"
    r"informationen|angaben|textauszug|stellen)"
)
_GERMAN = Language(
    [
        r"(?:hallo|guten (?:tag|morgen|abend)|gute nacht|moin|grüß gott|hi|servus|willkommen|"
        r"auf wiedersehen|tschüs+|bis bald)(?: zusammen| noch einmal)?",
        r"(?:vielen |herzlichen |besten )?dank(?:e)?(?: (?:schön|sehr|für|ihnen|dir)\D*)?|"
        r"gern(?:e)?(?: geschehen)?|bitte(?: schön| sehr)?|viel erfolg|alles gute",
        r"(?:es tut mir (?:sehr )?leid|tut mir leid|leider|entschuldigung|ich bedaure|ich bitte um "
        r"entschuldigung|verzeihung)",
        rf"(?:auf grundlage|anhand|aufgrund|nach|laut|aus|in|im|gemäß|basierend auf) {_DE_SOURCE}",
        r"(?:ich hoffe|melden sie sich|melde dich|lassen sie (?:es )?mich|sagen sie mir|"
        r"(?:wenn|falls) (?:sie|du) (?:mir|mehr|weitere|noch|fragen|möchten?|hilfe|etwas)|ich helfe|dann (?:kann|helfe) ich|bitte (?:geben|nennen|teilen|"
        r"stellen|präzisieren|wenden|fragen|versuchen|sagen)|gerne? (?:helfe|kann))\b\D*",
        r"(?:leider |dazu |daher |hierzu )*(?:kann|können|darf|habe|haben) ich(?: [^\s]+){0,7}? "
        r"(?:nicht|keine?\w?|nichts)(?: .*)?",
        r"(?:das |dies |es )?(?:weiß|weiss|wissen) ich(?: \w+)* nicht(?: .*)?",
        r"ich (?:weiß|weiss|wissen)(?: \w+){0,3} nicht(?: .*)?",
        r"ich (?:kann|können|konnte|konnten|darf|möchte|bin|habe|haben|finde|kenne|sehe|"
        r"verfüge)\b(?: [^\s]+)*? (?:nicht|keine?n?|nichts|kein|keinerlei)(?: .*)?",
        r"(?:das|dies|dazu|darüber|dabei|hierzu|daraus|damit)? ?(?:kann|können|habe|haben|liegen|"
        r"liegt|gibt es|finde) (?:ich |mir |dazu |darüber )*(?:\w+ )*(?:nicht|keine?|nichts)"
        r"(?: (?:beantworten|sagen|helfen|vor|bestimmen|feststellen|informationen|angaben|finden|"
        r"entnehmen|\w+ vor))*",
        r"(?:ich bin (?:mir )?(?:nicht|un)(?: )?sicher|keine ahnung)(?: .*)?",
        rf"{_DE_SOURCE} (?:enthalten|enthält|erwähnen|erwähnt|sagen|sagt|nennen|nennt|geben|gibt|"
        r"machen|macht|liefern|liefert|beantworten|beantwortet|beschreiben|beschreibt|gehen|geht|"
        r"erklären|erklärt|verraten|verrät|äußern|äußert)\b(?: [^\s]+)* ?"
        r"(?:nicht|keine?|nichts|kein|keinerlei)(?: .*)?",
        rf"(?:.* )?(?:in|aus) {_DE_SOURCE} (?:steht|stehen|wird|werden|ist|sind|gibt es|findet sich|"
        r"finden sich|geht|ergibt sich)\b.*\b(?:nicht|keine?|nichts|nirgends)\b.*",
        rf".*\b(?:wird|werden|ist|sind|geht|steht|lässt sich) (?:in|aus) {_DE_SOURCE} "
        r"(?:\w+ )*(?:nicht|nirgends|keine?)\b.*",
        r"(?:es gibt|es liegen|dazu gibt es|mir liegen) (?:\w+ )*keine "
        r"(?:\w+ )*(?:informationen|angaben|hinweise|daten)(?: .*)?",
    ],
    asking=(
        r"^(?:wer|wen|wem|wessen|was|welche[rsnm]?|wann|wo|woher|wohin|warum|wieso|wie|ist|sind|war|"
        r"kann|können|könnten|kannst|könntest|möchten|möchtest|meinen|meinst|soll|sollen|haben|hast|"
        r"gibt|darf|dürfen|brauchen|brauchst|geht|suchen|suchst|um welche[rsnm]?|für welche[rsnm]?|"
        r"in welche[rsnm]?)\b"
    ),
    turning=(
        r"aber|jedoch|allerdings|obwohl|obgleich|doch|sondern|dennoch|trotzdem|während|außer|"
        r"abgesehen von|weil|da|denn|und|nur dass|hingegen|mehr als"
    ),
)

# --- Chinese -----------------------------------------------------------------------------------

_ZH_SOURCE = (
    r"(?:根据|从|在|依据|按照|基于)?(?:您|你|上述|以上|所|现有|这些|这段|该)?"
    r"(?:提供|给出|给定|检索到|现有|引用|参考)?的?"
    r"(?:文中|文章|段落|资料|文本|上下文|文档|材料|原文|内容|信息|片段|来源|文件|文献)(?:中|里|来看|内|内容)?"
)
_CHINESE = Language(
    [
        r"(?:你|您|大家)好(?:啊|呀)?|早上好|晚上好|嗨|再见|欢迎|好的|当然|没问题|不客气|不用谢|祝您?.{0,6}",
        r"(?:非常|十分|很|多)?(?:谢谢|感谢)(?:您|你)?.{0,10}",
        r"(?:非常|很|十分|真)?(?:抱歉|对不起|不好意思|遗憾)",
        r"(?:希望(?:这|能|对|以上|我的)|如果?(?:您|你)|如有(?:任何|其他|更多)?(?:问题|疑问)|若(?:您|你|有)|请(?:您|你)?(?:告诉|提供|说明|"
        r"补充|随时|再|重新|换|问|告知|描述|具体)|欢迎(?:您|你|随时|继续|提问|使用)|有什么(?:我|可以|问题|需要)|"
        r"我(?:很)?(?:乐意|可以帮|会尽力|很高兴))[^\d]{0,30}",
        rf"{_ZH_SOURCE}",
        rf"(?:{_ZH_SOURCE})?(?:，)?(?:我|我们)?(?:目前|暂时|也|并|还|实在|确实|尚)?"
        r"(?:不知道|不清楚|不了解|不确定|不太清楚|无从得知|不能确定|无法(?:回答|确定|提供|判断|"
        r"得知|告诉|帮|确认|给出|找到|得出|满足|核实|回应|查到)|不能(?:回答|提供|帮|确认|判断)|没有办法|"
        r"没有找到|找不到|没有(?:足够|相关|任何|这方面|关于|更多|具体)?.{0,24}(?:信息|资料|数据|"
        r"内容|记录|答案)).{0,40}",
        rf"(?:.{{0,20}})?{_ZH_SOURCE}(?:都|也|并|均|里)*(?:没有|未|没|不)(?:有)?(?:明确|具体|直接|曾)?"
        r"(?:提到|提及|说明|说|包含|给出|提供|涉及|写明|记载|指出|讨论|介绍|描述|回答|写|谈到|列出|"
        r"交代|任何|关于|相关).{0,40}",
        r"(?:没有|暂无|缺乏)(?:足够|相关|任何|关于|具体)?.{0,24}(?:信息|资料|说明|内容|记载)(?:可.{0,10})?",
        rf".{{0,30}}(?:在)?{_ZH_SOURCE}(?:都|也|并|均)*(?:没有|未)(?:被)?(?:提到|提及|说明|给出|提供|写明|记载)",
    ],
    asking=(
        r"^(?!.*(?:知道|晓得|了解).*(?:吗|么)[?]$)"
        r".*(?:吗|呢|什么|谁|哪|何|怎么|怎样|为什么|几|多少|是否|能否|可否|可不可以|能不能)"
    ),
    turning="但是|但|不过|然而|虽然|尽管|只是|因为|所以|可是|而且|而是|除了",
    spaced=False,
)

# --- Japanese ----------------------------------------------------------------------------------

_JA_SOURCE = (
    r"(?:提供された|与えられた|ご提示の|いただいた|この|これらの|その|上記の|参照)*"
    r"(?:文章|本文|文脈|資料|パッセージ|テキスト|文書|記事|情報|コンテキスト|ドキュメント|抜粋|内容|文献)"
)
_JAPANESE = Language(
    [
        r"(?:こんにちは|こんばんは|おはよう(?:ございます)?|はじめまして|ようこそ|さようなら|"
        r"承知(?:しました|いたしました)|かしこまりました|どういたしまして|もちろんです)",
        r".{0,14}(?:ありがとう(?:ございます|ございました)?|感謝(?:します|いたします))",
        r"(?:大変|誠に|本当に)?(?:申し訳(?:ありません|ございません|ない)(?:です)?|すみません|"
        r"ごめんなさい|恐れ入ります|恐縮です|残念ながら|あいにく)(?:が|けど|けれど)?",
        r".{0,30}(?:(?:お知らせ|教えて|お尋ね|ご質問|お聞かせ|お聞き|ご提供|ご連絡|お問い合わせ|おっしゃって)"
        r"ください(?:ませ)?|お手伝い(?:します|できます|いたします)|幸いです)",
        r".{0,40}(?:記載|言及|記述|説明|情報)(?:が|は)(?:ありません|見当たりません|含まれていません)",
        rf"{_JA_SOURCE}(?:によると|によれば|からは|では|には|だけでは|に基づくと|を確認しましたが?|の範囲では)",
        r".{0,60}(?:わかりません|分かりません|分かりかねます|わかりかねます|存じません|存じ上げません|"
        r"知りません|お答えできません|答えられません|お答えすることができません|回答できません|"
        r"判断できません|判断しかねます|お答えしかねます|確認できません|確認できませんでした|"
        r"特定できません|見つかりません|見つかりませんでした|見つけられません(?:でした)?|"
        r"お手伝いできません|提供できません|持っていません|持ち合わせていません|自信がありません|"
        r"情報がありません|情報はありません|情報が不足しています|情報が足りません)(?:が|けど|けれど)?",
        rf"(?:.{{0,40}}){_JA_SOURCE}(?:に|では|には|にも|から|からは|だけでは|の中に|の中には|内に)(?:は)?"
        r".{0,40}(?:書かれていません|記載されていません|記載がありません|記載はありません|"
        r"言及されていません|言及がありません|言及はありません|述べられていません|触れられていません|"
        r"含まれていません|示されていません|ありません|わかりません|分かりません|読み取れません|"
        r"見当たりません|判断できません)",
        rf"{_JA_SOURCE}(?:は|も).{{0,40}}(?:触れていません|述べていません|言及していません|含んでいません|"
        r"示していません|説明していません)",
    ],
    asking=(
        r"(?:か|何|誰|どこ|いつ|どの|どれ|どちら|なぜ|どう|いくつ|いくら)[?]?$"
        r"(?<!ご存じですか[?])(?<!知っていますか[?])(?<!知ってますか[?])(?<!ご存知ですか[?])"
    ),
    turning="しかし|ただし|けれども|ところが|とはいえ|なので|だから|ですが、|ますが、|ものの",
    spaced=False,
)

# --- Korean ------------------------------------------------------------------------------------

_KO_SOURCE = (
    r"(?:(?:제공된|제공해 주신|주어진|제시된|이|그|해당|위|제가 가진|관련) )*"
    r"(?:지문|본문|문서|자료|문맥|글|텍스트|문장|정보|내용|구절|출처|기사|맥락|발췌문)(?:들)?"
)
_KOREAN = Language(
    [
        r"(?:안녕하세요|안녕히 \S+|반갑습니다|환영합니다|네|예|알겠습니다|물론입니다|천만에요|"
        r"좋은 (?:하루|아침|질문)\S*(?: \S+)?)"
        r"(?<!^네)(?<!^예)",
        r"(?:\S+ ){0,4}(?:감사합니다|감사드립니다|고맙습니다|고마워요)",
        r"(?:정말 |대단히 |매우 )?(?:죄송합니다(?:만)?|죄송하지만|미안합니다(?:만)?|미안하지만|"
        r"유감스럽게도|아쉽게도|유감이지만|안타깝게도)",
        r"(?:\S+ ){0,8}(?:(?:알려|말씀해|문의해|제공해|질문해) ?(?:주세요|주시기 바랍니다)|물어보세요|"
        r"도와드리겠습니다|도와드릴게요|도움이 되(?:길|었기를) 바랍니다)",
        rf"{_KO_SOURCE}(?:에|에는|에서|에서는|에 따르면|만으로는|을 바탕으로|를 바탕으로)",
        r"(?:\S+ ){0,12}(?:모르겠습니다|모릅니다|모르겠어요|몰라요|알지 못합니다|알 수 없습니다|"
        r"알 수 없어요|확실하지 않습니다|잘 모르겠습니다|(?:답변|대답|답)(?:할|드릴|해 드릴) 수 없습니다|"
        r"(?:확인|판단|제공|특정|답변|말씀드릴|결정)\S* 수 없습니다|도와드릴 수 없습니다|"
        r"도움을 드릴 수 없습니다|찾을 수 없습니다|찾지 못했습니다|정보가 없습니다|정보는 없습니다|"
        r"정보가 부족합니다|정보를 가지고 있지 않습니다|정보가 없어요|자료가 없습니다)",
        rf"(?:\S+ ){{0,8}}{_KO_SOURCE}(?:에|에는|에서|에서는|은|는|만으로는|도)?(?: \S+){{0,10}} "
        r"(?:나와 있지 않습니다|나오지 않습니다|언급되어 있지 않습니다|언급되지 않았습니다|언급이 없습니다|"
        r"언급하지 않습니다|언급하고 있지 않습니다|없습니다|포함되어 있지 않습니다|포함하고 있지 않습니다|"
        r"적혀 있지 않습니다|설명하지 않습니다|다루지 않습니다|명시되어 있지 않습니다|알 수 없습니다)",
    ],
    asking=(
        r"^(?!.*(?:아시나요|알고 (?:계|있)\S*|아세요)[?]$)"
        r".*(?:까|까요|나요|가요|세요|니|냐|어요|을까요|은가요|인가요|무엇|누구|어디|언제|어느)[?]$"
    ),
    turning=r"(?<!\S)(?:하지만|그러나|그렇지만|다만|그런데|반면|왜냐하면|그래서)",
    spaced=False,
)

# --- Arabic ------------------------------------------------------------------------------------

_AR_SOURCE = (
    r"(?:اي من )?(?:هذه |هذا )?(?:ال)?(?:نصوص|نص|مقاطع|مقطع|وثائق|وثيقة|سياق|مصادر|مصدر|فقرات|"
    r"فقرة|مستندات|مستند|معلومات|مقالات|مقال|مراجع|محتوى)(?: ال(?:مقدمة?|متاحة?|معطاة?|مذكورة?|"
    r"مرفقة?|متوفرة?|واردة?))*(?: لي| لدي)?"
)
_AR_NOT = r"(?:لا|لم|ليس|ليست|لن)"
_ARABIC = Language(
    [
        r"(?:مرحبا|اهلا(?: وسهلا)?|السلام عليكم|صباح الخير|مساء الخير|وداعا|الى اللقاء|عفوا|"
        r"حسنا|بالتاكيد|بالطبع)(?: بك| بكم)?",
        r"(?:شكرا|اشكرك|نشكرك)(?: جزيلا| لك| كثيرا)*(?: على\D*)?",
        r"(?:انا )?(?:عذرا|اسف|اسفة|اعتذر|نعتذر|للاسف|معذرة|مع الاسف|ارجو المعذرة)(?: على ذلك| منك)?",
        r"(?:(?:يرجى|ارجو|من فضلك) (?:تقديم|توضيح|تزويدي|اخباري|اخبرني|وضح|زودني|اعادة)|"
        r"اذا كان لديك|اذا كنت (?:تريد|بحاجة|ترغب|تحتاج)|يسعدني|يسرني|اتمنى ان|امل ان|"
        r"يمكنني مساعدتك)\b\D*",
        rf"(?:بناء على|استنادا الى|وفقا ل|حسب|من|في|من خلال) ?{_AR_SOURCE}",
        r"(?:و)?(?:انا )?(?:لا (?:اعرف|اعلم|ادري|املك|اتذكر|اجد|امتلك)|لست (?:متاكدا|متاكدة|واثقا|على "
        r"علم|على دراية)|لم اجد|لم اعثر|لا علم لي|ليس لدي|ليست لدي|لا تتوفر لدي|لا يوجد لدي)(?: .*)?",
        r"(?:و)?(?:انا )?(?:لا|لن) (?:استطيع|يمكنني|يمكننا|اقدر|اتمكن من) (?:ال|ان |من ال)?(?:اجابة|اجيب|"
        r"تحديد|احدد|عثور|مساعدة|مساعدتك|اساعدك|تقديم|اقدم|تاكد|تاكيد|اؤكد|قول|اقول|معرفة|اعرف|"
        r"ذلك|هذا|القيام)\w*(?: .*)?",
        rf"(?:{_AR_NOT}) (?:تذكر|يذكر|تحتوي|يحتوي|تشير|يشير|تقدم|يقدم|ترد|يرد|تتضمن|يتضمن|تحدد|يحدد|توضح|"
        rf"يوضح|تقل|تقول|يقول|توجد|يوجد|تتوفر) (?:.* )?(?:في )?{_AR_SOURCE}(?: .*)?",
        rf"{_AR_SOURCE} {_AR_NOT} (?:تذكر|يذكر|تحتوي|يحتوي|تشير|يشير|تقدم|يقدم|تتضمن|يتضمن|تحدد|يحدد|توضح|يوضح|"
        r"تقول|يقول|تتحدث|يتحدث|تكفي|يكفي|تجيب|يجيب)(?: .*)?",
        r"(?:لا توجد|لا يوجد|لا تتوفر|ليست هناك|ليس هناك) (?:اي )?(?:معلومات|معلومة|تفاصيل|ذكر|بيانات|"
        r"اشارة)(?: .*)?",
    ],
    asking=(
        r"^(?!هل تعلم ان|هل تعرف ان|هل كنت تعلم)(?:هل|ما|ماذا|من|متى|اين|كيف|لماذا|اي|كم|ا|باي|في اي|عن اي|"
        r"اية)\b"
    ),
    turning=r"و?لكن\w*|الا ان\w*|غير ان\w*|بينما|ومع ذلك|مع ذلك|رغم|بالرغم|سوى|لان\w*|باستثناء|اذ",
)

# --- Hindi -------------------------------------------------------------------------------------

_HI_SOURCE = (
    r"(?:(?:दिए|दिये|दी) (?:गए|गये|गई|हुए) |उपलब्ध |प्रदान (?:किए गए|की गई) |इन |इस |उक्त )*"
    r"(?:अनुच्छेद|पाठ|संदर्भ|सन्दर्भ|दस्तावेज़|दस्तावेज|दस्तावेज़ों|दस्तावेजों|अंश|अंशों|जानकारी|स्रोत|स्रोतों|"
    r"सामग्री|लेख|अनुच्छेदों|गद्यांश|परिच्छेद)"
)
_HINDI = Language(
    [
        r"(?:नमस्ते|नमस्कार|सुप्रभात|शुभ (?:रात्रि|संध्या|प्रभात)|स्वागत है|अलविदा|ज़रूर|जरूर|बिल्कुल|ठीक है)"
        r"(?: जी)?",
        r"(?:बहुत[- ]?(?:बहुत )?)?(?:धन्यवाद|शुक्रिया|आभार)(?: .{0,40})?|.{0,40} (?:के लिए )?(?:धन्यवाद|शुक्रिया)",
        r"(?:मुझे )?(?:क्षमा (?:करें|कीजिए|कीजिये|चाहता हूँ|चाहती हूँ)|माफ़ (?:करें|कीजिए|कीजिएगा)|"
        r"माफ (?:करें|कीजिए)|खेद है(?: कि)?|अफ़सोस(?: है)?(?: कि)?|दुर्भाग्य से|दुर्भाग्यवश)",
        r"(?:कृपया (?:बताएँ|बताएं|बताइए|मुझे|और|अधिक|अपना|स्पष्ट|विवरण)|(?:यदि|अगर) (?:आप|आपके|आपको)\b|"
        r"मैं आपकी (?:मदद|सहायता)|आशा है|मुझे (?:खुशी|ख़ुशी))\D{0,60}",
        rf"{_HI_SOURCE} (?:के (?:आधार पर|अनुसार)|से|में)",
        r"(?:मुझे |मैं |हमें |हम )(?:.* )?(?:नहीं (?:पता|मालूम|पता है|जानता|जानती|जानते|बता सकता|"
        r"बता सकती|कह सकता|कह सकती|दे सकता|दे सकती|कर सकता|कर सकती|मिली|मिला|मिल रही|आता)|"
        r"पता नहीं|मालूम नहीं|जानकारी नहीं|असमर्थ|निश्चित नहीं|यकीन नहीं)(?: (?:है|हूँ|हूं|हैं|कि .*))?",
        r"(?:मेरे पास )(?:.* )?(?:नहीं (?:है|हैं)|नहीं)",
        rf"(?:.* )?{_HI_SOURCE} (?:में|से) (?:.* )?(?:नहीं (?:है|हैं|बताया|दिया|दी|मिलता|मिलती|लिखा|किया|मिली|"
        r"चलता|बताई)|उल्लेख नहीं|जानकारी नहीं|कुछ नहीं)(?: .*)?",
        rf"{_HI_SOURCE} (?:.* )?(?:के बारे में )?(?:नहीं (?:बताते|बताता|बताती|कहते|कहता)|कुछ नहीं (?:कहते|कहता|"
        r"बताते|बताता))(?: .*)?",
        r"(?:इस बारे में |इसके बारे में |इसकी |.* के बारे में )?(?:कोई )?(?:जानकारी|सूचना|विवरण|उल्लेख) "
        r"(?:उपलब्ध )?नहीं (?:है|हैं|मिली)",
    ],
    asking=(
        r"(?<!\w)(?:क्या|कौन|कब|कहाँ|कहां|कैसे|क्यों|कितन\w*|किस\w*|कौन\w*)(?!\w)"
        r"(?!.*(?:जानते (?:हैं|थे) कि|पता है कि))"
    ),
    turning=r"लेकिन|परंतु|परन्तु|किंतु|किन्तु|मगर|हालाँकि|हालांकि|क्योंकि|इसलिए|पर(?= )|सिवाय|बल्कि",
    spaced=False,
)

LANGUAGES = (_ENGLISH, _GERMAN, _CHINESE, _JAPANESE, _KOREAN, _ARABIC, _HINDI)

APOLOGY = re.compile(
    r"(?:(?:(?:i am|we are) )?(?:very |so |really )?(?:sorry|afraid)(?: to say)?(?: that)?|"
    r"unfortunately|sadly|regrettably|leider|es tut mir leid|很?抱歉|对不起|죄송합니다만|죄송하지만|"
    r"عذرا|للاسف)\s*"
)
"""The words that may stand before a clause without a comma: "Unfortunately I do not know"."""
