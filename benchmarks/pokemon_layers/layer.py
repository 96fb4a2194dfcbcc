"""What every layer shares: its settings, one measurement, and the summary of several."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from simul.common.config.schema import Config


@dataclass(frozen=True)
class Sample:
    """One window of one layer.

    Attributes:
        decisions: answered in the window, both seats; with a server, only those that it answered.
        cpu_sec: processor time of every process involved, their children included.
        busy_sec: processor time that the cores spent on anything meanwhile.
        cores: how many cores that is.
        notes: further figures of the layer.
    """

    decisions: float
    seconds: float
    cpu_sec: float
    busy_sec: float
    cores: int
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def decisions_per_sec(self) -> float:
        return self.decisions / self.seconds

    @property
    def us_per_decision(self) -> float:
        """Microseconds of one core."""
        return self.cpu_sec * 1e6 / max(self.decisions, 1)

    @property
    def others_share(self) -> float:
        """Share of the cores that other processes used."""
        return max(0.0, self.busy_sec - self.cpu_sec) / (self.seconds * self.cores)


def together(parts: Sequence[Sample]) -> Sample:
    """Processes that ran side by side, each measured over a window of its own: rates and costs add up."""
    seconds = median(part.seconds for part in parts)
    return Sample(
        decisions=sum(part.decisions_per_sec for part in parts) * seconds,
        seconds=seconds,
        cpu_sec=sum(part.cpu_sec / part.seconds for part in parts) * seconds,
        busy_sec=max(part.busy_sec / part.seconds for part in parts) * seconds,
        cores=parts[0].cores,
        notes=parts[0].notes,
    )


def one_after_another(parts: Sequence[Sample]) -> Sample:
    """Windows of the same thing, as one."""
    return Sample(
        decisions=sum(part.decisions for part in parts),
        seconds=sum(part.seconds for part in parts),
        cpu_sec=sum(part.cpu_sec for part in parts),
        busy_sec=sum(part.busy_sec for part in parts),
        cores=parts[0].cores,
        notes=parts[-1].notes,
    )


def summarise(samples: Sequence[Sample]) -> dict[str, Any]:
    """Median and spread over the repeats; the notes are those of the last one."""
    rates = [sample.decisions_per_sec for sample in samples]
    costs = [sample.us_per_decision for sample in samples]
    return {
        "decisions_per_sec": round(median(rates), 1),
        "us_per_decision": round(median(costs), 1),
        "decisions_per_sec_spread": spread(rates),
        "us_per_decision_spread": spread(costs),
        "repeats": len(samples),
        "decisions_per_sec_repeats": [round(rate, 1) for rate in rates],
        "us_per_decision_repeats": [round(cost, 1) for cost in costs],
        "seconds": round(median(sample.seconds for sample in samples), 2),
        "others_share": round(median(sample.others_share for sample in samples), 3),
        **samples[-1].notes,
    }


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / median."""
    return round((max(values) - min(values)) / median(values), 3) if median(values) else 0.0


@dataclass(frozen=True)
class Setting:
    """What all layers of one run share.

    Attributes:
        cores: those that all layers run on; a layer without a server uses as many processes.
        overrides: `k=v` of the configuration, as `simul up --set` takes them; pure self-play is among them.
        seconds, warm_up_sec: of every window.
        temporary: a folder that is removed at the end.
        say: prints a progress line.
    """

    node: Path
    cores: list[int]
    config_path: Path
    overrides: tuple[str, ...]
    config: Config
    seconds: float
    warm_up_sec: float
    quick: bool
    temporary: Path
    say: Callable[[str], None]

    def folder(self, name: str) -> Path:
        """A fresh folder."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.temporary))


class Layer(Protocol):
    """One row of the table. `measure` starts what it needs and stops it again, also when it is interrupted."""

    name: str
    title: str

    def measure(self, repeat: int) -> Sample:
        """One window."""
