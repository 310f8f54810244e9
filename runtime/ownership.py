"""Our top-level packages have common names: refuse to run where another distribution owns them too.

Installers overwrite such packages without a warning, and removing the other distribution then removes ours.
"""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "temporal-supervisor"
PACKAGES = ("workflows", "activities")
_ADVICE = f"install {DISTRIBUTION} in a virtual environment of its own"


def check_ownership() -> None:
    """Return if `workflows` and `activities` are ours alone, else raise SystemExit with one sentence.

    Run from source, or installed as editable, no distribution or only ours owns them: both are fine.
    """
    complaint = shared_with(packages_distributions()) or imported_from_elsewhere(Path(__file__).resolve().parents[1])
    if complaint:
        raise SystemExit(complaint)


def shared_with(owners: Mapping[str, Iterable[str]]) -> str | None:
    """A sentence naming another owner of our packages, None when there is none."""
    for package in PACKAGES:
        for owner in owners.get(package, ()):
            if re.sub(r"[-_.]+", "-", owner).lower() != DISTRIBUTION:
                return f"the package '{package}' of {DISTRIBUTION} is also installed by '{owner}': {_ADVICE}"
    return None


def imported_from_elsewhere(home: Path) -> str | None:
    """A sentence naming a package that would not be imported from `home`, None when all would."""
    for package in PACKAGES:
        spec = find_spec(package)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            return f"the package '{package}' would come from {origin or 'nowhere'}, not from {home}: {_ADVICE}"
    return None
