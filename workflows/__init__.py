"""The deterministic side: no I/O, no clock, no environment, no model SDK.

`supervisor` and `worker_agent` are the two workflows. The rooms, each importing only those after
it: `answer` (review, drafts, synthesis), `subtasks` (dispatch, retries, attempts, child runs),
`plan`, `handlers` (messages to a run), `outbox` (attributes, notices and signals of a run),
`calls` (activities), `run_context` (a supervisor's surroundings), `children` (messages to and from
them), `people` (their decisions and words), `background` (tasks that nobody awaits). The rules
they follow are in `supervision`.
"""
