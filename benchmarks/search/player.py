"""A process that searches: games of the run's configuration, their leaves answered by one of three evaluators.

`server`: through EVALUATE, as a worker; `network`: by a network of this process; `uniform`: by no network. Says
`ready`; takes JSON lines {"begin", "end"} (monotonic seconds) and prints what it did between them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.search.games import search_source
from simul.common.client.client import InferenceClient
from simul.common.client.evaluation import Evaluation
from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.env_worker.search.evaluators import LeafEvaluator, UniformEvaluator
from simul.env_worker.source import SearchingSource

ROWS = 256  # of one request, where no server says
WAIT_SEC = 0.05  # for an answer


class ServerEvaluator:
    """EVALUATE with zero state, through a connected client that nothing else polls."""

    def __init__(self, client: InferenceClient) -> None:
        self._client = client

    def submit(self, observation: NDArray[Any], mask: NDArray[np.uint8], num_actions: int) -> int:
        """One EVALUATE message. Raises ValueError where the rows do not fit the game spec."""
        return self._client.evaluate(observation, mask, packed=True)

    def poll(self) -> list[Evaluation]:
        """Answers that have arrived. Raises InferenceError where the server refuses this client."""
        if not (answers := self._client.poll().evaluations):
            self._client.poller.wait(WAIT_SEC)
            answers = self._client.poll().evaluations
        return answers


class Player:
    """The loop of a worker that searches, with any evaluator."""

    def __init__(self, source: SearchingSource, evaluator: LeafEvaluator, rows: int) -> None:
        self._source = source
        self._evaluator = evaluator
        self._rows = rows
        self._numbers: dict[int, int] = {}  # of the source's requests, by the evaluator's

    def play(self, until: float) -> None:
        """Search until that time; requests in flight are answered in the next call."""
        source, evaluator = self._source, self._evaluator
        while time.monotonic() < until:
            source.poll()
            for request in source.evaluations(self._rows):
                number = evaluator.submit(request.observation, request.mask, source.spec.num_actions)
                self._numbers[number] = request.number
            source.take_samples()
            for evaluation in evaluator.poll():
                source.take_evaluation(self._numbers.pop(evaluation.id), evaluation)

    def counts(self) -> dict[str, float]:
        """Counters since start, and this process's time."""
        counted: dict[str, float] = dict(self._source.metrics()["search"])
        return {**counted, "seconds": time.monotonic(), "cpu_sec": time.process_time()}


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--evaluator", choices=("server", "network", "uniform"), required=True)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="one game, one request at a time")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    run_dir = RunDir(options.run_dir)
    config = run_dir.read_config()
    if options.alone:
        config = one_game(config)
    lengths: list[int] = []
    source = search_source(config, options.index, lengths)
    assert isinstance(source, SearchingSource)
    rows, client = ROWS, None
    evaluator: LeafEvaluator = UniformEvaluator()
    if options.evaluator == "network":
        module = importlib.import_module("benchmarks.search.network")  # torch, which workers do without
        evaluator = module.NetworkEvaluator(
            config.network, source.spec, threads=options.threads, device=options.device,
            precision=config.server.precision,
        )  # fmt: skip
    elif options.evaluator == "server":
        client = InferenceClient(
            run_dir.own_endpoint(config.server.endpoint), name=f"worker-{options.index}", spec=source.spec,
            training_token=run_dir.token(),
        )  # fmt: skip
        client.connect(timeout_sec=60.0)
        evaluator, rows = ServerEvaluator(client), client.rows_per_message
    source.start()
    player = Player(source, evaluator, rows)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        times = json.loads(line)
        player.play(times["begin"])
        before = player.counts()
        player.play(times["end"])
        found = {name: value - before[name] for name, value in player.counts().items()}
        sys.stdout.write(json.dumps({**found, "lengths": lengths}) + "\n")
        sys.stdout.flush()
        lengths.clear()
    source.close()
    if client is not None:
        client.close()


def one_game(config: Config) -> Config:
    """One game after the other, and a request for each leaf."""
    return msgspec.structs.replace(
        config,
        workers=msgspec.structs.replace(config.workers, envs=1),
        search=msgspec.structs.replace(config.search, requests_in_flight=1),
    )


if __name__ == "__main__":
    main()
