"""The model provider: when calls are sent, held back or paced."""
