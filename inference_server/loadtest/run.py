"""One load test: measure, show, write, recommend."""

from __future__ import annotations

from rich.console import Console

from simul.common.launch.processes.temporary import temporary_folder
from simul.common.protocol.errors import ConfigError
from simul.inference_server.loadtest.cells import Result
from simul.inference_server.loadtest.cores import Neighbours, our_cores, read_times, split_cores
from simul.inference_server.loadtest.options import Options
from simul.inference_server.loadtest.plots import write_plots
from simul.inference_server.loadtest.progress import Progress
from simul.inference_server.loadtest.recommend import recommendation
from simul.inference_server.loadtest.report import conditions, table, write
from simul.inference_server.loadtest.subject import make_subject
from simul.inference_server.loadtest.sweep import AUTO_RATES, Sweep


def run(options: Options) -> int:
    """Measure everything `options` asks for. Raises SimulError."""
    console = Console()
    neighbours = Neighbours(our_cores(), read_times)
    with temporary_folder("simul-loadtest-") as root:
        subject = make_subject(options, root)
        cores = split_cores(subject.config.server.threads)
        with Progress(console, planned_cells(options)) as progress:
            sweep = Sweep(options, subject, cores, progress)
            sweep.run()
        others = neighbours.share() if options.connect is None else 0.0  # there, the server is among them
        result = Result(
            conditions={**conditions(options, subject, cores), **sweep.facts, "others_busy": others},
            cells=sweep.cells,
            max_rates=sweep.max_rates,
            recommendation=recommendation(sweep.cells, sweep.max_rates, others),
        )
    write(options.out, result)
    plots = write_plots(options.out, result.cells)
    _show(console, options, result, plots)
    missed = [found for found in result.max_rates if found.actions_per_sec is None]
    if missed:
        raise ConfigError(
            f"--find-max-rate: p99 was above {options.p99_ms:g} ms at the lowest rate tried. "
            "Name a larger --p99-ms, or look at what the table says."
        )
    return 0


def planned_cells(options: Options) -> int:
    """How many cells there will be; 0 where the search for the largest rate makes that unknown."""
    if options.find_max_rate:
        return 0
    swept = len(options.clients) * len(options.envs) * (2 if options.baseline else 1)
    rates = len(AUTO_RATES if options.rates is None else options.rates)
    return len(options.precisions) * (swept + rates)


def _show(console: Console, options: Options, result: Result, plots: list[str]) -> None:
    console.print(table(result.cells))
    if options.connect is not None:
        console.print(
            "Stages and forward are not known of a server that was not started here; its batches hold rows of all its "
            "clients."
        )
    for sentence in result.recommendation:
        console.print(sentence, highlight=False, markup=False)
    names = ", ".join(["loadtest.json", "loadtest.csv", *plots])
    console.print(f"Written to {options.out}: {names}", highlight=False, markup=False, soft_wrap=True)
