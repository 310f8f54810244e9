"""A Worker that is soon called frozen, and for which a prompt with the word `poison` is deadly."""

import os
import sys
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import worker_main
from activities.prompts import agent_prompts
from supervision.base import limits

limits.LOOP_SILENCE = timedelta(seconds=5)
_plain = agent_prompts.plain


def plain(text: str) -> str:
    """Returns a text without our tags, if it is one that can be borne."""
    if "poison" in text:
        os._exit(9)
    return _plain(text)


agent_prompts.plain = plain
worker_main.main()
