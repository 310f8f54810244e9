"""The project's own words to models."""
