"""`web_fetch`: which URLs and addresses it asks for, what it makes of pages, and what hostile servers get out of it."""

import resource
import socket
import ssl
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from activities.files.file_cache import FileCache
from activities.teams.toolbox import Toolbox, ToolRun, open_toolbox
from activities.tools.tool import ToolContext
from activities.tools.web import web_process, web_tools
from activities.tools.web.web_rules import NotFetched, site_of, sites_of
from activities.tools.web.web_tools import stands_in
from temporal_supervisor.supervision.contract.team import Role, ToolEntry
from tests.activity.certificates import self_signed
from tests.activity.tools import web_server
from tests.activity.tools.web_server import WebServer

OWN = (
    "127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255 [::1] [0:0:0:0:0:0:0:1] [0000::0001] 10.0.0.1 10.255.255.255 "
    "172.16.0.1 172.31.255.254 192.168.0.1 192.168.255.255 100.64.0.1 100.127.255.255 [fc00::1] [fd00::1] "
    "[fd12:3456:789a::1] [fdff:ffff::1]"
)
NEVER = (
    "169.254.0.1 169.254.1.1 169.254.169.253 169.254.255.255 [fe80::1] [febf::1] [fe80::a9fe:a9fe] 224.0.0.1 "
    "224.0.0.251 239.255.255.250 [ff02::1] [ff05::2] [ff0e::1] 169.254.169.254 169.254.170.2 100.100.100.200 "
    "168.63.129.16 192.0.0.192 [fd00:ec2::254] [fd20:ce::254] 0.0.0.0 0.0.0.1 0.255.255.255 [::] [0:0:0:0:0:0:0:0] "
    "[::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:10.0.0.1] "
    "[::ffff:8.8.8.8] [0:0:0:0:0:ffff:7f00:1] [::FFFF:192.168.1.1] [::ffff:0.0.0.0] [64:ff9b::7f00:1] "
    "[64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b::10.0.0.1] [64:ff9b::8.8.8.8] [64:ff9b:1::1] "
    "[64:ff9b:1:fffe::a00:1] [2002:7f00:1::] [2002:7f00:1::1] [2002:a9fe:a9fe::1] [2002:a00:1::] [2002:808:808::1] "
    "192.88.99.1 [2001::1] [2001:0:4136:e378:8000:63bf:3fff:fdd2] [2001:0:7f00:1::] 192.0.2.1 198.51.100.7 "
    "203.0.113.9 198.18.0.1 198.19.255.255 240.0.0.1 255.255.255.255 192.0.0.8 192.175.48.1 [3fff::1] [::127.0.0.1] "
    "[::7f00:1] [::a9fe:a9fe] [::8.8.8.8] [100::1] [2001:db8::1] [2001:2::1] [fec0::1] [4000::1] "
    "[::ffff:0:127.0.0.1] [8000::1] [0100::]"
)
NOT_PUBLIC = "which is not a public IP"
ODD_HOSTS = (
    "2130706433 0x7f000001 017700000001 0x7f.0x0.0x0.0x1 0177.0.0.1 127.1 127.0.1 0 0x0 0177.1 127.0.0.01 127.000.0.1 "
    "0x7f.1 0x7F.0.0.1 00000177.0.0.1 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 0xa9.254.0xa9fe "
    "1.1.1.256 1.2.3 1.2.3.4.5 127.0.0.1. localhost. example.com. .example.com example..com -example.com example-.com "
    "exa*mple.com [::1%25lo] [::1%lo] [127.0.0.1] [::1 ::1 [] [v1.x] user@127.0.0.1 127.0.0.1@docs.example.com "
    "docs.example.com@127.0.0.1 docs.example.com:80@127.0.0.1 %31%32%37.0.0.1 docs.example.com%00.evil.example "
    "docs.example.com\\@127.0.0.1 docs.example.com\\127.0.0.1 127.0.0.1:x 127.0.0.1:99999 127.0.0.1:-1 "
    "１２７.0.0.1 ①②⑦.0.0.1 127。0。0。1 lоcalhost ⓛocalhost docs.example.com\u200b localhost\t lo\tcalhost "
    "lo\ncalhost lo\rcalhost lo\0calhost " + "a" * 64 + ".example"
)  # fmt: skip
ODD_URLS = ["", "x", "docs.example.com", "//docs.example.com/", "ftp://docs.example.com/", "file:///etc/passwd"]
ODD_URLS += ["gopher://127.0.0.1/", "javascript:alert(1)", "data:text/html,x", "https://", "https:///x", "https:x"]
ODD_URLS += ["HTTPS//docs.example.com", "unix:///run/x", "https://docs.example.com/a b", " https://docs.example.com/"]


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer().serving() as server:
        yield server


async def opened(folder: Path, **options: Any) -> Toolbox:
    entry = ToolEntry(name="web_fetch", uses="web_fetch", options=options)
    toolbox, problems = await open_toolbox([entry], folder, [], FileCache(folder / "cache"))
    assert problems == []
    return toolbox


async def fetched(toolbox: Toolbox, url: str, brief: str | None = "", **attached: str) -> ToolRun:
    async def said(text: str | None) -> Any:
        return text

    context = ToolContext(
        run_id="r", brief=partial(said, brief), attachments={n: partial(said, t) for n, t in attached.items()}
    )
    role = Role(name="reader", description="Reads.", system_prompt="Read.", tools=["web_fetch"])
    return await toolbox.run(role, "web_fetch", {"url": url}, context)


def refused(url: str, sites: list[Any], folder: Path, *, private: bool = False) -> str:
    with pytest.raises(NotFetched) as caught:
        web_process.fetch(url, sites, private, str(folder))
    return str(caught.value)


@pytest.mark.parametrize("host", f"{OWN} {NEVER}".split())
def test_no_address_but_a_public_one_is_connected_to(host: str, tmp_path: Path) -> None:
    assert NOT_PUBLIC in refused(f"https://{host}/", [], tmp_path)
    refused_at_all = NOT_PUBLIC in refused(f"http://{host}:9/", sites_of(f"{host}:9"), tmp_path, private=True)
    assert refused_at_all == (host in NEVER.split())


@pytest.mark.parametrize("url", [*(f"https://{host}/" for host in ODD_HOSTS.split(" ") if host), *ODD_URLS])
def test_a_url_and_its_host_have_one_spelling(url: str) -> None:
    with pytest.raises(NotFetched):
        site_of(url)


Resolved = list[list[tuple[str, int]]]


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[tuple[str, int]]) -> list[str]:
    """Has the resolver give these answers, one after another. Returns the list of hosts that it is asked for."""
    asked, left = list[str](), iter(answers)

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, to or port))
            for ip, to in next(left)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_a_host_is_resolved_once_and_connected_to_there(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolving(monkeypatch, [("127.0.0.1", web.port)], [("127.0.0.9", 1)])
    page = web_process.fetch("http://docs.example.com/page", sites_of("docs.example.com"), True, str(tmp_path))
    assert "4711" in page["text"]
    assert asked == ["docs.example.com"]
    assert web.asked == [("/page", "docs.example.com")]


def test_a_redirect_is_resolved_and_checked_again(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, [("127.0.0.1", web.port)], [("169.254.169.254", 80)])
    sites = sites_of("docs.example.com")
    assert NOT_PUBLIC in refused("http://docs.example.com/moved", sites, tmp_path, private=True)
    assert len(web.asked) == 1


def test_one_bad_address_among_good_ones_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, [("93.184.215.14", 443), ("2606:4700::1111", 443), ("10.0.0.1", 443)])
    assert f"at 10.0.0.1, {NOT_PUBLIC}" in refused("https://docs.example.com/", [], tmp_path)


def test_private_hosts_are_those_of_the_list_alone(tmp_path: Path) -> None:
    sites = sites_of("docs.example.com")
    assert NOT_PUBLIC in refused("https://127.0.0.1/", sites, tmp_path, private=True)
    assert "of no host that the team lists" in refused("http://127.0.0.1/", sites, tmp_path, private=True)


def test_the_certificate_and_its_name_are_those_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path, x509.DNSName("docs.example.com"))
    with WebServer().serving(certificate=certificate) as web:
        resolving(monkeypatch, *[[("127.0.0.1", web.port)]] * 3)
        get = partial(web_process.fetch, sites=sites_of("docs.example.com"), private=True, folder=str(tmp_path))
        with pytest.raises(NotFetched, match="SSLCertVerificationError"):
            get("https://docs.example.com/page")
        trusting = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
        assert "4711" in get("https://docs.example.com/page")["text"]
        assert web.asked == [("/page", "docs.example.com")]
        assert web.names == ["docs.example.com"] * 2
        with pytest.raises(NotFetched, match="Hostname mismatch"):
            web_process.fetch("https://other.example.com/page", sites_of("other.example.com"), True, str(tmp_path))


NOTE = "See https://docs.example.com/fees?year=2026. (And <https://docs.example.com/more#part>, https://a.example/x)"


@pytest.mark.parametrize(
    ("url", "stands"),
    [
        ("https://docs.example.com/fees?year=2026", True),
        ("https://docs.example.com/more", True),
        ("https://a.example/x", True),
        ("https://docs.example.com/fees", False),
        ("https://docs.example.com/fees?year=2026&secret=1", False),
        ("https://docs.example.com/", False),
        ("https://docs.example.com/fees?year=202", False),
        ("https://A.example/x", False),
    ],
)
def test_a_url_stands_in_a_text_whole_or_not_at_all(url: str, stands: bool) -> None:
    assert stands_in(url, NOTE) is stands


async def test_only_urls_of_a_trusted_brief_or_of_listed_hosts_are_asked_for(tmp_path: Path) -> None:
    """What may be asked for here is refused only then, because of its address."""
    toolbox = await opened(tmp_path, hosts=["127.0.0.1:9", "docs.example.com"])
    url = "https://127.0.0.7/page?key=1"
    asks = {
        "in the brief": await fetched(toolbox, url, f"Read {url}."),
        "in an attachment": await fetched(toolbox, f"{url}#part", "", notes=f"Read\n{url}\n"),
        "listed": await fetched(toolbox, "http://127.0.0.1:9/any"),
    }
    for ran in asks.values():
        assert NOT_PUBLIC in ran.text
    others = {
        "it stands, exactly so, neither in the subtask": await fetched(toolbox, url, f"Read {url}&more"),
        "the brief, in which it might stand, holds untrusted text": await fetched(toolbox, url, None, notes=url),
        "it does not begin with https://": await fetched(toolbox, "http://127.0.0.7/", "http://127.0.0.7/"),
        "127.0.0.1:9, docs.example.com": await fetched(toolbox, "https://127.0.0.1:8/"),
    }
    for words, ran in others.items():
        assert ran.is_error
        assert words in ran.text
        assert "is not fetched" in ran.text


@pytest.mark.parametrize("host", ["", "https://docs.example.com", "docs.example.com/path", "*", "a b", "0x7f.1", "x:y"])
async def test_a_list_holds_nothing_but_hosts(host: str, tmp_path: Path) -> None:
    entry = ToolEntry(name="web_fetch", uses="web_fetch", options={"hosts": [host]})
    _, problems = await open_toolbox([entry], tmp_path, [], FileCache(tmp_path / "cache"))
    assert [problem.startswith(f"tools.web_fetch: options.hosts: '{host}': ") for problem in problems] == [True]


async def test_pages_are_read_with_their_source_and_day(web: WebServer, tmp_path: Path) -> None:
    base, day = f"http://{web.host}", datetime.now(UTC).date()
    toolbox = await opened(tmp_path, hosts=[web.host], private=True)
    tool = toolbox.get("web_fetch")
    assert tool is not None
    assert (tool.reads, tool.returns, tool.effects) == ("public", "untrusted", "read")
    ran = await fetched(toolbox, f"{base}/moved#x")
    assert ran.text == (
        f"{base}/moved, which led to {base}/page, fetched on {day}:\n\n# Fees\n\nThe fee is 4711 euros.\n\n"
        f"next away\n\nIts links that can be fetched:\n{base}/next?a=1&b=2"
    )
    assert ran.sources == [f"{base}/page (fetched on {day})"]
    for path, words in {
        "/latin": "Preis: 5 €",
        "/odd-charset": "plain words",
        "/data": '[{"fee": 4711}]',
        "/paper": "## p. 1\n\nThe fee is 4711 euros.",
        "/deep": "deep",
    }.items():
        ran = await fetched(toolbox, base + path)
        assert (ran.is_error, ran.text) == (False, f"{base}{path}, fetched on {day}:\n\n{words}")


PROBLEMS = {
    "/image": "it is image/png; what is read is text/html, text/plain",
    "/empty": "it holds no text",
    "/binary": "it is no text: it holds binary data",
    "/broken-paper": "it is no PDF that can be read",
    "/bomb": "the server sends it packed (gzip)",
    "/huge": "it is larger than 2 MiB",
    "/headers": "LineTooLong",
    "/no-http": "BadStatusLine: SSH-2.0-OpenSSH",
    "/nowhere": "the server answers 404",
    "/loop": "it leads from page to page more than 3 times",
    "/to-metadata": "it leads to http://169.254.169.254/latest/meta-data, which is of no host that the team lists",
    "/to-other": "it leads to https://elsewhere.example/, which is of no host that the team lists",
    "/to-file": "it begins neither with https:// nor with http://",
    "/to-gopher": "it begins neither with https:// nor with http://",
    "/to-odd": "ValueError: Invalid IPv6 URL",
    "/to-user": "its host is written with @",
    "/bomb-paper": "MiB of memory",
    "/slow": "it takes longer than 2 s",
}

MIB = 1 << 20


async def test_hostile_servers_get_named_errors_and_the_tool_lives(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(web_server.PAGES, "/bomb-paper", ("application/pdf", bomb()))
    base, before = f"http://{web.host}", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    toolbox = await opened(tmp_path, hosts=[web.host], private=True)
    for path, words in PROBLEMS.items():
        if path == "/slow":  # the others have their time, on a busy machine, too
            monkeypatch.setattr(web_tools, "_FETCH_TIME", timedelta(seconds=2))
        ran = await fetched(toolbox, base + path)
        assert ran.is_error, path
        assert words in ran.text, path
        assert ran.text.startswith(f"{base}{path} is not fetched: ")
    assert "4711" in (await fetched(toolbox, f"{base}/page")).text
    assert web.sent < 32 << 20  # what was on its way, in the buffers of sockets
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB: the Worker takes none of it


def spaces(mib: int) -> bytes:
    """So many MiB of blanks, compressed: one block again and again, which takes a tenth of the time."""
    packer = zlib.compressobj(9)
    first, each = (packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    checksum = 1
    for _ in range(mib):
        checksum = zlib.adler32(b" " * MIB, checksum)
    empty_last_block = b"\x03\x00"
    return first + each * (mib - 1) + empty_last_block + checksum.to_bytes(4, "big")


def bomb() -> bytes:
    """A PDF of 1 MiB whose one page takes 1 GiB."""
    packed = spaces(1 << 10)
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(packed), packed),
    ]
    pdf, places = b"%PDF-1.4\n", b"0000000000 65535 f \n"
    for number, body in enumerate(bodies, 1):
        places += b"%010d 00000 n \n" % len(pdf)
        pdf += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    end = b"trailer<</Root 1 0 R/Size 5>>\nstartxref\n%d\n%%%%EOF" % len(pdf)
    return b"%bxref\n0 5\n%b%b" % (pdf, places, end)
