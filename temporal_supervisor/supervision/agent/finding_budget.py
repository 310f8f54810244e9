"""The context budget: findings that fit whole into a prompt, and groups to be condensed."""

from collections.abc import Sequence


def kept_whole(
    whole: Sequence[int], short: Sequence[int], weights: Sequence[float], budget: int
) -> list[bool]:
    """Returns for each finding whether it stays whole in a prompt of `budget`.

    `whole` and `short` are the sizes of texts and summaries. Texts with the least weight are
    replaced by their summaries first, the largest among equals, until the rest fits. A text whose
    summary saves no room stays.
    """
    findings = list(zip(whole, short, weights, strict=True))
    kept, surplus = [True] * len(findings), sum(whole) - budget
    for index in sorted(range(len(findings)), key=lambda index: (weights[index], -whole[index])):
        saved = whole[index] - short[index]
        if surplus > 0 and saved > 0:
            kept[index], surplus = False, surplus - saved
    return kept


def level(sizes: Sequence[int], budget: int) -> int:
    """Returns the length to which all texts are cut, so that their sum is within `budget`.

    0 if there is no such length.
    """
    left = max(0, budget)
    for count, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size * count > left:
            return left // count
        left -= size
    return max(sizes, default=0)


def groups(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Returns consecutive groups of findings, by index, each condensed by one call.

    `budget` is the room of a call. Groups have at least two members, even if two do not fit whole,
    so that each round at least halves the number of texts. Only the last may have one member, which
    stays as it is.
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
