"""The check that a program imports our packages, not its own of the same names."""

from importlib.machinery import PathFinder
from pathlib import Path

PLACE = Path(__file__).resolve().parents[1]
"""The folder in which this package and the others lie: of the checkout, or site-packages."""


class OtherPackage(ImportError):
    """One of our package names leads to another package in this program."""


def require_our_packages(*names: str) -> None:
    """Raises OtherPackage if one of these names would import another package."""
    import sys

    for name in names:
        loaded = sys.modules.get(name)
        spec = loaded.__spec__ if loaded else PathFinder.find_spec(name)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if found is None or PLACE not in (found.parent, found.parent.parent):
            where = found or "nowhere"
            raise OtherPackage(
                f"this program has a package '{name}' of its own ({where}), so that of "
                "temporal-supervisor cannot be imported beside it: run its Worker as a process of "
                "its own, `temporal-supervisor worker`, from another folder"
            )
