"""The load test from beginning to end: every precision, every cell, the search for the largest rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from simul.common.protocol.errors import ERR_SPEC, ConfigError, InferenceError
from simul.common.transport import client_keys
from simul.inference_server.loadtest.bisection import MaxRateSearch
from simul.inference_server.loadtest.cells import Cell, MaxRate
from simul.inference_server.loadtest.cores import Cores
from simul.inference_server.loadtest.crew import Crew
from simul.inference_server.loadtest.measure import Bench, Server
from simul.inference_server.loadtest.options import Options
from simul.inference_server.loadtest.orders import SetUp
from simul.inference_server.loadtest.progress import Progress
from simul.inference_server.loadtest.running import RunningServer
from simul.inference_server.loadtest.served import StartedServer
from simul.inference_server.loadtest.subject import Subject

AUTO_RATES = (0.1, 0.25, 0.5, 0.75, 0.9)  # shares of the closed loop's maximum
LOWEST_SHARE = 0.02
CONNECT_SEC = 5.0


class Sweep:
    """Everything that `options` asks for. `cells` and `max_rates` fill up while it runs, also if it fails half-way."""

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
                self._progress.phase(f"connecting to {subject.endpoint}")
                self._load_running(stack, subject)
            else:
                self._progress.phase("starting")
                server = stack.enter_context(StartedServer(subject, self._cores.server))
                self.facts["device"] = str(server.heard.last.get("device"))
                precision = str(server.heard.last.get("precision"))
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
        self, stack: ExitStack, subject: Subject, server: Server, timer: Crew | None, endpoint: str,
        cores: tuple[int, ...], precision: str | None,
    ) -> None:  # fmt: skip
        folder, keys = str(subject.run_dir.root), str(subject.keys or "")
        setups = [
            SetUp(n, folder, endpoint, cores=cores, connect_sec=CONNECT_SEC, keys=keys)
            for n in range(max(self._options.clients))
        ]
        crew = stack.enter_context(Crew(setups))
        bench = self._bench(crew, server, timer, precision, subject.max_batch)
        best = self._closed(bench)
        self._open(bench, precision, best)

    def _closed(self, bench: Bench) -> float:
        """The largest rate any setting reached."""
        reached = []
        for clients in self._options.clients:
            for envs in self._options.envs:
                what = f"closed loop, clients x envs {clients} x {envs}"
                cell = self._cell(what, partial(bench.closed, clients, envs))
                reached.append(cell.actions_per_sec)
        return max(reached)

    def _open(self, bench: Bench, precision: str | None, best: float) -> None:
        options = self._options
        clients = min(max(options.clients), max(1, len(self._cores.clients)))  # they spin: one a core
        rates = options.rates if options.rates is not None else tuple(share * best for share in AUTO_RATES)

        def at(rate: float) -> Cell:
            what = f"open loop, {rate:,.0f} actions/s offered"
            return self._cell(what, partial(bench.open, clients, options.open_sessions, rate))

        for rate in rates:
            at(rate)
        if options.find_max_rate and best:
            search, trials = MaxRateSearch(LOWEST_SHARE * best, best), 0
            while (next_rate := search.next_rate()) is not None:
                search.tell(next_rate, passed=at(next_rate).keeps(options.p99_ms))
                trials += 1
            self.max_rates.append(MaxRate(options.p99_ms, precision, search.result, trials))

    def _local(self, stack: ExitStack, subject: Subject, timer: Crew | None, precision: str | None) -> None:
        options = self._options
        folder, checkpoint = str(subject.run_dir.root), str(subject.checkpoint)
        self._progress.phase("starting clients with the policy in them")
        setups = [SetUp(n, folder, checkpoint=checkpoint) for n in range(max(options.clients))]
        bench = self._bench(stack.enter_context(Crew(setups)), None, timer, precision, None)
        for clients in options.clients:
            for envs in options.envs:
                what = f"local policy, clients x envs {clients} x {envs}"
                self._cell(what, partial(bench.closed, clients, envs, mode="local"))

    def _timer(self, subject: Subject) -> Crew:
        """One process with the policy, on the server's core: it times bare forwards while nobody else works."""
        return Crew([SetUp(0, str(subject.run_dir.root), checkpoint=str(subject.checkpoint), cores=self._cores.server)])

    def _bench(
        self, crew: Crew, server: Server | None, timer: Crew | None, precision: str | None, max_batch: int | None
    ) -> Bench:
        options = self._options
        return Bench(
            crew, server, timer, max_batch=max_batch, precision=precision, warm_up_sec=options.warm_up_sec,
            window_sec=options.window_sec, max_windows=options.max_windows, seed=options.seed,
        )  # fmt: skip

    def _cell(self, what: str, measure: Callable[[Callable[[str], None]], Cell]) -> Cell:
        self._progress.phase(what)
        cell = measure(self._progress.detail)
        self.cells.append(cell)
        self._progress.done(cell)
        return cell


@contextmanager
def _reached(endpoint: str) -> Iterator[None]:
    """Nobody at the endpoint, or somebody who serves another game: the user's to mend."""
    try:
        yield
    except InferenceError as error:
        hint = f" `simul connect {endpoint}` says why."
        if ERR_SPEC in str(error):
            hint = " Name its game with --config, or --connect to its run directory."
        raise ConfigError(f"The server at {endpoint} could not be loaded: {error}.{hint}") from None
