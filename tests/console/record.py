"""Writes the transcripts of screens anew: `python -m tests.console.record`, then look at the difference."""

import os
import sys

import pytest

from tests.console.transcripts import RECORD

SCREENS = ["tests/console/test_hints.py", "tests/console/test_transcripts.py", "-k", "screen"]

if __name__ == "__main__":
    os.environ[RECORD] = "yes"
    sys.exit(pytest.main(["-q", *SCREENS]))
