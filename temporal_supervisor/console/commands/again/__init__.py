"""Commands that begin a run from an earlier one."""
