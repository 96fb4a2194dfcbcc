"""Where the time of a run goes: its processes, their stages and its batches between two snapshots. Pure."""

from __future__ import annotations

import msgspec

from simul.launch.monitoring.snapshot import ProcessFigures, Snapshot
from simul.launch.processes.processor_time import CpuSample, ProcessCpu
from simul.launch.processes.role_process import LOG_NAMES
from simul.launch.processes.role_reports import Metrics, counts, decisions_of, number

# Stages of each role's loop, in the order of its work, and what they are. Those that wait come last.
STAGES: dict[str, dict[str, str]] = {
    "env_worker": {
        "step": "games, opponents, the simulator host's messages",
        "encode": "observations",
        "search": "tree search",
        "submit": "packing and sending",
        "receive": "reading the replies",
        "report": "figures and logs",
        "wait": "for actions, or for the simulator host",
    },
    "inference_server": {
        "receive": "socket and header",
        "admit": "checks, session table",
        "batch": "choice of the batch",
        "gather": "observations and states into the batch",
        "forward": "the network",
        "sample": "noise, draw, new states",
        "reply": "packing and sending",
        "record": "unrolls",
        "evaluate": "batches of EVALUATE",
        "weights": "newer weights",
        "report": "figures and logs, control requests, dead sessions",
        "wait": "for messages",
        "batch_wait": "for a fuller batch",
        "learner_full": "for a learner that has no room",
    },
    "learner": {
        "batch": "minibatches of unrolls or samples",
        "update": "forward, loss, backward, optimizer step",
        "publish": "weights to the servers",
        "save": "checkpoints",
        "report": "figures and logs",
        "wait": "for unrolls or samples",
    },
}
WAITING = frozenset(("wait", "batch_wait", "learner_full"))


class ProcessProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One role process. `stage_sec`: its wall clock by stage, waiting included; `covered`: their share of it."""

    name: str
    role: str
    pid: int
    wall_sec: float
    stage_sec: dict[str, float]
    covered: float
    cores: float  # of its own
    children_cores: float  # of its simulator hosts, or its proxy


class RoleProfile(msgspec.Struct, frozen=True, kw_only=True):
    """All processes of a role. `share`: of their wall clock, by stage; `us_per_decision`: wall clock, by stage."""

    processes: int
    share: dict[str, float]
    us_per_decision: dict[str, float]
    busy: float  # share of the wall clock not spent waiting, of the busiest process
    cores: float
    children_cores: float

    def largest(self) -> str:
        """The stage, not one that waits, that takes most of the time; "" where none takes any."""
        working = {stage: share for stage, share in self.share.items() if stage not in WAITING and share > 0}
        return max(working, key=lambda stage: working[stage], default="")


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile of `seconds`. Percentiles are of the server's recent window; None: nothing to divide by."""

    run_dir: str
    game: str
    seconds: float
    decisions: float
    decisions_per_sec: float
    messages_per_sec: float  # of clients to the server: STEP, EVALUATE, SAMPLES
    decisions_per_message: float | None
    messages_per_batch: float | None
    batches_per_sec: float
    mean_batch: float | None
    batch_histogram: dict[str, int]
    queue_wait_us: dict[str, float]
    forward_us: dict[str, float]
    latency_us: dict[str, float]
    cores: float  # that this run may use
    cores_used: float  # by all its processes
    other_cores_used: float  # by other processes of the machine
    on_cluster: bool = False  # roles are on machines of a cluster: `cores` and their use are the supervisor's machine's
    processes_running: int
    processes_started: int
    processes: list[ProcessProfile]
    silent: list[str]  # processes that did not report in this time
    roles: dict[str, RoleProfile]

    def in_use(self) -> float:
        """Cores in use, by this run or not; 0.0 on a cluster, where they are unknown."""
        return 0.0 if self.on_cluster else self.cores_used + self.other_cores_used


def make_profile(
    first: Snapshot, last: Snapshot, cpu: tuple[CpuSample, CpuSample], *,
    cores: float, machine_cores: int, running: int, started: int,
) -> Profile:  # fmt: skip
    """The profile of the time between two snapshots.

    Args:
        cpu: processor time at about the same two moments.
        cores: that the run may use; machine_cores: that the machine has.
        running, started: processes of the run at the end, and new ones since the beginning.
    """
    server, before = last.server, first.server
    wall_sec = cpu[1].at - cpu[0].at
    counted_sec = _counted(last) - _counted(first)
    decisions, messages, batches = (_grown(server, before, name) for name in ("decisions", "messages", "batches"))
    evaluated = _grown(server, before, "evaluation_batches")
    all_decisions = decisions_of(server) - decisions_of(before)
    processes = [_process(each, first, cpu) for each in last.processes]
    measured = [each for each in processes if each is not None]
    used = (cpu[1].run - cpu[0].run) / wall_sec
    on_cluster = any(each.node for each in last.processes)
    rate = all_decisions / counted_sec if counted_sec > 0 else 0.0
    histogram, earlier = counts(server, "batch_histogram"), counts(before, "batch_histogram")
    return Profile(
        run_dir=last.run_dir, game=last.game, seconds=round(wall_sec, 2),
        decisions=all_decisions, decisions_per_sec=round(rate, 1),
        messages_per_sec=round(messages / counted_sec, 1) if counted_sec > 0 else 0.0,
        decisions_per_message=_ratio(decisions, messages),
        messages_per_batch=_ratio(messages, batches + evaluated),
        batches_per_sec=round(batches / counted_sec, 1) if counted_sec > 0 else 0.0,
        mean_batch=_ratio(decisions, batches),
        batch_histogram={
            size: round(n - earlier.get(size, 0)) for size, n in histogram.items() if n > earlier.get(size, 0)
        },
        queue_wait_us=counts(server, "queue_wait_us"), forward_us=counts(server, "forward_us"),
        latency_us=counts(server, "latency_us"),
        cores=round(cores, 2), cores_used=round(used, 3),
        # A smaller share of the machine is ours alone, or unknown: what others use is then not ours to count.
        other_cores_used=(
            round(max((cpu[1].machine - cpu[0].machine) / wall_sec - used, 0.0), 3)
            if cores >= machine_cores and not on_cluster
            else 0.0
        ),
        on_cluster=on_cluster,
        processes_running=running, processes_started=started, processes=measured,
        silent=[each.name for each in last.processes if each.name not in {found.name for found in measured}],
        roles={
            role: _role([each for each in measured if each.role == role], rate)
            for role in STAGES
            if any(each.role == role for each in measured)
        },
    )  # fmt: skip


def _counted(snapshot: Snapshot) -> float:
    """When the server's figures were counted, in seconds since readiness."""
    return snapshot.counted_sec.get("inference_server", snapshot.ready_sec)


def _grown(now: Metrics, before: Metrics, name: str) -> float:
    return (number(now, name) or 0.0) - (number(before, name) or 0.0)


def _ratio(left: float, right: float) -> float | None:
    return round(left / right, 2) if right > 0 else None


def role_of(process: str) -> str:
    """The role of a process by its name; "" for none."""
    return next((role for role, name in LOG_NAMES.items() if process.startswith(f"{name}-")), "")


def _process(
    process: ProcessFigures, first: Snapshot, cpu: tuple[CpuSample, CpuSample]
) -> ProcessProfile | None:  # fmt: skip
    """None for a process whose loop did not report in this time. One that was restarted counts from its start."""
    same = (process.pid, process.create_time)
    before = next((each for each in first.processes if (each.pid, each.create_time) == same), None)
    wall_sec = process.loop_sec - (before.loop_sec if before else 0.0)
    if wall_sec <= 0:
        return None
    earlier: dict[str, float] = before.stage_sec if before else {}
    stage_sec = {stage: round(sec - earlier.get(stage, 0.0), 6) for stage, sec in process.stage_sec.items()}
    begin, end = (sample.roles.get(process.pid, ProcessCpu(0.0, 0.0)) for sample in cpu)
    seconds = cpu[1].at - cpu[0].at
    return ProcessProfile(
        name=process.name, role=role_of(process.name), pid=process.pid, wall_sec=round(wall_sec, 3),
        stage_sec=stage_sec, covered=round(sum(stage_sec.values()) / wall_sec, 4),
        cores=round(max(end.own - begin.own, 0.0) / seconds, 3),
        children_cores=round(max(end.children - begin.children, 0.0) / seconds, 3),
    )  # fmt: skip


def _role(processes: list[ProcessProfile], decisions_per_sec: float) -> RoleProfile:
    shares = [{stage: sec / each.wall_sec for stage, sec in each.stage_sec.items()} for each in processes]
    stages = [stage for stage in STAGES[processes[0].role] if any(stage in share for share in shares)]
    stages += sorted({stage for share in shares for stage in share} - set(stages))
    total = {stage: sum(share.get(stage, 0.0) for share in shares) for stage in stages}
    busy = [sum(part for stage, part in share.items() if stage not in WAITING) for share in shares]
    return RoleProfile(
        processes=len(processes),
        share={stage: round(sec / len(processes), 4) for stage, sec in total.items()},
        us_per_decision={
            stage: round(sec * 1e6 / decisions_per_sec, 2) if decisions_per_sec else 0.0
            for stage, sec in total.items()
        },
        busy=round(max(busy), 4),
        cores=round(sum(each.cores for each in processes), 3),
        children_cores=round(sum(each.children_cores for each in processes), 3),
    )  # fmt: skip
