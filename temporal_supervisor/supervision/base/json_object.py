"""The type of an object in JSON."""

from typing import Any

JsonObject = dict[str, Any]
"""An object of JSON as `json.loads` returns it.

Its form is that of the text it comes from: a file, a reply, a message of another process. Where the
project itself sets the form, a model of pydantic replaces it.
"""
