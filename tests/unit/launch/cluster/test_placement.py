"""Bundles of a run and where they have room."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from simul.common.config.schema import (
    ClusterConfig,
    ClusterLearnerConfig,
    ClusterServersConfig,
    Config,
    OpponentsConfig,
    PlacementConfig,
    ServerConfig,
    WorkersConfig,
)
from simul.common.errors import ConfigError
from simul.launch.cluster.cluster import check_config
from simul.launch.cluster.facts import differences, digest_of_code
from simul.launch.cluster.placement import Bundle, Machine, bundle_of, bundles_of, machines_of, place, placement_text

CLUSTER = ClusterConfig(
    ClusterServersConfig(2), placement=PlacementConfig(worker_nodes=3, learner_gpus=1, server_gpus=0.5)
)
CONFIG = Config(
    workers=WorkersConfig(count=8), cluster=CLUSTER, server=ServerConfig(threads=2), store="s3://bucket/run"
)


def test_the_bundles_of_a_run_hold_each_process_once_and_what_it_needs() -> None:
    bundles = bundles_of(CONFIG)
    assert [bundle.title for bundle in bundles] == [
        "learner", "inference server 0", "inference server 1", "workers 0 to 1", "workers 2 to 4", "workers 5 to 7",
    ]  # fmt: skip
    assert [bundle.resources for bundle in bundles[:3]] == [{"CPU": 1, "GPU": 1}, *2 * [{"CPU": 2, "GPU": 0.5}]]
    assert [bundle.cpus for bundle in bundles[3:]] == [2, 3, 3]
    assert [bundle_of(bundles, ("env_worker", worker)) for worker in range(8)] == [3, 3, 4, 4, 4, 5, 5, 5]
    assert bundle_of(bundles, ("inference_server", 1)) == 2


def test_all_ranks_of_the_learner_are_on_one_machine() -> None:
    ranked = replace(CONFIG, cluster=replace(CLUSTER, learner=ClusterLearnerConfig(2)))
    check_config(ranked)
    bundles = bundles_of(ranked)
    assert (bundles[0].title, bundles[0].resources) == ("learner", {"CPU": 2, "GPU": 1})
    assert {bundle_of(bundles, ("learner", rank)) for rank in range(2)} == {0}


def test_there_are_no_more_parts_than_workers() -> None:
    few = replace(CONFIG, workers=WorkersConfig(count=2))
    assert [bundle.title for bundle in bundles_of(few)[3:]] == ["worker 0", "worker 1"]


def test_bundles_are_placed_where_there_is_room_and_the_text_says_what_is_lacking() -> None:
    bundles = [Bundle("learner", (0,), 1, 1), Bundle("inference_server", (0,), 2), Bundle("env_worker", (0, 1, 2), 3)]
    machines = [Machine("a", 4), Machine("b", 2, 1)]
    assert place(bundles, machines) == ["b", None, "a"]
    text, complete = placement_text(bundles, machines)
    assert not complete
    assert "Lacking: inference server 0 (2 CPU, 0 GPU)" in text
    assert placement_text(bundles, [*machines, Machine("c", 2)])[1]


def test_what_other_jobs_use_is_not_free_and_nodes_with_one_address_are_each_a_machine_of_their_own() -> None:
    living = [("10.0.0.1", True), ("10.0.0.2", True), ("10.0.0.2", True), ("10.0.0.3", False)]
    nodes = [
        {"NodeID": f"{n}{'a' * 55}", "NodeManagerAddress": address, "Alive": alive, "Resources": {"CPU": 8.0, "GPU": 1}}
        for n, (address, alive) in enumerate(living)
    ]
    left = ({"memory": 1.0}, {"CPU": 3.0, "GPU": 1.0}, {"CPU": 2.0})
    free = {node["NodeID"]: resources for node, resources in zip(nodes, left)}
    machines = machines_of(nodes, free)
    assert [(machine.name, machine.cpus, machine.gpus) for machine in machines] == [
        ("10.0.0.1", 0.0, 0.0), ("10.0.0.2 (node 1aaaaaaa)", 3.0, 1.0), ("10.0.0.2 (node 2aaaaaaa)", 2.0, 0.0),
    ]  # fmt: skip
    bundles = [Bundle("learner", (0,), 2), Bundle("inference_server", (0,), 3), Bundle("env_worker", (0, 1), 2)]
    same_name = [Machine("a", 3), Machine("a", 2), Machine("a", 2)]
    assert place(bundles, same_name) == ["a", "a", "a"]
    text, complete = placement_text(bundles, machines)
    assert not complete
    assert "10.0.0.1 has 0 CPU and 0 GPU free" in text


def test_machines_are_compared_and_each_difference_names_the_machines() -> None:
    same = {"python": "3.11.2", "torch": "2.10", "ray": "2.60.0", "code": "ab", "commit": "c1"}
    assert differences({"a": same, "b": {**same, "commit": "c2"}}) == [], "a commit may change documents only"
    found = differences({"a": same, "b": {**same, "python": "3.12.1", "code": "cd"}})
    assert found == [
        "python differs: 3.11.2 on a, 3.12.1 on b", "code differs: ab (commit c1) on a, cd (commit c1) on b",
    ]  # fmt: skip


def test_the_digest_of_the_code_sees_what_roles_run_and_nothing_else(tmp_path) -> None:
    host = tmp_path / "env_worker" / "games" / "pokemon" / "node"
    for folder in (host, host / "node_modules", tmp_path / "common" / "__pycache__"):
        folder.mkdir(parents=True)
    files = (host / "main.mjs", tmp_path / "common" / "a.py", tmp_path / "env_worker" / "items.txt")
    others = (host / "node_modules" / "b.mjs", tmp_path / "common" / "__pycache__" / "a.py", tmp_path / "notes.py")
    for file in (*files, *others):
        file.write_text("1")
    digests = {digest_of_code(tmp_path)}
    for file in files:
        file.write_text("2")
        digests.add(digest_of_code(tmp_path))
    assert len(digests) == 1 + len(files)
    for file in others:
        file.write_text("2")
    assert digest_of_code(tmp_path) in digests


def test_the_place_of_the_processes_is_no_part_of_what_is_learned() -> None:
    one_server = replace(CONFIG, cluster=ClusterConfig(placement=CLUSTER.placement))
    assert one_server.fingerprint() == replace(CONFIG, cluster=ClusterConfig()).fingerprint()
    assert CONFIG.fingerprint() != one_server.fingerprint()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"store": ""}, "store"),
        ({"server": ServerConfig(endpoint="tcp://127.0.0.1:5555")}, "server.endpoint"),
        ({"server": ServerConfig(curve_keys="keys")}, "server.curve_keys"),
        (
            {"opponents": OpponentsConfig(self_play=0.0, frozen=1.0, checkpoint="zoo:x")},
            r"opponents\.frozen is for runs",
        ),
    ],
)
def test_settings_that_a_cluster_does_not_have_are_refused_with_a_sentence(changed, word) -> None:
    check_config(CONFIG)
    with pytest.raises(ConfigError, match=word):
        check_config(replace(CONFIG, **changed))
