"""The fairness key of a run's model calls: behind a rate limit the server serves the keys in turn."""

import hashlib

from supervision.limits import FAIRNESS_KEY_BYTES

_DIGEST_CHARS = 32


def fairness_key(run_id: str) -> str:
    """`run_id`, or a readable prefix and a hash: a longer key would block the workflow for ever.

    For the whole tree of a run it is the root's id, so that a run with nested supervisors has no larger share.
    """
    id = run_id.encode()
    if len(id) <= FAIRNESS_KEY_BYTES:
        return run_id
    head = id[: FAIRNESS_KEY_BYTES - _DIGEST_CHARS - 1].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(id).hexdigest()[:_DIGEST_CHARS]}"
