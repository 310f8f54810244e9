"""Words that name nothing: they may appear in any honest answer, without a source."""

_ENGLISH = """
a an the this that these those it its they their them he she his her we our you your i and or but
nor so yet if then else when where while whereas because since as than though although however
therefore thus hence also too only just even still already again once here there now today yesterday
tomorrow both either neither each every all any some no none not one two three four five six seven
eight nine ten eleven twelve first second third fourth fifth last next previous former latter same
other another such most more less least many much few several own in on at by for from to of with
without within into onto over under above below between among through during before after until till
against about around across along per via like unlike despite except besides instead rather very
quite almost nearly roughly approximately exactly overall altogether together combined finally
lastly firstly secondly meanwhile moreover furthermore additionally notably accordingly consequently
specifically generally typically usually possibly probably is are was were be been being am do does
did done has have had having can could may might must shall should will would get gets got give
gives gave given go goes went gone make makes made take takes took taken come comes came see sees
saw seen show shows showed shown find finds found say says said tell tells told become becomes
became remain remains remained stay stays stayed keep keeps kept grow grows grew grown rise rises
rose risen fall falls fell fallen increase increases increased decrease decreases decreased decline
declines declined drop drops dropped gain gains gained lose loses lost climb climbed double doubled
triple halve halved change changes changed reach reaches reached lead leads led follow follows
followed compare compared comparing based according given using used use uses include includes
included including excluding contain contains contained cover covers covered report reports reported
record records recorded state states stated note notes noted mean means meant cause causes caused
due owing thanks result results resulted reason reasons explain explains explained happen happened
occur occurred exist exists need needs high higher highest low lower lowest large larger largest
small smaller smallest big bigger biggest great greater greatest long longer longest short shorter
shortest strong stronger strongest weak weaker weakest fast faster fastest slow slower slowest early
earlier earliest late later latest new newer newest old older oldest good better best bad worse
worst main major minor total full whole entire partial single average median mean maximum minimum
sum difference ratio share percent percentage rate figure figures number numbers value values amount
amounts count counts level levels unit units period periods year years month months week weeks day
days hour hours minute minutes decade decades century quarter half date dates time times table
tables column columns row rows data dataset datasets database query queries source sources document
documents file files note text page section chapter report analysis answer question finding findings
summary conclusion result overview background context method methods methodology calculation
calculations computation formula limitation limitations caveat caveats assumption assumptions gap
gaps missing available unavailable unknown unclear uncertain confidence evidence reference
references detail details information example name names list item items entry entries type types
kind kinds group groups category categories part parts place places area areas region country
countries state city cities company companies industry sector product products person people
population customer customers user users team teams player players member members growth decline
increase decrease rise fall drop change trend trends peak low range gap ranking rank top bottom
order orders sale sales revenue cost costs price prices profit income spending demand supply
production output input performance quality size weight length height distance speed age world
global national international local public private annual yearly monthly weekly daily quarterly
recent current present past future since yes ok okay please key point points step steps takeaway
takeaways highlights insight insights observation observations comparison development developments
impact effect effects factor factors driver drivers issue issues problem problems shortage lack
absence defect error errors rounding right wrong true false correct incorrect different similar
equal respectively north south east west northern southern eastern western central left side end
start beginning close open because itself themselves which who whom whose what why how me my mine us
out up down off back away forward further far near nearby much little lot lots way thing things case
cases fact facts set sets line lines work works working run runs running part english german french
spanish chinese arabic european american african asian i'll i'm i've i'd let let's it's don't
doesn't isn't wasn't markdown select where varchar bigint double integer boolean timestamp null sum
"""
_GERMAN = """
der die das den dem des ein eine einen einem einer eines und oder aber sondern denn weil da wenn als
wie dass ob obwohl während sowie sowohl auch nur noch schon bereits wieder hier dort jetzt heute
damals beide beiden jede jeder jedes alle allen alles einige mehrere viele wenige kein keine keinen
nicht nichts in im an am auf aus bei beim mit nach seit von vom vor zu zum zur über unter zwischen
durch für gegen ohne um bis ab je pro laut wegen aufgrund infolge trotz ist sind war waren sein wird
werden wurde wurden worden hat haben hatte hatten kann können konnte muss müssen soll sollte mehr
weniger meisten wenigsten höher höchste höchsten niedriger niedrigste größer größte größten kleiner
kleinste stark stärker stärksten insgesamt zusammen gesamt rund etwa ca knapp fast genau jahr jahre
jahren monat monate monaten woche wochen tag tage tagen stunde stunden quartal halbjahr zeitraum
jahrzehnt wert werte werten zahl zahlen anzahl summe differenz anteil anteile prozent prozentpunkte
durchschnitt mittel mittelwert maximum minimum anstieg rückgang zuwachs zunahme abnahme wachstum
veränderung entwicklung steigerung vergleich tabelle tabellen spalte zeile zeilen daten quelle
quellen dokument dokumente bericht abfrage ergebnis ergebnisse antwort frage grund gründe ursache
ursachen hinweis anmerkung einschränkung einschränkungen zusammenfassung fazit übersicht land länder
region regionen stadt firma unternehmen branche sektor produkt produkte kunde kunden umsatz umsätze
kosten preis preise gewinn menge mengen ziel ziele nord süd ost west norden süden osten westen euro
dollar mio mrd tsd damit dabei davon dazu dies diese dieser dieses diesen es er sie ihr ihre sich
man wir ich folgende folgenden höhe teil fall stand beispiel angabe angaben
"""
_OF_TIME = """
january february march april may june july august september october november december jan feb mar
apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday januar
februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag
sonntag janvier février mars avril juin juillet août septembre octobre novembre décembre enero
febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre spring summer
autumn winter
"""
_ACRONYMS = """
ai api bc ad ce ceo cfo cto co2 csv db dns e eg eu faq fy gdp gnp h1 h2 hr html http https id ie it
json kpi llm md n na ng no nr ok pdf ppp pp q1 q2 q3 q4 qa rd sql tbd tv uk un url us usa utc vat vs
xlsx xml yoy ytd cagr iso bip usd eur gbp chf jpy cny inr ii iii iv vi vii viii ix am pm mwst st tab
abs art bzw
"""

COMMON = frozenset(f"{_ENGLISH} {_GERMAN} {_OF_TIME} {_ACRONYMS}".split())

_FUNCTION_WORDS = {
    "en": """
        what how did which to at on it this its as or the and of is was were are that with for by
        from has had
    """,
    "de": """
        der die das und ist war waren den dem von mit für im ein bei am aus nach auf rund wurde
        wurden nicht sich statt um zu eine einen hatte
    """,
    "fr": "le la les et est des du une dans par pour que sur été",
    "es": "el los las y es del una por para que con fue más se",
}
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
"""The commonest words of each language, by which the language of a text is told."""
