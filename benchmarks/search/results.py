"""What the windows of `make bench-search` say: rates, ratios within a repeat, promises. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.harness.promises import Promise
from benchmarks.harness.report import markdown_table

SERVER = "server"
HYBRID = "hybrid"
ALONE = ("alone1", "alone2")  # one process, with one and with two threads of torch
TITLES: Mapping[str, str] = {
    "alone1": "sequential: one game after the other, 1 torch thread",
    "alone2": "the same, 2 torch threads",
    HYBRID: "hybrid: workers with a network each, 1 torch thread each",
    "alone_cuda": "sequential, the network on the GPU",
    "contexts": "workers with a CUDA context each",
    SERVER: "our server with search workers",
}
GPU_WAYS = ("alone_cuda", "contexts")
BARE_SHARE = 0.75
ALONE_TIMES = 1.5


@dataclass(frozen=True)
class Window:
    """One window of one way, all its processes together.

    Attributes:
        cpu_sec: processor time of everything that searches and evaluates.
        batches: forwards.
        server_cpu_sec: of that, the server's.
        lengths: moves of the games that began with an empty board and ended in the window.
    """

    seconds: float
    moves: float
    simulations: float
    evaluations: float
    batches: float
    cpu_sec: float
    server_cpu_sec: float = 0.0
    lengths: tuple[int, ...] = ()

    @property
    def evaluations_per_sec(self) -> float:
        return self.evaluations / self.seconds

    @property
    def mean_batch(self) -> float:
        return self.evaluations / max(self.batches, 1)


@dataclass(frozen=True)
class Repeat:
    """One window of each way, and the bare forward at the server's mean batch: microseconds of a leaf."""

    windows: Mapping[str, Window]
    bare_us: float
    bare_cpu_us: float


def moves_of_a_game(repeats: Sequence[Repeat]) -> float:
    """Mean over all games that began and ended while something was measured; nan where there are none."""
    lengths = [length for each in repeats for window in each.windows.values() for length in window.lengths]
    return mean(lengths) if lengths else float("nan")


def promises(repeats: Sequence[Repeat], cpu: bool) -> list[Promise]:
    """Of leaf evaluations a second, medians of ratios within a repeat. `cpu`: False on a GPU: nothing is promised."""
    if not cpu:
        return []
    ours = [each.windows[SERVER] for each in repeats]
    return [
        Promise(
            "leaf evaluations a second, our server / the bare forward at the same mean batch on its core",
            median(own.evaluations_per_sec * each.bare_us * 1e-6 for own, each in zip(ours, repeats)),
            BARE_SHARE,
            by_cpu=median(
                each.bare_cpu_us * own.evaluations / (own.server_cpu_sec * 1e6) for own, each in zip(ours, repeats)
            ),
        ),
        Promise(
            "leaf evaluations a second, our server / sequential with the better of 1 and 2 threads",
            ratio(repeats, ALONE),
            ALONE_TIMES,
        ),
    ]


def ratio(repeats: Sequence[Repeat], others: Sequence[str]) -> float:
    """Our server's leaf evaluations a second as a multiple of the best of `others`."""
    return median(
        each.windows[SERVER].evaluations_per_sec / max(each.windows[name].evaluations_per_sec for name in others)
        for each in repeats
    )


def against_hybrid(repeats: Sequence[Repeat]) -> str:
    """What the server costs on a CPU."""
    ours, theirs = (
        median(each.windows[name].cpu_sec * 1e6 / max(each.windows[name].evaluations, 1) for each in repeats)
        for name in (SERVER, HYBRID)
    )
    return (
        f"our server / hybrid: {ratio(repeats, [HYBRID]):.2f} of its leaf evaluations a second; "
        f"a leaf costs {ours:,.0f} us of processor time instead of {theirs:,.0f}"
    )


def table(repeats: Sequence[Repeat], not_run: Mapping[str, str]) -> str:
    """Medians of each way as Markdown; `not_run`: why, by way."""
    length = moves_of_a_game(repeats)
    heads = ("", "games an hour", "simulations/s", "leaf evaluations/s", "least to most", "leaves a batch",
             "us of processor time a leaf")  # fmt: skip
    rows = []
    for name, title in TITLES.items():
        if name in not_run:
            rows.append((title, not_run[name], *["-"] * (len(heads) - 2)))
            continue
        windows = [each.windows[name] for each in repeats]
        rates = [window.evaluations_per_sec for window in windows]
        games = median(window.moves / window.seconds for window in windows) * 3600 / length
        rows.append((
            title, "-" if games != games else f"{games:,.0f}",
            f"{median(window.simulations / window.seconds for window in windows):,.0f}",
            f"{median(rates):,.0f}", f"{min(rates):,.0f} to {max(rates):,.0f}",
            f"{median(window.mean_batch for window in windows):.1f}",
            f"{median(window.cpu_sec * 1e6 / max(window.evaluations, 1) for window in windows):,.0f}",
        ))  # fmt: skip
    return markdown_table(heads, rows)
