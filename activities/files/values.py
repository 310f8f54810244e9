"""Values of tables as text. Imports nothing: child processes that start often need it."""


def shown(value: object) -> str:
    """Returns one value as text: dates in ISO form, floats without binary noise."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.15g}"
    return str(value)
