"""Cues: the function words and endings that show the mood of a sentence, in English, German, Korean and Chinese.

They say who is addressed, and what is demanded, forbidden, wished, decided, left open, changed or only supposed. Words of a
subject are not among them: what a rule is about does not make it a rule. A sentence in another language has no cues.
"""

from __future__ import annotations

import re
from typing import Final

(YOU, SELF, OTHERS, MUST, NOT, SCOPE, WANT, IF, SAYS, DECIDES, WHY, OPEN, CHANGE, PAST, ASKS, THANKS, FAILS, MINE, LASTING) = (
    1 << place for place in range(19)
)

# Words of English and German; endings and particles of Korean; words of Chinese.
_TABLE: Final = (
    (  # somebody is addressed
        YOU,
        (
            "you your yours please kindly you'd you'll you're du dir dich dein deine deinen deinem deiner bitte "
            "Sie Ihnen Ihr Ihre"
        ),
        r"세요|십시오|시오|주시|주세|줘요?\b|주십|시면|부탁|바랍니다|말 것|할 것|해라|마라",
        r"请|您|你|麻烦",
    ),
    (  # first person
        SELF,
        "i we i'm i've i'd i'll we're we've we'll let's ich wir man",
        r"\b(?:저는|제가|저도|저희|우리|나는|내가|제|저한테|저한텐)\b",
        r"(?<![给让跟对叫问告诉发])我(?!的|们的)|咱",
    ),
    (  # third persons
        OTHERS,
        "they he she sie leute people everybody everyone deren",
        r"걔|그쪽|그분|그 사람|누구나|다들",
        r"他们|她们|他|她|人家|大家|别人",
    ),
    (  # obligation
        MUST,
        (
            "must should shall ought may supposed mandatory obligatory belongs muss müssen musst müsst soll sollen "
            "sollst sollte sollten darf dürfen darfst dürft gehört gehören braucht brauchen verpflichtet zwingend"
        ),
        (
            r"[야]\s?(?:해[요\b]|합니다|하고|돼요|됩니다|하셔|한다)|[야] ?해\b|[야]만|해야|어야|아야|여야|들어가야|"
            r"만 (?:올|써|쓰|사용|하|내)|고서만|로만"
        ),
        (
            r"必须|必需|务必|一定[要得]|(?:都|先|才|就|也)[得要]|"
            r"[^不只主需没都就觉记值舍懒懂获取]得(?=[先在用写把加给让有往])|(?<=，)要|只能|须|(?:每.{1,2}|"
            r"[^不只主需没])要(?=[附先用在把控给让签交按])"
        ),
    ),
    (  # negation
        NOT,
        (
            "not never no don't doesn't didn't none nothing nobody cannot can't mustn't shouldn't won't isn't aren't "
            "without avoid refrain forbidden forbid prohibited neither nor off-limits stay nicht nie niemals kein "
            "keine keinen keinem keiner keines keinesfalls ohne verboten untersagt tabu vermeide vermeiden unterlass "
            "unterlassen niemand nichts"
        ),
        (
            r"지\s?(?:는\s?)?(?:마|말|않)|말아|말고|금지|안\s?[되돼된됩]|면 곤란|곤란합|없이|없도록|삼가|빼\s?주|"
            r"제외|절대|피해|자제"
        ),
        r"不要|不许|不得|不能|不可|不准|千万别|(?<![分特区])别(?![的人])|勿|禁止|严禁|避免|不想",
    ),
    (  # always, only, before, each: a standing scope
        SCOPE,
        (
            "only always every each any anything whatever whenever whichever whoever before after until till unless "
            "exclusively first twice most least all under over below within nothing nur ausschließlich immer stets jede "
            "jeder jedes jeden jedem alles vor ehe bevor sobald solange mindestens höchstens erst lediglich egal unter "
            "über unbedingt vorher zuerst"
        ),
        (
            r"꼭|반드시|항상|언제나|절대|전에|때마다|마다|로만|서만|것만|이하|이상|이내|아래로|전부|모두|모든|"
            r"무조건|먼저|없이는|으면|[가-힣]면 "
        ),
        (
            r"只[能有用]|才能|仅|之前|以前|先|每|所有|任何|一律|总是|始终|无论|不管|以下|以内|至少|最多|凡|再|一定|"
            r"都|时候|一式|你才"
        ),
    ),
    (  # a wish or a taste
        WANT,
        (
            "prefer prefers rather like love enjoy fond favour favor happier easier better best suits happy favourite "
            "favorite taste partial helps appreciate lieber liebsten mag gern gerne gefällt gefallen bevorzuge "
            "bevorzugt angenehmer hilft faible freuen freut liegen liegt schätze lieb besser"
        ),
        r"좋[아은겠더]|좋더|편[해하합]|선호|취향|마음에 들|맞아요|낫[겠더]|즐[기깁]|빨라요|들어와요|편이에요|더 좋",
        r"喜欢|偏爱|愿意|习惯|舒服|顺手|合适|爱(?=[坐吃用看喝])|更好|高兴|理解得快|好懂",
    ),
    (  # a condition or a supposition
        IF,
        (
            "if suppose supposing imagine assuming assume hypothetically were would wenn falls angenommen gesetzt würde "
            "würden wäre wären hätte hätten könnte"
        ),
        r"만약|만일|라면|다면|가정|치면|가령|한다면",
        r"如果|假如|假设|要是|倘若|若是|万一|设想",
    ),
    (  # somebody else's words
        SAYS,
        (
            "say says said saying told tells insist insists insisted demands demanded requires expects warned "
            "ordered taught according motto law laws claims claimed wrote writes "
            "reads sagte sagt sagten meinte galt gesetz schild besteht verbietet behauptet vorschrift eingebläut "
            "schrieb schreibt predigte"
        ),
        r"대요|래요|라고|다고|말라고|하라고|더라고|더라|자네요|셨어요|셨죠|이었죠|우겨|다니까|라니까|법이",
        r"[常总]说|规定|规矩|要求|告诉|牌子|贴着|写着|说，|非要|说：|据说",
    ),
    (  # a choice
        DECIDES,
        (
            "decided decide decision chose choose chosen picked settled opted voted switched entschieden entschied "
            "entscheidung festgelegt nehmen genommen gewählt eingestellt durchgerungen beschlossen geeinigt"
        ),
        r"기로 (?:했|하|합|정)|로 정했|정했|골랐|선택했|결정|확정했|기로 합의|로 갑니다",
        r"决定|选[了定用择]|就?定(?:了|为|下)|就[按用定挑]|录用|采用|挑了|还是用|敲定|定下",
    ),
    (  # a reason
        WHY,
        "because since given hence therefore thus reason due weil denn da wegen deshalb daher darum damit",
        r"때문|니까|므로|[아어해여워돼]서\b|라서|으니\b|덕분|결정적",
        r"因为|由于|所以|因此|既然|，|只好",
    ),
    (  # something left to be done
        OPEN,
        (
            "still yet missing remains remain left pending waiting owe owed promised outstanding unfinished overdue "
            "haven't hasn't noch fehlt fehlen steht wartet warten bisher irgendwann versprochen schuldig offen"
        ),
        r"아직|남았|못 ?했|않았네|빠진|기다리|야 하는데|야 할|언젠가|봐야|끝나면|미처",
        r"还没|还得|还要|尚未|没来得及|缺的|欠|在等|答应|没人|剩下|得有人|完了",
    ),
    (  # a new value
        CHANGE,
        (
            "now instead moved changed again back longer anymore raised lowered reissued postponed rolled actually "
            "correction scratch wrong "
            "misread misheard mistaken meanwhile updated bumped pushed shifted extended shortened increased decreased reduced "
            "switched swapped replaced renewed rescheduled became becomes rather sorry nope nah jetzt lieber nun "
            "wieder zurück verlegt geändert statt stattdessen inzwischen doch vergiss verschoben bleibt forget eigentlich "
            "korrektur falsch irrtum verlesen vertan vertippt sondern mittlerweile künftig fortan neuerdings umgestellt erhöht "
            "gesenkt angehoben gekürzt verlängert umgezogen gewechselt vorverlegt getauscht ersetzt"
        ),
        (
            r"이제|다시|옮[겨기]|바뀌|바꿔|바뀐|대신|변경|새로|원래|되돌|올[렸려리]|내렸|늘[렸려]|밀[렸려]|"
            r"그대로|으로 하죠|늦는|"
            r"정정|잘못|알고 보니|당[겨겼]|미[뤄뤘]|연장|줄[였었]|늘었|인상|인하|교체|착각|헷갈|아니라|아니[,요]|그냥|말고"
        ),
        (
            r"现在|改|换|又|还是|退回|升到|降到|挪|重新|推迟|推到|变成|恢复|照旧|继续|扩到|成了|涨[了到]|"
            r"其实|不对|更正|[记看说弄搞]错|延[后到长期]|提前|提高|降低|[减加增调升]到|调[成整高低]|搬|往[后前]|更新|算了|不，"
        ),
    ),
    (  # the past
        PAST,
        "was were had did used war waren hatte hatten",
        r"었어요|았어요|였어요|했어요",
        r"曾|过去|以前",
    ),
    (  # a question
        ASKS,
        (
            "what which how where who whose when why can could would will do does did is are was has have shall was "
            "welche welcher welches wie wo wer wann warum kannst können könntest könnten hast ist sind gibt soll"
        ),
        r"나요|(?<!니)까요|가요\?|습니까|는지",
        r"吗|呢|什么|哪|怎么|多少|几",
    ),
    (  # an acknowledgement
        THANKS,
        "thanks thank ok okay great nice sorry hello hi hey hm fine good danke gut prima schön sorry hallo entschuldige",
        r"고마워|고맙|감사합|미안|알겠|^네\b",
        r"谢谢|抱歉|不好意思|好的|明白",
    ),
    (  # a failure
        FAILS,
        "failed fails unsuccessful gescheitert fehlgeschlagen misslungen",
        r"실패|오류로|지 못했|안 되네",
        r"失败|没有?成功|报错|没弄成|出错",
    ),
    (  # what is the speaker's
        MINE,
        "me my mine myself us our mich mir mein meine meinen meinem meiner uns unser unsere unserem unseren unserer",
        r"제 |우리",
        r"我的|我们的",
    ),
)
_LATIN: Final[dict[str, int]] = {}
for _cue, _listed, _, _ in _TABLE:
    for _word in _listed.split():
        _LATIN[_word] = _LATIN.get(_word, 0) | _cue
_HANGUL: Final = tuple([(cue, re.compile(pattern)) for cue, _, pattern, _ in _TABLE])
_HAN: Final = tuple([(cue, re.compile(pattern)) for cue, _, _, pattern in _TABLE])
# Each with words of which a sentence that it matches has at least one.
_PHRASES: Final = (
    (SAYS, "sign", re.compile(r"\b(?:a|the) sign\b|\bsign says\b", re.IGNORECASE)),
    (
        FAILS,
        "did didn't error luck ging fehler glück",
        re.compile(
            (
                r"\b(?:did not|didn['’]t) (?:go|work|succeed)|\bwith an error|\bno luck\b|\bging nicht\b|\bmit "
                r"einem Fehler\b|\bkein Glück\b"
            ),
            re.IGNORECASE,
        ),
    ),
    (
        MUST,
        "to only allowed permitted nur hat",
        re.compile(
            (
                r"\b(?:has|have|needs?) to\b|\b(?:is|are) (?:only|not) (?:allowed|permitted|available|"
                r"accepted|possible|supported)\b|"
                r"\b(?:can|may|could) only\b|\bkann(?:st)? nur\b|\b(?:is|are) (?:not |"
                r"never )?to be\b|\bwant you to\b|\blike you to\b|\bhat .{0,400}\bzu \w+en\b"
            ),
            re.IGNORECASE,
        ),
    ),
    (
        MUST,
        "wird werden",
        re.compile(r"\b(?:wird|werden)\b.{0,400}\b(?:nur|nicht|nie|kein\w*|ausschließlich|erst)\b", re.IGNORECASE),
    ),
    (
        NOT,
        "question hands leave sieh finger",
        re.compile(
            (
                r"\bout of the question\b|\bhands off\b|\bleave\b.{0,400}\balone\b|\bsieh\b.{0,400}\bab\b|"
                r"\bfinger\b.{0,400}\bvon\b|\bvon\b.{0,400}\bfinger\b"
            ),
            re.IGNORECASE,
        ),
    ),
    (
        CHANGE,
        "make let's take sagen too zu",
        re.compile(
            (
                r"\b(?:make|let's have|take) (?:that|it)\b|\bsagen wir\b|\btoo (?:few|many|much|little|early|"
                r"late)\b|\bzu (?:wenig|viel|früh|spät)\b"
            ),
            re.IGNORECASE,
        ),
    ),
    (
        OPEN,
        "once when after wenn sobald nobody no niemand steht aussteht ausstehen ausstehend ausstehende ausstehenden",
        re.compile(
            (
                r"\b(?:once|when|after|wenn|sobald)\b[^,]{0,400}\b(?:over|through|done|finished|vorbei|durch|fertig|"
                r"erledigt)\b|\b(?:nobody|no one|niemand)\b.{0,400}\b(?:so far|yet|bisher)\b|\baussteh|\bsteht\b.{0,400}\baus\b"
            ),
            re.IGNORECASE,
        ),
    ),
    (
        LASTING,
        "prefer make be ensure stick achte stell stelle",
        re.compile(r"\b(?:prefer|make sure|be sure|ensure|stick to|achte|stelle? sicher)\b", re.IGNORECASE),
    ),
    (
        DECIDES,
        "mind go going went we let's wir",
        re.compile(
            (
                r"\b(?:made up my|change[sd]? my) mind\b|\b(?:go|going|went) (?:with|for)\b|\b(?:we|let's|wir) "
                r"(?:take|are hiring|drop|nehmen|setzen auf|use)\b"
            ),
            re.IGNORECASE,
        ),
    ),
)
_PHRASE: Final = LASTING.bit_length()  # the bit of the first phrase in the table of words
for _place, _phrase in enumerate(_PHRASES):
    for _word in _phrase[1].split():
        _LATIN[_word] = _LATIN.get(_word, 0) | 1 << _PHRASE + _place
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ASCII_WORD: Final = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_CUES: Final = (1 << _PHRASE) - 1
_FORMAL: Final = frozenset({"Sie", "Ihnen", "Ihr", "Ihre", "Ihren", "Ihrem"})
_IS_HANGUL: Final = re.compile(r"[가-힣]")
_IS_HAN: Final = re.compile(r"[\u4e00-\u9fff]")


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence, without numbers.

    >>> words_of("Don't touch port 80 of db-main.")
    ["Don't", 'touch', 'port', 'of', 'db-main']
    """
    return (_ASCII_WORD if sentence.isascii() else _WORD).findall(sentence)


def cues_of(sentence: str, words: list[str]) -> int:
    """Return the cues of a sentence as bits, all those of its words; O(characters).

    >>> bool(cues_of("You must stay.", ["You", "must", "stay"]) & MUST), bool(cues_of("가지 마세요", []) & NOT)
    (True, True)
    """
    if not sentence.isascii():
        table = _HANGUL if _IS_HANGUL.search(sentence) else _HAN if _IS_HAN.search(sentence) else ()
        if table:
            return sum(cue for cue, pattern in table if pattern.search(sentence))
    found = 0
    if not _FORMAL.isdisjoint(words[1:]):
        found = YOU
        words = words[:1] + [word for word in words[1:] if word not in _FORMAL]
    keys = map(str.lower, words) if "’" not in sentence else [word.lower().replace("’", "'") for word in words]
    for key in keys:
        found |= _LATIN.get(key, 0)
    if phrases := found >> _PHRASE:
        for place, (cue, _, pattern) in enumerate(_PHRASES):
            if phrases >> place & 1 and not found & cue and pattern.search(sentence):
                found |= cue
    return found & _CUES
