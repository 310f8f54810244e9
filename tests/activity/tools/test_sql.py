"""The SQL tools: good use, advice on misuse, and a hostile corpus against the check and against the engine alone."""

import hashlib
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.teams.toolbox import TOOL_KEPT_CHARS
from activities.tools.files import FolderFiles
from activities.tools.sql import sql_tools
from activities.tools.sql.sql_check import Refused, check
from activities.tools.sql.sql_tools import TableTools
from activities.tools.sql.table_words import TableOptions
from activities.tools.tool import Tool, ToolContext, ToolMisuse, ToolOutput
from temporal_supervisor.supervision.base import limits
from tests.activity.files.made_tables import CACHE, tables_of

BUNDLED = Path(__file__).parents[3] / "teams" / "almanac"
CANARY = "canary-7f3a"

# Each would read, write, load, set or learn something outside the tables.
FORBIDDEN = r"""
INSERT INTO cities VALUES ('x', 1, DATE '2020-01-01')
UPDATE cities SET people = 0
DELETE FROM cities
TRUNCATE cities
DROP TABLE cities
ALTER TABLE cities ADD COLUMN x INTEGER
CREATE TABLE x AS SELECT 1
CREATE VIEW v AS SELECT 1
CREATE SECRET s (TYPE s3)
MERGE INTO cities USING cities AS b ON true WHEN MATCHED THEN DELETE
SELECT * INTO x FROM cities
WITH x AS (INSERT INTO cities VALUES ('x', 1, NULL) RETURNING *) SELECT * FROM x
WITH x AS (DELETE FROM cities RETURNING *) SELECT * FROM x
WITH x AS (DROP TABLE cities) SELECT * FROM x
WITH x AS (VACUUM) SELECT * FROM x
COPY cities TO '{folder}/out.csv'
COPY cities FROM '{canary}'
COPY cities TO PROGRAM 'touch {folder}/out.csv'
EXPORT DATABASE '{folder}/out'
IMPORT DATABASE '{folder}'
ATTACH '{folder}/other.db'
ATTACH '{folder}/other.db' AS other (TYPE sqlite)
DETACH main
USE memory
INSTALL httpfs
LOAD httpfs
LOAD '{canary}'
UPDATE EXTENSIONS
SET memory_limit = '100GB'
SET enable_external_access = true
RESET memory_limit
PRAGMA enable_profiling
CALL pragma_version()
CHECKPOINT
VACUUM
ANALYZE
BEGIN TRANSACTION
PREPARE p AS SELECT 1
EXPLAIN ANALYZE SELECT 1
DESCRIBE cities
SHOW TABLES
COMMENT ON TABLE cities IS 'x'
GRANT SELECT ON cities TO x
VALUES (1)
SELECT 1; DROP TABLE cities
SELECT 1; SELECT 2
SELECT 1 /* ; */ ; /* x */ COPY cities TO '{folder}/out.csv'
SELECT 1 -- x\n; DROP TABLE cities
SELECT $$;$$; DROP TABLE cities
;
-- nothing
SELECT * FROM read_csv('{canary}')
SELECT * FROM main.read_csv('{canary}')
SELECT * FROM read_text('{canary}')
SELECT * FROM read_blob('{canary}')
SELECT * FROM read_parquet('{canary}')
SELECT * FROM glob('{folder}/*')
SELECT * FROM '{canary}'
SELECT * FROM "{canary}"
FROM '{canary}'
SELECT * FROM cities JOIN read_text('{canary}') ON true
SELECT (SELECT content FROM read_text('{canary}'))
SELECT * FROM cities WHERE city IN (SELECT content FROM read_text('{canary}'))
WITH "{canary}" AS (SELECT 1) SELECT * FROM (SELECT * FROM "{canary}")
WITH x AS (SELECT * FROM read_text('{canary}')) SELECT * FROM x
SELECT * FROM (PIVOT cities ON city USING sum(people))
SELECT * FROM query('SELECT * FROM read_text(''{canary}'')')
SELECT * FROM query_table('cities')
SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))
SELECT * FROM duckdb_settings()
SELECT * FROM pragma_version()
SELECT * FROM information_schema.tables
SELECT * FROM pg_catalog.pg_class
SELECT * FROM checkpoint()
SELECT * FROM repeat_row(1, num_rows=10)
SELECT * FROM sqlite_scan('{canary}', 't')
SELECT * FROM other.main.cities
SELECT current_setting('memory_limit')
SELECT getenv('SUPERVISOR_SECRET')
SELECT pg_sleep(60)
SELECT pg_read_file('{canary}')
SELECT nextval('s')
SELECT ?
SELECT load_extension('{canary}')
SELECT * FROM secret_in_python
""".strip().splitlines()

# Each would read, write, lock, wait or learn something outside the tables of a PostgreSQL server. Functions are all
# tried by their names besides.
HOSTILE = r"""
SELECT pg_sleep(60)
SELECT pg_catalog.pg_sleep(60)
SELECT "pg_sleep"(60)
SELECT * FROM cities WHERE pg_sleep(60) IS NULL
SELECT E'\' || pg_sleep(60)::text || \''; SELECT 1
SELECT U&"pg\005fsleep"(60)
SELECT pg_read_file('{canary}')
SELECT * FROM pg_ls_dir('{folder}')
SELECT * FROM cities, LATERAL pg_ls_dir('{folder}') AS f
SELECT * FROM ROWS FROM (pg_ls_dir('{folder}'))
SELECT lo_import('{canary}')
SELECT lo_export(1, '{folder}/out.csv')
SELECT lo_create(1)
SELECT * FROM dblink('host=127.0.0.1', 'SELECT 1') AS t(x int)
SELECT set_config('transaction_read_only', 'off', false)
SELECT set_config('statement_timeout', '0', false), lo_create(2)
SET statement_timeout = 0
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE
SET ROLE admin
SELECT query_to_xml('SELECT * FROM salaries', true, true, '')
SELECT * FROM ts_stat('SELECT to_tsvector(name) FROM salaries')
SELECT ts_rewrite('a'::tsquery, 'SELECT 1, 2')
SELECT leak()
SELECT public.leak()
SELECT public.upper(cities) FROM cities
SELECT * FROM salaries
SELECT * FROM public.salaries
SELECT * FROM salaries WHERE EXISTS (WITH salaries AS (SELECT 1) SELECT * FROM salaries AS s, public.salaries)
SELECT * FROM cities UNION SELECT name, 1, NULL, NULL, NULL FROM salaries
WITH salaries AS (SELECT * FROM public.salaries) SELECT * FROM salaries
SELECT * FROM pg_authid
SELECT * FROM pg_shadow WHERE EXISTS (WITH pg_shadow AS (SELECT 1) SELECT * FROM pg_shadow)
SELECT * FROM pg_catalog.pg_roles
SELECT * FROM information_schema.columns
SELECT * FROM other.public.cities
SELECT 'pg_authid'::regclass
SELECT CAST('leak' AS regproc)
SELECT 1 OPERATOR(pg_catalog.+) 2
SELECT current_user
SELECT current_setting('data_directory')
SELECT inet_server_addr()
SELECT txid_current()
SELECT nextval('s')
SELECT setval('public.s', 100)
DELETE FROM public.cities
WITH x AS (DELETE FROM public.cities RETURNING city) SELECT * FROM x
SELECT pg_terminate_backend(1)
SELECT has_table_privilege('salaries', 'SELECT')
SELECT * FROM cities FOR UPDATE
SELECT * FROM cities FOR SHARE NOWAIT
LOCK TABLE cities
TABLE salaries
COPY cities TO STDOUT
COPY (SELECT 1) TO PROGRAM 'touch {folder}/out.csv'
DO $$ BEGIN PERFORM pg_sleep(60); END $$
CALL leak()
EXECUTE p
DECLARE c CURSOR FOR SELECT 1
LISTEN c
EXPLAIN ANALYZE SELECT pg_sleep(60)
COMMIT
ROLLBACK; DROP TABLE cities
CREATE TEMP TABLE t AS SELECT 1
CREATE EXTENSION dblink
ALTER ROLE reader SUPERUSER
GRANT ALL ON salaries TO reader
SELECT * FROM cities; COMMIT; DROP TABLE cities
""".strip().splitlines()

# Allowed by their form, meant to use up time or memory.
BOMBS = [
    "SELECT count(*) FROM range(1000000000000)",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    "WITH RECURSIVE t(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s FROM t WHERE n < 60) SELECT max(s) FROM t",
    "SELECT unnest(range(1000000000))",
    "SELECT regexp_matches(repeat('a', 1000000), '(a*)*(a*)*b')",
    "SELECT " + "(" * 2400 + "1" + ")" * 2400,
]


def make_folder(path: Path) -> Path:
    """A team folder with one small table, and a file that nothing may read."""
    (path / "data").mkdir()
    (path / "data" / "cities.csv").write_text(
        'city,people,founded\nAda,100,2001-05-01\n"Bo, North",250,1990-01-01\nCy|d,,1850-12-31\n'
    )
    (path / "canary.txt").write_text(f"name\n{CANARY}\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For tests that change files or limits."""
    return make_folder(tmp_path)


@pytest.fixture(scope="module")
def cities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests that only ask: its processes are started once."""
    return make_folder(tmp_path_factory.mktemp("cities"))


OPTIONS = {"tables": "data/*.csv", "descriptions": {"cities": "Cities"}, "sources": {"cities": "Atlas"}}


KINDS = {"list_tables": "sql_tables", "query_data": "sql_query"}
_sources: dict[Path, TableTools] = {}


async def tools(folder: Path, **options: Any) -> list[Tool[Any]]:
    given = TableOptions.model_validate({"tables": "data/*.csv", **options})
    return await TableTools(FolderFiles(folder, given.tables, CACHE), KINDS, given).open()


async def ask(folder: Path, sql: str) -> ToolOutput:
    """The answer to a query; the processes of a folder's tables are started once."""
    if folder not in _sources:
        options = TableOptions.model_validate(OPTIONS if folder != BUNDLED else {"tables": "data/*.csv"})
        _sources[folder] = TableTools(FolderFiles(folder, options.tables, CACHE), KINDS, options)
    _, tool = await _sources[folder].open()
    return await tool.run(tool.arguments(sql=sql), ToolContext())


def digest(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def test_the_tables_are_described_with_their_values_and_ranges(cities: Path) -> None:
    tool, _ = await tools(cities, **OPTIONS, examples=[{"question": 'Which is "Ada"?', "sql": "SELECT 1\n"}])
    output = await tool.run(tool.arguments(), ToolContext())
    assert output.text == (
        "table cities (city VARCHAR, people BIGINT, founded DATE): Cities. Rows: 3. Source: Atlas\n"
        "  city: Ada, 'Bo, North', Cy|d\n"
        "  people: 100 to 250\n"
        "  founded: 1850-12-31 to 2001-05-01\n"
        "\nExample queries:\n"
        "<example question=\"Which is 'Ada'?\">\nSELECT 1\n</example>"
    )


async def test_wide_tables_are_listed_in_part_and_one_of_them_whole(folder: Path) -> None:
    header = ",".join(f"column {number}" for number in range(300))
    (folder / "data" / "wide.csv").write_text(f"{header}\n" + ",".join(["some text" * 9] * 300) + "\n")
    tool, _ = await tools(folder)
    listed = (await tool.run(tool.arguments(), ToolContext())).text
    assert len(listed) < limits.TOOL_OUTPUT_CHARS
    assert "Tables are cut: this tool shows all of one" in listed
    assert "table cities (" in listed
    whole = (await tool.run(tool.arguments(table="wide"), ToolContext())).text
    assert '  "column 299": some text' in whole
    assert "cities" not in whole
    assert (await tool.run(tool.arguments(table="wild"), ToolContext())).text == listed


async def test_names_that_need_quotes_are_shown_with_them(folder: Path) -> None:
    (folder / "data" / "cities.csv").unlink()
    (folder / "data" / "orders.csv").write_text("Order Date,net,Qty\n2026-01-05,5,1\n2026-02-07,9,2\n")
    tool, query = await tools(folder)
    output = await tool.run(tool.arguments(), ToolContext())
    assert output.text.startswith('table orders ("Order Date" DATE, net BIGINT, Qty BIGINT): ')
    assert '\n  "Order Date": 2026-01-05 to 2026-02-07\n' in output.text
    written = """SELECT count(*) FROM orders WHERE "Order Date" >= DATE '2026-01-01'"""
    assert "(no rows)" not in (await query.run(query.arguments(sql=written), ToolContext())).text
    with pytest.raises(ToolMisuse) as misuse:
        await query.run(query.arguments(sql="SELECT * FROM orders WHERE Order_Date Date BETWEEN 1"), ToolContext())
    assert str(misuse.value) == (
        "The query is not valid SQL: Invalid expression / Unexpected token. Line 1, Col: 44. "
        'SELECT * FROM orders WHERE "Order Date" Date BETWEEN 1\n'
        'Tables: orders ("Order Date", net, Qty)'
    )


async def test_a_query_gives_a_markdown_table_its_size_and_its_sources(cities: Path) -> None:
    output = await ask(cities, "SELECT city, people / 4 AS quarter, founded FROM cities ORDER BY founded")
    assert output.text == (
        "| city | quarter | founded |\n"
        "| --- | --- | --- |\n"
        "| Cy\\|d | NULL | 1850-12-31 |\n"
        "| Bo, North | 62.5 | 1990-01-01 |\n"
        "| Ada | 25 | 2001-05-01 |\n"
        "3 rows"
    )
    assert output.sources == ["Atlas"]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH big AS (SELECT * FROM cities WHERE people > 50) SELECT count(*) FROM big",
        "SELECT city, row_number() OVER (ORDER BY people) FROM CITIES QUALIFY true -- a comment",
        "SELECT * FROM generate_series(1, 3), unnest([1, 2]) AS u(x), (VALUES (1)) AS v(y)",
        "```sql\nSELECT city FROM cities;\n```\n",
        "SELECT `city` FROM `cities` WHERE city <> '`'",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT max(n) FROM t",
    ],
)
async def test_ordinary_queries_pass(cities: Path, sql: str) -> None:
    assert re.search(r"\d+ rows?$", (await ask(cities, sql)).text)


@pytest.mark.parametrize(
    ("sql", "advice"),
    [
        ("SELECT town FROM cities", 'Referenced column "town" not found'),
        ("SELECT * FROM towns", "There is no table 'towns'"),
        ("SELEC city FROM cities", "not valid SQL"),
        ("SELECT * FROM read_csv('x.csv')", "The function read_csv is not available"),
    ],
)
async def test_a_misuse_is_explained_with_the_tables_and_columns(cities: Path, sql: str, advice: str) -> None:
    with pytest.raises(ToolMisuse, match="Tables: cities") as misuse:
        await ask(cities, sql)
    assert advice in str(misuse.value)
    assert str(misuse.value).endswith("Tables: cities (city, people, founded)")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT name, rowid FROM stops", [["Zoo", "1"], ["Ash", "2"], ["Mill", "3"]]),
        ("SELECT name FROM stops ORDER BY RowId DESC LIMIT 1", [["Mill"]]),
        ("SELECT name FROM stops WHERE rowid = (SELECT rowid FROM stops WHERE name = 'Zoo') + 1", [["Ash"]]),
        ("SELECT * FROM stops WHERE name = 'Ash'", [["Ash"]]),  # nobody who does not ask for it sees it
        ("SELECT s.name FROM stops s JOIN stops t USING (rowid) WHERE t.rowid = 2", [["Ash"]]),
        # A query's own name for something goes first.
        (
            "WITH s AS (SELECT *, rank() OVER (ORDER BY name) AS rowid FROM stops) SELECT name FROM s WHERE rowid = 1",
            [["Ash"]],
        ),
        ("SELECT s.rowid FROM (SELECT name FROM stops) AS s (rowid) WHERE rowid = 'Mill'", [["Mill"]]),
        ("SELECT rowid_2, rowid FROM own LIMIT 1", [["70", "1"]]),  # the file's own column of that name
    ],
)
async def test_a_query_can_ask_for_the_place_of_a_row_in_its_file(
    tmp_path: Path, sql: str, rows: list[list[str]]
) -> None:
    (tmp_path / "stops.csv").write_text("name\nZoo\nAsh\nMill\n")
    (tmp_path / "own.csv").write_text("rowid,name\n70,Zoo\n80,Ash\n90,Mill\n")
    store = await tables_of(tmp_path / "stops.csv", tmp_path / "own.csv")
    assert (await store.query(sql))["rows"] == rows


def at(folder: Path, sql: str) -> str:
    return sql.replace("\\n", "\n").replace("{folder}", str(folder)).replace("{canary}", str(folder / "canary.txt"))


@pytest.mark.parametrize(("dialect", "hostile"), [("duckdb", FORBIDDEN), ("postgres", [*FORBIDDEN, *HOSTILE])])
def test_the_check_refuses_every_hostile_statement(cities: Path, dialect: str, hostile: list[str]) -> None:
    passed = []
    for sql in hostile:
        try:
            check(at(cities, sql), ["cities"], dialect)
            passed.append(sql)
        except Refused:
            pass
    assert passed == []


async def test_the_engine_alone_lets_no_hostile_statement_read_or_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_tools, "CHILD", "tests.activity.tools.unchecked_sql_process")
    monkeypatch.setenv("SUPERVISOR_SECRET", CANARY)
    secret_in_python = [CANARY]
    before = digest(folder)
    store = await tables_of(folder / "data" / "cities.csv")
    assert (await store.query("SELECT count(*) > 1 FROM duckdb_settings()"))["rows"] == [["True"]]  # unchecked
    for sql in [*FORBIDDEN, *HOSTILE]:
        with monkeypatch.context() as short:
            # A statement that waits for a network gives up soon; the process itself may take its time.
            short.setattr(limits, "SQL_TIMEOUT", timedelta(milliseconds=400))
            try:
                shown = str(await store.query(at(folder, sql)))
            except ToolMisuse as misuse:
                shown = str(misuse)
        assert CANARY not in shown, sql
    assert digest(folder) == before
    assert (await store.query("SELECT sum(people) FROM cities"))["rows"] == [["350"]]
    assert secret_in_python


@pytest.mark.parametrize("sql", BOMBS)
async def test_a_bomb_ends_soon_and_the_next_query_works(
    folder: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as short:
        short.setattr(limits, "SQL_TIMEOUT", timedelta(milliseconds=400))
        try:
            output = (await ask(folder, sql)).text
        except ToolMisuse as misuse:
            output = str(misuse)
    assert len(output) <= TOOL_KEPT_CHARS
    assert (await ask(folder, "SELECT sum(people) AS s FROM cities")).text.splitlines()[2] == "| 350 |"


async def test_a_changed_file_is_seen_by_the_next_query(folder: Path) -> None:
    assert "| 350 |" in (await ask(folder, "SELECT sum(people) FROM cities")).text
    (folder / "data" / "cities.csv").write_text("city,people\nAda,1000\n")
    assert "| 1000 |" in (await ask(folder, "SELECT sum(people) FROM cities")).text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tables": "nothing/*.csv"}, "matches no file"),
        ({"tables": "../*.csv"}, "inside the team's folder"),
        ({"tables": "data/\0*"}, "inside the team's folder"),
        ({"tables": "data/*.csv", "sources": {"towns": "x"}}, "there is no table 'towns'"),
    ],
)
async def test_bad_options_are_named(folder: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        await tools(folder, **options)


async def test_a_file_that_is_no_table_is_named_and_the_others_are_read(folder: Path) -> None:
    (folder / "data" / "broken.csv").write_bytes(bytes(range(256)) * 9)
    tool, query = await tools(folder)
    listed = (await tool.run(tool.arguments(), ToolContext())).text
    assert "Files that cannot be read:\nbroken.csv: it is no text: it holds binary data" in listed
    assert (await query.run(query.arguments(sql="SELECT count(*) FROM cities"), ToolContext())).text.count("| 3 |") == 1
    (folder / "data" / "cities.csv").unlink()
    with pytest.raises(ValueError, match=r"broken\.csv: it is no text"):
        await tools(folder)


async def test_the_bundled_tables_hold_the_published_figures() -> None:
    for sql, value in [
        ("SELECT life_expectancy_years FROM life_expectancy WHERE country = 'Japan' AND year = 2007", "82.603"),
        ("SELECT max(employees_thousands) FROM employment WHERE month = '2010-02-01' AND sector = 'Total nonfarm'", ""),
        ("SELECT net_generation_gwh FROM electricity WHERE year = 2017 AND source = 'Renewables'", "21933"),
        ("SELECT price_usd FROM share_prices WHERE company = 'Google' ORDER BY month LIMIT 1", "102.37"),
        ("SELECT count(DISTINCT country) FROM life_expectancy", "142"),
    ]:
        cell = (await ask(BUNDLED, sql)).text.splitlines()[2]
        assert cell == f"| {value or '129726'} |"


async def test_a_text_column_that_is_compared_with_a_number_is_shown_with_its_values(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "races.csv").write_text("year,Final Place\n1999,4th\n2000,1st\n")
    _, query = await tools(tmp_path)
    with pytest.raises(ToolMisuse) as misuse:
        await query.run(query.arguments(sql='SELECT year FROM races WHERE "Final Place" = 1'), ToolContext())
    assert 'Column "Final Place" has texts: 1st, 4th. Compare it with a text in quotes.' in str(misuse.value)


async def test_a_query_that_matches_nothing_is_told_of_values_that_are_close(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "races.csv").write_text("year,rider\n1999,Sebastián Porto\n2000,Tohru Ukawa\n")
    _, query = await tools(tmp_path)
    output = await query.run(
        query.arguments(sql="SELECT year FROM races WHERE rider = 'Sebastian Porto'"), ToolContext()
    )
    assert output.text.endswith("0 rows\nrider has no 'Sebastian Porto', but 'Sebastián Porto'.")
