"""What the environment says about the way to the provider: proxies and certificate authorities."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from activities.model.anthropic_model import AnthropicModel
from activities.model.port import ModelFailure, ModelMessage, ModelRequest, StreamProgress
from tests.activity.model import http_fixture as http


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def complete(base_url: str) -> ModelMessage:
    model = AnthropicModel(base_url=base_url)
    try:
        request = ModelRequest(model="m", system="", messages=[{"role": "user", "content": "hello"}], max_tokens=100)
        return await model.complete(request, StreamProgress())
    finally:
        await model.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by aiohttp, of what the SDK uses
async def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http.model_server(http.message()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//guest:word@"))
        await complete("http://model.example")
    (call,) = proxy.requests
    assert (call.path, call.headers["host"]) == ("http://model.example/v1/messages", "model.example")
    assert call.headers["proxy-authorization"].startswith("Basic ")


async def test_an_authority_of_ones_own_is_believed_when_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with http.model_server(http.message(), tls=self_signed(tmp_path)) as server:
        with pytest.raises(ModelFailure) as refused:
            await complete(server.url)
        assert (refused.value.kind, server.requests) == ("ProviderUnreachable", [])
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        await complete(server.url)
    assert len(server.requests) == 1


def self_signed(folder: Path) -> ssl.SSLContext:
    """Returns what a server on loopback shows, whose certificate is its own authority, in `authority.pem`."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "model.test")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "authority.pem").write_bytes(pem)
    (folder / "server.pem").write_bytes(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context
