"""Doubts about queries: whether a query asks what its question asks.

    query_doubts          the tables of rules, in the order in which they are asked
    inquiry               the argument of each rule: the question, the queries, what was read
    question_patterns     the words of a question; query_shape: those of a query
    ../rows/listed_tables the columns and values that the author was shown

The other modules are the rules. `values_left_out`, `flags_left_out` and `methods_left_out` look for
parts of the question that no query has, `values_added` for the other way round; `named_rows`,
`row_order`, `other_periods` and `mismatched_results` compare what the queries return.
`other_queries` compares a query with others for the same question. How to add a rule:
docs/faults.md.
"""
