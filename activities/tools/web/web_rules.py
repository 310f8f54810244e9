"""The rules of web requests: valid URLs, and the addresses that a host may have."""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PORTS = {"https": 443, "http": 80}
_OWN = "127.0.0.0/8 ::1/128 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7"
# Whatever Python says of them: services with metadata, IPv4 within IPv6, and what is reserved.
_NEVER = (
    "100.100.100.200/32 168.63.129.16/32 fd00:ec2::254/128 fd20:ce::254/128 ::ffff:0:0/96 "
    "64:ff9b::/96 64:ff9b:1::/48 2002::/16 192.88.99.0/24 2001::/23 192.0.0.0/24 192.31.196.0/24 "
    "192.52.193.0/24 192.175.48.0/24 224.0.0.0/4 3fff::/20"
)
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")


class NotFetched(Exception):
    """A URL that is not fetched, for the reason in the message."""


class Site(NamedTuple):
    """The target of a URL."""

    scheme: str
    host: str
    port: int


def site_of(url: str) -> Site:
    """Returns the site of a URL.

    Raises NotFetched for a URL that programs may interpret differently.
    """
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        rule = "a URL has no blanks and none but ASCII characters"
        raise NotFetched(f"{rule}: write xn-- in names, %XX elsewhere")
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
            neither = "is neither the name of a host nor an IP in its plain form"
            raise NotFetched(f"'{host}' {neither}") from None
    return Site(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


def sites_of(entry: str) -> list[Site]:
    """Returns the sites for an entry of a team's file: a host, or `host:port`.

    Raises NotFetched.
    """
    if urlsplit(f"//{entry}").netloc != entry:
        raise NotFetched("a host is written alone, or as host:port")
    return [site_of(f"https://{entry}"), site_of(f"http://{entry}")]


def is_allowed(address: str, private: bool) -> bool:
    """True if an address may be connected to: a public one, with `private` also a local one."""
    ip = ipaddress.ip_address(address)
    if any(ip in ipaddress.ip_network(network) for network in _NEVER.split()):
        return False
    if any(ip in ipaddress.ip_network(network) for network in _OWN.split()):
        return private
    return ip.is_global and not ip.is_reserved and (ip.version == 4 or ip in _PUBLIC_IPV6)
