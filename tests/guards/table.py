"""The table of guards in guards.toml."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

ROOT = Path(__file__).parents[2]


class Guard(BaseModel):
    """A guard of the code: what holds with it, where it is, what it is without, and the case that notices.

    `finding` is its number in the reviews that found its absence, N of security, A of durability; or the part of the
    issue.
    """

    model_config = ConfigDict(extra="forbid")

    finding: str
    holds: str
    file: str
    old: str
    new: str
    case: str

    def text(self) -> str:
        """The code with the guard."""
        return (ROOT / self.file).read_text(encoding="utf-8")

    def changed(self) -> str:
        """The code without the guard."""
        return self.text().replace(self.old, self.new)


def guards() -> dict[str, Guard]:
    """Returns the guards by name."""
    table = tomllib.loads((Path(__file__).parent / "guards.toml").read_text(encoding="utf-8"))
    return {name: Guard.model_validate(guard) for name, guard in table.items()}
