"""The peers' settings: each is measured with all that is listed here, and compared with its best."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.crews import CLIENTS, Crew, Place, mosec, torchrl

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Tuned:
    """The setting with the most actions a second, and those of each that was tried."""

    best: Setting
    tried: Mapping[str, float]


# name: how it is put up, and its candidates
CANDIDATES: dict[str, tuple[Callable[..., Crew], tuple[Setting, ...]]] = {
    "mosec": (
        mosec,
        (
            {"max_batch": CLIENTS, "max_wait_ms": 1},  # a whole millisecond is the least that mosec takes
            {"max_batch": CLIENTS // 2, "max_wait_ms": 1},
            {"max_batch": 1, "max_wait_ms": 1},
        ),
    ),
    "torchrl": (
        torchrl,
        (
            # process_slot and shared_memory want clients on the same machine, started by the server's owner, that send
            # the same number of envs each time
            {"transport": "process_slot", "min_batch": 1, "timeout": 0.05},
            {"transport": "process_slot", "min_batch": CLIENTS // 2, "timeout": 0.001},
            {"transport": "process_slot", "min_batch": CLIENTS, "timeout": 0.002},
            {"transport": "shared_memory", "min_batch": 1, "timeout": 0.05},
            {"transport": "auto", "min_batch": 1, "timeout": 0.05},  # what TorchRL takes unless told: pickled requests
        ),
    ),
}


def tune(name: str, place: Place, seconds: float, most: int) -> Tuned:
    """One window for each of the first `most` candidates."""
    put_up, candidates = CANDIDATES[name]
    candidates = candidates[:most]
    found: list[float] = []
    for setting in candidates:
        sys.stderr.write(f"{place.precision}: {name} with {describe(setting)}\n")
        crew = put_up(place, **setting)
        try:
            found.append(crew.measure(seconds).actions_per_sec)
        finally:
            crew.close()
    best = candidates[found.index(max(found))]
    return Tuned(best, {describe(setting): rate for setting, rate in zip(candidates, found)})


def describe(setting: Setting) -> str:
    """`name value, ...`"""
    return ", ".join(f"{name} {value}" for name, value in setting.items())
