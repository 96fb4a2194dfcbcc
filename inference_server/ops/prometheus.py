"""The server's figures for Prometheus, at 127.0.0.1:PORT/metrics. docs/metrics.md explains each name.

The loop hands over a report now and then; the HTTP thread reads the last one and nothing of the loop's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from simul.common.runtime.metrics import Histogram
from simul.common.runtime.prometheus import PrometheusServer
from simul.inference_server.base.statistics import Statistics

BOUNDS_US = tuple(50.0 * 2**k for k in range(17))  # 50 us to 3.3 s

# name: (key of the server's metrics, meaning)
COUNTERS = {
    "simul_decisions": ("decisions", "Decisions answered."),
    "simul_faults": ("faults", "Messages on which the server failed by a defect of its own."),
    "simul_proxy_restarts": ("proxy_restarts", "Starts of the proxy after it had died or stood still."),
    "simul_replies_dropped": ("replies_dropped", "Replies to clients that were gone or did not read."),
    "simul_sessions_started": ("sessions_started", "Sessions opened."),
    "simul_weight_swaps": ("swaps", "Weights taken."),
    "simul_weights_refused": ("weights_refused", "Weights refused."),
    "simul_weights_overtaken": ("weights_overtaken", "Weights that newer ones overtook unverified."),
}
GAUGES = {
    "simul_rows_waiting": ("waiting", "Rows that wait for a batch."),
    "simul_clients": ("clients", "Connected clients."),
    "simul_sessions": ("sessions", "Live sessions."),
    "simul_unanswered_bytes": ("unanswered_bytes", "Bytes that came through the proxy and are not answered."),
    "simul_learner_alive": ("learner_alive", "1: the learner was heard of lately."),
    "simul_ready": ("ready", "1: sessions may begin: weights are loaded and warm, the loop turns, it does not drain."),
}
DURATIONS = {
    "simul_queue_wait_seconds": ("queue_wait_us", "From a decision's arrival to the batch that takes it."),
    "simul_forward_seconds": ("forward_us", "One batch's forward, sampling included."),
    "simul_latency_seconds": ("latency_us", "From a decision's arrival to its reply."),
    "simul_swap_seconds": ("swap_us", "The loop's pause between two batches for verified weights."),
}


class Published(NamedTuple):
    """A report as the HTTP thread reads it; nothing of it changes afterwards."""

    metrics: Mapping[str, Any]
    durations: Mapping[str, Histogram]
    stage_seconds: Mapping[str, float]


class Exporter:
    """Serves the last published report. Raises ConfigError where the port is taken."""

    def __init__(self, port: int) -> None:
        self._collector = ReportCollector()
        self._server = PrometheusServer(port, self._collector, "server.prometheus_port")

    def publish(self, metrics: Mapping[str, Any], statistics: Statistics) -> None:
        """Serve these figures from now on; `metrics` is not changed afterwards."""
        durations = {name: getattr(statistics, key).histogram(BOUNDS_US) for name, (key, _) in DURATIONS.items()}
        self._collector.report = Published(metrics, durations, dict(statistics.stages.seconds))

    def correct(self, metrics: Mapping[str, Any]) -> None:
        """Serve these with the durations of the last report; called by the watchdog while the loop is stuck."""
        report = self._collector.report
        if report is not None:
            self._collector.report = report._replace(metrics=metrics)

    def close(self) -> None:
        """Stop serving."""
        self._server.close()


class ReportCollector(Collector):
    """Turns the last report into Prometheus' families; nothing before the first."""

    def __init__(self) -> None:
        self.report: Published | None = None

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at every scrape, in the HTTP thread."""
        if self.report is None:
            return
        metrics, durations, stages = self.report
        for name, (key, meaning) in COUNTERS.items():
            yield CounterMetricFamily(name, meaning, value=metrics[key])
        for name, (key, meaning) in GAUGES.items():
            yield GaugeMetricFamily(name, meaning, value=metrics[key])
        for name, (_, meaning) in DURATIONS.items():
            yield _duration(name, meaning, durations[name])
        healthy = metrics["health"] == "ok"
        yield GaugeMetricFamily("simul_healthy", "0: the server's loop stands still.", value=healthy)
        yield _labelled("simul_stage_seconds", "Time of the loop.", "stage", stages)
        yield _batch_size(metrics["batch_histogram"], metrics["decisions"])
        yield _labelled("simul_messages_refused", "Messages refused as a whole.", "code", metrics["messages_refused"])
        yield _labelled("simul_rows_errored", "Rows refused.", "code", metrics["rows_errored"])
        yield _labelled("simul_connections", "Connections to the data socket.", "fate", metrics["connections"])
        yield _labelled("simul_connections_cut", "Connections that the proxy cut.", "cause", metrics["connections_cut"])
        yield _labelled("simul_sessions_ended", "Sessions ended.", "cause", metrics["sessions_ended"])
        yield CounterMetricFamily("simul_unrolls_sent", "Unrolls to the learner.", value=metrics["unrolls"]["sent"])
        yield _labelled("simul_unrolls_dropped", "Unrolls dropped.", "cause", metrics["unrolls"]["dropped"])
        versions = GaugeMetricFamily("simul_policy_version", "Version served.", labels=["policy"])
        for policy, version in metrics["policies"].items():
            versions.add_metric([policy], version)
        yield versions
        lag = max(0, metrics["offered_version"] - metrics["policy_version"])
        yield GaugeMetricFamily("simul_version_lag", "Newest version offered minus the version served.", value=lag)


def _duration(name: str, meaning: str, histogram: Histogram) -> HistogramMetricFamily:
    buckets = [(repr(bound / 1e6), float(n)) for bound, n in zip(BOUNDS_US, histogram.below)]
    return HistogramMetricFamily(
        name, meaning, buckets=[*buckets, ("+Inf", histogram.total)], sum_value=histogram.sum_us / 1e6
    )


def _batch_size(by_size: Mapping[str, int], rows: int) -> HistogramMetricFamily:
    """`by_size`: forwards of up to 1, 2, 4, ... rows; `rows`: of all of them together."""
    largest = max((int(size) for size in by_size), default=1)
    sizes = [2**k for k in range(int(math.log2(largest)) + 1)]
    buckets, below = [], 0
    for size in sizes:
        below += by_size.get(str(size), 0)
        buckets.append((str(float(size)), float(below)))
    return HistogramMetricFamily(
        "simul_batch_size", "Rows of a forward.", buckets=[*buckets, ("+Inf", below)], sum_value=rows
    )


def _labelled(name: str, meaning: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
