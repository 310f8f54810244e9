"""The windows of models, and how conversations and prompts are fitted into them."""
