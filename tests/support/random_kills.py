"""`make test-chaos`: random signals to the processes of a real run; its books must balance by summary.json alone.

    python -m tests.support.random_kills cartpole --kills 200 --seed 1

SIGKILL, SIGTERM, and SIGSTOP with a SIGCONT up to 5 s later, to learner, server and its proxy, workers and simulator
hosts, also while they start; the supervisor is stopped for a while, too. Ten deaths of a role in two minutes, or five
in a row before it is ready, end a run: the killer stays below. No process and no file but the run's own may be left.
`chaos` has two servers and two ranks of the learner, and must still learn CartPole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from simul.common.role.run_lock import SAME_START_SEC
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.accounting import imbalances
from tests.support.command import Simul

SAY_EVERY = 20  # signals
MOST_DEATHS, WINDOW_SEC = 8, 121.0
LONGEST_STOP_SEC = 5.0
PATIENCE_SEC = 120.0
GAMES = {
    "cartpole": ("configs/cartpole.yaml", "learner.batch_steps=256", "learner.epochs=1"),
    "two-servers": (
        "configs/cartpole.yaml", "learner.batch_steps=256", "learner.epochs=1", "cluster.servers.count=2",
    ),
    "chaos": (
        "configs/cartpole.yaml", "cluster.servers.count=2", "cluster.learner.ranks=2",
        "learner.total_decisions=200000",
    ),
    "pokemon": (
        "configs/pokemon.yaml", "workers.envs=8", "learner.batch_steps=256", "learner.minibatches=1",
        "opponents=random:0.4,max:0.2,self:0.4",
    ),
}  # fmt: skip
KILLS = {"cartpole": 200, "two-servers": 200, "chaos": 200, "pokemon": 60}
LEARNED, MEAN_RETURN = 200_000, 475.0  # of `chaos`: decisions to learn from, and what the greedy policy then reaches
LEARN_SEC = 3600.0
CHAOS_PATIENCE_SEC = 900.0  # four processes import torch, and all ranks each time that one dies
SUPERVISOR_SHARE = 0.05  # of the signals; it is stopped for a while
CHILDREN = {"host": "host.mjs", "proxy": "simul.inference_server.proxy"}  # of roles, by what their command line has
SIGNALS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGSTOP")


class RandomKiller:
    """Draws a process and a signal, again and again."""

    def __init__(self, simul: Simul, seed: int) -> None:
        self._simul = simul
        self._rng = random.Random(seed)
        self._deaths: dict[str, list[float]] = {}
        self._spared: set[str] = set()  # died before they were ready: the next time they are left to become it
        self.done: Counter[str] = Counter()

    def strike(self) -> None:
        """One signal, once there is a process that may get one. Where it is gone by then, another is drawn."""
        while True:
            while not (victims := self._victims()):
                time.sleep(0.2)
            name, process, ready = self._rng.choice(victims)
            kind = self._rng.choice(SIGNALS)
            if self._rng.random() < SUPERVISOR_SHARE:
                name, process, kind = "simul up", psutil.Process(self._simul.process.pid), "SIGSTOP"
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(getattr(signal, kind))
                break
        self.done[f"{name} {kind}"] += 1
        if kind == "SIGSTOP":
            time.sleep(self._rng.uniform(0.05, LONGEST_STOP_SEC))
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        else:
            self._deaths.setdefault(_counted_as(name), []).append(time.monotonic())
            (self._spared.discard if ready else self._spared.add)(_counted_as(name))
        time.sleep(self._rng.uniform(0.0, 3.0))

    def _victims(self) -> list[tuple[str, psutil.Process, bool]]:
        """(name, process, ready) of those that may be struck now."""
        found = []
        for listed in self._simul.status().get("processes", []):
            if (process := _living(listed["pid"], listed["create_time"])) is None:
                continue
            found.append((listed["name"], process, listed["state"] == "ready"))
            for kind, program in CHILDREN.items():
                found += [(f"{kind} of {listed['name']}", child, True) for child in _children(process, program)]
        return [victim for victim in found if self._may_die(victim[0], ready=victim[2])]

    def _may_die(self, name: str, *, ready: bool) -> bool:
        recent = [at for at in self._deaths.get(_counted_as(name), ()) if time.monotonic() - at < WINDOW_SEC]
        limit = 2 if name.startswith("host") else MOST_DEATHS  # five deaths of a host in a minute end its worker
        return len(recent) < limit and (ready or _counted_as(name) not in self._spared)


def _counted_as(name: str) -> str:
    """A rank of the learner that is asked to stop ends the others, too: each has died then."""
    return "learner" if "learner" in name else name


def _living(pid: int, create_time: float) -> psutil.Process | None:
    """The process that status.json names; None where it has ended, also where another one has its pid now."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - create_time) < SAME_START_SEC
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def _children(role: psutil.Process, program: str) -> list[psutil.Process]:
    try:
        return [child for child in role.children() if program in " ".join(child.cmdline())]
    except psutil.Error:
        return []


def run(
    game: str, kills: int, seed: int, root: Path, *, learn: bool = False, say: Callable[[str], object] = str
) -> dict[str, Any]:  # fmt: skip
    """A run with 2 workers that gets `kills` signals, plays and learns on, and stops. Fails where its books are wrong.

    `learn`: it goes on until it has learned from LEARNED decisions, and must reach MEAN_RETURN. `say`: gets progress.
    Returns its summary, with what was done under `signals`.
    """
    config, *changes = GAMES[game]
    changes += ["workers.count=2", "learner.checkpoint_every_sec=1"]
    with tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        with patch.dict(os.environ, TMPDIR=temporary):
            simul = Simul(config, root, *(part for change in changes for part in ("--set", change)))
        patience_sec = CHAOS_PATIENCE_SEC if game == "chaos" else PATIENCE_SEC
        killer = RandomKiller(simul, seed)
        try:
            simul.wait_for(lambda _: simul.decisions() > 200 and simul.versions() >= 1, "it learns", patience_sec)
            _strike(simul, killer, kills, say)
            simul.wait_for(_all_ready, "every process is ready again", patience_sec)
            before = simul.decisions(), simul.versions()
            simul.wait_for(
                lambda _: simul.decisions() > before[0] + 50 and simul.versions() > before[1],
                "it learns on",
                patience_sec,
            )
            if learn:
                say(f"it learns from {LEARNED:,} decisions in all")
                simul.wait_for(
                    lambda s: s["learner"].get("decisions_learned", 0) >= LEARNED, "it has learned", LEARN_SEC
                )
            children = psutil.Process(simul.process.pid).children(recursive=True)
            code, printed = simul.finish()
        finally:
            simul.end_now()
        summary = simul.summary()
        assert code == 0, printed
        assert imbalances(summary) == [], printed
        assert not psutil.wait_procs(children, PATIENCE_SEC)[1]
        assert _left_behind(simul, Path(temporary)) == []
    if learn:
        mean = _mean_return(root)
        assert mean >= MEAN_RETURN, f"mean return {mean}"
        summary = {**summary, "mean_return": mean}
    return {**summary, "signals": dict(sorted(killer.done.items()))}


def _strike(simul: Simul, killer: RandomKiller, kills: int, say: Callable[[str], object]) -> None:
    began = time.monotonic()
    for number in range(1, kills + 1):
        assert simul.process.poll() is None, simul.printed()
        killer.strike()
        if not number % SAY_EVERY:
            restarts = sum(process["restarts"] for process in simul.status().get("processes", []))
            took_sec = time.monotonic() - began
            say(
                f"{number} of {kills} signals in {took_sec:.0f} s, {restarts} restarts, {simul.decisions():,} decisions"
            )


def _left_behind(simul: Simul, temporary: Path) -> list[str]:
    """Processes of the run, its sockets, files that were written aside, and any in its folder for temporary ones."""
    root = str(simul.run_dir.root)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(place in argument for argument in process.cmdline() for place in (root, str(temporary))):
                found.append(" ".join(process.cmdline()))
    files = [simul.run_dir.sockets, *simul.run_dir.root.rglob(".*"), *temporary.iterdir()]
    return found + [str(path) for path in files if path.exists()]


def _mean_return(root: Path) -> float:
    """Of 100 episodes of the greedy policy."""
    line = [sys.executable, "-m", "simul.launch.cli", "eval", "--checkpoint", str(root), "--episodes", "100", "--json"]
    answer = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(answer.stdout)["mean_return"])


def _all_ready(status: dict[str, Any]) -> bool:
    return all(process["state"] == "ready" for process in status["processes"])


def _say(line: str) -> None:
    sys.stdout.write(f"  {line}\n")
    sys.stdout.flush()


def main() -> int:
    """Prints what was done and the books."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.random_kills", description=__doc__)
    parser.add_argument("games", nargs="*", choices=[*GAMES, []], help="default: all")
    parser.add_argument("--kills", type=int, help="signals; default: 200, for pokemon 60")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    for game in options.games or GAMES:
        kills = KILLS[game] if options.kills is None else options.kills
        sys.stdout.write(f"{game}: {kills} signals, seed {options.seed}\n")
        with tempfile.TemporaryDirectory(prefix="random-kills-") as folder:
            summary = run(game, kills, options.seed, Path(folder) / "run", learn=game == "chaos", say=_say)
        for name in ("signals", "restarts", "unreported", "accounting", "mean_return"):
            if name not in summary:
                continue
            sys.stdout.write(f"{name}: {json.dumps(summary[name])}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
