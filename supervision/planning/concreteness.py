"""Whether a subtask's description is concrete: whether it names anything beside the work that every subtask is.

"Analyze the data" is no subtask: no two worker agents would do the same. Words that any subtask could use (verbs such
as "handle", nouns such as "information") are left out; what remains must name at least two things, or one that has a
number in it. Words of other languages than English count as names, so that nothing concrete is refused for being
foreign.
"""

import re

_LEAST_NAMED = 2

_ENGLISH = """
a about above accordingly across again all also an and any anything appropriate are as at available be been best better
both but by can could deal do does done each either else enough etc every everything few following for from full
fully further general generally get give given go going good great had has have help helpful her here high his how i if
important in initial into is it its itself just key know known last least let like main make many may me might
more most much must my necessary need needed needs next no not now of off on once one only or other others our out over
overall own per please possible proper properly quick quickly really regarding related relevant required right same
see several she should so some somehow someone something specific still such take task tasks than that the
their them then there these they thing things this those through thorough thoroughly to too top under up upon us
use used useful user users various very via want was way ways we well were what whatever when where whether which
while who whole why will with within without would you your
additional comprehensive complete completely deep depth detailed different early entire existing final first
high-quality in-depth interesting meaningful quality several suitable clear clearly accurate accurately basic carefully
address analyse analysed analyses analysis analyze analyzing answer answers apply approach area areas arrange aspect
aspects assess assessment assist background bring care carry check collect conduct consider content context continue
contribute cover create data deliver details determine develop dig discover discuss dive doing draft evaluate
evaluation examine execute explore fact facts figure file files find finding findings finish fix gather generate goal
goals handle helping idea ideas identify implement improve info information input insight insights inspect
investigate investigation issue issues item items job learn look looking manage material materials matter matters
method methods objective obtain optimize option options organize output outputs overview part parts pattern patterns
perform piece pieces plan point points prepare present problem problems proceed process produce project provide
question questions read recommendation recommendations report request research resolve respond response result results
review run search section solution solutions solve sort source sources start step steps stuff studies study
subject subtask subtasks suggest suggestions summarise summarize summary support situation text topic topics
trend trends try understand understanding update verify work working write document documents conclusion conclusions
stakeholders stakeholder requirements requirement necessary everyone tool tools
"""
_GENERIC = frozenset(_ENGLISH.split())

# In scripts without spaces two characters are a word.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_WORD = re.compile(r"\w+")


def is_concrete(description: str, *, reads: bool = False) -> bool:
    """Returns True if a description names what it is about. If it `reads` attachments, they are a part of that."""
    spaced, unspaced = _UNSPACED.subn(" ", description)
    words = {word.casefold() for word in _WORD.findall(spaced)}
    named = sum(_weight(word) for word in words if word not in _GENERIC)
    return named + unspaced // 2 + int(reads) >= _LEAST_NAMED


def _weight(word: str) -> int:
    if any(character.isdigit() for character in word):
        return _LEAST_NAMED
    return int(len(word) > 1)
