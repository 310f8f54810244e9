"""Conclusions without content: announcements, refusals, and reports on the work itself.

A conclusion has content if one of its clauses has. A clause has content if it contains a figure, a
quotation, a URL or a name that the subtask did not give. It also has content if it speaks of a
subject and does not begin as an announcement ("I will look up ..."), a report on the work ("I have
already searched ..."), a refusal ("I do not have ..."), a demand ("Please correct ...") or a guess
about the data ("There is a problem with the table ..."). A clause with such a beginning has content
if it is followed by more than a few words of its own. The beginnings are known in the languages
below; in other languages every conclusion counts as one with content.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from temporal_supervisor.supervision.base.capitals import names_in
from temporal_supervisor.supervision.base.prompt_marks import GOAL, STEER, SUBTASK
from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, WORDS_OF_WORK, words_of

Emptiness = Literal["says_nothing", "failed_call", "no_rows"]
"""Why a conclusion is no finding.

Its words say nothing; its last call failed, or found no row, and no other brought data. After a
query that found no row a conclusion counts unless it only writes down a query: "no order is
larger" is a finding.
"""

# Beside the subtask's: so many has "I have searched and found the passages that explain why".
_OWN_WORDS = 4
_OTHER_WORDS = 14  # of a clause in a language whose small words are not known here
_OTHER_CHARS = 30  # the same where words have no blanks between them
_ECHO_CHARS = 40  # shorter clauses may be equal by chance: "The unit is kilograms."
_LONG_CHARS = 1_200  # no announcement is as long; the rule is meant for short texts

_ENGLISH = r"""
    (?:now|next|first|then|ok|okay|sure|well|so|yes|no|certainly|of\ course)?[,.!]?\s*(?:
      (?:i|we)(?:\ am|['’]m|\ are|['’]re)
        \ (?:done|finished|sorry|ready|not\ able|unable|going\ to|about\ to|now)
    | (?:i|we)(?:\ will|['’]ll|\ shall|\ would|\ can\ now|\ need\ to|\ must|\ have\ to|\ should
        |\ want\ to|\ plan\ to)
    | (?:i|we)\ (?:already\ )?(?:used|looked|searched|listed|queried|called|ran|checked|tried|read
        |performed|found\ the\ (?:passages?|documents?|information|data|answer))
    | (?:i|we)(?:\ have|['’]ve)\ (?:already\ |now\ |also\ )?(?:searched|listed|looked
        |found\ the\ (?:passages?|documents?|information|data|answer|relevant)
        |called|queried|completed|finished|done|read|used|run|made|checked|written)
    | (?:i|we)\ (?:do\ not|don['’]t|did\ not|didn['’]t|cannot|can\ not|can['’]t
        |could\ not|couldn['’]t)\b
    | (?:sorry|apologies|my\ apologies|unfortunately)
    | let\ (?:me|us)|let['’]s
    | (?:query|try|search|check|run|call|look)\ (?:it\ |this\ )?again\b
    | please
    | to\ (?:find|answer|get|obtain|calculate|determine|continue|do\ this|solve|provide)\b
    | there\ (?:is|was|are|seems\ to\ be)\ (?:a|an|some|no)
        \ (?:problem|error|issue|mistake|tool\ call|finding)
    | (?:it|this|that|the\ \w+)(?:\ \w+){0,2}\ (?:should|must|needs?\ to|ought\ to)\b
    | (?:the|this|that|my)\ (?:\w+\ ){1,2}(?:does|did|do)(?:\ not|n['’]t)\ (?:directly\ )?answer\b
    | the\ (?:\w+\ )?(?:column|table|query|function)\b[^.]{0,40}
        \ (?:not\ found|not\ exist|failed|wrong)
    | (?:the\ )?(?:task|subtask|work|finding|report|answer)\ (?:is|was|has\ been)
        \ (?:done|complete|completed|finished)
    | (?:done|finished|complete|completed|understood|working\ on\ it|one\ moment)\b
    | as\ an?\ (?:ai|language|artificial)
    )"""
_GERMAN = r"""
    (?:nun|jetzt|zuerst|dann|gut|okay|also|leider)?[,.!]?\s*(?:
      ich\ (?:werde|muss|möchte|will|kann\ (?:nicht|das|diese|keine)|konnte\ (?:nicht|keine)
        |bin\ (?:fertig|bereit|nicht)
        |habe\ (?:bereits|schon|jetzt|die\ (?:unterlagen|dokumente|tabelle|daten|suche)
            |keine?n?\ |nicht|gesucht)
        |suche|prüfe|sehe\ nach|rufe|schaue)
    | (?:lass|lassen\ sie)\ (?:mich|uns) | bitte
    | es\ tut\ mir\ leid | tut\ mir\ leid | entschuldigung
    | es\ gibt\ (?:ein|einen)\ (?:problem|fehler) | (?:fertig|erledigt|abgeschlossen)\b
    | um\ .{1,60}\ zu\ (?:finden|beantworten|ermitteln|berechnen)
    )"""
_FRENCH = r"""
    (?:maintenant|d['’]abord|ensuite|bien|malheureusement)?[,.!]?\s*(?:
      je\ (?:vais|dois|veux|ne\ (?:peux|dispose|trouve)|n['’]ai|suis\ (?:désolée?|prête?)
        |cherche|regarde|consulte)
    | j['’]ai\ (?:déjà|terminé|fini|cherché|recherché|consulté|trouvé\ les)
    | (?:c['’]est\ )?(?:fait|terminé|fini)\b
    | désolée? | veuillez | laissez-moi | il\ y\ a\ (?:un\ problème|une\ erreur)
    | pour\ (?:trouver|répondre|obtenir)\b
    )"""
_SPANISH = r"""
    (?:ahora|primero|luego|bien|lamentablemente)?[,.!]?\s*(?:
      (?:yo\ )?(?:voy\ a|debo|quiero|necesito|buscaré|consultaré|no\ (?:puedo|tengo|pude|dispongo))
    | (?:ya\ )?he\ (?:buscado|terminado|consultado|encontrado\ los|acabado)
    | (?:está\ )?(?:hecho|listo|terminado)\b
    | lo\ siento | por\ favor | permítame | déjame | hay\ un\ (?:problema|error)
    | para\ (?:encontrar|responder|obtener)\b
    )"""
_ITALIAN = r"""
    (?:ora|adesso|prima|poi|bene|purtroppo)?[,.!]?\s*(?:
      (?:io\ )?(?:cercherò|devo|voglio|sto\ per|non\ (?:posso|ho|dispongo))
    | ho\ (?:già|cercato|finito|terminato)
    | (?:fatto|finito|terminato)\b | mi\ dispiace | per\ favore | c['’]è\ un\ (?:problema|errore)
    | per\ (?:trovare|rispondere|ottenere)\b
    )"""
_PORTUGUESE = r"""
    (?:agora|primeiro|depois|bem|infelizmente)?[,.!]?\s*(?:
      (?:eu\ )?(?:vou|devo|quero|preciso|não\ (?:posso|tenho|consigo|disponho))
    | já\ (?:procurei|pesquisei|terminei)
    | (?:feito|pronto|concluído)\b | desculpe | lamento | por\ favor | há\ um\ (?:problema|erro)
    )"""
_DUTCH = r"""
    (?:nu|eerst|dan|goed|helaas)?[,.!]?\s*(?:
      ik\ (?:zal|ga|moet|wil|kan\ (?:niet|geen)|heb\ (?:al|reeds|geen|niet)|ben\ (?:klaar|niet)
        |zoek)
    | (?:klaar|gereed)\b | sorry | het\ spijt\ mij | alstublieft | laat\ mij
    )"""
_OTHERS = r"""
      я\ (?:буду|сейчас|должен|должна|не\ (?:могу|имею|нашёл|нашел)|уже|закончил\w*)
    | готово\b | извините | к\ сожалению
    | (?:teraz\ )?(?:będę|muszę|nie\ mogę|nie\ mam|przepraszam|gotowe|skończyłem|zrobione)\b
    | 我(?:将|会|要|需要|已经|无法|不能|没有|来) | 抱歉 | 对不起 | 让我 | 请 | 完成 | 好的
    | (?:これから|まず|申し訳|すみません|完了|検索し)
"""
_FLAGS = re.IGNORECASE | re.VERBOSE
_BEGINS = re.compile(rf"[\W_]*+(?:{_ENGLISH})", _FLAGS)
_ELSEWHERE = "|".join([_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _OTHERS])
_BEGINS_ELSEWHERE = re.compile(rf"[\W_]*+(?:{_ELSEWHERE})", _FLAGS)

# "The net generation per year is given in the table": where it stands, in place of what stands
# there.
_POINTS = re.compile(
    r"\b(?:listed|given|shown|found|described|provided|contained|explained|available|displayed)"
    r"\ (?:in|by|from|below)\ (?:the|these|those|an?|this|each)\ (?:\w+\ )?"
    r"(?:documents?|tables?|outputs?|results?|files?|data|dataset|passages?|query|quer(?:y|ies)"
    r"|texts?)\b",
    re.IGNORECASE,
)

_BEGINS_WITH_TAG = re.compile(rf"\s*+<(?:{SUBTASK}|{GOAL}|{STEER})\b")
_CODE = re.compile(r"^[ \t]*```(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_QUERY_BEGINS = re.compile(r"\bselect\b", re.IGNORECASE)
_QUERY_GOES_ON = re.compile(r"\bfrom\b", re.IGNORECASE)
_OTHER_CODE = re.compile(r"\A\s*+[{[]|\bdef \w+\(", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"""\b(?:no|none|not|nothing|never|neither|zero|0|empty|without
    |kein\w*|nicht\w*|leer|aucune?|rien|ningun[oa]?|nada|nessun[oa]?|niente
    |nenhuma?|geen|niets)\b|n['’]t\b""",
    _FLAGS,
)
# Names of tools, columns and files.
_INLINE = re.compile(r"`[^`\n]*`|\b\w+_\w+\b|\b[\w/-]+\.\w{2,4}\b")
_DECADE = re.compile(r"\b(\d{3})0['’]?(?:s|er)\b")  # "the 1990s", "die 1990er"
_YEAR = re.compile(r"\d{4}")
_CLAUSE_END = re.compile(
    r"(?<=[.!?。！？:])\s+|(?<=[。！？])|\n+|,\s+(?:so|but|because|since|as|while)\s+"
)


def only_asks_to_query(text: str) -> bool:
    """True if a text has a query in a code block and does not report that something is absent.

    Its author asks others to run the query. "No order is larger" next to a query is a finding.
    """
    has_query = any(_is_query(block[1]) for block in _CODE.finditer(text))
    return has_query and _NEGATIVE.search(_CODE.sub("", text)) is None


def is_empty(
    text: str,
    asked: str,
    claims: Iterable[str] = (),
    *,
    hands_in_code: bool = False,
) -> bool:
    """True if a conclusion has no content of its own.

    `asked` is the subtask's text, and `claims` are the figures, quotations and URLs of the
    conclusion. Claims that are in `asked` are no content. Code counts only if the author
    `hands_in_code`: from authors with tools it is a call that was written instead of made.
    """
    if hands_in_code and any(block[1].strip() for block in _CODE.finditer(text)):
        return False
    if len(text) > _LONG_CHARS or any(not _is_given(claim, asked) for claim in claims):
        return False
    given = words_of(asked)
    clauses = [*_clauses(text)]
    return not any(_says_something(clause, asked, given) for clause in clauses)


def is_echo(text: str, rules: str) -> bool:
    """True if a conclusion mostly repeats its author's `rules`, or begins with a prompt's tag."""
    if _BEGINS_WITH_TAG.match(text):
        return True
    said = " ".join(rules.split())
    clauses = [" ".join(clause.split()) for clause in _CLAUSE_END.split(text)]
    long_ones = [clause for clause in clauses if len(clause) >= _ECHO_CHARS]
    copied = [clause for clause in long_ones if clause in said]
    return len(copied) > len(long_ones) / 2


def _is_given(claim: str, asked: str) -> bool:
    """True if a claim is in the subtask's text, as 1999 is in "the 1990s"."""
    if claim in asked:
        return True
    decades = {decade[1] for decade in _DECADE.finditer(asked)}
    return _YEAR.fullmatch(claim) is not None and claim[:3] in decades


def _clauses(text: str) -> Iterator[str]:
    prose = _CODE.sub(lambda match: "\n" if _is_code(match[1]) else match[1], text)
    yield from (clause for clause in _CLAUSE_END.split(_INLINE.sub(" ", prose)) if clause.strip())


def _is_code(fenced: str) -> bool:
    return _is_query(fenced) or bool(_OTHER_CODE.search(fenced))


def _is_query(fenced: str) -> bool:
    begin = _QUERY_BEGINS.search(fenced)
    return begin is not None and _QUERY_GOES_ON.search(fenced, begin.end()) is not None


def _says_something(clause: str, asked: str, given: set[str]) -> bool:
    words = words_of(clause)
    if _BEGINS_ELSEWHERE.match(clause):
        is_short = len(words) <= _OTHER_WORDS or len(clause) <= _OTHER_CHARS
        return not is_short
    own = words - SMALL_WORDS - WORDS_OF_WORK
    is_talk = bool(_BEGINS.match(clause) or _POINTS.search(clause))
    if not is_talk:
        # "The" of a reply that was cut is nothing.
        return len(words) > 1 or not words <= SMALL_WORDS or "no" in words
    # SQL, FROM.
    names = (
        name for name in names_in(clause) if name.casefold() not in SMALL_WORDS | WORDS_OF_WORK
    )
    if any(name not in asked for name in names):
        return True
    further = [word for word in own - given if not _is_given(word, asked)]
    return len(further) > _OWN_WORDS
