"""The tools: one module per kind, each a pydantic arguments model and an async function."""
