"""The plugin in programs in which it can't serve: it says so when it is made."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from temporal_supervisor import PluginUnusable, SupervisorPlugin, open_team, plugin
from temporal_supervisor.own_packages import OtherPackage
from temporal_supervisor.runtime.settings import Settings

PROCESS = "temporal-supervisor worker"


def settings(**given: Any) -> Settings:
    return Settings.model_construct(None, **given)


def test_without_a_model_it_names_the_variables_and_the_process() -> None:
    with pytest.raises(PluginUnusable, match="ANTHROPIC_API_KEY") as refused:
        SupervisorPlugin(settings())
    assert PROCESS in str(refused.value)


def test_without_a_key_it_names_the_way_to_the_stand_in() -> None:
    with pytest.raises(PluginUnusable, match=r"SupervisorPlugin\(standin=True\) brings the stand-in"):
        SupervisorPlugin(settings())
    SupervisorPlugin(settings(), standin=True)


def test_roles_without_model_calls_need_no_model() -> None:
    SupervisorPlugin(settings(), roles=["workflows", "tools", "outward"])


def test_another_version_of_the_sdk_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "sdk_version", "1.36.0")
    with pytest.raises(PluginUnusable, match=r"temporalio is 1\.36\.0, and the workflows need") as refused:
        SupervisorPlugin(settings(anthropic_base_url="http://127.0.0.1:1"))
    assert PROCESS in str(refused.value)


async def test_a_package_of_the_programs_own_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("workflows", "activities"):
        theirs = ModuleType(name)
        theirs.__spec__ = ModuleSpec(name, None, origin=f"/srv/shop/{name}/__init__.py")
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, theirs)
            with pytest.raises(OtherPackage, match=f"'{name}' of its own .*/srv/shop") as refused:
                SupervisorPlugin(settings(anthropic_base_url="http://127.0.0.1:1"))
        assert PROCESS in str(refused.value)
    monkeypatch.setitem(sys.modules, "activities", theirs)
    with pytest.raises(OtherPackage, match="'activities'"):
        await open_team("my-teams/library")
