"""Tests of the library's tool and team: `python -m unittest test_library`. No server, no model."""

import unittest
from pathlib import Path

from temporal_supervisor import ToolMisuse, open_team

LIBRARY = Path(__file__).parent / "library"


class LibraryTest(unittest.IsolatedAsyncioTestCase):
    """The tools, as the roles of the team call them."""

    async def test_a_book_is_found_by_a_word(self) -> None:
        """The output is what the model reads, with its source."""
        team = await open_team(LIBRARY)
        output = await team.call("librarian", "find_books", title="emma")
        self.assertEqual((output.text, output.sources), ("Emma: shelf 3", ["catalogue"]))

    async def test_the_rules_say_what_a_late_book_costs(self) -> None:
        """The documents of the team are searched as in a run."""
        team = await open_team(LIBRARY)
        output = await team.call("librarian", "search_rules", query="late book costs")
        self.assertIn("0.20 for each day", output.text)

    async def test_wrong_arguments_come_back_as_advice(self) -> None:
        """A model that is told what is wrong mends it."""
        team = await open_team(LIBRARY)
        with self.assertRaisesRegex(ToolMisuse, "the titles are: Emma"):
            await team.call("librarian", "find_books", title="Ulysses")
        with self.assertRaisesRegex(ToolMisuse, "title"):
            await team.call("librarian", "find_books", author="Austen")


if __name__ == "__main__":
    unittest.main()
