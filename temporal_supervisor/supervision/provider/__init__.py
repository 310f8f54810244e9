"""The model provider: which calls are sent now, held back or slowed down."""
