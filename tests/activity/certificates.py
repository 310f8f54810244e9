"""Certificates that are their own authority."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def self_signed(folder: Path, of: x509.GeneralName) -> Path:
    """Returns a file with a certificate of that host, and with its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    begun = datetime.now(UTC) - timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begun, begun + timedelta(days=2))
    made = made.add_extension(x509.SubjectAlternativeName([of]), False)
    made = made.add_extension(x509.BasicConstraints(True, None), True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) + private)
    return file
