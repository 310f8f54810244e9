"""Tools of a test team: two that show texts of others, and canaries, which note each effect."""

from activities.tools.tool import Arguments, Tool, ToolContext
from tests.corpus.canaries import EFFECTS, injected


class Key(Arguments):
    key: str


def shown(arguments: Key, context: ToolContext) -> str:
    return injected(arguments.key)


def noted(arguments: Key, context: ToolContext) -> str:
    EFFECTS[context.run_id].append(arguments.key)
    return "done"


TOOLS = [
    Tool("fetch_page", "Fetches a page.", Key, shown, reads="public", returns="untrusted"),
    Tool("tickets__search", "Searches tickets.", Key, shown, reads="public", returns="untrusted"),
    Tool("mail", "Mails.", Key, noted, reads="public", effects="outward"),
    Tool("post", "Posts.", Key, noted, reads="public", effects="outward", targets={"key": ["board"]}),
    Tool("book", "Books.", Key, noted, reads="public", effects="write"),
    Tool("drop", "Drops.", Key, noted, reads="public", effects="write", approve="never"),
    Tool("pay", "Pays.", Key, noted, reads="public", effects="write", approve="always"),
]
