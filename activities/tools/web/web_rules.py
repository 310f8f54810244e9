"""What may be asked of the web: the form of a URL, and the addresses that a host may have."""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PORTS = {"https": 443, "http": 80}
_OWN = ("a loopback", "a private")
_KINDS = {  # the first that fits counts: some metadata services have private or public addresses
    "a metadata service's": (
        "169.254.169.254/32 169.254.170.2/32 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32 "
        "fd00:ec2::254/128 fd20:ce::254/128"
    ),
    "an IPv4-mapped": "::ffff:0:0/96",
    "a NAT64": "64:ff9b::/96 64:ff9b:1::/48",
    "a 6to4": "2002::/16 192.88.99.0/24",
    "a Teredo": "2001::/32",
    "an unspecified": "0.0.0.0/8 ::/128",
    "a loopback": "127.0.0.0/8 ::1/128",
    "a link-local": "169.254.0.0/16 fe80::/10",
    "a multicast": "224.0.0.0/4 ff00::/8",
    "a private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7",
    "a reserved": (  # not every Python takes these for such
        "192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 "
        "203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20"
    ),
}
_NETWORKS = [(kind, ipaddress.ip_network(network)) for kind, several in _KINDS.items() for network in several.split()]
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")


class NotFetched(Exception):
    """A URL that is not fetched; the message says why."""


class Site(NamedTuple):
    """The part of a URL that says where it goes."""

    scheme: str
    host: str
    port: int


def site_of(url: str) -> Site:
    """Returns where a URL goes. Raises NotFetched for one that programs may read in several ways."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise NotFetched("a URL has no blanks and none but ASCII characters: write xn-- in names, %XX elsewhere")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise NotFetched(f"it is not a URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise NotFetched("it begins neither with https:// nor with http://")
    if "@" in parts.netloc or "%" in parts.netloc or ("[" in parts.netloc) != (":" in host):
        raise NotFetched("its host is written with @, % or brackets that do not belong there")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        *_, last = labels = host.split(".")
        if not all(map(_LABEL.fullmatch, labels)) or not last[0].isalpha():
            raise NotFetched(f"'{host}' is neither the name of a host nor an IP in its plain form") from None
    return Site(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


def sites_of(entry: str) -> list[Site]:
    """Returns what a team's file opens with a host, or with `host:port`. Raises NotFetched."""
    if urlsplit(f"//{entry}").netloc != entry:
        raise NotFetched("a host is written alone, or as host:port")
    return [site_of(f"https://{entry}"), site_of(f"http://{entry}")]


def refusal(address: str, private: bool) -> str | None:
    """Returns the kind of an address that is not connected to; with `private` a loopback or private one is allowed."""
    ip = ipaddress.ip_address(address)
    for kind, network in _NETWORKS:
        if ip in network:
            return None if private and kind in _OWN else kind
    public = ip.is_global and not ip.is_reserved and (ip.version == 4 or ip in _PUBLIC_IPV6)
    return None if public else "a reserved"
