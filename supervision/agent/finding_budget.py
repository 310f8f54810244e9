"""The context budget: how much of each finding goes into one prompt, and which findings are condensed together."""

from collections.abc import Sequence

FINDING_SUMMARY_CHARS = 1200  # what findings of less weight are cut to before others are: two paragraphs


def allot(sizes: Sequence[int], weights: Sequence[float], budget: int) -> list[int]:
    """Returns how many characters of each finding fit into a prompt of `budget`; the sum never passes it.

    Everything stays whole if it fits. Else findings are cut, those of the least weight first: down to summaries, and
    when all are that short, down to nothing. Among equals small findings stay whole and large ones are cut to the same
    length. Raises ValueError if the lists differ in length.
    """
    findings = list(zip(sizes, weights, strict=True))
    allotted = list(sizes)
    for floor in (FINDING_SUMMARY_CHARS, 0):
        for weight in sorted({weight for _, weight in findings}):
            surplus = sum(allotted) - max(0, budget)
            if surplus <= 0:
                return allotted
            equals = [index for index, (_, own) in enumerate(findings) if own == weight]
            lengths = [allotted[index] for index in equals]
            least = sum(min(length, floor) for length in lengths)
            level = _level(lengths, max(least, sum(lengths) - surplus))
            for index in equals:
                allotted[index] = min(allotted[index], level)
    return allotted


def groups(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Returns the findings by index in consecutive groups, each to be condensed by one call with room for `budget`.

    Groups have at least two members, even where two do not fit whole, so each round at least halves the number
    of texts. Only the last may be a single one: it goes on as it is.
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


def _level(sizes: Sequence[int], budget: int) -> int:
    """Returns the greatest length to which all may be cut so that their sum is within `budget`; 0 if none is."""
    left = max(0, budget)
    for count, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size * count > left:
            return left // count
        left -= size
    return max(sizes, default=0)
