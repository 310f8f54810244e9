"""Small files of formats that the standard library cannot write, made by hand."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from html import escape


def pdf_bytes(pages: Sequence[str]) -> bytes:
    """Returns a PDF with the lines of a text on each page."""
    count = len(pages)
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(count))
    font = 3 + 2 * count
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>"]
    for number, text in enumerate(pages):
        escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        drawn = " ".join(f"({line}) Tj 0 -18 Td" for line in escaped.split("\n"))
        stream = f"BT /F1 11 Tf 60 760 Td {drawn} ET"
        resources = f"<< /Font << /F1 {font} 0 R >> >>"
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources {resources} /Contents {4 + 2 * number} 0 R >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252", "replace")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")


def docx_bytes(sections: Sequence[tuple[str, str]]) -> bytes:
    """Returns a Word file with a heading and a paragraph for each section."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{escape(heading)}</w:t></w:r></w:p>'
        f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"
        for heading, text in sections
    )
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    parts = {
        "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{word}"><w:style w:type="paragraph" w:styleId="Heading1">'
        '<w:name w:val="heading 1"/></w:style></w:styles>',
        "word/_rels/document.xml.rels": _relations(("styles", "styles.xml")),
        "_rels/.rels": _relations(("officeDocument", "word/document.xml")),
    }
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    return _package(parts, {"word/document.xml": f"{main}.document.main+xml", "word/styles.xml": f"{main}.styles+xml"})


def xlsx_bytes(sheets: Mapping[str, Sequence[Sequence[str | float]]]) -> bytes:
    """Returns a spreadsheet of texts and numbers."""
    sheet_ns = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relation_ns = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts, kinds, named = {}, {}, []
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    for number, (name, rows) in enumerate(sheets.items(), 1):
        lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        path = f"xl/worksheets/sheet{number}.xml"
        parts[path] = f'<worksheet xmlns="{sheet_ns}"><sheetData>{lines}</sheetData></worksheet>'
        kinds[path] = f"{main}.worksheet+xml"
        named.append(f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>')
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{sheet_ns}" xmlns:r="{relation_ns}"><sheets>{"".join(named)}</sheets></workbook>'
    )
    kinds["xl/workbook.xml"] = f"{main}.sheet.main+xml"
    targets = [("worksheet", f"worksheets/sheet{number}.xml") for number in range(1, len(sheets) + 1)]
    parts["xl/_rels/workbook.xml.rels"] = _relations(*targets)
    parts["_rels/.rels"] = _relations(("officeDocument", "xl/workbook.xml"))
    return _package(parts, kinds)


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def _relations(*targets: tuple[str, str]) -> str:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    listed = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}/{name}" Target="{target}"/>'
        for number, (name, target) in enumerate(targets, 1)
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{listed}</Relationships>'
    )


def _package(parts: Mapping[str, str], kinds: Mapping[str, str]) -> bytes:
    overrides = "".join(f'<Override PartName="/{path}" ContentType="{kind}"/>' for path, kind in kinds.items())
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in {"[Content_Types].xml": types, **parts}.items():
            archive.writestr(
                zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), f'<?xml version="1.0" encoding="UTF-8"?>{text}'
            )
    return target.getvalue()
