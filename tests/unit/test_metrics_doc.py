"""docs/metrics.md explains every figure that a role reports, and nothing else."""

from __future__ import annotations

import re

from simul.common.runtime.installation import ROOT
from simul.common.runtime.metrics import Timings
from simul.env_worker.games.gymnasium.source import EpisodeTally
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.inference_server.ops.prometheus import BOUNDS_US, DURATIONS, Published, ReportCollector
from simul.inference_server.ops.statistics import Statistics
from simul.learner.reports import COLUMNS

REPORT = {
    **Statistics().as_dict(),
    **dict.fromkeys(("waiting", "clients", "sessions", "sessions_started", "learner_alive", "ready"), 0),
    "health": "ok",
    "unrolls": {"completed": 0, "sent": 0, "waiting": 0, "dropped": {}},
    "policies": {"learner": 3},
    "policy_version": 3,
}


def _documented(*, prometheus: bool) -> set[str]:
    reports, exported = (ROOT / "docs" / "metrics.md").read_text().split("\n## Prometheus\n")
    rows = [line for line in (exported if prometheus else reports).splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([a-z_0-9]+)`", row.split("|")[1])}


def _named_in(file: str, function: str) -> set[str]:
    """Keys of the dict that `function` returns, as they stand in the source."""
    text = (ROOT / file).read_text()
    body = text[text.index(f"def {function}(self") :]
    body = body[: body.index("\n    def ") if "\n    def " in body else len(body)]
    return set(re.findall(r'^ {12}"([a-z_0-9]+)":', body, re.MULTILINE))


def test_every_figure_is_explained_and_every_explanation_has_its_figure() -> None:
    reported = {
        *Statistics().as_dict(),
        *Scoreboard().metrics(0),
        *EpisodeTally(listed=True).metrics(0),
        *COLUMNS,
        *_named_in("inference_server/ops/reporting.py", "metrics"),
        *_named_in("env_worker/worker.py", "metrics"),
        *_named_in("learner/learner.py", "_metrics"),
        "device",
        "precision",
        "host_pids",
        "host_restarts",
    }
    assert len(_named_in("learner/learner.py", "_metrics")) > 10
    assert _documented(prometheus=False) - reported == set()
    assert reported - _documented(prometheus=False) == set()


def test_every_name_for_prometheus_is_explained_and_every_explanation_has_its_name() -> None:
    collector = ReportCollector()
    durations = dict.fromkeys(DURATIONS, Timings().histogram(BOUNDS_US))
    collector.report = Published(REPORT, durations, Statistics().stages.seconds)
    kinds = {family.name: family.type for family in collector.collect()}
    exported = {f"{name}_total" if kind == "counter" else name for name, kind in kinds.items()}
    assert exported == _documented(prometheus=True)
