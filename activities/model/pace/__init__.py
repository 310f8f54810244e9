"""How fast calls may go out: the rate of their queue, limits that the provider names, tokens per minute."""
