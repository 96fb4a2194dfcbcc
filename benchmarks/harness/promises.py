"""Found against promised: the verdicts of every benchmark. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness.report import markdown_table


@dataclass(frozen=True)
class Promise:
    """One promise and what was found.

    Attributes:
        at_least: the promise is a lower bound; False: an upper bound.
        by_cpu: the same figure by processor time, which other processes on the machine distort less.
    """

    name: str
    found: float
    promised: float
    at_least: bool = True
    by_cpu: float | None = None

    @property
    def kept(self) -> bool:
        return self.found >= self.promised if self.at_least else self.found <= self.promised

    @property
    def verdict(self) -> str:
        """In a table."""
        return "met" if self.kept else "not met"

    @property
    def shown(self) -> tuple[str, str]:
        """Found and promised as text: two decimals below 100, none above."""
        decimals = 2 if self.promised < 100 else 0
        bound = "at least" if self.at_least else "at most"
        return f"{self.found:,.{decimals}f}", f"{bound} {self.promised:,.{decimals}f}"

    def __str__(self) -> str:
        found, promised = self.shown
        by_cpu = f"; by processor time {self.by_cpu:.2f}" if self.by_cpu is not None else ""
        return f"{'PASS' if self.kept else 'FAIL'}  {self.name}: {found} (promised {promised}{by_cpu})"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {**asdict(self), "kept": self.kept}


def promises_table(promises: Sequence[Promise]) -> str:
    """The promises as a Markdown table."""
    rows = []
    for promise in promises:
        value, promised = promise.shown
        by_cpu = "" if promise.by_cpu is None else f"{promise.by_cpu:.2f}"
        rows.append([promise.name, value, by_cpu, promised, promise.verdict])
    return markdown_table(("promise", "found", "by processor time", "promised", ""), rows)
