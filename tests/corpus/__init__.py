"""The security corpus: attacks as data, each run against the guard that is there for it.

Every attack comes with proof that it bites: the same text does harm where the guard is missing, or the measure catches
a function that is known to be bad. Liveness is an effect like any other: a Worker that stops is a breach.

    test_growth     texts that grow: time for twice the text is at most three times as long, up to each parser's cap
    test_hostages   texts that no parser may meet on the event loop: they end in a child process, within its time

To add an attack, add a line to a table; to add a parser of foreign text, add its families here.
"""
