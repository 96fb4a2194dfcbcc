"""What limits a run, and the setting to try, for profiles that leave no doubt."""

from __future__ import annotations

import pytest

from simul.common.config.loader import config_from_tree
from simul.common.config.value_checks import config_keys
from simul.launch.monitoring.profiling.bottleneck import find_bottleneck
from simul.launch.monitoring.profiling.profile import WAITING, Profile, RoleProfile

BASE = {
    "game": "gymnasium", "workers": {"count": 1, "envs": 16}, "learner": {"epochs": 4, "batch_steps": 4096},
}  # fmt: skip
IDLE = {"step": 0.2, "wait": 0.8}


def role(share: dict[str, float], cores: float = 0.2, children_cores: float = 0.0, processes: int = 1) -> RoleProfile:
    busy = sum(part for stage, part in share.items() if stage not in WAITING)
    return RoleProfile(
        processes=processes, share=share, us_per_decision={}, busy=busy, cores=cores, children_cores=children_cores
    )


def profile(worker=None, server=None, learner=None, **changes) -> Profile:
    roles = {
        "env_worker": worker or role({"step": 0.2, "wait": 0.8}),
        "inference_server": server or role({"forward": 0.3, "wait": 0.7}),
        "learner": learner or role({"update": 0.3, "wait": 0.7}),
    }
    fields = {
        "run_dir": "/runs/x", "game": "gymnasium", "seconds": 10.0, "decisions": 1e4, "decisions_per_sec": 1e3,
        "messages_per_sec": 1e2, "decisions_per_message": 10.0, "messages_per_batch": 2.0, "batches_per_sec": 50.0,
        "mean_batch": 64.0, "batch_histogram": {}, "queue_wait_us": {}, "forward_us": {}, "latency_us": {},
        "cores": 4.0, "cores_used": 1.0, "other_cores_used": 0.0, "processes_running": 5, "processes_started": 0,
        "processes": [], "silent": [], "roles": roles,
    }  # fmt: skip
    return Profile(**{**fields, **changes})


FULL = {"cores_used": 3.8}
BUSY_WORKER = role({"step": 0.8, "submit": 0.1, "wait": 0.1}, cores=0.9)
HELD = role({"forward": 0.3, "learner_full": 0.4, "wait": 0.3})


@pytest.mark.parametrize(
    ("found", "limit", "setting", "named"),
    [
        (profile(), "games_in_flight", "workers.envs=32", "the env workers 80%"),
        (profile(worker=BUSY_WORKER), "env_worker", "workers.count=2", "`step` (80%)"),
        (profile(worker=role(IDLE, children_cores=0.95)), "env_worker", "workers.count=2", "cores are free"),
        (profile(server=HELD, learner=role({"update": 0.9, "wait": 0.1})), "learner", "learner.epochs=3", "40%"),
        (profile(learner=role({"update": 0.98}, cores=0.98)), "learner", "learner.threads=2", "`update` (98%)"),
        (profile(learner=role({"publish": 0.6, "update": 0.38})), "learner", "learner.batch_steps=8192", "`publish`"),
        (profile(learner=role({"save": 0.6, "update": 0.38})), "learner", "learner.checkpoint_every_sec=120", "`save`"),
        (profile(server=role({"forward": 0.9})), "inference_server", "server.threads=2", "`forward`"),
        (profile(server=role({"receive": 0.9})), "inference_server", "workers.envs=32", "`receive`"),
        (profile(server=role({"forward": 0.9}), mean_batch=4.0), "inference_server", "workers.envs=32", "`forward`"),
        (profile(server=role({"batch_wait": 0.5, "wait": 0.5})), "batch_wait", "server.batching=greedy", "50%"),
        (profile(worker=BUSY_WORKER, **FULL), "processor", "workers.envs=32", "0.9 of them by the env workers"),
        (profile(learner=role({"update": 0.8, "wait": 0.2}, 2.5), **FULL), "processor", "learner.epochs=3", "2.5 of"),
        (profile(server=role({"forward": 0.8}, 2.5), **FULL), "processor", "", "`forward`"),
        (profile(worker=role(IDLE, 0.9, 2.0), **FULL), "processor", "workers.envs=32", "(2.0 by the processes"),
        (profile(cores_used=2.0, other_cores_used=1.9), "other_processes", "", "end those first"),
        (profile(learner=role({"update": 1.0}), cores_used=1.0, other_cores_used=2.9), "other_processes", "", "2.9 of"),
        (profile(decisions=0.0), "", "", "simul logs"),
        (profile(worker=BUSY_WORKER, on_cluster=True, **FULL), "env_worker", "workers.count=2", "`step` (80%). Try"),
        (profile(learner=role({"update": 0.98}, 0.98), on_cluster=True, **FULL), "learner", "learner.threads=2", "98%"),
    ],
)
def test_the_limit_and_the_setting(found: Profile, limit: str, setting: str, named: str) -> None:
    bottleneck = find_bottleneck(found, config_from_tree(BASE, "the test"))
    assert (bottleneck.limit, bottleneck.setting) == (limit, setting)
    assert named in bottleneck.sentence
    assert setting in bottleneck.sentence
    if setting:
        key = setting.partition("=")[0]
        assert key in config_keys()
        config_from_tree(BASE, "the test", [setting])  # a value that the configuration takes


@pytest.mark.parametrize(
    ("settings", "found", "setting"),
    [
        ({"learner": {"epochs": 1, "minibatches": 4}}, profile(server=HELD), "learner.minibatches=2"),
        ({"learner": {"epochs": 1, "minibatches": 1}}, profile(server=HELD), ""),
        ({"game": "mine:Game", "learner": {"algorithm": "alphazero"}}, profile(server=HELD), "replay.uses=2"),
        ({"workers": {"envs": 256}}, profile(), "workers.count=2"),
        ({"workers": {"count": 6, "envs": 16}}, profile(worker=BUSY_WORKER, **FULL), "workers.count=5"),
        ({"server": {"precision": "float32"}}, profile(server=role({"forward": 0.9}, 2.5), **FULL),
         "server.precision=auto"),
        ({"server": {"precision": "auto", "device": "cpu"}}, profile(server=role({"forward": 0.9}, 2.5), **FULL),
         "server.device=auto"),
        ({"server": {"threads": 4}}, profile(server=role({"forward": 0.9})), ""),
        ({"workers": {"count": 2}}, profile(server=role({"receive": 0.9})), "cluster.servers.count=2"),
        ({"server": {"batching": "greedy"}}, profile(server=role({"batch_wait": 0.5, "wait": 0.5})), "workers.envs=32"),
    ],
)  # fmt: skip
def test_the_setting_depends_on_those_of_the_run(settings: dict, found: Profile, setting: str) -> None:
    tree = {**BASE, **settings}
    assert find_bottleneck(found, config_from_tree(tree, "the test")).setting == setting


@pytest.mark.parametrize(
    ("cores", "cores_used", "setting"),
    [(1.96, 1.98, "learner.threads=2"), (1.96, 2.5, "learner.epochs=3"), (0.98, 1.0, "learner.epochs=3")],
)
def test_a_thread_more_for_the_learner_is_one_more_for_each_rank(cores: float, cores_used: float, setting: str) -> None:
    """It takes as many free cores as there are ranks, and all ranks busy."""
    found = profile(learner=role({"update": 0.98}, cores=cores, processes=2), cores_used=cores_used)
    config = config_from_tree({**BASE, "cluster": {"learner": {"ranks": 2}}}, "the test")
    assert find_bottleneck(found, config).setting == setting
