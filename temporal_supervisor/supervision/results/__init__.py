"""What a run comes to: its answer, whether that is enough, its times, and fitting it into a payload."""
