"""Another distribution that owns our packages is found; test_packaging.py checks it on a real installation."""

from pathlib import Path

import pytest

from runtime.process import check_ownership, imported_from_elsewhere, shared_with

ROOT = Path(__file__).resolve().parents[2]


def test_this_checkout_is_accepted() -> None:
    check_ownership()


@pytest.mark.parametrize("package", ["workflows", "activities"])
def test_another_owner_is_named(package: str) -> None:
    sentence = shared_with({package: ["temporal-supervisor", "llama-index-workflows"]})
    assert sentence == (
        f"the package '{package}' of temporal-supervisor is also installed by 'llama-index-workflows': "
        "install temporal-supervisor in a virtual environment of its own"
    )


def test_packages_that_come_from_another_folder_are_named(tmp_path: Path) -> None:
    sentence = imported_from_elsewhere(tmp_path)
    assert sentence is not None
    assert sentence.startswith(
        f"the package 'workflows' would come from {ROOT / 'workflows' / '__init__.py'}, not from"
    )
