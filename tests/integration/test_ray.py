"""`simul up --on ray` on a cluster of three raylets of this machine."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import KEPT, NODE_KIND
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.launch.monitoring.accounting import imbalances
from tests.support.command import OFTEN, Command
from tests.support.stand_ins import STAND_IN

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra [ray] is not installed"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]  # ray's own warnings

AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port")
PROGRAM = f"""
{OFTEN}
import sys
from simul.launch.cli import main
from simul.launch.cluster import ray_engine
from simul.launch.supervisor import supervisor
from tests.support.machines import stand_in_agent
if stand_in := sys.argv.pop(1):
    class Supervisor(supervisor.Supervisor):
        def __init__(self, config, run_dir, display, **options):
            super().__init__(config, run_dir, display, lambda role: [sys.executable, stand_in, role], **options)
    supervisor.Supervisor = Supervisor
    class RayEngine(ray_engine.RayEngine):
        def __init__(self, address, bundles):
            super().__init__(address, bundles, stand_in_agent(stand_in))
    ray_engine.RayEngine = RayEngine
sys.exit(main(sys.argv[1:]))
"""


def _nodes(*cpus: int) -> list[dict[str, int]]:
    """Of raylets. Without ports one waits 15 s for its agents to choose some: too short on a busy machine."""
    ports: set[int] = set()
    while len(ports) < len(cpus) * len(AGENT_PORTS):
        ports.add(free_port())
    drawn = iter(ports)
    return [
        {"num_cpus": each, "object_store_memory": 80 * 2**20, **dict(zip(AGENT_PORTS, drawn, strict=False))}
        for each in cpus
    ]


@pytest.fixture(scope="module")
def token() -> Iterator[None]:
    """Ray's own authentication, without which a cluster that others reach is refused. Ray reads it when imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield


@pytest.fixture
def cluster(token) -> Iterator:
    from ray.cluster_utils import Cluster

    head, *others = _nodes(0, 3, 3)  # either of the others has room for the whole run
    made = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **head})
    for node in others:
        made.add_node(**node)
    yield made
    made.shutdown()


class RayRun(Command):
    """`simul up --on ray`. `stand_in`: of the roles; empty: the real ones."""

    def __init__(self, root: Path, address: str, *more: str, stand_in: str = "") -> None:
        store = root.with_name("store").as_uri()
        line = ("up", "configs/cartpole.yaml", "--run-dir", str(root), "--plain", "--set", f"store={store}",
                "--on", "ray", "--address", address, *more)  # fmt: skip
        super().__init__([sys.executable, "-c", PROGRAM, stand_in, *line], root)


@pytest.fixture
def up(cluster, tmp_path) -> Iterator[Callable[..., RayRun]]:
    """A function that starts a run in this folder on the cluster."""
    started = []

    def start(*more: str, name: str = "run", stand_in: str = "") -> RayRun:
        started.append(RayRun(tmp_path / name, cluster.address, *more, stand_in=stand_in))
        return started[-1]

    yield start
    for one in started:
        one.end_now()


def _raylet_of(cluster, pid: int):
    """The node whose raylet is above a process."""
    above = {parent.pid for parent in psutil.Process(pid).parents()}
    for node in cluster.list_all_nodes():
        for processes in node.all_processes.values():
            if above & {info.process.pid for info in processes}:
                return node
    raise AssertionError(f"no raylet is above {pid}")


def _kill_node_of(cluster, run: RayRun, name: str) -> None:
    cluster.remove_node(_raylet_of(cluster, run.process_of(name)["pid"]), allow_graceful=False)


def test_a_worker_on_a_node_that_is_killed_plays_on_another_and_the_run_stops_cleanly(cluster, up) -> None:
    run = up(stand_in=str(STAND_IN))
    run.wait_for(lambda s: s.get("phase") == "training" and s["server"].get("decisions"), "training")
    run.wait_for(lambda s: all(p["pid"] for p in s["processes"]), "the agents have said which processes they are")
    _kill_node_of(cluster, run, "simul-worker-0")
    run.wait_for(
        lambda s: run.process_of("simul-worker-0")["restarts"] and {p["state"] for p in s["processes"]} == {"ready"},
        "everything is ready again",
    )
    assert any("(worker 0) is lost" in event for event in run.status()["events"])
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []


@pytest.mark.timeout(3600)
def test_cartpole_reaches_475_although_the_node_of_its_learner_is_killed(cluster, up, tmp_path) -> None:
    run = up()  # with an end of its own it may end before the loss is noticed
    run.wait_for(lambda s: s.get("learner", {}).get("decisions_learned", 0) > 40_000, "it learns", 1200.0)
    _kill_node_of(cluster, run, "simul-learner-0")
    run.wait_for(lambda s: run.process_of("simul-learner-0")["restarts"], "the learner is started again", 600.0)
    run.wait_for(lambda s: s.get("learner", {}).get("decisions_learned", 0) > 180_000, "it learns on", 2400.0)
    code, output = run.finish()
    assert code == 0, output
    assert imbalances(run.summary()) == []
    assert run.summary()["restarts"]["simul-learner-0"] == 1
    assert "Resumed from checkpoint" in run.printed()
    line = [sys.executable, "-m", "simul.launch.cli", "eval", "--json", "--battles", "100",
            "--checkpoint", (tmp_path / "store").as_uri()]  # fmt: skip
    result = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    assert result["mean_return"] >= 475.0, result


def _remove_kept() -> None:
    """What agents keep that have lost their supervisor."""
    for folder in Path(tempfile.gettempdir()).glob(f"{KEPT}{NODE_KIND}*"):
        RunDir(folder).remove()


@pytest.mark.timeout(1800)
def test_where_the_driver_is_killed_the_learner_saves_and_no_process_is_left_on_any_node(up) -> None:
    line = ("--set", "learner.checkpoint_every_sec=600")
    run = up(*line)
    learned = run.wait_for(
        lambda s: (n := s.get("learner", {}).get("decisions_learned", 0)) > 10_000 and n, "it learns", 1200.0
    )
    roles = [psutil.Process(process["pid"]) for process in run.status()["processes"]]
    agents = [role.parent() for role in roles]
    run.process.kill()
    assert not psutil.wait_procs([*roles, *filter(None, agents)], timeout=180)[1]
    _remove_kept()
    killed_at, run = time.time(), up(*line)
    run.wait_for(
        lambda s: s.get("time", 0.0) > killed_at and s["phase"] == "training", "the same command resumes", 1200.0
    )
    said = re.search(r"Resumed from checkpoint \d+ \(([\d,]+) decisions learned\)", run.printed())
    assert said is not None, run.printed()
    assert int(said[1].replace(",", "")) >= learned, "saved when the driver was gone: none was due before"
    code, output = run.finish()
    assert code == 0, output


def test_a_dry_run_says_where_it_would_place_the_roles_and_what_is_lacking(cluster, up) -> None:
    import ray
    from ray.util.placement_group import placement_group

    def dry_run(name: str, workers: int) -> tuple[int, str]:
        run = up("--dry-run", "--set", f"workers.count={workers}", name=name)
        code, printed = run.result()
        assert "learner" in printed
        assert not run.run_dir.exists()
        return code, printed

    code, printed = dry_run("fits", 1)
    assert (code, printed.count("has 3 CPU and 0 GPU free")) == (0, 2), printed
    code, printed = dry_run("large", 4)
    assert code == 1, printed
    assert "Lacking: workers 0 to 3 (4 CPU, 0 GPU)" in printed
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        assert placement_group([{"CPU": 3}, {"CPU": 2}]).wait(60)
        code, printed = dry_run("busy", 1)
    finally:
        ray.shutdown()
    assert (code, printed.count("has 1 CPU and 0 GPU free")) == (1, 1), printed
