"""Grounding: whether the figures, names, quotations and addresses of a text are in its sources.

A text goes in with its `Source`s, out come its claims, each with the line that supports it or the
problem with it. In the order in which they are called:

    claims            the claims of a text: what is looked up; `written_figures`, `units`: figures
    support           `check`: looks each claim up in the sources; begin to read here
    sources           one source, read: where a figure is in it, and what is against that place
    rows/             the tables of a source: the row, column and query of a figure
    naming/           names and causes, looked up by their words
    calculations      figures that the text itself computes
    wording/          clauses, dates, words of a rise or fall, code in fences
    citations         the marks [t1] of an answer, and the claims beside them
    answer_fields     the fields of a structured answer
    answer_chain      from a claim of an answer to findings and tool outputs, for people
    doubts/           whether the queries behind a finding ask what its question asks

Most flagged figures are those for which `Support.find` returned None: `Support.problem` has the
reason. `check` in `support` lists what else is looked up.
"""
