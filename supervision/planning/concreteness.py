"""Whether a subtask's description is concrete: whether it names anything beside the work that every subtask is.

"Analyze the data" is no subtask: no two worker agents would do the same. Words that any subtask could use (verbs such
as "handle", nouns such as "information") are left out; what remains must name at least two things, or one that has a
number in it. Words of languages that the lists do not know count as names, so that nothing concrete is refused for
being foreign.
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

_GERMAN = """
aber aktuelle aktuellen alle allem allen alles als also am an analyse analysen analysiere analysieren andere anderen
anfrage angaben antwort antworten arbeit arbeite arbeiten arbeitet auch auf aufgabe aufgaben aus ausführlich
auswerten auswertung bearbeite bearbeiten beantworte beantworten bei bereich bericht berichte beschaffe besorge bitte
damit daraus darüber das daten dazu dem den der des details die dies diese diesem diesen dieser dieses ding dinge
dokument dokumente durch durchführen ein eine einem einen einer eines einige ergebnis ergebnisse erkenntnisse erledige
erledigen ermittle erstelle erstellen es etwas fakten finde finden frage fragen führe für gib gründlich gründliche
helfe helfen hilf hintergrund ideen im in infos informationen information inhalt inhalte ins irgendetwas ist kümmere
lösung lösungen löse lösen mach mache machen material mehr mit mögliche nach nachforschungen nötige nötigen oder
problem probleme projekt prüfe prüfen quellen recherche recherchiere recherchieren relevante relevanten sache sachen
sammle sammeln schau schaue schreib schreibe schreiben schritt schritte sich sie situation suche suchen teil text
thema themen tu tue tun über überblick um und untersuche untersuchen unterstütze unterstützen verarbeite verstehe von
vorhandenen was weitere weiteren wichtige wichtigen wichtigsten wie zeug ziel zu zum zur zusammen zusammenfassen
zusammenfassung fasse fassen
"""

_FRENCH = """
à a aide aider ainsi analyse analyser analysez au autre autres aux avec c ça ce ces cet cette cela chercher cherche
cherchez chose choses collecte collecter comprendre comprends contenu d dans de des détails document documents données
du effectue effectuer effectuez elle en ensemble essentielles est et étape étapes étude étudie étudier étudiez examine
examiner examinez explore explorer fais faire faites faits gère gérer il ils informations information l la le les leur
lui main mène mener ne nécessaire nécessaires objectif on ou où par pertinentes pertinents pour problème problèmes
projet qu quelque que question questions qui rapport rassemble rassembler recherche recherches rechercher réponds
répondre réponse résous résoudre résultat résultats résume résumer s sa se ses situation solution solutions sont
sources son sujet sujets sur sujet tâche tâches texte tous tout toute toutes traite traiter traitez travail travaille
travailler trouve trouver trouvez un une utile utiles vérifie vérifier y
"""

_SPANISH = """
a acerca al algo analice analiza analizar análisis antecedentes asunto averigua averiguar ayuda ayudar busca buscar
cada con contenido cosa cosas cualquier cuestión da dato datos de del demás detalle detalles documento documentos e
el él ella ello en encuentra encontrar encárgate es esa esas ese eso esos esta estas este esto estos estudia estudiar
estudio examina examinar explora explorar fuentes gestiona haga hacer hallar haz hechos importante importantes
información informaciones informe investiga investigación investigar la las le lo los más maneja mira necesaria
necesario necesarios objetivo para parte pasos por problema problemas procesa procesar proyecto pregunta preguntas que
qué realiza realizar recopila recopilar relacionado relevante relevantes resolver responde responder respuesta resuelve
resultado resultados resume resumen resumir revisa revisar se sea ser si situación sobre solución su sus tarea tareas
tema temas texto todo todos todas toda trabaja trabajar trabajo trata un una uno unos y
"""

_ITALIAN_PORTUGUESE = """
agli ai al alla alle analizza analizzare analisi cerca cercare che chi come con cosa cose dati dei del della delle di
documenti e ed esamina fai fare gli i il informazioni la lavora lavoro le lo nel nella per problema questione questo
questa raccogli ricerca ricerche risolvi risultati su sul tema trova tutto un una
ajuda ajude analisa analisar analise ao aos as assunto com coisa coisas coleta conteúdo da dados das de do dos
documentos ela ele em encontra encontre esse esta este estude faça fazer informações investigue isso isto na nas no nos
o os ou para pesquisa pesquisar pesquise pelo por qualquer que questão relatório relevantes resolva resultados sobre
tarefa tarefas trabalho trate tudo um uma
"""

_GENERIC = frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH} {_ITALIAN_PORTUGUESE}".split())

# Scripts without spaces: terms are taken out of the text, longest first; of what is left two characters are a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_EASTERN = """
分析 数据 資料 資訊 信息 情報 收集 进行 進行 研究 调查 調查 調査 查找 寻找 处理 處理 完成 任务 任務 工作 问题 問題 相关
相關 関連 关于 所有 一些 这个 這個 事情 内容 結果 结果 报告 報告 了解 帮助 幫助 解决 解決 请 的 了 在 对 和
データ を する して ください 行う について この その に関する 集める 集めて 収集 検索 調べる 調べて タスク 作業 対応
วิเคราะห์ ข้อมูล ทำ งาน ค้นหา วิจัย เกี่ยวกับ นี้
"""
_TERMS = re.compile("|".join(map(re.escape, sorted(_EASTERN.split(), key=len, reverse=True))))
_WORD = re.compile(r"\w+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")


def is_concrete(description: str, *, reads: bool = False) -> bool:
    """Returns True if a description names what it is about. If it `reads` attachments, they are a part of that."""
    spaced = _UNSPACED_RUN.sub(" ", description)
    words = {word.casefold() for word in _WORD.findall(spaced)}
    named = sum(_weight(word) for word in words if word not in _GENERIC)
    left = _TERMS.sub("", "".join(_UNSPACED_RUN.findall(description)))
    return named + len(left) // 2 + int(reads) >= _LEAST_NAMED


def _weight(word: str) -> int:
    if any(character.isdigit() for character in word):
        return _LEAST_NAMED
    return int(len(word) > 1)
