"""Settings of several servers, and of several ranks of the learner."""

from __future__ import annotations

import pytest

from simul.common.config.loader import config_from_tree
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir


def config(*overrides: str):
    return config_from_tree({"game": "gymnasium"}, "here", overrides)


@pytest.mark.parametrize("key", ["cluster.servers.count", "cluster.learner.ranks"])
def test_one_is_the_default_and_changes_no_fingerprint(key):
    assert (config().cluster.servers.count, config().cluster.learner.ranks) == (1, 1)
    assert config(f"{key}=1").fingerprint() == config().fingerprint()
    assert config(f"{key}=2").fingerprint() != config().fingerprint()


@pytest.mark.parametrize(
    ("endpoint", "of_third"),
    [
        ("", ""),
        ("tcp://127.0.0.1:5555", "tcp://127.0.0.1:5557"),
        ("tcp://[::1]:5555", "tcp://[::1]:5557"),
        ("ipc:///tmp/a.ipc", "ipc:///tmp/a.ipc-2"),
    ],
)
def test_each_server_has_addresses_of_its_own(endpoint, of_third):
    settings = config("cluster.servers.count=3", f"server.endpoint='{endpoint}'", "server.prometheus_port=9100")
    assert settings.server_settings(0) == settings.server
    third = settings.server_settings(2)
    assert (third.endpoint, third.prometheus_port) == (of_third, 9102)
    assert config().server_settings(2).prometheus_port == 0


def test_each_server_and_each_rank_has_sockets_of_its_own(tmp_path):
    run_dir = RunDir(tmp_path)
    names = ("data", "own", "control")
    endpoints = {run_dir.endpoint(name, server) for name in names for server in range(3)}
    endpoints |= {run_dir.endpoint("unrolls", rank) for rank in range(3)} | {run_dir.endpoint("weights")}
    assert len(endpoints) == 9 + 4
    assert run_dir.endpoint("data") == run_dir.endpoint("data", 0) == f"ipc://{tmp_path}/sockets/data.ipc"
    assert run_dir.own_endpoint("", 2) == run_dir.endpoint("own", 2)


def test_sessions_are_counted_for_the_workers_of_one_server():
    small = ("workers.count=5", "workers.envs=8", "server.max_sessions=24")
    assert config("cluster.servers.count=2", *small).workers_of_a_server == 3
    with pytest.raises(ConfigError, match=r"at least workers\.count x workers\.envs x 1 seats = 40"):
        config(*small)
    with pytest.raises(ConfigError, match=r"at least 3 workers of a server x workers\.envs x 1 seats = 24"):
        config("cluster.servers.count=2", *small, "server.max_sessions=23")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["server.endpoint=tcp://127.0.0.1:65535"], "3 servers take the ports 65535 to 65537"),
        (["server.prometheus_port=65534"], "3 servers take the ports 65534 to 65536"),
        (["server.prometheus_port=9100", "prometheus_port=9102"], "the ports 9100 to 9102, and 9102 is one of them"),
        (["server.endpoint=tcp://127.0.0.1:0"], "as many ports in a row from a given one"),
        (["server.prometheus_port=9100", "server.endpoint=tcp://127.0.0.1:9102"], "these overlap"),
        (["server.deterministic=true"], "deterministic runs have one server"),
        (["cluster.servers.count=0"], "expected a whole number >= 1 and <= 64"),
        (["cluster.learner.ranks=0"], r"cluster\.learner\.ranks"),
        (["cluster.server.count=2"], "did you mean cluster.servers"),
    ],
)
def test_settings_that_cannot_work_are_refused(overrides, problem):
    with pytest.raises(ConfigError, match=problem):
        config("cluster.servers.count=3", *overrides)
