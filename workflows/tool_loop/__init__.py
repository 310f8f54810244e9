"""The tool loop of a worker agent: model call, tool calls, model call, ... until the finding."""
