"""Values and names of tables as text. Imports nothing: child processes that start often need it."""


def shown(value: object) -> str:
    """Returns one value as text: dates in ISO form, floats without binary noise."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.15g}"
    return str(value)


def quoted(name: str) -> str:
    """Returns a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Returns a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def numbered(names: list[str]) -> list[str]:
    """Returns the names, those that were there before, in whatever case, with a number that makes them new."""
    taken, seen = {name.lower() for name in names}, dict[str, int]()
    new = []
    for name in names:
        free, count = name, seen.get(name.lower(), 0)
        while free.lower() in seen or (count > 1 and free.lower() in taken):
            count += 1
            free = f"{name}_{count}"
        seen[name.lower()], seen[free.lower()] = max(count, 1), 1
        new.append(free)
    return new
