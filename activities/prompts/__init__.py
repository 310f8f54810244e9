"""The project's prompts."""
