"""`make bench-sb3 ARGS="--pokemon"`: `make up` beside MaskablePPO with poke-env over a local Showdown server.

Both on the same cores: decisions learned from a second, and minutes until 0.9 of the last battles against RandomPlayer
are won while training. Theirs trains against RandomPlayer alone, ours as shipped, which plays it in 4% of its battles.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness.promises import Promise
from benchmarks.harness.report import conditions, in_one_line, markdown_table
from benchmarks.learn_check import Failed, simul
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.showdown.local_server import free_port

ENVS = (1, 2, 4, 8)
SPEED_SEC = 60.0
UNTIL = 0.9
PEER_LIMIT_SEC = 1200.0  # ten times as long as ours takes; what it has not reached by then is a lower bound
OURS = 500_000  # decisions of our run
LEAST_BATTLES = 100  # recent ones against RandomPlayer, of which ours counts 200 at most
MOST_SPEED, MOST_TIME = 10.0, 5.0
LIMIT_SEC = 2 * 3600.0


def compare(peer_limit_sec: float = PEER_LIMIT_SEC) -> int:
    """Run both sides; print a table. Exit code 0 where both promises hold. Raises Failed."""
    os.environ.setdefault("SIMUL_NODE", _node())
    with tempfile.TemporaryDirectory(prefix="simul-sb3-") as folder:
        ours = run_ours(Path(folder))
        with showdown(Path(folder)) as url:
            speeds = {envs: run_peer(url, envs, SPEED_SEC) for envs in ENVS}
            best = max(speeds, key=lambda envs: _rate(speeds[envs]))
            theirs = run_peer(url, best, peer_limit_sec, UNTIL)
    rows = [(f"MaskablePPO, {envs} environments", f"{_rate(found):.0f}", "") for envs, found in speeds.items()]
    reached = theirs["reached_sec"]
    peers_sec = reached or theirs["seconds"]
    minutes = f"{reached / 60:.1f}" if reached else f"not in {peers_sec / 60:.0f} ({theirs['won']:.2f})"
    rows.append((f"the best of them, until {UNTIL}", f"{_rate(theirs):.0f}", minutes))
    rows.append(("make up", f"{ours['decisions_per_sec']:.0f}", f"{ours['reached_sec'] / 60:.1f}"))
    heads = ("", "decisions learned a second", f"minutes until {UNTIL} against RandomPlayer")
    sys.stdout.write(f"{markdown_table(heads, rows)}\n\n{in_one_line(conditions())}\n")
    fastest = max(map(_rate, speeds.values()))
    promises = [
        Promise("decisions learned a second, times theirs", ours["decisions_per_sec"] / fastest, MOST_SPEED),
        Promise(f"minutes until {UNTIL}, theirs times ours", peers_sec / ours["reached_sec"], MOST_TIME),
    ]
    sys.stdout.write("".join(f"{promise}\n" for promise in promises))
    return int(not all(promise.kept for promise in promises))


def run_ours(folder: Path) -> dict[str, float]:
    """`simul up pokemon`, as shipped. Raises Failed."""
    run_dir = folder / "ours"
    sys.stderr.write(f"make up, {OURS:,} decisions\n")
    line = ["up", "pokemon", "--plain", "--run-dir", str(run_dir), "--stop-after-decisions", str(OURS)]
    simul(line, folder / "ours.log", LIMIT_SEC)
    summary = json.loads((run_dir / "summary.json").read_text())
    with (run_dir / "curves.csv").open() as file:
        reached = (float(row["training_sec"]) for row in csv.DictReader(file) if _wins(row))
        return {
            "decisions_per_sec": summary["decisions_learned"] / summary["seconds"],
            "reached_sec": next(reached, float("inf")),
        }


def _wins(row: dict[str, str]) -> bool:
    """The share won so far is at least UNTIL, of battles enough: their Wilson interval is that narrow."""
    rate, low = row.get("win_rate/random"), row.get("win_rate_low/random")
    return bool(rate and low) and float(rate or 0) >= UNTIL and float(low or 0) >= _least_low()


def _least_low() -> float:
    """The lower end of Wilson's interval for UNTIL of LEAST_BATTLES."""
    from simul.common.runtime.intervals import wilson

    return wilson(int(UNTIL * LEAST_BATTLES), LEAST_BATTLES)[0]


def run_peer(url: str, envs: int, seconds: float, until: float = 2.0) -> dict[str, Any]:
    """MaskablePPO with so many environments. Raises Failed."""
    sys.stderr.write(f"MaskablePPO, {envs} environments, at most {seconds:.0f} s\n")
    command = [
        sys.executable, "-m", "benchmarks.sb3.pokemon_peer", "--url", url, "--envs", str(envs),
        "--seconds", str(seconds), "--until", str(until),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 300.0, check=False)
    if done.returncode:
        raise Failed(f"MaskablePPO ended with code {done.returncode}: {done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def showdown(folder: Path) -> Iterator[str]:
    """A local Showdown server; the address of its socket."""
    port = free_port()
    line = [sys.executable, "-m", "simul.launch.cli", "showdown", "--port", str(port)]
    with (
        (folder / "showdown.log").open("w") as log,
        subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        assert server.stdout is not None
        server.stdout.readline()  # its invitation: it listens
        try:
            yield f"ws://127.0.0.1:{port}/showdown/websocket"
        finally:
            server.terminate()


def _node() -> str:
    """The Node that `make setup` has fetched into .venv; the peers' environment has none."""
    program = "from simul.env_worker.games.pokemon.install.node import find_node; print(find_node().path)"
    return subprocess.check_output([ROOT / ".venv" / "bin" / "python", "-c", program], cwd=ROOT, text=True).strip()


def _rate(found: dict[str, Any]) -> float:
    return float(found["steps"]) / float(found["seconds"])
