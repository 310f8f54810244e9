"""The tool kinds that a team file may set up by `uses`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from activities.tools.attachment import read_attachment
from activities.tools.calculator import calculator
from activities.tools.document_format import format_document
from activities.tools.documents import read_document, search_documents
from activities.tools.sql.sql_tools import list_tables, query_data
from activities.tools.tool import Tool

ToolFactory = Callable[[str, dict[str, Any], Path], Tool[Any]]
"""(tool name, options of the team file, folder of the team file) -> tool; ValueError on bad options."""

KINDS: dict[str, ToolFactory] = {
    "attachment": read_attachment,
    "calculator": calculator,
    "document_format": format_document,
    "document_read": read_document,
    "document_search": search_documents,
    "sql_query": query_data,
    "sql_tables": list_tables,
}
