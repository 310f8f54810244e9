"""A tool of a test team, which notes each effect."""

from activities.tools.tool import Arguments, Tool, ToolContext
from tests.corpus.canaries import EFFECTS


class Key(Arguments):
    key: str


def noted(arguments: Key, context: ToolContext) -> str:
    EFFECTS[context.run_id].append(arguments.key)
    return "done"


TOOLS = [Tool("mail", "Mails.", Key, noted, reads="public", effects="outward")]
