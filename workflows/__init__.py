"""The deterministic side: no I/O, no clock, no environment, no model SDK.

`supervisor`, `worker_agent` and `eval_workflow` are the workflows; `tool_loop` has the turns of a
worker agent. The other rooms, each importing only those after it: `goal_run` (a goal, from its plan
to its answer), `answer` (review, drafts, synthesis), `subtasks` (dispatch, retries, attempts, child
runs), `plan`, `messages` (to a run), `outbox` (attributes, notices and signals of a run), `calls`
(activities, the supervisor's model), `run` (its terms, its plan in force, its waits and slots),
`children` (messages to and from them), `background` (tasks that nobody awaits). The rules they
follow are in `supervision`.
"""
