"""Who spent what, by role and model."""

from supervision.base import limits
from supervision.budget.ledger import SUPERVISOR, Spending
from supervision.contract.usage import Spend, Usage


def _used(tokens: int, usd: float | None = 0.1) -> Usage:
    return Usage(model_calls=1, input_tokens=tokens, usd=usd)


def test_sums_are_by_role_and_model_the_largest_first() -> None:
    spending = Spending()
    spending.add("analyst", "small", _used(10))
    spending.add(SUPERVISOR, "large", _used(50))
    spending.add("analyst", "small", _used(30))
    spending.add("analyst", "large", _used(5))
    spending.add("analyst", "never", Usage())
    assert [(row.role, row.model, row.usage.input_tokens) for row in spending.rows()] == [
        (SUPERVISOR, "large", 50),
        ("analyst", "small", 40),
        ("analyst", "large", 5),
    ]


def test_a_teams_rows_are_its_members() -> None:
    spending = Spending()
    inner = Spend(role="reader", model="small", usage=_used(7))
    spending.add_team("experts", [inner], _used(7))
    spending.add_team("lost", [], _used(3))
    assert [(row.role, row.model) for row in spending.rows()] == [("experts/reader", "small"), ("lost", "")]


def test_many_rows_end_in_one_that_holds_the_rest() -> None:
    spending = Spending()
    for number in range(limits.STATUS_PAGE + 3):
        spending.add(f"role{number}", "m", _used(200 - number))
    rows = spending.rows()
    assert len(rows) == limits.STATUS_PAGE + 1
    assert rows[-1].role == "3 more"
    assert sum(row.usage.input_tokens for row in rows) == sum(200 - n for n in range(limits.STATUS_PAGE + 3))


def test_tokens_read_with_their_cached_part() -> None:
    usage = Usage(model_calls=2, input_tokens=36, cache_read_tokens=20_000, cache_write_tokens=1_964, output_tokens=500)
    assert usage.tokens_line() == "22,000 input tokens (91% from the cache), 500 output tokens"
    row = Spend(role="analyst", model="claude-haiku-5-5", usage=usage)
    assert row.line() == f"analyst with claude-haiku-5-5: 2 calls, {usage.tokens_line()}, $0.0000"
