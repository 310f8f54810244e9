"""A Worker for which a text with the word `poison` is deadly, in whichever prompt of a model call it stands."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import worker_main
from activities.prompts import agent_prompts

_plain = agent_prompts.plain


def plain(text: str) -> str:
    """Returns a text without our tags, if it is one that can be borne."""
    if "poison" in text:
        os._exit(9)
    return _plain(text)


agent_prompts.plain = plain
worker_main.main()
