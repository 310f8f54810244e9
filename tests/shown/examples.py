"""The examples that descriptions of the supervisor pattern begin with: a command of each, and its model's replies.

The replies are written here as a real model gives them: a plan or the choice of a role, tool calls, findings, the
answer. All else of an example is real: the teams, their tools and data, what is checked, the files that come of it.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call of a worker agent."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A subtask of the plan in a run, or in the nested run of the subtask `inside`; its agent makes `calls`."""

    id: str
    role: str
    description: str
    finding: str
    calls: tuple[Call, ...] = ()
    after: tuple[str, ...] = ()
    inside: str = ""
    limitations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A command, and what the model of its run replies.

    With `routed` the parts are the roles that are chosen for the whole goal; otherwise they are a plan, of which one
    finding may be the answer: `answer_from` names it by the run it stands in. `says` is what the screen has to show.
    """

    name: str
    title: str
    about: str
    team: str
    goal: str
    parts: tuple[Part, ...]
    says: tuple[str, ...]
    options: tuple[str, ...] = ()
    routed: bool = False
    answer: str = ""
    answer_from: dict[str, str] | None = None

    @property
    def words(self) -> list[str]:
        """The words of the command."""
        return ["run", "--team", self.team, *self.options, "--id", self.name, self.goal]


def _table(sql: str) -> tuple[Call, ...]:
    return (Call("list_tables", {}), Call("query_data", {"sql": sql}))


def _document(document_id: str) -> Call:
    return Call("read_document", {"document_id": document_id})


_OCTOPUS = """\
An octopus has three hearts because its blood goes two ways that one pump could not serve. Two branchial hearts push \
blood through the gills, one each; the systemic heart takes up the blood that comes back with oxygen and sends it \
through the body.

- Its blood carries oxygen with haemocyanin, which is less effective than haemoglobin and makes blood thick: it takes \
high pressure to move it.
- Behind the gills the pressure has dropped, so a second pump is needed before the body.
- The systemic heart rests while the animal swims, which is one reason why octopuses rather crawl."""

_PRIMES = """\
```python
def is_prime(number: int) -> bool:
    \"\"\"Returns True if the number is prime.\"\"\"
    if number < 2:
        return False
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True
```

```python
assert [n for n in range(12) if is_prime(n)] == [2, 3, 5, 7, 11]
assert not is_prime(1) and not is_prime(91)
```

It tries divisors up to the root, so it is fit for numbers of up to a dozen digits."""

_TIDES_CODE = """\
```python
def high_waters(first: float, count: int) -> list[float]:
    \"\"\"Returns the hours of the next high waters; a lunar day has two of them.\"\"\"
    return [first + 12.42 * number for number in range(count)]
```"""

_TIDES_POST = f"""\
# Why the sea breathes twice a day

The Moon pulls at the water below it more strongly than at the Earth, and at the Earth more strongly than at the water \
behind it. So there are two bulges, and a coast turns through both in a lunar day. That is why high water comes \
every 12.42 hours, and nearly an hour later each day.

When the Sun pulls along the same line, at new and full moon, the tide is higher: a spring tide.

{_TIDES_CODE}

Give it the hour of one high water, and it tells you the next ones, as far as the coast agrees."""

_SERVER = '''\
"""Keeps a to-do list in memory: GET /todos lists it, POST /todos adds {"text": "..."}."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

TODOS: list[dict[str, object]] = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._reply(TODOS)

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        TODOS.append({"id": len(TODOS) + 1, "text": str(sent["text"])})
        self._reply(TODOS[-1])

    def _reply(self, body: object) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
'''

_PAGE = """\
async function show() {
  const todos = await (await fetch("/todos")).json();
  document.querySelector("ul").replaceChildren(...todos.map((todo) => {
    const line = document.createElement("li");
    line.textContent = todo.text;
    return line;
  }));
}

show();
"""

_TIMEOUT = """\
Cause: a step of Acme Flow may take 30 seconds unless its settings say otherwise [timeout.md].

1. Open the step, Settings, Time limit, and enter up to 900 seconds [timeout.md].
2. If the script calls a web service, give the call a limit of its own [timeout.md].
3. If it reads a large table, read it in parts [timeout.md].

Run the step again: the log then shows the new limit in its first line [timeout.md]."""

EXAMPLES = (
    Example(
        "octopus",
        "A question of general knowledge",
        "One subtask, whose finding is the answer. It is from knowledge, and marked so.",
        "general",
        "Why do octopuses have three hearts?",
        (Part("t1", "researcher", "Explain why octopuses have three hearts, and what each does.", _OCTOPUS),),
        ("gills", "haemocyanin"),
        answer_from={"": "t1"},
    ),
    Example(
        "clouds",
        "Three things compared",
        "Two roles: what is known is the researcher's, what is computed the analyst's.",
        "general",
        "Compare the market capitalisation of three cloud vendors: Microsoft, Alphabet and Amazon.",
        (
            Part(
                "t1",
                "researcher",
                "Give the market capitalisation of Microsoft, Alphabet and Amazon in USD, each with its date.",
                "From memory, in the middle of 2025: Microsoft about USD 3.7 trillion, Alphabet about USD 2.2 "
                "trillion, Amazon about USD 2.3 trillion.",
                limitations=("recalled, and out of date: nothing was looked up",),
            ),
            Part(
                "t2",
                "analyst",
                "From the finding of t1, compute how many times the smallest of the three the largest one is.",
                "Microsoft is 1.68 times Alphabet: 3.7 / 2.2 = 1.68.",
                (Call("calculate", {"expression": "round(3.7 / 2.2, 2)"}),),
                ("t1",),
            ),
        ),
        ("1.68", "knowledge"),
        answer="Microsoft was the largest of the three, at about USD 3.7 trillion, then Amazon with about USD 2.3 "
        "trillion and Alphabet with about USD 2.2 trillion, all in the middle of 2025 and from memory [t1]. Microsoft "
        "was 1.68 times Alphabet [t2].",
    ),
    Example(
        "experts",
        "An expert router",
        "One call chooses the role, which gets the question word for word; its finding is the answer, under its label.",
        "experts",
        "Which symptoms of flu are dangerous?",
        (
            Part(
                "t1",
                "medical",
                "",
                "Call 112 for: shortness of breath, pain in the chest, confusion, blue lips, a seizure, no urine for "
                "twelve hours. See a doctor within a day if fever comes back after it had gone.",
            ),
        ),
        ("Medical expert", "112"),
        ("--strategy", "route"),
        routed=True,
    ),
    Example(
        "support",
        "A support desk",
        "Routed to the troubleshooter, who searches the articles and reads the one that fits.",
        "support",
        "My script stops with a timeout after 30 s: what helps?",
        (
            Part(
                "t1",
                "troubleshooter",
                "",
                _TIMEOUT,
                (
                    Call("search_articles", {"query": "script timeout 30 s"}),
                    Call("read_article", {"document_id": "timeout.md"}),
                ),
            ),
        ),
        ("Settings, Time limit", "900 seconds"),
        ("--strategy", "route"),
        routed=True,
    ),
    Example(
        "second-specialist",
        "A second specialist",
        "The route names a second role, which gets the same words; the answer is written from both findings.",
        "support",
        "My script stops with a timeout. Could a run also show how far it is?",
        (
            Part(
                "t1",
                "troubleshooter",
                "",
                _TIMEOUT,
                (
                    Call("search_articles", {"query": "script timeout"}),
                    Call("read_article", {"document_id": "timeout.md"}),
                ),
            ),
            Part(
                "t2",
                "product",
                "",
                "Wish: as a user I want to see how far a run is, so that I know whether to wait. Reason: not said. "
                "Today: the user waits until the run ends. Open: in the list of runs, or on the page of a run?",
            ),
        ),
        ("900 seconds", "how far a run is"),
        ("--strategy", "route"),
        routed=True,
        answer="**Support.** The step may take up to 900 seconds: enter them under Settings, Time limit [t1].\n\n"
        "**Product.** Noted as a wish, not promised: to see how far a run is [t2].",
    ),
    Example(
        "primes",
        "A function",
        "A fixed route of the team takes goals with these words to the programmer: no planner is asked.",
        "studio",
        "Write a Python function for prime numbers.",
        (Part("t1", "programmer", "", _PRIMES),),
        ("def is_prime(number: int)",),
        routed=True,
    ),
    Example(
        "blog-post",
        "A blog post with code",
        "Research and code side by side, then the writer, whose text is the answer as it was written.",
        "studio",
        "Research how tides arise, then write a post with code.",
        (
            Part(
                "t1",
                "researcher",
                "Explain how tides arise: Moon, Sun, two bulges, the time between high waters, spring tides.",
                "The Moon pulls more strongly at the near water than at the Earth, and more strongly at the Earth than "
                "at the far water: two bulges. High water comes every 12.42 hours. At new and full moon the Sun pulls "
                "along the same line: spring tides.",
            ),
            Part(
                "t2",
                "programmer",
                "Write a Python function high_waters(first, count) that returns the hours of the next high waters.",
                _TIDES_CODE,
            ),
            Part(
                "t3",
                "writer",
                "Write a blog post on how tides arise, with the code of t2 in it as it is.",
                _TIDES_POST,
                after=("t1", "t2"),
            ),
        ),
        ("Why the sea breathes twice a day", "12.42 hours", "def high_waters"),
        answer_from={"": "t3"},
    ),
    Example(
        "project",
        "A project with a frontend and a backend lead",
        "The architect's contract, then two leads, each a run of its own that plans its part and hands over files.",
        "project",
        "A to-do list: a page, and a server that keeps it. As files.",
        (
            Part(
                "t1",
                "architect",
                "Fix the contract between the page and the server of a to-do list: paths, fields, files.",
                'GET /todos returns [{"id": 1, "text": "..."}]; POST /todos takes {"text": "..."}. Files: server.py, '
                "todos.js.",
            ),
            Part(
                "t2",
                "frontend-lead",
                "Make todos.js, which shows the list of GET /todos in the page.",
                "",
                after=("t1",),
            ),
            Part(
                "t3",
                "backend-lead",
                "Make server.py, which keeps the list and answers GET and POST /todos.",
                "",
                after=("t1",),
            ),
            Part(
                "t1",
                "programmer",
                "Write todos.js, which shows the list of GET /todos in the page.",
                "todos.js shows the list in the page.",
                (Call("write_file", {"title": "The page", "body": _PAGE, "file_name": "todos.js"}),),
                inside="t2",
            ),
            Part(
                "t1",
                "programmer",
                "Write server.py, which keeps the list and answers GET and POST /todos.",
                "server.py keeps the list. Start it with: python server.py",
                (Call("write_file", {"title": "The server", "body": _SERVER, "file_name": "server.py"}),),
                inside="t3",
            ),
        ),
        ("python server.py", "artifact server.py", "artifact todos.js"),
        answer="Start the server with `python server.py` [t3]; the page shows the list with todos.js [t2].",
        answer_from={"t2": "t1", "t3": "t1"},
    ),
    Example(
        "competitors",
        "Competitive intelligence",
        "Figures out of tables and reasons out of notes, side by side.",
        "competitors",
        "Which competitor grew most from 2023 to 2025, by how many percent, and what do the notes say about why?",
        (
            Part(
                "t1",
                "market-analyst",
                "From the table revenue, give the growth of each vendor from 2023 to 2025 in percent.",
                "Kettle grew most: its revenue_meur went from 6.2 in 2023 to 14.9 in 2025, by 140.3 %.",
                (
                    *_table("SELECT vendor, year, revenue_meur FROM revenue WHERE year IN (2023, 2025) ORDER BY 1, 2"),
                    Call("calculate", {"expression": "round((14.9 - 6.2) / 6.2 * 100, 1)"}),
                ),
            ),
            Part(
                "t2",
                "scout",
                "From the notes on each vendor, give what is said about why it grew between 2023 and 2025.",
                "Kettle opened its marketplace in March 2024 [kettle.md]. The Halden group signed for 4,000 seats in "
                "January 2025; the sales team says that the marketplace decided it [kettle.md].",
                (Call("search_documents", {"query": "Kettle growth customers"}), _document("kettle.md")),
            ),
        ),
        ("Kettle", "140.3", "marketplace"),
        answer="Kettle grew most, by 140.3 % from 2023 to 2025 [t1]. The notes name its marketplace, opened in March "
        "2024 [t2]. The Halden group signed for 4,000 seats in January 2025, and the marketplace decided it [t2].",
    ),
    Example(
        "patient-case",
        "A patient case",
        "Laboratory values against criteria of a made-up guideline. It names no diagnosis, treatment or dose.",
        "patient-case",
        "How did creatinine develop, and which criteria of the guideline does that meet? Write a summary.",
        (
            Part(
                "t1",
                "laboratory",
                "From the table laboratory, give all values of creatinine with dates, and the rise in percent.",
                "Creatinine rose from 92 (2025-09-02) over 118 (2025-10-14) to 161 umol/l (2025-11-25), by 75 %.",
                (
                    *_table(
                        "SELECT date, value, unit, low, high FROM laboratory WHERE test = 'creatinine' ORDER BY date"
                    ),
                    Call("calculate", {"expression": "(161 - 92) / 92 * 100"}),
                ),
            ),
            Part(
                "t2",
                "guideline",
                "Give each criterion of the guideline that names creatinine, word for word.",
                "K1: a rise of creatinine by half or more within 90 days is reported to the clinician on the same day "
                "[guideline.md].",
                (Call("read_guideline", {"document_id": "guideline.md"}),),
            ),
            Part(
                "t3",
                "summary",
                "Write the summary of creatinine and the criteria that it meets.",
                "Creatinine rose from 92 to 161 umol/l between 2025-09-02 and 2025-11-25, by 75 %. That meets K1: a "
                "rise by half or more within 90 days, to be reported on the same day.",
                after=("t1", "t2"),
            ),
        ),
        ("161", "75 %", "K1"),
        answer_from={"": "t3"},
    ),
    Example(
        "portfolio",
        "A portfolio review",
        "Shares of positions out of a table, the rules out of a policy. No investment advice.",
        "portfolio",
        "Which equities have more than their limit by our investment policy, and by how much? Write a review.",
        (
            Part(
                "t1",
                "analyst",
                "From the table positions, give the share of each position in the portfolio in percent.",
                "Of the equities Cedar Software has 17.8 %, Alder Shipping 17.6 %, Birch Energy 12.8 %.",
                _table(
                    "SELECT position, class, "
                    "round(100 * quantity * price_eur / sum(quantity * price_eur) OVER (), 1) AS percent "
                    "FROM positions ORDER BY percent DESC"
                ),
            ),
            Part(
                "t2",
                "compliance",
                "From the policy, give the limit for a single equity, word for word.",
                "Rule 1: no single equity has more than 15 % of the portfolio [policy.md].",
                (_document("policy.md"),),
            ),
            Part(
                "t3",
                "reviewer",
                "Write the review: each equity above the limit, with its share and by how much.",
                "Rule 1 allows 15 % for a single equity. Above it: Cedar Software with 17.8 %, Alder Shipping with "
                "17.6 % of the portfolio.",
                after=("t1", "t2"),
            ),
        ),
        ("Alder Shipping", "17.6", "Cedar Software", "17.8"),
        answer_from={"": "t3"},
    ),
    Example(
        "curriculum",
        "A curriculum",
        "What learners can do, what modules need and what the handbook says, as one order.",
        "curriculum",
        "Plan an order of the modules for our learners with the hours of each and in all. Write the plan.",
        (
            Part(
                "t1",
                "analyst",
                "From the tables modules and survey, give hours, needs and what learners can do for each module.",
                "Without Spreadsheets, which 85 % can do, the modules have 60 hours: Python basics 12, Tables with "
                "pandas 10, Charts 6, SQL 8, Statistics 10, Project 14.",
                _table(
                    "SELECT module, hours, needs, can_do_percent, sum(hours) FILTER (can_do_percent < 80) OVER () "
                    "AS hours_in_all FROM modules JOIN survey USING (module)"
                ),
            ),
            Part(
                "t2",
                "educator",
                "From the handbook, give the rules on weeks, on modules that are left out, and on the project.",
                "A module that 80 % or more of the learners can do is left out [handbook.md]. The project needs "
                "Statistics and Charts, and is always last [handbook.md].",
                (_document("handbook.md"),),
            ),
            Part(
                "t3",
                "course-planner",
                "Write the plan: the order of the modules with the hours of each and in all.",
                "60 hours in all: Python basics 12, Tables with pandas 10, Charts 6, Statistics 10, SQL 8, Project 14. "
                "Spreadsheets is left out: 85 % can do it.",
                after=("t1", "t2"),
            ),
        ),
        ("60 hours", "Python basics", "Spreadsheets"),
        answer_from={"": "t3"},
    ),
    Example(
        "launch",
        "A product launch",
        "The longest chain of tasks, and what may not be said.",
        "launch",
        "How many days until the first delivery at the earliest, which tasks decide it, and what must not be said? "
        "Write the plan.",
        (
            Part(
                "t1",
                "controller",
                "From the table tasks, give the chain of tasks before the first delivery with the days of each.",
                "54 days: Final packaging 10, Safety certificate 25, Dealer training 12, First delivery 7.",
                (
                    *_table("SELECT task, days, needs FROM tasks"),
                    Call("calculate", {"expression": "10 + 25 + 12 + 7"}),
                ),
            ),
            Part(
                "t2",
                "brief-reader",
                "From the notes of legal, give what must not be said, and why.",
                '"The quietest kettle" may not be said: the test compared six kettles only [legal.md].',
                (_document("legal.md"),),
            ),
            Part(
                "t3",
                "launch-manager",
                "Write the plan: the earliest day, the tasks that decide it, what must not be said.",
                "The first delivery is possible after 54 days. Final packaging (10), the Safety certificate (25), "
                'Dealer training (12) and the First delivery itself (7) decide it. "The quietest kettle" must not be '
                "said: the test compared six kettles only.",
                after=("t1", "t2"),
            ),
        ),
        ("54", "Safety certificate", "quietest"),
        answer_from={"": "t3"},
    ),
    Example(
        "contract-review",
        "A contract review",
        "Clauses beside the rules of a house policy, as a risk report. No legal advice.",
        "contract-review",
        "Which clauses of the contract break which rules of our policy? Write a risk report.",
        (
            Part(
                "t1",
                "clauses",
                "Give the clauses of the contract on fees, liability, term, data, law and place of jurisdiction.",
                "Clause 2: the fee may rise by up to 10 % a year with notice of two weeks [contract.md]. Clause 3: "
                "liability is limited to EUR 25,000 a year, also for gross negligence [contract.md]. Clause 4: it goes "
                "on for another 24 months without notice of six months [contract.md]. Clause 5: subcontractors are "
                "named once a year [contract.md]. No clause names a law or a place of jurisdiction.",
                (Call("read_contract", {"document_id": "contract.md"}),),
            ),
            Part(
                "t2",
                "compliance",
                "Give the rules of the policy on liability, subcontractors, renewal, fees and law.",
                "P1 (must): no limit for gross negligence. P2 (must): subcontractors are named before. P3 (should): "
                "renewal for at most 12 months. P4 (should): fees rise by no more than 5 %. P5 (must): law and place "
                "of jurisdiction are named [policy.md].",
                (Call("read_policy", {"document_id": "policy.md"}),),
            ),
            Part(
                "t3",
                "risk-reporter",
                "Write the risk report: each rule that a clause breaks, musts first.",
                "Musts: P1 is broken by clause 3 (limit also for gross negligence), P2 by clause 5 (subcontractors are "
                "named once a year), P5 by the whole contract (it names no law). Shoulds: P3 by clause 4 (24 months), "
                "P4 by clause 2 (10 %, two weeks).",
                after=("t1", "t2"),
            ),
        ),
        ("P1", "P2", "P3", "P4", "P5"),
        answer_from={"": "t3"},
    ),
)
