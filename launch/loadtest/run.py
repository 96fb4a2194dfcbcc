"""One load test from beginning to end: every precision, every cell, the largest rate; then table, files, advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from rich.console import Console
from rich.status import Status

from simul.common.client.load.orders import SetUp
from simul.common.errors import ERR_SPEC, ConfigError, InferenceError
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.terminal_console import SafeConsole
from simul.common.transport import client_keys
from simul.launch.loadtest.bisection import MaxRateSearch
from simul.launch.loadtest.client_pool import ClientPool
from simul.launch.loadtest.cores import Cores, OtherProcesses, allowed_cores, read_times, split_cores
from simul.launch.loadtest.measure import CellRunner
from simul.launch.loadtest.options import Options
from simul.launch.loadtest.report import conditions, results_table, write_results
from simul.launch.loadtest.results import Cell, MaxRate, Result, recommendation
from simul.launch.loadtest.servers import MeasuredServer, RunningServer, StartedServer
from simul.launch.loadtest.subject import Subject, make_subject


class Progress:
    """Shows progress: a changing line on a terminal, one line a cell elsewhere."""

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

    def start_step(self, what: str) -> None:
        """Name the current step."""
        self._what = what
        self.show_detail("")

    def show_detail(self, words: str) -> None:
        """Show what is known of the current step."""
        if self._status is not None:
            step = f"[{min(self._cells + 1, self._total)}/{self._total}]" if self._total else f"[{self._cells + 1}]"
            self._status.update(f"\\{step} {self._what}{': ' if words else ''}{words}")

    def count_cell(self, cell: Cell) -> None:
        """Count a measured cell."""
        self._cells += 1
        if self._status is None:
            p99 = cell.latency_us.get("p99", 0.0) / 1000
            self._console.print(f"{self._what}: {cell.actions_per_sec:,.0f} actions/s, p99 {p99:.2f} ms", markup=False)


AUTO_RATES = (0.1, 0.25, 0.5, 0.75, 0.9)  # shares of the closed loop's maximum
LOWEST_SHARE = 0.02
CONNECT_SEC = 5.0
CLIENT_CONNECT_SEC = 60.0  # of the load's clients: the server is known to be there, and the machine is busy


class Sweep:
    """Measures every cell that `options` name. `cells` and `max_rates` hold what is done, also after a failure."""

    def __init__(self, options: Options, subject: Subject, cores: Cores, progress: Progress) -> None:
        self.cells: list[Cell] = []
        self.max_rates: list[MaxRate] = []
        self.facts: dict[str, str] = {}
        self._options = options
        self._subject = subject
        self._cores = cores
        self._progress = progress

    def run(self) -> None:
        """Measure. Raises ConfigError, InferenceError, RoleDied."""
        for precision in self._options.precisions:
            subject = self._subject if self._subject.endpoint else self._subject.with_precision(precision)
            self._serve(subject)

    def _serve(self, subject: Subject) -> None:
        with ExitStack() as stack:
            timer = precision = None
            if subject.endpoint:
                self._progress.start_step(f"connecting to {subject.endpoint}")
                self._load_running(stack, subject)
            else:
                self._progress.start_step("starting")
                server = stack.enter_context(StartedServer(subject, self._cores.server))
                self.facts["device"] = str(server.server_reports.last.get("device"))
                precision = str(server.server_reports.last.get("precision"))
                timer = stack.enter_context(self._timer(subject))
                self._load(stack, subject, server, timer, server.endpoint, self._cores.clients, precision)
            if self._options.baseline == "local":
                self._local(stack, subject, timer, precision)

    def _load_running(self, stack: ExitStack, subject: Subject) -> None:
        keys = client_keys(subject.keys) if subject.keys is not None else None
        with _reached(subject.endpoint):
            running = RunningServer(subject.endpoint, subject.spec, keys, CONNECT_SEC)
            server = stack.enter_context(running)
            self._load(stack, subject, server, None, subject.endpoint, (), None)

    def _load(
        self, stack: ExitStack, subject: Subject, server: MeasuredServer, timer: ClientPool | None, endpoint: str,
        cores: tuple[int, ...], precision: str | None,
    ) -> None:  # fmt: skip
        folder, keys = str(subject.run_dir.root), str(subject.keys or "")
        setups = [
            SetUp(n, folder, endpoint, cores=cores, connect_sec=CLIENT_CONNECT_SEC, keys=keys)
            for n in range(max(self._options.clients))
        ]
        pool = stack.enter_context(ClientPool(setups))
        runner = self._cell_runner(pool, server, timer, precision, subject.max_batch)
        best = self._closed(runner)
        self._open(runner, precision, best)

    def _closed(self, runner: CellRunner) -> float:
        """Closed loop over clients and envs. Returns the largest actions a second."""
        reached = []
        for clients in self._options.clients:
            for envs in self._options.envs:
                what = f"closed loop, clients x envs {clients} x {envs}"
                cell = self._cell(what, partial(runner.closed, clients, envs))
                reached.append(cell.actions_per_sec)
        return max(reached)

    def _open(self, runner: CellRunner, precision: str | None, best: float) -> None:
        options = self._options
        clients = min(max(options.clients), max(1, len(self._cores.clients)))  # they spin: one a core
        rates = options.rates if options.rates is not None else tuple(share * best for share in AUTO_RATES)

        def at(rate: float) -> Cell:
            what = f"open loop, {rate:,.0f} actions/s offered"
            return self._cell(what, partial(runner.open, clients, options.open_sessions, rate))

        for rate in rates:
            at(rate)
        if options.find_max_rate and best:
            search, trials = MaxRateSearch(LOWEST_SHARE * best, best), 0
            while (next_rate := search.next_rate()) is not None:
                search.record_trial(next_rate, passed=at(next_rate).keeps_p99(options.p99_ms))
                trials += 1
            self.max_rates.append(MaxRate(options.p99_ms, precision, search.result, trials))

    def _local(self, stack: ExitStack, subject: Subject, timer: ClientPool | None, precision: str | None) -> None:
        options = self._options
        folder, checkpoint = str(subject.run_dir.root), str(subject.checkpoint)
        self._progress.start_step("starting clients with the policy in them")
        setups = [SetUp(n, folder, checkpoint=checkpoint) for n in range(max(options.clients))]
        runner = self._cell_runner(stack.enter_context(ClientPool(setups)), None, timer, precision, None)
        for clients in options.clients:
            for envs in options.envs:
                what = f"local policy, clients x envs {clients} x {envs}"
                self._cell(what, partial(runner.closed, clients, envs, mode="local"))

    def _timer(self, subject: Subject) -> ClientPool:
        """One process with the policy on the server's core: it times bare forwards while the others are idle."""
        return ClientPool(
            [SetUp(0, str(subject.run_dir.root), checkpoint=str(subject.checkpoint), cores=self._cores.server)]
        )

    def _cell_runner(
        self,
        pool: ClientPool,
        server: MeasuredServer | None,
        timer: ClientPool | None,
        precision: str | None,
        max_batch: int | None,
    ) -> CellRunner:
        options = self._options
        return CellRunner(
            pool, server, timer, max_batch=max_batch, precision=precision, warm_up_sec=options.warm_up_sec,
            window_sec=options.window_sec, max_windows=options.max_windows, seed=options.seed,
        )  # fmt: skip

    def _cell(self, what: str, measure: Callable[[Callable[[str], None]], Cell]) -> Cell:
        self._progress.start_step(what)
        cell = measure(self._progress.show_detail)
        self.cells.append(cell)
        self._progress.count_cell(cell)
        return cell


@contextmanager
def _reached(endpoint: str) -> Iterator[None]:
    """Turns InferenceError (no server at the endpoint, or one of another game) into ConfigError with a hint."""
    try:
        yield
    except InferenceError as error:
        hint = f" `simul connect {endpoint}` says why."
        if ERR_SPEC in str(error):
            hint = " Name its game with --config, or --connect to its run directory."
        raise ConfigError(f"The server at {endpoint} could not be loaded: {str(error).rstrip('.')}.{hint}") from None


def run(options: Options) -> int:
    """Measure everything `options` asks for. Raises SimulError."""
    console = SafeConsole()
    other_processes = OtherProcesses(allowed_cores(), read_times)
    with temporary_folder("simul-loadtest-") as root:
        subject = make_subject(options, root)
        cores = split_cores(subject.config.server.threads)
        with Progress(console, planned_cells(options)) as progress:
            sweep = Sweep(options, subject, cores, progress)
            sweep.run()
        others = other_processes.share() if options.connect is None else 0.0  # a running server counts among the others
        result = Result(
            conditions={**conditions(options, subject, cores), **sweep.facts, "others_busy": others},
            cells=sweep.cells,
            max_rates=sweep.max_rates,
            recommendation=recommendation(sweep.cells, sweep.max_rates, others),
        )
    write_results(options.out, result)
    from simul.launch.loadtest.plots import write_plots  # only here: what is refused needs no matplotlib

    plots = write_plots(options.out, result.cells, result.conditions)
    _show(console, options, result, plots)
    missed = [found for found in result.max_rates if found.actions_per_sec is None]
    if missed:
        raise ConfigError(
            f"--find-max-rate: no rate kept p99 below {options.p99_ms:g} ms, tried again as well. "
            "Name a larger --p99-ms, or look at the table."
        )
    return 0


def planned_cells(options: Options) -> int:
    """Number of cells; 0: unknown, because of the search for the largest rate."""
    if options.find_max_rate:
        return 0
    swept = len(options.clients) * len(options.envs) * (2 if options.baseline else 1)
    rates = len(AUTO_RATES if options.rates is None else options.rates)
    return len(options.precisions) * (swept + rates)


def _show(console: Console, options: Options, result: Result, plots: list[str]) -> None:
    console.print(results_table(result.cells))
    if options.connect is not None:
        console.print(
            "Stages and forward are not known of a server that was not started here; its batches hold rows of all its "
            "clients."
        )
    for sentence in result.recommendation:
        console.print(sentence, highlight=False, markup=False)
    names = ", ".join(["loadtest.json", "loadtest.csv", *plots])
    console.print(f"Written to {options.out}: {names}", highlight=False, markup=False, soft_wrap=True)
