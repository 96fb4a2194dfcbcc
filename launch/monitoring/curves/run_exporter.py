"""The curves' newest figures for Prometheus, from the supervisor: `prometheus_port`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from simul.common.runtime.prometheus import PrometheusServer
from simul.launch.monitoring.curves.figures import Figure

SETTING = "prometheus_port"


class FigureCollector(Collector):
    """One gauge for each template of the curves, with a label for each part in angle brackets."""

    def __init__(self) -> None:
        self.figures: Sequence[Figure] = ()

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at every scrape, in its thread."""
        families: dict[str, GaugeMetricFamily] = {}
        for figure in self.figures:
            if figure.curve not in families:
                families[figure.curve] = GaugeMetricFamily(
                    gauge_name(figure.curve), meaning(figure.curve), labels=list(figure.labels)
                )
            families[figure.curve].add_metric(list(figure.labels.values()), figure.value)
        yield from families.values()


def gauge_name(curve: str) -> str:
    """`simul_run_episodes_return_mean` of `episodes/return_mean`; the part in angle brackets becomes a label."""
    parts = ["run", *(part for part in curve.removeprefix("run/").split("/") if not part.startswith("<"))]
    return "_".join(["simul", *parts])


def meaning(curve: str) -> str:
    """The name of the curve, and of a rate since when it counts."""
    if not curve.endswith("_per_sec"):
        return curve
    since = "since the learner's process started" if curve.startswith("learner/") else "since the last report"
    return f"{curve}, {since}; never over an earlier start of the run"


class RunExporter:
    """Serves the newest figures. Raises ConfigError where the port is taken."""

    def __init__(self, port: int) -> None:
        self._collector = FigureCollector()
        self._server = PrometheusServer(port, self._collector, SETTING)

    def publish(self, figures: Sequence[Figure]) -> None:
        """Serve these from now on; the sequence is not changed afterwards."""
        self._collector.figures = figures

    def close(self) -> None:
        """Stop serving."""
        self._server.close()
