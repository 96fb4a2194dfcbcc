"""A run that ends before it trained, and a pause of the supervisor itself."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.common.protocol.messages import Report
from simul.common.role import run_lock
from simul.common.role.run_directory import RunDir
from simul.common.role.run_sockets import bind_reports
from simul.common.transport import new_keys
from simul.launch.cluster.cluster import Cluster
from simul.launch.monitoring.alerts import ALERT_AFTER_SEC, STANDSTILL_SEC
from simul.launch.monitoring.view.display import make_display
from simul.launch.processes.role_process import ResourceMeter
from simul.launch.supervisor import supervisor as module
from simul.launch.supervisor.game_spec import StartStopped
from simul.launch.supervisor.supervisor import LONGEST_POLL_SEC, Supervisor
from tests.support.command import phase_of
from tests.support.fake_agents import FakeEngine


@pytest.mark.parametrize("status_before", [None, b"", b'{"phase": "stopped"}'])
def test_a_refused_start_has_shown_that_it_starts_and_leaves_what_was_there_before(tmp_path, status_before):
    """None: no run directory at all. Its sockets lie elsewhere, and go in any case."""
    run_dir = RunDir(tmp_path / ("a-path-too-long-for-sockets" * 3) / "run")
    status = run_dir.root / "status.json"
    if status_before is not None:
        run_dir.root.mkdir(parents=True)
        run_dir.create()
        run_dir.remove_sockets()
    if status_before:
        status.write_bytes(status_before)
    wait = (
        f"import pathlib, sys, time\nfile = pathlib.Path({str(status)!r})\n"
        "while not (file.exists() and 'starting' in file.read_text()): time.sleep(0.05)\n"
        "sys.stderr.write('No, but it starts.'); sys.exit(2)"
    )
    with pytest.raises(ConfigError, match="No, but it starts"):
        Supervisor(Config(), run_dir, make_display(True), lambda role: [sys.executable, "-c", wait]).run()
    assert run_dir.root.exists() is (status_before is not None)
    assert (status.read_bytes() if status.exists() else b"") == (status_before or b"")
    assert list(Path(tempfile.gettempdir()).glob(f"{run_dir._sockets_prefix}*")) == []


@pytest.mark.parametrize("first", [run_lock.claim, bind_reports])
def test_a_start_in_the_new_directory_of_another_one_is_refused_and_removes_nothing(tmp_path, monkeypatch, first):
    """The other one makes the directory after this one has seen that there is none."""
    run_dir, other = RunDir(tmp_path / "run"), RunDir(tmp_path / "run")
    create, held = run_dir.create, []

    def create_second(access: str) -> None:
        other.create()
        held.append(first(other))
        create(access)

    monkeypatch.setattr(run_dir, "create", create_second)
    with pytest.raises(ConfigError, match=r"already active|in use by another process"):
        Supervisor(Config(), run_dir, make_display(True)).run()
    if held[0] is not None:
        held[0].close()
    assert other.token()


def test_a_start_that_is_refused_leaves_keys_and_address_book_of_the_other_one_which_has_just_begun(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    config = Config(store="file:///store")
    with run_lock.hold(run_dir):
        Cluster(FakeEngine(), config, run_dir).prepare()
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        for cluster in (Cluster(FakeEngine(), config, run_dir), None):
            with pytest.raises(ConfigError, match="already active"):
                Supervisor(config, RunDir(tmp_path), make_display(True), cluster=cluster).run()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_keys_and_address_book_of_a_cluster_start_that_was_killed_go_and_other_keys_stay(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    Cluster(FakeEngine(), Config(store="file:///store"), run_dir).prepare()
    run_dir.remove_addresses()
    assert not run_dir.keys.exists()
    new_keys(run_dir.keys)
    run_dir.remove_addresses()
    assert run_dir.keys.exists(), "the user's, for server.curve_keys"


def test_a_refused_start_removes_its_new_directory_while_no_other_start_may_be_in_it(tmp_path, monkeypatch):
    """Its last notice may take seconds, after which another start may have made the directory again."""
    run_dir = RunDir(tmp_path / "run")
    supervisor = Supervisor(Config(), run_dir, make_display(True))

    def refuse(*_: object, **__: object) -> None:
        raise ConfigError("No.")

    def start_another(hurry: object) -> list[str]:
        run_dir.create()
        return []

    monkeypatch.setattr(module, "prepare_run", refuse)
    monkeypatch.setattr(supervisor._notices, "close", start_another)
    with pytest.raises(ConfigError, match="No"):
        supervisor.run()
    assert run_dir.token()


def prepare(config: Config, run_dir: RunDir, *_: object, **__: object) -> Config:
    run_dir.write_config(config)
    return config


@pytest.mark.parametrize("former", [Config(seed=5), None])
def test_a_start_that_is_refused_late_puts_the_configuration_of_the_former_one_back(tmp_path, monkeypatch, former):
    """Such as one on a cluster whose machines differ."""
    run_dir = RunDir(tmp_path)
    if former is not None:
        run_dir.write_config(former)
    supervisor = Supervisor(Config(seed=6), run_dir, make_display(True))

    def refuse() -> None:
        raise ConfigError("No.")

    monkeypatch.setattr(module, "prepare_run", prepare)
    monkeypatch.setattr(supervisor, "_open_page", refuse)
    with pytest.raises(ConfigError, match="No"):
        supervisor.run()
    assert (tmp_path / "config.yaml").exists() is (former is not None)
    assert former is None or run_dir.read_config().seed == 5


@pytest.mark.parametrize("learned", [0, 8])
def test_a_start_that_stops_before_everything_is_ready_keeps_what_belongs_to_what_was_learned(
    tmp_path, monkeypatch, learned
):
    """Workers that are ready play while others start: then the learner has saved."""
    run_dir, undone = RunDir(tmp_path), []
    run_dir.write_config(Config(seed=5))
    origin = SimpleNamespace(undo=lambda: undone.append(True))
    supervisor = Supervisor(Config(seed=6), run_dir, make_display(True), origin=origin)

    def start_up() -> None:
        metrics = {"decisions_learned_since_start": learned}
        report = Report(role="learner", index=0, run_id=1, pid=1, state="ready", metrics=metrics)
        supervisor._reports.add_report(report, 0.0)
        raise StartStopped("Ctrl-C")

    monkeypatch.setattr(module, "prepare_run", prepare)
    monkeypatch.setattr(supervisor, "_start_up", start_up)
    assert supervisor.run() == 0
    assert (run_dir.read_config().seed, undone) == ((6, []) if learned else (5, [True]))


def test_a_configuration_error_while_it_trains_ends_the_run_as_the_death_of_a_role_does(tmp_path, monkeypatch):
    """Such as that of a file that a lost machine needs again: the learner saves before the run ends."""
    supervisor, stopped = Supervisor(Config(), RunDir(tmp_path), make_display(True)), []

    def start_up() -> None:
        supervisor._trained = True
        raise ConfigError("The configuration cannot be read.")

    monkeypatch.setattr(module, "prepare_run", lambda config, *_, **__: config)
    monkeypatch.setattr(supervisor, "_start_up", start_up)
    monkeypatch.setattr(supervisor._group, "stop", lambda role, *_: stopped.append(role) or [])
    with pytest.raises(ConfigError, match="The configuration cannot be read"):
        supervisor.run()
    assert stopped == ["env_worker", "inference_server", "learner"]
    assert (phase_of(tmp_path), (tmp_path / "summary.json").exists()) == ("failed", True)


CHILD = SimpleNamespace(
    name="simul-learner-0", pid=os.getpid(), run_id=1, exit_code=lambda: None, create_time=0.0, machine="", node=""
)


@pytest.mark.parametrize(
    ("state", "unsaved", "clean"),
    [("stopped", 0, True), ("failed", 0, True), ("stopped", 1, False), ("ready", 0, False)],
)
def test_a_rank_that_dies_in_a_clean_stop_is_an_error_only_where_something_was_not_saved(
    tmp_path, monkeypatch, capsys, state, unsaved, clean
):
    supervisor = Supervisor(Config(), RunDir(tmp_path), make_display(True))
    supervisor._group.members["learner", 0] = SimpleNamespace(child=CHILD, meter=ResourceMeter())
    metrics = {"unsaved_updates": unsaved}
    report = Report(role="learner", index=0, run_id=1, pid=1, state=state, metrics=metrics)
    supervisor._reports.add_report(report, 0.0)
    killed = "rank 1 of the learner ended with signal 9."
    monkeypatch.setattr(supervisor._group, "stop", lambda role, *_: [killed] if role == "learner" else [])
    monkeypatch.setattr(supervisor, "_take_last_reports", lambda: None)
    assert supervisor._shut_down(quiet=False) is clean
    said = capsys.readouterr().out
    assert killed in said
    assert ("nothing is lost" in said) is clean


PAUSE_SEC = 2 * STANDSTILL_SEC + ALERT_AFTER_SEC


def test_a_pause_of_the_supervisor_itself_raises_no_alert(tmp_path, monkeypatch):
    at = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: at[0]))
    monkeypatch.setattr("simul.launch.monitoring.snapshot.time", SimpleNamespace(
        monotonic=lambda: at[0], time=lambda: 0.0, strftime=lambda _: ""
    ))  # fmt: skip
    supervisor = Supervisor(Config(), RunDir(tmp_path), make_display(True))
    supervisor._group.members["learner", 0] = SimpleNamespace(
        child=CHILD, meter=ResourceMeter(), restarts=0, last_error=""
    )
    supervisor._reports.add_report(Report(role="learner", index=0, run_id=1, pid=1, state="ready", metrics={}), 0.0)

    def told_after(seconds: float) -> list[str]:
        at[0] += seconds
        supervisor._exclude_own_pause()
        supervisor._monitor.take_snapshot("training", at[0])
        return supervisor._monitor.take_alerts()

    told_after(0.0)
    assert told_after(PAUSE_SEC) == []
    turns = [told_after(LONGEST_POLL_SEC) for _ in range(int(STANDSTILL_SEC) + 1)]
    said = [sentence for turn in turns for sentence in turn]
    assert [sentence.split(":")[0] for sentence in said] == [
        "simul-learner-0 has sent no report for 10 s",
        "nothing was learned for 60 s (0 steps wait for an update)",
    ], "what lasts while it is awake is told as ever"
