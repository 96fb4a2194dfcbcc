"""docs/metrics.md explains every figure that a role reports, and nothing else."""

from __future__ import annotations

import re

from simul.common.runtime.installation import ROOT
from simul.common.runtime.metrics import Timings
from simul.env_worker.games.base.openings import Openings
from simul.env_worker.games.gymnasium.source import EpisodeTally
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.ops.prometheus import BOUNDS_US, DURATIONS, Published, ReportCollector
from simul.launch.monitoring.curves.curves_csv import BASE_COLUMNS
from simul.launch.monitoring.curves.figures import CURVES, LEARNER_CURVES
from simul.learner.reports import FIGURES, PREDICTION_FIGURES

REPORT = {
    **Statistics().as_dict(),
    **dict.fromkeys(("waiting", "clients", "sessions", "sessions_started", "learner_alive", "ready"), 0),
    "health": "ok",
    "unrolls": {"completed": 0, "sent": 0, "waiting": 0, "dropped": {}},
    "policies": {"learner": 3},
    "policy_version": 3,
}


def _documented(section: str, name: str = r"[a-z_0-9]+") -> list[str]:
    """Names in the first column of the tables of a section: of the roles, "Curves" or "Prometheus"."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}
    assert section in ("roles", *sections)
    apart = ("Curves", "Prometheus")
    titles = [title for title in sections if title == section or (section == "roles" and title not in apart)]
    rows = [line for title in titles for line in sections[title].splitlines() if line.startswith("| `")]
    return [found for row in rows for found in re.findall(rf"`({name})`", row.split("|")[1])]


def test_every_curve_is_explained_once_and_every_explanation_has_its_curve() -> None:
    assert sorted(_documented("Curves", r"[a-z_0-9/<>]+")) == sorted([*CURVES, *BASE_COLUMNS])


def test_the_rows_of_the_learners_curves_are_those_of_its_table() -> None:
    names: dict[str, list[str]] = {}
    for curve in LEARNER_CURVES:
        names.setdefault(curve.meaning, []).append(f"`learner/{curve.name}`")
    rows = "".join(f"| {', '.join(named)} | {meaning} |\n" for meaning, named in names.items())
    assert rows in (ROOT / "docs" / "metrics.md").read_text(), f"docs/metrics.md: expected the rows\n{rows}"


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
        *FIGURES,
        *PREDICTION_FIGURES,
        *_named_in("inference_server/ops/reporting.py", "collect"),
        *_named_in("env_worker/worker.py", "metrics"),
        *_named_in("learner/learner.py", "_metrics"),
        "standings",
        *Openings(4, deterministic=True).figures(),
        "search",
        "device",
        "precision",
        "host_pids",
        "host_restarts",
    }
    assert len(_named_in("learner/learner.py", "_metrics")) > 10
    assert set(_documented("roles")) - reported == set()
    assert reported - set(_documented("roles")) == set()


def test_every_name_for_prometheus_is_explained_and_every_explanation_has_its_name() -> None:
    collector = ReportCollector()
    durations = dict.fromkeys(DURATIONS, Timings().histogram(BOUNDS_US))
    collector.report = Published(REPORT, durations, Statistics().stages.seconds)
    kinds = {family.name: family.type for family in collector.collect()}
    exported = {f"{name}_total" if kind == "counter" else name for name, kind in kinds.items()}
    assert exported == set(_documented("Prometheus"))
