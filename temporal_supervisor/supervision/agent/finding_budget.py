"""The context budget: which findings go whole into one prompt, and which findings are condensed together."""

from collections.abc import Sequence


def kept_whole(whole: Sequence[int], short: Sequence[int], weights: Sequence[float], budget: int) -> list[bool]:
    """Returns the findings that stay whole in a prompt of `budget`.

    The others give way to their summaries. `whole` and `short` are the sizes of texts and of
    summaries. Those of the least weight give way first, among equals the largest, until the rest
    fits; what saves no room stays.
    """
    findings = list(zip(whole, short, weights, strict=True))
    kept, surplus = [True] * len(findings), sum(whole) - budget
    for index in sorted(range(len(findings)), key=lambda index: (weights[index], -whole[index])):
        saved = whole[index] - short[index]
        if surplus > 0 and saved > 0:
            kept[index], surplus = False, surplus - saved
    return kept


def level(sizes: Sequence[int], budget: int) -> int:
    """Returns the greatest length to which all may be cut so that their sum is within `budget`.

    0 if none is.
    """
    left = max(0, budget)
    for count, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size * count > left:
            return left // count
        left -= size
    return max(sizes, default=0)


def groups(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Returns the findings by index in consecutive groups, each to be condensed by one call with room for `budget`.

    Groups have at least two members, even where two do not fit whole, so each round at least halves
    the number of texts. Only the last may be a single one: it stays as it is.
    """
    result: list[list[int]] = []
    room = 0
    for index, size in enumerate(sizes):
        if result and (len(result[-1]) < 2 or size <= room):
            result[-1].append(index)
            room -= size
        else:
            result.append([index])
            room = budget - size
    return result
