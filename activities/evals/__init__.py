"""The activities of evals."""
