"""Commands that start a run from an earlier one."""
