"""The questions that a supervisor asks its model: each with its prompt and its reader."""
