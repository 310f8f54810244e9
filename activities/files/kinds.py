"""The kinds of files that are read, by their endings. Imports nothing: no Worker and no command needs more."""

VERSION = 4
"""Raised whenever the same file is read in another way: what was converted before is converted again."""

TABLES = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv_tables"),
    ".parquet": "parquet_tables",
    **dict.fromkeys((".jsonl", ".ndjson"), "json_tables"),
    **dict.fromkeys((".xlsx", ".xls", ".xlsb", ".xlsm", ".ods"), "spreadsheet_tables"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite_tables"),
}
"""The reader in `table_files` of each ending."""
DOCUMENTS = {
    ".pdf": "pdf_document",
    ".docx": "docx_document",
    **dict.fromkeys((".html", ".htm"), "html_document"),
    **dict.fromkeys((".md", ".txt", ".text", ".rst", ".log"), "plain_document"),
}
"""The reader in `document_files` of each ending."""
TEXT_FILE = "document.txt"
"""Beside the passages of a document: its text as it stands in its file. A PDF has passages only."""
_READABLE = (*TABLES, *DOCUMENTS, ".json", ".zip")


def is_data(name: str) -> bool:
    """True if a file of that name may hold a table or a document."""
    return name.lower().endswith(_READABLE)
