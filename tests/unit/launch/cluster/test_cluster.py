"""What the machines of a run are given, told and asked for; the agents are the test's."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest
import yaml

from simul.common.config.schema import ClusterConfig, ClusterLearnerConfig, Config
from simul.common.errors import ConfigError
from simul.common.protocol.messages import Report
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import AddressBook, RunDir
from simul.common.store import REFUSED
from simul.launch.cluster import cluster as cluster_module
from simul.launch.cluster.cluster import LACKING_AFTER_SEC, Cluster
from simul.launch.cluster.facts import machine_facts
from simul.launch.cluster.links import ChannelLostError, RemoteRole
from simul.launch.cluster.messages import AgentHello, News, StartRole, WriteFiles, encode_frame
from simul.launch.processes.process_group import RoleDied
from tests.support.fake_agents import FakeEngine
from tests.support.waiting import wait_for

CONFIG = Config(store="file:///store", cluster=ClusterConfig(learner=ClusterLearnerConfig(2)))
LEARNER, SERVER, WORKERS = range(3)  # bundles


@pytest.fixture
def run_dir(tmp_path):
    made = RunDir(tmp_path / "run")
    made.create()
    made.write_config(CONFIG)
    made.write_spec(GameSpec("test/game", 4, 2))
    return made


def _greeting(**facts: str) -> bytes:
    return encode_frame(AgentHello(root="/node", machine="other", facts={**machine_facts(), **facts}))


@pytest.fixture
def engine():
    made = FakeEngine()
    made.greeting = _greeting()
    made.free.set()
    return made


@pytest.fixture
def unopened(run_dir, engine):
    made = Cluster(engine, CONFIG, run_dir)
    made.prepare()
    yield made
    for lives in engine.channels.values():
        for channel in lives:
            channel.close()
    made.close()


@pytest.fixture
def cluster(unopened):
    said: list[str] = []
    unopened.open(lambda: False, said.append)
    assert said == ["placed: learner on fake, inference server 0 on fake, worker 0 on fake"]
    return unopened


def _poll_until(cluster: Cluster, condition: Callable[[], object]) -> list[str]:
    said: list[str] = []
    wait_for(lambda: condition() or said.extend(cluster.poll(time.monotonic())))
    return said


def _lost_worker(cluster: Cluster, engine: FakeEngine) -> tuple[RemoteRole, list[str]]:
    """A worker whose machine was lost, and what was said of it."""
    role: RemoteRole = cluster.launch("env_worker", 0, 1, ())
    engine.channels[WORKERS][0].said.put(ChannelLostError("the power is gone"))
    return role, _poll_until(cluster, lambda: role.exit_code() is not None)


def _report(role: str, **endpoints: str) -> Report:
    named = {name.replace("_", "-"): endpoint for name, endpoint in endpoints.items()}
    return Report(role=role, index=0, run_id=1, pid=1, state="ready", endpoints=named)


def test_a_role_gets_its_files_with_the_paths_of_its_machine_and_no_secret_of_others(cluster, engine, run_dir) -> None:
    role = cluster.launch("env_worker", 0, 1, ["--server", "0"])
    written, start = engine.channels[WORKERS][0].heard
    assert isinstance(written, WriteFiles)
    assert yaml.safe_load(written.files["config.yaml"])["run_dir"] == "/node"
    assert written.files["token"].decode() == run_dir.token()
    assert msgspec.json.decode(written.files["addresses.json"], type=AddressBook).host == "127.0.0.9"
    assert {name for name in written.files if "secret" in name} == {"keys/client.key_secret"}
    assert "keys/allowed/client.key" in written.files
    assert start == StartRole(role="env_worker", index=0, run_id=role.run_id, threads=1, arguments=("--server", "0"))


def test_the_learner_of_a_new_agent_fetches_until_it_has_started_and_not_when_it_only_starts_again(
    cluster, engine
) -> None:
    """A fetch that the store refused must not end in a learner that begins with random weights."""
    channel = engine.channels[LEARNER][0]
    for expected, last in ((True, "refused"), (True, "started"), (False, "refused"), (False, "")):
        role = cluster.launch("learner", 0, 1, ())
        start = channel.heard[-1]
        assert isinstance(start, StartRole)
        assert (start.first[:3] == ("simul.common.store", "--url", "file:///store")) == expected
        assert role.fetching == expected
        if last == "refused":
            channel.said.put(encode_frame(News(exits={role.run_id: REFUSED})))
            _poll_until(cluster, lambda role=role: role.exit_code() == REFUSED)
        elif last == "started":
            channel.said.put(encode_frame(News(started={role.run_id: (77, 5.0)})))
            _poll_until(cluster, lambda role=role: role.pid == 77)
            assert not role.fetching
    assert "--resumes" not in channel.heard[1].first
    channel.said.put(ChannelLostError("the power is gone"))
    _poll_until(cluster, lambda: role.exit_code() is not None)
    again: RemoteRole = cluster.launch("learner", 0, 1, ())
    _poll_until(cluster, lambda: again.fetching)
    assert engine.channels[LEARNER][1].heard[-1].first[-1] == "--resumes", "the servers serve on: it waits longer"


def test_the_ranks_of_a_learner_start_when_the_first_one_has_fetched_or_end_unheard_where_it_could_not(
    cluster, engine
) -> None:
    channel = engine.channels[LEARNER][0]
    ranks = [cluster.launch("learner", rank, 1, ["--meeting", "1"]) for rank in range(2)]
    assert [role.fetching for role in ranks] == [True, True]
    assert [m.index for m in channel.heard if isinstance(m, StartRole)] == [0]
    channel.said.put(encode_frame(News(exits={ranks[0].run_id: REFUSED})))
    _poll_until(cluster, lambda: ranks[0].exit_code() == REFUSED)
    assert ranks[1].exit_code() is None
    ranks[1].kill()  # what the process group does then
    assert ranks[1].exit_code() == -9, "its agent would never say so"

    ranks = [cluster.launch("learner", rank, 1, ["--meeting", "2"]) for rank in (1, 0)]
    channel.said.put(encode_frame(News(started={ranks[1].run_id: (77, 5.0)})))
    _poll_until(cluster, lambda: ranks[1].pid == 77)
    started = [message for message in channel.heard if isinstance(message, StartRole)][1:]
    assert [(m.index, bool(m.first), m.arguments) for m in started] == [
        (0, True, ("--meeting", "2")), (1, False, ("--meeting", "2")),
    ]  # fmt: skip
    assert not any(role.fetching for role in ranks)
    ranks[0].kill()
    assert ranks[0].exit_code() is None, "it was started: its agent says how it ended"


def test_new_addresses_go_to_all_machines_and_workers_of_a_server_that_moved_are_named(
    cluster, engine, run_dir
) -> None:
    cluster.note_report(_report("inference_server", own_0="tcp://127.0.0.9:1"))
    assert cluster.moved == set(), "there was no address before the first"
    heard = [len(lives[0].heard) for lives in engine.channels.values()]
    assert heard == [1, 1, 1]
    cluster.note_report(_report("inference_server", own_0="tcp://127.0.0.9:1"))
    assert [len(lives[0].heard) for lives in engine.channels.values()] == heard, "nothing new"
    cluster.note_report(_report("inference_server", own_0="tcp://127.0.0.9:2"))
    cluster.note_report(_report("learner", unrolls_0="tcp://127.0.0.9:3"))
    assert cluster.moved == {0}
    assert run_dir.endpoint("own") == run_dir.own_endpoint("") == "tcp://127.0.0.9:2"
    assert run_dir.endpoint("unrolls") == "tcp://127.0.0.9:3"
    with pytest.raises(ConfigError, match="no address of weights"):
        run_dir.endpoint("weights")


def test_exit_codes_logs_and_usage_come_from_the_agent(cluster, engine, run_dir) -> None:
    role = cluster.launch("env_worker", 0, 1, ())
    news = News(
        started={role.run_id: (77, 5.0)}, logs=[("simul-worker-0.log", b"last words\n"), ("../../token", b"no")]
    )
    token = run_dir.token()
    engine.channels[WORKERS][0].said.put(encode_frame(news) + encode_frame(News(exits={role.run_id: 3})))
    _poll_until(cluster, lambda: role.exit_code() is not None)
    assert (role.exit_code(), role.pid, role.create_time, role.machine) == (3, 77, 5.0, "other")
    assert role.last_line() == "last words"
    assert run_dir.token() == token


def test_a_lost_machine_ends_its_processes_and_they_start_with_another_agent(cluster, engine) -> None:
    role, said = _lost_worker(cluster, engine)
    assert said == ["fake (worker 0) is lost: the power is gone"]
    role.end(0)  # too late
    assert (role.exit_code(), role.exit_reason()) == (-9, "fake is lost")
    engine.free.clear()
    again = cluster.launch("env_worker", 0, 1, ())
    cluster.poll(time.monotonic())
    assert (again.exit_code(), again.node) == (None, ""), "it waits for a machine"
    engine.free.set()
    said = _poll_until(cluster, lambda: again.node)
    assert said == ["worker 0 placed again on fake"]
    assert isinstance(engine.channels[WORKERS][1].heard[-1], StartRole)


def test_a_bundle_that_no_machine_has_room_for_is_named_once_while_it_waits(cluster, engine) -> None:
    engine.free.clear()
    _lost_worker(cluster, engine)
    cluster.launch("env_worker", 0, 1, ())
    now = time.monotonic()
    assert cluster.poll(now) == []
    later = now + LACKING_AFTER_SEC + 0.1
    engine.room = True  # as far as it knows: it has not noticed yet what was lost
    assert cluster.poll(later) == cluster.poll(later + 1.0) == []
    engine.room = False
    (said,) = cluster.poll(later + LACKING_AFTER_SEC)
    assert said == "the run waits for machines; none has room for 1 bundles."
    assert cluster.poll(later + 60.0) == []
    assert engine.asked == [[WORKERS]] * 2
    engine.free.set()


@pytest.mark.parametrize("room", [False, True])
def test_a_run_whose_bundles_get_no_agents_ends_and_says_why(room, unopened, engine, monkeypatch) -> None:
    """In the fake's time: all three wait for a machine, or for the first word of an agent that was placed."""
    monkeypatch.setattr(cluster_module, "PLACE_LIMIT_SEC", 0.3)
    engine.greeting = b""
    if not room:
        engine.free.clear()
    engine.room = room
    why = "said nothing within" if room else "no machine had room for 3 bundles."
    with pytest.raises(RoleDied, match=why):
        unopened.open(lambda: False, str)


def test_where_a_machine_is_lost_between_the_starts_of_two_ranks_both_start_on_the_next_one(cluster, engine) -> None:
    """The first start was sent to an agent that had ended; `poll` has not seen the end yet."""
    first: RemoteRole = cluster.launch("learner", 0, 1, ())
    first.link.lost = "its agent has ended"
    again = [cluster.launch("learner", rank, 1, ()) for rank in (1, 0)]
    assert first.exit_code() == -9
    _poll_until(cluster, lambda: all(role.fetching for role in again))
    engine.channels[LEARNER][1].said.put(encode_frame(News(started={again[1].run_id: (77, 5.0)})))
    _poll_until(cluster, lambda: len(engine.channels[LEARNER][1].heard) == 4)


@pytest.mark.parametrize("found_later", [True, False])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("token", "{} cannot be read: No such file or directory"),
        ("config.yaml", "The configuration of the run, {}, cannot be read: No such file or directory"),
    ],
)
def test_a_process_whose_files_are_gone_when_it_starts_again_could_not_be_started(
    cluster, engine, run_dir, name, why, found_later
) -> None:
    if found_later:
        engine.free.clear()
        _lost_worker(cluster, engine)
        role: RemoteRole = cluster.launch("env_worker", 0, 1, ())
    (run_dir.root / name).unlink()
    engine.free.set()
    if not found_later:
        role = cluster.launch("env_worker", 0, 1, ())
    _poll_until(cluster, lambda: role.exit_code() is not None)
    assert (role.exit_code(), role.exit_reason()) == (127, why.format(run_dir.root / name))


def test_a_machine_that_is_found_later_is_not_used_where_its_versions_differ(cluster, engine) -> None:
    _lost_worker(cluster, engine)
    engine.greeting = _greeting(torch="1.0")
    role: RemoteRole = cluster.launch("env_worker", 0, 1, ())
    (said,) = _poll_until(cluster, lambda: role.exit_code() is not None)
    assert said.startswith("fake (worker 0) is lost: torch differs: ")
    assert not engine.channels[WORKERS][1].heard, "nothing is sent there, no key either"


def test_machines_with_other_versions_are_refused_before_anything_starts(unopened, engine) -> None:
    engine.greeting = _greeting(torch="1.0")
    with pytest.raises(ConfigError, match=r"torch differs: .* on this machine, 1\.0 on fake"):
        unopened.open(lambda: False, str)
