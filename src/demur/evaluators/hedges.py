"""Recognise words that take a verdict back or limit it to a part.

Such a list of words is never complete. So a reader of replies looks for a plain verdict first, and
uses this module only for the text around it.
"""

from __future__ import annotations

import re

NEGATION = (
    r"(?:(?<!\w)(?:no|not|non|never|neither|nor|none|nothing|nobody|nowhere|without|cannot|hardly"
    r"|barely|scarcely|fail(?:s|ed)?|lack(?:s|ing)?|far\s(?:from|off))(?!\w)"
    r"|\w{1,9}n['’]t(?!\w))"
)
PART = (
    r"(?:(?<!\w)(?:part(?:s|ly|ial|ially)?|half|halves|halfway|portions?|mostly|largely|mainly"
    r"|chiefly|somewhat|mixed|only|merely|minus|limited|incomplete(?:ly)?|remainder|the\srest"
    r"|(?:most|some|much|bits?|pieces?|little)\sof|all\sbut|extent|to\s(?:a|some)\sdegree)(?!\w))"
)
DOUBT = (
    r"(?:(?<!\w)(?:almost|nearly|close(?:r|st|ly)?|rough(?:ly)?|approximate(?:ly)?|loosely"
    r"|(?:kind|sort)\sof|probabl[ye]|possibl[ye]|perhaps|maybe|(?-i:may)|might|could|would|should"
    r"|seem(?:s|ed|ing|ingly)?|appear(?:s|ed)?(?!\sin(?!\w))|apparent(?:ly)?|(?:un)?likely"
    r"|likelihood|arguabl[ye]|presum(?:e|ed|ably)|suppos(?:e|ed|edly|ing)|tentative(?:ly)?"
    r"|assum(?:e|es|ed|ing|ption)|guess(?:es|ed|ing)?|I\s(?:think|believe)|suggest(?:s|ed|ive)?"
    r"|weak(?:ly)?|questionabl[ye]|doubt(?:s|ful|fully)?|ambiguous(?:ly)?|debatabl[ye]|technically"
    r"|broadly|generally|virtually|practically|more\sor\sless|at\s(?:best|least|most)"
    r"|depend(?:s|ing|ent)?|conditional(?:ly)?|borderline|lean(?:s|ing)|as\s(?:long|far)\sas"
    r"|in\s?so\s?far|providing|provided(?!\s(?:in|by|reference|context|text|passage|source|document"
    r"|information|evidence)(?!\w))|un(?:clear|certain|sure|known|stated|supported|verified"
    r"|confirmed|mentioned|specified|proven|like))(?!\w))"
)
CONTRAST = (
    r"(?:(?<!\w)(?:but|however|although|though|albeit|yet|except(?:ing|ed|ions?)?|save\s(?:for|that)"
    r"|(?:apart|aside)\sfrom|other\sthan|otherwise|unless|if|whereas|while|despite|nevertheless"
    r"|nonetheless|instead|rather|wrong(?:ly)?|false(?:ly)?|untrue|incorrect(?:ly)?"
    r"|inaccura(?:te|tely|cy|cies)|mistake[ns]?|errors?|miss(?:es|ed|ing)|mis(?:match|stat|lead)\w*"
    r"|differ(?:s|ed|ent|ently|ences?)?|contrary|conflict(?:s|ing)?|omit(?:s|ted)?|ruled\sout"
    r"|excluded|rejected|denied|refuted|retract(?:s|ed)?|wait|correction|oops|hmm+)(?!\w)"
    # A few words for "but", "only", "not", "almost" and "in part" in widespread languages.
    r"|(?<!\w)(?:nicht|kein\w{0,2}|nur|aber|jedoch|teil(?:s|weise)|kaum|außer|obwohl|pas|mais|sauf"
    r"|partiellement|en\spartie|presque|seulement|pero|aunque|casi|excepto|parcialmente|tranne"
    r"|però|parzialmente|exceto|maar|niet|deels|не|но|только|кроме|частично|почти|लेकिन|नहीं"
    r"|لكن|ليس|لا)(?!\w)"
    r"|[不没沒但仅僅]|部分|几乎|大体|大致|差不多|可能|一部|ない|しかし|ただし|않|아니|하지만|일부|거의)"
)
# Question marks, and signs of denial or of "about". Even one in a plain reply counts.
SIGNS = "(?:[?？؟¬≠≈~½⅓⅔¼¾❌✗✘✖🚫👎⛔⚠🤔]|!=)"

TAKEN_BACK = re.compile("|".join((NEGATION, PART, DOUBT, CONTRAST, SIGNS)), re.IGNORECASE)
