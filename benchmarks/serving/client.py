"""One closed-loop client process: all its envs in one message, the next as soon as every row is answered.

Says `ready`, then takes one JSON line {"begin", "end"} (system-wide monotonic seconds) and prints what it counted
between them, and its processor time (`cpu_sec` of its main thread, `io_cpu_sec` of the others); with `--trips` also
when each message was sent, and the seconds until its last row was answered.
`--dry` builds and packs the same messages without sending them: the load beside the bare forward.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.serving.policy import SPEC
from simul.common.client.columns import ColumnClient, Columns
from simul.common.protocol.codec import encode
from simul.common.protocol.messages import RECORD, START, TERMINATED, Step
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.transport import client_keys

POOL = 8  # different observations a row


class Games:
    """Envs with episodes of `length` steps; each begins at a random point of its first one."""

    def __init__(self, envs: int, length: int, record: bool, policies: int = 1, spec: GameSpec = SPEC) -> None:
        self._spec = spec
        rng = np.random.default_rng(envs)
        self._flags = START | (RECORD if record else 0)
        self._length = length
        self._left = rng.integers(1, length + 1, envs)
        self._observations = rng.standard_normal((POOL, envs, spec.observation_size)).astype(spec.dtype())
        self._turn = 0
        self.columns = Columns.empty(envs, spec)
        self.columns.mask[:] = rng.random((envs, spec.num_actions)) < 0.5
        self.columns.mask[:, 0] = 1
        self.columns.keys[:, 0] = np.arange(envs)
        self.columns.keys[:, 3] = -1
        self.columns.policy[:] = np.arange(envs) % policies

    def next(self) -> Columns:
        """The next decision of every env. A finished episode's end comes with its env's next decision."""
        columns = self.columns
        over = self._left == 0
        ends = self._ends(np.flatnonzero(over))
        columns.keys[:, 3] += 1
        columns.keys[over, 2] += 1
        columns.keys[over, 3] = 0
        self._left[over] = self._length
        self._left -= 1
        columns.flags[:] = np.where(columns.keys[:, 3] == 0, self._flags, 0)
        self._turn = (self._turn + 1) % POOL
        columns.observation = self._observations[self._turn]
        return columns if ends is None else _join(ends, columns)

    def _ends(self, envs: np.ndarray) -> Columns | None:
        if not len(envs):
            return None
        ends = Columns.empty(len(envs), self._spec)
        ends.keys[:] = self.columns.keys[envs] + (0, 0, 0, 1, 0)
        ends.kind[:] = TERMINATED
        return ends


def _join(first: Columns, second: Columns) -> Columns:
    return Columns(*(np.concatenate(pair) for pair in zip(vars(first).values(), vars(second).values())))


def play(client: ColumnClient, games: Games, policies: tuple[str, ...] = ("learner",)) -> tuple[int, float]:
    """One message and its answers: (decisions, seconds)."""
    columns = games.next()
    waiting, decisions = len(columns.kind), int((columns.kind == 0).sum())
    begin = time.monotonic()
    client.submit(columns, policies)
    while waiting:
        client.poller.wait(1.0)
        waiting -= sum(len(answer.rows) for answer in client.poll())
        if client.refusals:
            raise SystemExit(f"refused: {client.refusals[0].code}: {client.refusals[0].message}")
    return decisions, time.monotonic() - begin


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--envs", type=int, required=True)
    parser.add_argument("--episode", type=int, default=200)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--policies", nargs="+", default=["learner"], help="envs take turns among them")
    parser.add_argument("--trips", action="store_true")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--endpoint", default="", help="default: the run's own, past the proxy")
    parser.add_argument("--keys", type=Path, help="folder of the CURVE keys")
    options = parser.parse_args()
    run_dir = RunDir(options.run_dir)
    token = run_dir.token() if options.record else ""
    policies = tuple(options.policies)
    spec, keys = run_dir.read_spec(), client_keys(options.keys) if options.keys else None
    games = Games(options.envs, options.episode, options.record, len(policies), spec)
    endpoint = options.endpoint or run_dir.own_endpoint("")
    client = ColumnClient(endpoint, name=options.name, spec=spec, training_token=token, keys=keys)
    if not options.dry:
        client.connect()
        play(client, games, policies)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    times = json.loads(sys.stdin.readline())
    decisions, trips = 0, []
    spent_by_thread, spent_in_all = time.thread_time(), time.process_time()  # set again until the window begins
    while (now := time.monotonic()) < times["end"]:
        if options.dry:
            b"".join(encode(Step(id=1), vars(games.next())))
            continue
        count, seconds = play(client, games, policies)
        if now >= times["begin"]:
            decisions += count
            trips.append((now, seconds))
        else:
            spent_by_thread, spent_in_all = time.thread_time(), time.process_time()
    spent_by_thread, spent_in_all = time.thread_time() - spent_by_thread, time.process_time() - spent_in_all
    spent = time.monotonic() - times["begin"]
    client.close()  # before the result, whose reader stops this process: the sessions are free by then
    p50, p99 = np.percentile([seconds * 1e6 for _, seconds in trips], (50, 99)).round(1).tolist() if trips else (0, 0)
    found = {"decisions": decisions, "seconds": spent, "p50": p50, "p99": p99, "messages": len(trips)}
    found |= {"cpu_sec": spent_by_thread, "io_cpu_sec": spent_in_all - spent_by_thread}
    sys.stdout.write(json.dumps(found | ({"trips": trips} if options.trips else {})) + "\n")


if __name__ == "__main__":
    main()
