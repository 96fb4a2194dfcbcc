"""`make bench-peers`: this server, mosec, TorchRL, a plain loop and no server; same policy, clients and cores."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.cores import two_cores
from benchmarks.harness.report import conditions, write_json
from benchmarks.peers.comparison import Plan, compare_systems
from benchmarks.peers.results import against_local, against_peers, text
from benchmarks.peers.systems import CLIENTS, ENVS, PEERS_PYTHON, Placement, describe
from benchmarks.serving.policy import PRECISIONS

SIZES = (1, 4, 8, 32, 128)  # envs per client, against local inference
MOST_TRIES = 10  # settings of a peer: all there are
QUICK = Plan(2, 0.4, (1, ENVS), 1)


def main() -> int:
    """Exit code 0 when every promise is kept, 1 when not, 2 without the peers' environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window")
    parser.add_argument("--precision", choices=PRECISIONS, action="append", help="default: both")
    parser.add_argument("--quick", action="store_true", help="does it run: short windows, figures worth nothing")
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    options = parser.parse_args()
    if not PEERS_PYTHON.exists():
        sys.stderr.write("The peers are not installed; `make bench-peers` installs them into .venv-peers.\n")
        return 2
    plan = QUICK if options.quick else Plan(options.repeats, options.seconds, SIZES, MOST_TRIES)
    cores = two_cores()
    report: dict[str, object] = {
        "conditions": conditions(
            repeats=plan.rounds,
            seconds=plan.seconds,
            clients=CLIENTS,
            envs_per_client=ENVS,
            server_core=cores[0],
            client_core=cores[1],
        )
    }
    kept = True
    for precision in options.precision or PRECISIONS:
        with tempfile.TemporaryDirectory(prefix="simul-peers-") as folder:
            found, tuned = compare_systems(Placement(precision, cores, Path(folder)), plan)
        lines = against_peers(precision, found)
        kept = kept and all(line.kept for line in lines)
        sys.stdout.write(text(precision, found, lines, tuned))
        sys.stdout.flush()
        report[precision] = {
            "tuning": {name: {"taken": describe(one.best), "tried": one.tried} for name, one in tuned.items()},
            "repeats": [asdict(repeat) for repeat in found],
            "lines": [line.as_dict() for line in lines],
            "ours_against_local": against_local(found),
        }
    if options.json:
        write_json(options.json, report)
    return 0 if kept else 1
