"""Doubts about queries: whether a query asks what its question asks.

    query_doubts          the tables of rules, in the order in which they are asked
    inquiry               the argument of each rule: the question, the queries, what was read
    question_patterns     the words of a question; query_shape: those of a query
    listed_tables         the columns and values that the author was shown

The other modules are the rules: `..._left_out` are in the question and in no query, `values_added`
the other way round; `named_rows`, `row_order` and `mismatched_results` compare results.
`other_queries` compares a query with others for the same question. How to add a rule:
docs/faults.md.
"""
