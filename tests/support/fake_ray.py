"""A stand-in for the package ray, which default installs lack: clusters of it have machines, and run nothing."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest

ENGINE = "simul.launch.cluster.ray_engine"
PARTS = ("ray._private.state", "ray.exceptions", "ray.util.placement_group", "ray.util.scheduling_strategies")
ERRORS = ("RayError", "ActorUnavailableError", "GetTimeoutError")
OTHERS = (
    "available_resources_per_node", "placement_group", "placement_group_table", "remove_placement_group",
    "PlacementGroupSchedulingStrategy",
)  # fmt: skip


class FakeRay(ModuleType):
    """A cluster of machines at `hosts`, or none at all."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        super().__init__("ray")
        self.hosts, self.left = hosts, False
        self.method = lambda **options: lambda method: method  # of actors

    def init(self, address: str, **options: object) -> None:
        if not self.hosts:
            raise ConnectionError(f"Could not find any running Ray instance at {address}.\nMore lines.")

    def nodes(self) -> list[dict[str, object]]:
        return [{"NodeManagerAddress": host, "Alive": True} for host in self.hosts]

    def shutdown(self) -> None:
        self.left = True


def install_ray(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> FakeRay:
    """A cluster of machines at `hosts` is the package; take ENGINE out of sys.modules after the test."""
    made, error = FakeRay(hosts), type("RayError", (Exception,), {})
    for name in PARTS:
        part = ModuleType(name)
        vars(part).update({**dict.fromkeys(ERRORS, error), **dict.fromkeys(OTHERS, SimpleNamespace)})
        monkeypatch.setitem(sys.modules, name, part)
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.delitem(sys.modules, ENGINE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: made)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    return made
