"""What Prometheus reads from a running server."""

from __future__ import annotations

import contextlib
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from simul.common.errors import ERR_HELLO, ERR_MALFORMED, ERR_MASK
from simul.common.protocol.messages import Ping
from simul.common.runtime.prometheus import MOST_REQUESTS
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.inference_server.base.statistics import STAGES
from simul.inference_server.ops.prometheus import Exporter
from tests.support.faults import dial
from tests.support.raw_client import RawClient
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


def scrape(port: int) -> dict[tuple[str, ...], float]:
    """Value by (name, label values)."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SEC) as page:
        text = page.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_the_figures_of_a_server_that_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simul.common.runtime.prometheus.REQUEST_SEC", PATIENCE_SEC)  # 5 s cut a slow machine's answer
    port = free_port()
    with Stand(prometheus_port=port) as stand:
        client = stand.client("a")
        for step in range(10):
            exchange(client, [stand.decision(env, step) for env in range(6)])
        none = np.zeros(stand.spec.num_actions, np.uint8)
        exchange(client, [stand.decision(9, 0, mask=none)])
        with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
            raw.send_frames([b"no map"])
            assert raw.receive()[0].code == ERR_MALFORMED
            assert [raw.ask(Ping()).code for _ in range(2)] == [ERR_HELLO, ERR_HELLO]
        wait_for(lambda: scrape(port).get(("simul_messages_refused_total", ERR_HELLO)) == 2)
        figures, metrics = scrape(port), stand.server.metrics()
        assert figures["simul_decisions_total",] == 60
        assert figures["simul_rows_errored_total", ERR_MASK] == 1
        assert figures["simul_messages_refused_total", ERR_MALFORMED] == 1
        assert (metrics["malformed"], metrics["messages_refused"]) == (3, {ERR_MALFORMED: 1, ERR_HELLO: 2})
        assert figures["simul_sessions",] == 6
        assert figures["simul_clients",] == 1
        assert figures["simul_policy_version", "learner"] == metrics["policy_version"]
        assert figures["simul_version_lag",] == 0
        assert figures["simul_batch_size_count",] == metrics["batches"]
        assert figures["simul_batch_size_sum",] == 60
        assert figures["simul_batch_size_bucket", "8.0"] == metrics["batches"]
        for name in ("queue_wait", "latency"):
            assert figures[f"simul_{name}_seconds_count",] == 60
        assert figures["simul_forward_seconds_count",] == metrics["batches"]
        assert all(figures["simul_stage_seconds_total", stage] > 0 for stage in STAGES)
        assert figures["simul_swap_seconds_count",] == figures["simul_weight_swaps_total",] == 1
        latency = [figures["simul_latency_seconds_bucket", repr(50e-6 * 2**k)] for k in range(17)]
        assert latency == sorted(latency)
        assert latency[-1] == figures["simul_latency_seconds_bucket", "+Inf"] == 60
        assert 0 < figures["simul_queue_wait_seconds_sum",] < figures["simul_latency_seconds_sum",]
    with pytest.raises(urllib.error.URLError):
        scrape(port)


def test_it_is_off_by_default_and_of_this_machine_only() -> None:
    with Stand() as stand:
        assert stand.server._operations.reporting._exporter is None
    exporter = Exporter(free_port())
    assert exporter._server._server.server_address[0] == "127.0.0.1"
    exporter.close()


def test_requests_that_never_end_hold_neither_threads_nor_a_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    exporter, before = Exporter(port), threading.active_count()
    with contextlib.ExitStack() as lines:
        opened = [lines.enter_context(dial(port)) for _ in range(300)]
        for line in opened:
            with contextlib.suppress(ConnectionError):  # cut already, for the sake of a newer one
                line.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        scrape(port)
        wait_for(lambda: threading.active_count() <= before + MOST_REQUESTS)
        with monkeypatch.context() as impatient:
            impatient.setattr("simul.common.runtime.prometheus.REQUEST_SEC", 0.0)
            wait_for(lambda: threading.active_count() <= before)
        scrape(port)
    exporter.close()
