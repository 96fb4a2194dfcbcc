"""The tables of docs/scale.md: a fleet simulated with measured service times, and arithmetic beside it.

Each cell is marked: (m) measured here, (s) simulated, (c) computed from the others, (a) assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from benchmarks.harness.cores import HOSTS
from benchmarks.harness.report import markdown_table
from benchmarks.scale.layouts import Fleet, simulate_fleet
from benchmarks.scale.model import US, Device, Outcome
from benchmarks.scale.stand import SPEC
from benchmarks.scale.times import Measured, ServiceTimes
from benchmarks.serving.policy import UNROLL_LENGTH
from simul.common.protocol.unroll_layout import UnrollLayout

SERVERS = (1, 2, 4, 8, 16, 32, 64)
ROWS = (8, 32, 128, 512)
FAR = "proxy, CURVE"  # how workers on other machines reach a server today
SESSIONS = 1_000_000
WORKER_CORES = 1_000
IN_FLIGHT = 256  # sessions of a worker core that are simulated, or two messages: more only lengthen a full queue
ASSUMED_DEVICE = Device(batch_sec=150 * US, row_sec=0.05 * US)  # a GPU, graphs captured
EARLIER_US = {"hosts": 388.0, "workers": 27.0, "learner": 107.0}  # RESULTS.md, "Speed"
SPARE = 1.2  # learner ranks and servers beyond what is needed
HIDDEN = 256  # of the measured network
LINK_GBIT = 25.0
VERSIONS_PER_SEC = 5.0  # a server's rate with five swaps a second is 0.95 of that with none, see RESULTS.md


def tables(measured: Measured, servers: Sequence[int] = SERVERS, rows: Sequence[int] = ROWS) -> str:
    """Markdown. The fleet's route is the one of workers on other machines, or the last one that was measured."""
    route = FAR if FAR in measured.routes else list(measured.routes)[-1]
    costs = training_us(measured)
    mark = "m" if measured.training_us else "m, earlier"
    parts = [
        f"Route `{route}`; {WORKER_CORES:,} worker cores, {SESSIONS:,} sessions; a decision costs a worker core "
        f"{costs['hosts'] + costs['workers']:.0f} us ({mark}) and a learner's {costs['learner']:.0f} ({mark}).",
        _capacity(measured, route, costs, servers, rows),
        _variants(measured, route, costs),
        _learners(measured, route, costs),
        arithmetic(measured, route, costs),
    ]
    return "\n\n".join(parts)


def training_us(measured: Measured) -> dict[str, float]:
    """Processor time of a decision at simulator hosts, workers and learner: measured with the rest, else earlier."""
    if not measured.training_us:
        return EARLIER_US
    by_process = measured.training_us
    return {
        "hosts": by_process.get(HOSTS, 0.0),
        "workers": sum(us for name, us in by_process.items() if "worker" in name),
        "learner": sum(us for name, us in by_process.items() if "learner" in name),
    }


def fleet(measured: Measured, costs: dict[str, float], servers: int, rows: int) -> Fleet:
    """A fleet whose learner has ranks to spare."""
    think_us = costs["hosts"] + costs["workers"]
    supply = WORKER_CORES * 1e6 / think_us
    return Fleet(
        servers=servers, rows=rows, row_bytes=measured.row_bytes, worker_cores=WORKER_CORES, think_us=think_us,
        sessions=min(SESSIONS, WORKER_CORES * max(IN_FLIGHT, 2 * rows)), link_gbit=LINK_GBIT,
        learner_ranks=math.ceil(SPARE * supply * costs["learner"] * US), learner_us=costs["learner"],
    )  # fmt: skip


def shown(outcome: Outcome) -> str:
    """A cell: the rate, and the busiest station with its share of the time."""
    name = outcome.bottleneck
    return f"{outcome.actions_per_sec:,.0f} ({name} {min(1.0, outcome.busy[name]):.0%})"


def _capacity(
    measured: Measured, route: str, costs: dict[str, float], servers: Sequence[int], rows: Sequence[int]
) -> str:  # fmt: skip
    times = measured.routes[route]
    body = [
        [f"{count}", *(shown(simulate_fleet(times, fleet(measured, costs, count, size))) for size in rows)]
        for count in servers
    ]
    return markdown_table(("servers", *(f"{size} rows a message (s)" for size in rows)), body)


def _variants(measured: Measured, route: str, costs: dict[str, float], rows: int = 128) -> str:
    times, base = measured.routes[route], fleet(measured, costs, 16, rows)
    variants: dict[str, tuple[ServiceTimes, Fleet]] = {"as it is": (times, base)}
    variants |= {
        f"route `{name}`": (other, base)
        for name, other in measured.routes.items()
        if name not in (route, "memory")  # which ends at the machine
    }
    variants |= {f"server.max_batch={size}": (times, replace(base, max_batch=size)) for size in (512, 1024)}
    on_device = replace(base, device=ASSUMED_DEVICE)
    variants["forward on a device (a: 150 us a batch, 0.05 a row)"] = (times, on_device)
    variants["the same, server.max_batch=1024"] = (times, replace(on_device, max_batch=1024))
    body = []
    for name, (of_variant, changed) in variants.items():
        found = simulate_fleet(of_variant, changed)
        busy = ", ".join(f"{station} {min(1.0, share):.0%}" for station, share in found.busy.items())
        latency = f"{found.p50_us / 1e3:.1f}, {found.p99_us / 1e3:.1f}"
        body.append([name, f"{found.actions_per_sec:,.0f}", f"{found.mean_batch:.0f}", latency, busy])
    heads = (f"16 servers, {rows} rows a message (s)", "decisions/s", "batch", "p50, p99 ms", "busy")
    return markdown_table(heads, body)


def _learners(measured: Measured, route: str, costs: dict[str, float]) -> str:
    base = fleet(measured, costs, 32, 128)
    body = []
    for ranks in (16, 64, base.learner_ranks):
        found = simulate_fleet(measured.routes[route], replace(base, learner_ranks=ranks))
        body.append([f"{ranks}", shown(found), f"{ranks * 1e6 / costs['learner']:,.0f}"])
    return markdown_table(("learner ranks, 32 servers", "decisions/s (s)", "learner's limit (c)"), body)


def arithmetic(measured: Measured, route: str, costs: dict[str, float]) -> str:
    """What follows from the rates by multiplication alone."""
    supply = WORKER_CORES * 1e6 / (costs["hosts"] + costs["workers"])
    unroll_bytes = UnrollLayout(SPEC, UNROLL_LENGTH, 2 * HIDDEN).place_bytes
    unroll_bits = 8 * unroll_bytes / UNROLL_LENGTH  # of a decision, in unrolls of full length
    servers = 32
    ping = sum(measured.ping_us.get(route, {}).values())
    weights_gbit = servers * measured.weights_bytes * 8 / 1e9
    pings = f"{SESSIONS * ping * US:,.1f} cores" if ping else "not measured"
    body = [
        ["decisions of the worker cores", f"{supply:,.0f}/s"],
        ["STEP rows", f"{supply * measured.row_bytes * 8 / 1e9:.0f} Gbit/s"],
        ["learner cores", f"{supply * costs['learner'] * US:,.0f}"],
        ["unrolls into the learner", f"{supply * unroll_bits / 1e9:.0f} Gbit/s"],
        [f"decisions whose unrolls fill {LINK_GBIT:.0f} Gbit/s", f"{LINK_GBIT * 1e9 / unroll_bits:,.0f}/s"],
        ["versions a second with learner.batch_steps=4096", f"{supply / 4096:,.0f}"],
        ["weights to 32 servers at that rate", f"{supply / 4096 * weights_gbit:,.0f} Gbit/s"],
        ["batch_steps for five versions a second", f"{supply / VERSIONS_PER_SEC:,.0f}"],
        ["weights to 32 servers at five a second", f"{VERSIONS_PER_SEC * weights_gbit:.1f} Gbit/s"],
        ["unrolls being recorded, all servers", f"{SESSIONS * unroll_bytes / 1e9:,.0f} GB"],
        ["recurrent state, two rows a session", f"{SESSIONS * 2 * 2 * HIDDEN * 4 / 1e9:.1f} GB"],
        ["a connection for each of 10^6 people, one PING a second", pings],
    ]  # fmt: skip
    return markdown_table(("computed (c)", ""), body)
