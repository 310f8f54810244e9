"""Doubts about queries: whether they ask what the question asks. Each wrong query raises one, no right one does."""

import json

import pytest

from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.doubts.query_doubts import query_doubts
from temporal_supervisor.supervision.grounding.sources import Source

_LISTING = """\
table voyages (Ship VARCHAR, Flag VARCHAR, "Home port" VARCHAR, Year BIGINT, Crew BIGINT, Wins BIGINT): 
  Ship: Aurora (SWE), Borealis, Cygnus, Total
  Flag: Belgium, Norway, Sweden
  "Home port": Bergen harbour south, Oslo, Visby
  Year: 1990 to 2010
  Crew: 4 to 40
  Wins: 0 to 9
table orders (id BIGINT, Returned VARCHAR, "is paid" BIGINT, Kind VARCHAR): no description. Rows: 90
  id: 1 to 90
  Returned: no, yes
  "is paid": 0 to 1
  Kind: desk, lamp
table ranks (Place VARCHAR, Sailor VARCHAR): none
  Place: 1st, 2nd, 5th
  Sailor: Ida, Jon, Kai"""


def doubts(question: str, sql: str, *rows: str, more: tuple[Source, ...] = ()) -> list[str]:
    """Returns the doubts about the only query; the first of `rows` is the head of its output."""
    head, *others = rows
    rule = "|" + "---|" * (head.count("|") + 1)
    output = "\n".join([f"| {head} |", rule, *(f"| {row} |" for row in others), f"{len(others)} rows"])
    listed = Source(_LISTING, name="list_tables {}", arguments="{}")
    queried = Source(output, arguments=json.dumps({"sql": sql}), name="query_data")
    return query_doubts(question, [Source(question), listed, queried, *more])


@pytest.mark.parametrize(
    ("question", "right", "wrong", "sign"),
    [
        # A number that nobody has named.
        (
            "How large was the crew of Cygnus?",
            ("SELECT Crew FROM voyages WHERE Ship = 'Cygnus'", "Crew", "12"),
            ("SELECT count(Crew) FROM voyages WHERE Ship = 'Cygnus' AND CAST(Crew AS DECIMAL) = 19.5", "n", "0"),
            "a condition on 19.5",
        ),
        # A column whose name is a number, without its quotes.
        (
            "What were the wins of Cygnus before 2009?",
            ("SELECT sum(Wins) FROM voyages WHERE 1 = 1 AND Ship = 'Cygnus' AND Year < 2009", "wins", "7"),
            ("SELECT sum(Wins) FROM voyages WHERE Ship = 'Cygnus' AND CAST(2004 AS INT) < 2009", "wins", "7"),
            "compares the number 2004 with 2009",
        ),
        # Another row than the named one.
        (
            "Which ship came after Borealis?",
            (
                "SELECT Ship FROM voyages WHERE Year > (SELECT Year FROM voyages WHERE Ship = 'Borealis')",
                "Ship",
                "Cygnus",
            ),
            ("SELECT Ship, Year FROM voyages WHERE Ship = 'Borealis'", "Ship | Year", "Borealis | 1991"),
            "looks at 'Borealis' alone",
        ),
        (
            "Aurora has the same flag as which other ship?",
            (
                "SELECT Ship, Flag FROM voyages WHERE Flag IN (SELECT Flag FROM voyages WHERE Ship = 'Aurora')",
                "Ship | Flag",
                "Cygnus | Norway",
            ),
            ("SELECT Ship, Flag FROM voyages WHERE Ship = 'Aurora'", "Ship | Flag", "Aurora | Norway"),
            "looks at 'Aurora' alone",
        ),
        # A column whose name another one got.
        (
            "Which flag has the most wins?",
            ("SELECT Flag, Wins FROM voyages ORDER BY Wins DESC LIMIT 1", "Flag | Wins", "Norway | 9"),
            (
                "SELECT Flag, count(*) AS wins FROM voyages GROUP BY Flag ORDER BY wins DESC LIMIT 1",
                "Flag | wins",
                "Norway | 2",
            ),
            "does not read wins, of which the question asks for the most",
        ),
        # One of two.
        (
            "Were more voyages made in 1990 or 1991?",
            (
                "SELECT Year, count(*) AS n FROM voyages WHERE Year IN (1990, 1991) GROUP BY Year ORDER BY n DESC",
                "Year | n",
                "1991 | 4",
                "1990 | 2",
            ),
            ("SELECT count(*) FROM voyages WHERE Year IN (1990, 1991)", "n", "6"),
            "asks which of two",
        ),
        # A name that is only left out.
        (
            "Which ship came right after Borealis?",
            (
                "SELECT Ship FROM voyages WHERE Year > (SELECT Year FROM voyages WHERE Ship = 'Borealis') "
                "AND Ship <> 'Borealis' ORDER BY Year LIMIT 1",
                "Ship",
                "Cygnus",
            ),
            ("SELECT Ship FROM voyages WHERE Ship NOT IN ('x', 'Borealis') ORDER BY Year LIMIT 1", "Ship", "Cygnus"),
            "leaves out 'Borealis'",
        ),
        # Rows for the numbers in a column.
        (
            "total number of wins by Belgian ships",
            ("SELECT sum(Wins) FROM voyages WHERE Flag = 'Belgium'", "wins", "7"),
            ("SELECT count(*) AS wins FROM voyages WHERE Flag = 'Belgium'", "wins", "4"),
            "counts rows",
        ),
        # The most of things that have no column of numbers.
        (
            "Which flag had the most ships?",
            ("SELECT Flag, count(*) AS n FROM voyages GROUP BY Flag ORDER BY n DESC LIMIT 1", "Flag | n", "Norway | 3"),
            ("SELECT Flag FROM voyages WHERE Year <= 2000 ORDER BY Year DESC LIMIT 1", "Flag", "Norway"),
            "counts nothing, and the question asks for the most ships",
        ),
        (
            "Which ship had the fewest wins?",
            ("SELECT Ship FROM voyages ORDER BY Wins LIMIT 1", "Ship", "Cygnus"),
            ("SELECT Ship FROM voyages ORDER BY Wins DESC LIMIT 1", "Ship", "Cygnus"),
            "takes the highest",
        ),
        # A method, also of a long question.
        (
            "Calculate the mean of the column Crew of all voyages. Outliers are to be removed by the interquartile "
            "range before the mean is calculated. Handle values that are missing by leaving their rows out, and "
            "report the mean with two decimals, rounded half up, as a number without a unit or any other words.",
            (
                "WITH q AS (SELECT quantile_cont(Crew, 0.25) a, quantile_cont(Crew, 0.75) b FROM voyages) "
                "SELECT avg(Crew) FROM voyages, q WHERE Crew BETWEEN a - 1.5 * (b - a) AND b + 1.5 * (b - a)",
                "mean",
                "12.25",
            ),
            ("SELECT avg(Crew) FROM voyages WHERE Ship <> 'Total'", "mean", "13.5"),
            "does not compute outliers",
        ),
        (
            "How many crews are outliers by their z-score?",
            (
                "SELECT count(*) FROM voyages WHERE abs(Crew - (SELECT avg(Crew) FROM voyages)) > "
                "3 * (SELECT stddev(Crew) FROM voyages)",
                "n",
                "2",
            ),
            ("SELECT Crew, avg(Crew), stddev(Crew) FROM voyages GROUP BY Crew", "Crew | a | b", "12 | 12 | 0"),
            "does not compute outliers",
        ),
        (
            "Calculate the population standard deviation of Crew.",
            ("SELECT stddev_pop(Crew) FROM voyages", "sd", "3.25"),
            ("SELECT stddev(Crew) FROM voyages", "sd", "3.5"),
            "does not compute the deviation of a whole population",
        ),
        # A column of yes and no that is named.
        (
            "How many orders were returned?",
            ("SELECT count(*) FROM orders WHERE Returned = 'yes'", "count", "7"),
            ('SELECT count(*) AS "Number of Returned Orders" FROM orders', "Number of Returned Orders", "90"),
            "does not read returned",
        ),
        (
            "How many orders for lamps have been paid?",
            ("SELECT sum(\"is paid\") FROM orders WHERE Kind = 'lamp'", "sum", "7"),
            ("SELECT count(*) FROM orders WHERE Kind = 'lamp'", "count", "40"),
            "does not read is paid",
        ),
        # A value that chooses rows.
        (
            "How many wins did Borealis have in 1994?",
            ("SELECT Wins FROM voyages WHERE Ship = 'Borealis' AND Year = 1994", "Wins", "3"),
            ("SELECT Wins FROM voyages WHERE Ship = 'Borealis'", "Wins", "4"),
            "no condition on 1994",
        ),
        (
            "How large was the crew of aurora in 1994?",
            ("SELECT Crew FROM voyages WHERE Ship LIKE 'Aurora%' AND Year = 1994", "Crew", "12"),
            ("SELECT Crew FROM voyages WHERE Year = 1994", "Crew", "14"),
            "no condition on 'Aurora (SWE)'",
        ),
        (
            "What is the total of wins of Belgian ships?",
            ("SELECT sum(Wins) FROM voyages WHERE Flag = 'Belgium'", "sum", "7"),
            ("SELECT sum(Wins) FROM voyages", "sum", "30"),
            "no condition on 'Belgium'",
        ),
        (
            "How many ships are from bergen harbour?",
            ("SELECT count(*) FROM voyages WHERE \"Home port\" LIKE 'Bergen%'", "n", "2"),
            ("SELECT count(*) FROM voyages", "n", "30"),
            "no condition on 'bergen harbour'",
        ),
        (
            "Which sailor was 5th?",
            ("SELECT Sailor FROM ranks WHERE Place = '5th'", "Sailor", "Kai"),
            ("SELECT Sailor FROM ranks LIMIT 1", "Sailor", "Ida"),
            "no condition on 5",
        ),
        # An extreme, and its end.
        (
            "Which ship had the largest crew?",
            ("SELECT Ship FROM voyages ORDER BY Crew DESC LIMIT 1", "Ship", "Cygnus"),
            ("SELECT Ship FROM voyages LIMIT 1", "Ship", "Borealis"),
            "neither sorts",
        ),
        (
            "Which ship had the largest crew?",
            ("SELECT arg_max(Ship, Crew) FROM voyages", "Ship", "Cygnus"),
            ("SELECT Ship FROM voyages ORDER BY Crew LIMIT 1", "Ship", "Borealis"),
            "takes the lowest",
        ),
        (
            "When did the first ship sail from Oslo?",
            ("SELECT min(Year) FROM voyages WHERE \"Home port\" = 'Oslo'", "Year", "1991"),
            ("SELECT max(Year) FROM voyages WHERE \"Home port\" = 'Oslo'", "Year", "2009"),
            "the other end",
        ),
        (
            "Which ship has the most wins?",
            ("SELECT Ship FROM voyages WHERE Ship <> 'Total' ORDER BY Wins DESC LIMIT 1", "Ship", "Cygnus"),
            ("SELECT Ship FROM voyages ORDER BY Wins DESC LIMIT 1", "Ship", "Total"),
            "sums up the others",
        ),
        # What is computed.
        (
            "What is the average crew of ships from Oslo?",
            ("SELECT avg(Crew) FROM voyages WHERE \"Home port\" = 'Oslo'", "crew", "12.5"),
            ("SELECT Crew FROM voyages WHERE \"Home port\" = 'Oslo' LIMIT 1", "Crew", "12"),
            "no mean",
        ),
        (
            "How many wins did Borealis have?",
            ("SELECT sum(Wins) FROM voyages WHERE Ship = 'Borealis'", "wins", "7"),
            ("SELECT avg(Wins) FROM voyages WHERE Ship = 'Borealis'", "wins", "3.5"),
            "a mean, which",
        ),
        (
            "How many more wins did Borealis have than Cygnus?",
            (
                "SELECT sum(Wins) FILTER (Ship = 'Borealis') - sum(Wins) FILTER (Ship = 'Cygnus') FROM voyages",
                "more",
                "3",
            ),
            ("SELECT sum(Wins) FROM voyages WHERE Ship IN ('Borealis', 'Cygnus')", "wins", "11"),
            "no difference",
        ),
        (
            "What is the total number of wins of Borealis?",
            ("SELECT sum(Wins) FROM voyages WHERE Ship = 'Borealis'", "wins", "7"),
            ("SELECT max(Wins) FROM voyages WHERE Ship = 'Borealis'", "wins", "4"),
            "adds nothing up",
        ),
        # Conditions.
        (
            "How many voyages were after 2000?",
            ("SELECT count(*) FROM voyages WHERE Year > 2000", "n", "12"),
            ("SELECT count(*) FROM voyages WHERE Year = 2000", "n", "1"),
            "compares with nothing",
        ),
        (
            "How many ships did not win?",
            ("SELECT count(*) FROM voyages WHERE Wins = 0", "n", "2"),
            ("SELECT count(*) FROM voyages WHERE Wins = 3", "n", "30"),
            "leaves nothing out",
        ),
        # What is shown.
        (
            "Who sailed in Oslo?",
            ("SELECT Ship FROM voyages WHERE \"Home port\" = 'Oslo'", "Ship", "Cygnus"),
            ("SELECT Crew FROM voyages WHERE \"Home port\" = 'Oslo'", "Crew", "12"),
            "asks who",
        ),
        (
            "Which flag does Cygnus have?",
            ("SELECT Flag FROM voyages WHERE Ship = 'Cygnus'", "Flag", "Norway"),
            ("SELECT \"Home port\" FROM voyages WHERE Ship = 'Cygnus'", "Home port", "Visby"),
            "does not show flag",
        ),
        (
            "How many people are on Cygnus?",
            ("SELECT Crew FROM voyages WHERE Ship = 'Cygnus'", "Crew", "12"),
            ("SELECT Year FROM voyages WHERE Ship = 'Cygnus'", "Year", "1991"),
            "returns Year",
        ),
        (
            "Where is Cygnus at home?",
            ("SELECT \"Home port\" FROM voyages WHERE Ship = 'Cygnus'", "Home port", "Visby"),
            ("SELECT Ship FROM voyages WHERE Ship = 'Cygnus'", "Ship", "Cygnus"),
            "only the values that it was asked by",
        ),
        (
            "How many flags are there?",
            ("SELECT count(DISTINCT Flag) FROM voyages", "n", "3"),
            ("SELECT count(DISTINCT Crew) FROM voyages", "n", "9"),
            "does not read flag",
        ),
    ],
)
def test_a_wrong_query_is_doubted_and_the_right_one_is_not(
    question: str, right: tuple[str, ...], wrong: tuple[str, ...], sign: str
) -> None:
    assert doubts(question, *right) == []
    assert any(sign in doubt for doubt in doubts(question, *wrong))


@pytest.mark.parametrize(
    ("question", "sql", "rows"),
    [
        # Whoever sees rows with figures may compare them.
        (
            "Which ship had the largest crew?",
            "SELECT Ship, Crew FROM voyages",
            ("Ship | Crew", "Borealis | 4", "Cygnus | 9"),
        ),
        # The values stand in the rows.
        (
            "How many wins had Borealis in 1994?",
            "SELECT * FROM voyages LIMIT 2",
            ("Ship | Year | Wins", "Borealis | 1994 | 3"),
        ),
        # One of two values is enough where the answer is one of them.
        (
            "Did Borealis or Cygnus win more often?",
            "SELECT Ship FROM voyages ORDER BY Wins DESC LIMIT 1",
            ("Ship", "Cygnus"),
        ),
        # A number that no column can hold is about something else.
        ("Of the 2024 handbook: how many voyages are there?", "SELECT count(*) FROM voyages", ("n", "30")),
        ("What is the combined crew of all 30 ships?", "SELECT sum(Crew) FROM voyages", ("crew", "300")),
        # What is left out needs no condition.
        (
            "Besides Oslo, which home port is there?",
            'SELECT max("Home port") AS "Home port" FROM voyages',
            ("Home port", "Visby"),
        ),
        # At least is no extreme.
        ("How many ships had at least 5 wins?", "SELECT count(*) FROM voyages WHERE Wins >= 5", ("n", "7")),
        # A number that chooses rows may be a rank, or rounded by a range.
        ("Who came second?", "SELECT Sailor FROM ranks WHERE Place = '2nd'", ("Sailor", "Jon")),
        ("Which ships are from this century?", "SELECT Ship FROM voyages WHERE Crew > 104", ("Ship", "Cygnus")),
        # What a flag is about may be asked for without it.
        ("How many orders for a desk are there?", "SELECT count(*) FROM orders WHERE Kind = 'desk'", ("n", "50")),
        # A query that found nothing is behind no answer.
        ("How many wins had Borealis in 1994?", "SELECT Wins FROM voyages WHERE Ship = 'Q'", ("Wins",)),
    ],
)
def test_honest_queries_raise_no_doubts(question: str, sql: str, rows: tuple[str, ...]) -> None:
    assert doubts(question, sql, *rows) == []


def test_another_tool_may_have_computed_what_no_query_did() -> None:
    question = "How many more wins did Borealis have than Cygnus?"
    sql = "SELECT sum(Wins) FROM voyages WHERE Ship IN ('Borealis', 'Cygnus')"
    computed = Source("9 - 2 = 7", "computed", json.dumps({"expression": "9 - 2"}), "calculate")
    assert doubts(question, sql, "wins", "9") != []
    assert doubts(question, sql, "wins", "9", more=(computed,)) == []


def test_a_number_that_another_query_has_shown_may_choose_rows() -> None:
    question, sql = "Where is the ship with most voyages from?", 'SELECT "Home port" FROM voyages WHERE id = 4711'
    rows = ("Home port", "Visby")
    found = Source("| id | n |\n|---|---|\n| 4711 | 9 |\n1 row", arguments='{"sql": "SELECT id FROM v ORDER BY n"}')
    assert [doubt for doubt in doubts(question, sql, *rows) if "4711" in doubt]
    assert not [doubt for doubt in doubts(question, sql, *rows, more=(found,)) if "4711" in doubt]


def test_questions_without_a_query_raise_no_doubts() -> None:
    assert query_doubts("Which ship had the largest crew in 1994?", [Source("1994"), Source(_LISTING)]) == []


def test_an_order_how_to_answer_and_a_long_question_leave_nothing_out() -> None:
    sql, rows = "SELECT avg(Wins) FROM voyages", ("avg", "4.5")
    asked = "What is the average of the wins?"
    assert doubts(f"{asked} Do not take any of them for an outlier.", sql, *rows) == []
    assert doubts("What is the average of the wins of ships that did not sail in 1994?", sql, *rows)
    method = "Of 1994 count all voyages alike, those of Borealis too, whatever their crew and their harbour. " * 4
    assert doubts(f"{asked} {method}", sql, *rows) == []


# --- the finding tells which query it rests on --------------------------------------------------


def queried(sql: str, *rows: str) -> Source:
    """The output of a query; the first of `rows` is its head."""
    head, *others = rows
    rule = "|" + "---|" * (head.count("|") + 1)
    output = "\n".join([f"| {head} |", rule, *(f"| {row} |" for row in others), f"{len(others)} rows"])
    return Source(output, arguments=json.dumps({"sql": sql}), name="query_data")


MORE = "How many more voyages did Belgium have than Norway?"
BELGIUM = queried("SELECT count(*) FROM voyages WHERE Flag = 'Belgium'", "n", "8")
NORWAY = queried("SELECT count(*) FROM voyages WHERE Flag = 'Norway'", "n", "1")


@pytest.mark.parametrize(
    ("told", "is_doubted"),
    [
        ("Belgium had 8 voyages more.", True),
        ("Belgium had 7 voyages more.", False),
        ("Belgium had 8 and Norway 1, so there were 7 more.", False),
    ],
)
def test_of_several_queries_the_one_that_the_finding_tells_is_doubted(told: str, is_doubted: bool) -> None:
    found = query_doubts(MORE, [BELGIUM, NORWAY], told)
    assert found == (["the query computes no difference, which the question asks for"] if is_doubted else [])


def test_a_query_that_is_as_wrong_as_the_first_one_is_doubted_as_well() -> None:
    both = "SELECT count(*) FROM voyages WHERE Flag = 'Belgium' EXCEPT SELECT 1 FROM voyages WHERE Flag = 'Norway'"
    assert query_doubts(MORE, [queried(both, "n", "8"), BELGIUM], "There were 8 more voyages.")


def test_what_two_queries_found_one_after_the_other_is_not_doubted() -> None:
    most = queried("SELECT max(Wins) AS wins FROM voyages", "wins", "9")
    who = queried("SELECT Ship FROM voyages WHERE Wins = 9", "Ship", "Cygnus")
    again = queried("SELECT Ship FROM voyages WHERE Ship = 'Cygnus'", "Ship", "Cygnus")
    assert query_doubts("Which ship had the most wins?", [most, who, again], "It was Cygnus.") == []

    paid = queried("SELECT id FROM orders WHERE Returned <> 'no'", "id", "4", "7")
    kind = queried("SELECT Kind FROM orders WHERE id IN (4, 7)", "Kind", "desk")
    assert query_doubts("What kind was not kept by its buyer?", [paid, kind], "A desk.") == []


@pytest.mark.parametrize(
    ("told", "is_doubted"),
    [
        ("The Belgian ships had 4 wins in all.", True),  # as many rows as there are
        ("The Belgian ships had 7 wins in all.", False),
        ("The Belgian ships won often.", False),
    ],
)
def test_rows_that_were_to_be_added_up_are_compared_with_what_is_told(told: str, is_doubted: bool) -> None:
    wins = queried("SELECT Wins FROM voyages WHERE Flag = 'Belgium'", "Wins", "3", "3", "1", "0")
    found = query_doubts("total wins by Belgian ships", [wins], told)
    assert bool(found) is is_doubted
    assert all("add up to 7" in doubt for doubt in found)
    # A name may be told for the highest total.
    assert query_doubts("Which ship has the highest total of wins?", [wins], told) == []


def test_rows_are_what_a_column_of_another_number_or_of_texts_counts() -> None:
    counted = ("SELECT count(*) FROM voyages WHERE Flag = 'Belgium'", "n", "4")
    assert doubts("How many ships had the flag of Belgium?", *counted) == []
    assert doubts("How many years have a voyage under the flag of Belgium?", *counted) == []


def test_a_text_that_nobody_has_named_chooses_no_rows() -> None:
    question = "What is the average of the wins?"
    chosen = "SELECT avg(Wins) FROM voyages WHERE \"Home port\" = 'Bergen harbour south'"
    assert doubts(question, chosen, "wins", "4.5") == [
        "the query has a condition on 'Bergen harbour south', which nobody has named"
    ]
    assert doubts(f"{question[:-1]} from Bergen?", chosen, "wins", "4.5") == []
    assert doubts(question, "SELECT avg(Wins) FROM voyages WHERE Flag = 'SWE'", "wins", "4.5") == []
    for words in ("of the BHS?", "that did not sail?", "of Norwegian ships?"):
        found = doubts(f"{question[:-1]} {words}", chosen, "wins", "4.5")
        assert not [doubt for doubt in found if "nobody has named" in doubt]
    shown = queried('SELECT "Home port" FROM voyages ORDER BY Wins LIMIT 1', "Home port", "Bergen harbour south")
    assert doubts(question, chosen, "wins", "4.5", more=(shown,)) == []


def test_a_long_question_for_a_mean_is_answered_by_one() -> None:
    rules = "Convert the texts to numbers before, and leave out what is empty or cannot be converted. " * 3
    question = f"What is the mean of the wins of all voyages that are listed in the table? {rules}"
    assert doubts(question, "SELECT Wins FROM voyages ORDER BY Wins DESC LIMIT 1", "Wins", "9")
    assert doubts(question, "SELECT avg(Wins) FROM voyages", "Wins", "4.5") == []


@pytest.mark.parametrize(
    ("told", "is_doubted"),
    [
        ("The country with the most wins was Norway.", True),
        ("The country with the most wins was Belgium, not Norway.", True),
        ("The country with the most wins was Belgium.", False),
    ],
)
def test_a_name_from_the_list_of_tables_is_no_answer(told: str, is_doubted: bool) -> None:
    most = queried("SELECT Flag FROM voyages ORDER BY Wins DESC LIMIT 1", "Flag", "Belgium")
    found = query_doubts("Which country had the most wins?", [Source(_LISTING, name="list_tables {}"), most], told)
    assert found == (["no row of the query has 'Norway', which the finding gives"] if is_doubted else [])


def test_a_glance_at_a_table_compares_no_rows() -> None:
    rows = ("Ship | Wins", "Aurora | 4", "Cygnus | 2")
    glance = queried("SELECT Ship, Wins FROM voyages LIMIT 2", *rows)
    whole = queried("SELECT Ship, Wins FROM voyages", *rows)
    question, told = "Which ship had the most wins?", "It was Aurora with 4."
    assert query_doubts(question, [glance], told)
    assert query_doubts(question, [whole], told) == []


@pytest.mark.parametrize(
    ("facts", "sign"),
    [
        (QueryFacts(is_tied=True), "LIMIT leaves out a row that ties"),
        (QueryFacts(adds_total=True), "is the sum of the others"),
        (QueryFacts(is_cut=True), ""),
    ],
)
def test_other_rows_that_nobody_heeds_are_a_doubt(facts: QueryFacts, sign: str) -> None:
    output = "| Ship |\n|---|\n| Cygnus |\n1 row"
    sql = "SELECT Ship FROM voyages ORDER BY Crew DESC LIMIT 1"
    queried = Source(output, arguments=json.dumps({"sql": sql}), name="query_data", facts=facts)
    found = query_doubts("Which ship has the largest crew?", [Source(_LISTING), queried])
    assert [sign in doubt for doubt in found] == ([True] if sign else [])


@pytest.mark.parametrize("year", [1991, 2001, 2005])
def test_a_year_is_not_found_in_a_limit(year: int) -> None:
    sql = "SELECT Ship FROM voyages ORDER BY Wins DESC LIMIT 1"
    found = doubts(f"Which ship had the most wins in {year}?", sql, "Ship", "Cygnus")

    assert f"the query has no condition on {year}, which the question names" in found


def test_numbers_beside_a_comma_are_two_numbers() -> None:
    sql = "SELECT Ship, Year FROM voyages WHERE Year IN (1991, 1992)"
    question = "Which ships sailed in 1991 and in 1992?"
    rows = ("Ship | Year", "Aurora, 1991,1992 | 1991")

    assert not doubts(question, sql, *rows)
