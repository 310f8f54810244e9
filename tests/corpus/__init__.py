"""The security corpus: attacks as data, each run against the guard that is there for it.

Every attack comes with proof that it bites: the same text does harm where the guard is missing, or the measure catches
a function that is known to be bad. Liveness is an effect like any other: a Worker that stops is a breach.

    test_patterns           every pattern of the packages, found by itself: none takes longer than its text grows
    test_growth             texts that grow, for parsers that are more than a pattern, up to the cap of each
    test_hostages           texts that no parser may meet on the event loop: they end in a child process, in its time
    test_raw_inputs         payloads of any kind for runs, updates, signals and queries: no run is stuck
    test_forged_principals  callers that are not who they say, and roles that ask for tools that are not theirs
    test_forged_text        tool calls that are not the ones that were shown, findings that speak for others
    test_injections         texts of others in every prompt: its tags stay the same
    test_liveness           a Worker process under all of it: it serves on, its memory stays, SIGTERM ends it

To add an attack, add a line to a table; a parser of foreign text, other than a pattern, is added to test_growth.
"""
