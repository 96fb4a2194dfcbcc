"""What a person sees while the load test runs."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status

from simul.inference_server.loadtest.cells import Cell


class Progress:
    """A line that changes on a terminal; one line a cell elsewhere."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._cells = 0
        self._what = ""
        self._status = Status("", console=console) if console.is_terminal else None

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def phase(self, what: str) -> None:
        """Something begins."""
        self._what = what
        self.detail("")

    def detail(self, words: str) -> None:
        """What is known of it so far."""
        if self._status is not None:
            step = f"[{min(self._cells + 1, self._total)}/{self._total}]" if self._total else f"[{self._cells + 1}]"
            self._status.update(f"\\{step} {self._what}{': ' if words else ''}{words}")

    def done(self, cell: Cell) -> None:
        """A cell is measured."""
        self._cells += 1
        if self._status is None:
            p99 = cell.latency_us.get("p99", 0.0) / 1000
            self._console.print(f"{self._what}: {cell.actions_per_sec:,.0f} actions/s, p99 {p99:.2f} ms", markup=False)
