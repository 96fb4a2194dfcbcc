"""The supervisor with real processes (stand-ins for the roles): start, restart, stop, refuse, resume."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from simul.common.checkpoints.meta import decode_meta
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.launch import cli
from simul.launch.monitoring.accounting import imbalances
from simul.launch.processes.restart_policy import MOST_FAILED_STARTS
from simul.launch.processes.signals import ECHO_SEC
from simul.launch.supervisor.checkpoint_files import newest_checkpoint
from tests.integration.test_compatibility import DECISIONS, FORMER
from tests.support.checkpoints import write_small_checkpoint
from tests.support.command import phase_of
from tests.support.stand_ins import PROGRAM, STAND_IN
from tests.support.waiting import PATIENCE_SEC, wait_for


def test_a_run_starts_in_order_and_ctrl_c_ends_it_cleanly(up):
    run = up("--set", "workers.count=2")
    run.wait_until_training()
    pids = run.pids()
    code, output = run.finish()
    assert code == 0, output
    order = [output.index(text) for text in ("learner ready", "inference server ready", "env workers ready")]
    assert order == sorted(order)
    assert output.count("to see it in a browser: simul page ") == 1
    assert len(pids) == 6  # learner, server, two workers and what those started
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))
    summary = msgspec.json.decode((run.run_dir.root / "summary.json").read_bytes())
    assert summary["decisions"] > 0
    assert summary["decisions_per_sec"] == pytest.approx(summary["decisions"] / summary["seconds"], rel=0.01)
    assert summary["mean_batch"] == pytest.approx(10, rel=0.2)
    assert summary["peak_memory_mb"]["simul-worker-0"]["children"] > 1
    assert summary["versions"]["torch"] != "missing"
    assert imbalances(summary) == []
    assert not (run.run_dir.root / "supervisor.pid").exists()


def test_a_stopped_server_is_seen_within_a_second_a_killed_role_is_back_soon_and_totals_never_go_back(up):
    begin, run = time.monotonic(), up()
    run.wait_until_training()
    start_sec = time.monotonic() - begin
    server = run.process_of("simul-inference-0")
    assert any(_seen_after(run, server["pid"]) < 1.0 for _ in range(20))  # a busy machine may look late now and then
    names = ("simul-worker-0", "simul-inference-0", "simul-learner-0")
    for kills, name in enumerate(names, 1):
        before, victim = run.status(), run.process_of(name)
        os.kill(victim["pid"], signal.SIGKILL)
        killed_at = time.monotonic()
        run.wait_for(lambda s, name=name: any(p["name"] == name and p["restarts"] == 1 and p["state"] == "ready"
                                              for p in s["processes"]))  # fmt: skip
        # The limit is the start of the whole run: a slow machine starts as slowly.
        assert time.monotonic() - killed_at < max(10.0, 2 * start_sec), name
        assert run.process_of(name)["pid"] != victim["pid"]
        after = run.status()
        assert after["server"]["decisions"] >= before["server"]["decisions"]
        assert after["workers"]["episodes"]["started"] >= before["workers"]["episodes"]["started"]
        said = "died (signal 9), restarting"
        assert sum(said in event for event in after["events"]) == kills
        assert (run.run_dir.logs / "simul-supervisor.log").read_text().count(said) == kills
    code, output = run.finish()
    assert code == 0, output
    summary = read_json(run.run_dir, "summary.json")
    assert imbalances(summary) == []
    assert [summary["restarts"][name] for name in names] == [1, 1, 1]


def _seen_after(run, pid: int) -> float:
    """Seconds from SIGSTOP of a process until status.json says so; it goes on afterwards."""
    os.kill(pid, signal.SIGSTOP)
    stopped_at = time.monotonic()
    run.wait_for(lambda s: any(p["pid"] == pid and "silent" in p["state"] for p in s["processes"]))
    took = time.monotonic() - stopped_at
    os.kill(pid, signal.SIGCONT)
    run.wait_for(lambda s: any(p["pid"] == pid and p["state"] == "ready" for p in s["processes"]))
    return took


def test_status_down_and_a_second_run_in_the_same_place(up, tmp_path, capsys):
    """The place has an empty token, which is named and made anew when the run starts."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "token").touch()
    run, place = up(), ["--run-dir", str(tmp_path / "run")]
    run.wait_until_training()
    assert "run/token was empty or damaged" in run.printed()
    assert run.run_dir.token()
    assert cli.main(["up", "configs/cartpole.yaml", *place, "--plain"]) == 2
    refused = capsys.readouterr().err
    assert "already active" in refused
    assert "simul down" in refused
    assert cli.main(["status", *place, "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["supervisor_pid"] == run.process.pid
    assert cli.main(["down", *place]) == 0
    assert run.result()[0] == 0
    assert cli.main(["status", *place]) == 3
    assert "not active" in capsys.readouterr().out


def test_a_second_signal_ends_at_once_even_what_is_deaf(up, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "deaf-env_worker").touch()
    run = up()
    run.wait_until_training()
    pids = run.pids()
    run.process.send_signal(signal.SIGTERM)
    run.wait_for(lambda status: status["phase"] == "stopping")
    time.sleep(ECHO_SEC)
    code, output = run.finish(signal.SIGTERM)
    assert code == 1
    assert "worker 0 was killed at once" in output, "else: did not stop in 15 s"
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))


def test_ctrl_c_under_make_on_a_terminal_is_a_clean_end(tmp_path):
    (tmp_path / "Makefile").write_text('up:\n\t@"$(PYTHON)" $(PROGRAM) "$(STAND_IN)" up --from-make "$(CONFIG)"\n')
    (tmp_path / "program.py").write_text(PROGRAM)
    config = tmp_path / "run.yaml"
    config.write_text("game: gymnasium\nrun_dir: run\n")
    line = ["make", "-C", str(tmp_path), "up", f"PYTHON={sys.executable}", "PROGRAM=program.py",
            f"STAND_IN={STAND_IN}", f"CONFIG={config}"]  # fmt: skip
    on_terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    process = subprocess.Popen(
        [sys.executable, "-c", on_terminal, *line], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
    )  # fmt: skip
    drawn = b""
    while phase_of(tmp_path / "run") != "training" or b"decisions/s" not in drawn:
        more = os.read(process.stdout.fileno(), 65_536)
        assert more, drawn
        drawn += more
    screen = (drawn + process.communicate(b"\x03", timeout=120)[0]).decode(errors="replace")
    assert process.returncode == 0, screen
    assert "decisions/s" in screen
    assert "resumes" in screen
    assert "Error" not in screen


def test_eval_plays_exactly_so_many_and_prints_only_json(simul, tmp_path):
    checkpoint = tmp_path / "run" / "checkpoints" / "000000007"
    write_small_checkpoint(checkpoint, 7, spec=GameSpec("pokemon/gen9randombattle", 3, 2))
    (tmp_path / "run" / "config.yaml").write_text("game: pokemon\nnetwork: {name: pokemon}\n")
    arguments = ("eval", "--checkpoint", str(tmp_path / "run"), "--opponent", "random", "--battles", "41")
    code, output = simul(*arguments, "--workers", "2", "--json").result()
    assert code == 0, output
    result = msgspec.json.decode(output)
    assert (result["episodes"], result["wins"], result["losses"], result["ties"]) == (41, 30, 9, 2)
    assert result["wilson_95"][0] < result["win_rate"] < result["wilson_95"][1]


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`simul ...` with the real roles."""
    return subprocess.run(
        [sys.executable, "-m", "simul.launch.cli", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=200
    )


def resumed(root: Path, decisions: int, *arguments: str) -> dict[str, Any]:
    """summary.json of `simul up` that goes on from the newest checkpoint of `root` for so many decisions."""
    before = decode_meta(newest_checkpoint(root)).version
    done = run_cli(
        "up", "cartpole", "--run-dir", str(root), "--plain", "--stop-after-decisions", str(decisions),
        "--set", "network.options={hidden: 8}", "--set", "learner.total_decisions=auto", "--set",
        "learner.batch_steps=512", *arguments,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Resumed from checkpoint {before} (" in done.stdout
    summary = read_json(RunDir(root), "summary.json")
    assert summary["decisions"] >= decisions
    assert summary["policy_version"] > before
    assert summary["decisions_per_sec"] == pytest.approx(summary["decisions"] / summary["seconds"], rel=0.01)
    assert imbalances(summary) == []
    assert summary["accounting"]["steps"]["total"] > 0
    assert summary["accounting"]["steps"]["open"] == 0
    return summary


@pytest.mark.slow  # .ci/long runs it; what a former checkpoint answers, test_compatibility.py; real roles, test_api.py
@pytest.mark.timeout(900)
def test_the_real_roles_resume_a_former_run_resume_their_own_and_balance_their_books(tmp_path):
    """The former run is that of test_compatibility.py: run directory, settings and checkpoint of an earlier version."""
    root = Path(shutil.copytree(FORMER, tmp_path / "run"))
    first = resumed(root, 2000, "--new-horizon")
    assert first["lifetime_decisions_learned"] == DECISIONS + first["decisions_learned"] > DECISIONS
    assert len((root / "curves.csv").read_text().splitlines()) > len((FORMER / "curves.csv").read_text().splitlines())
    begun = decode_meta(newest_checkpoint(root))
    assert (begun.horizon, begun.state_size is not None) == (DECISIONS + 2000, True)
    second = resumed(root, 1500)
    assert decode_meta(newest_checkpoint(root)).horizon == DECISIONS + 2000, "of the start before"
    assert second["run_decisions"] == first["run_decisions"] + second["decisions"]
    learned = first["lifetime_decisions_learned"] + second["decisions_learned"]
    assert second["lifetime_decisions_learned"] == learned, "those of this start, and of all"


def test_a_role_that_fails_in_every_start_is_an_event_and_ends_the_run_with_a_summary(up):
    soon = "from simul.launch.monitoring import alerts; alerts.STANDSTILL_SEC = 0.5\n"
    run = up(program=soon + PROGRAM)
    run.wait_until_training()
    (run.run_dir.root / "crash-learner").touch()
    os.kill(run.process_of("simul-learner-0")["pid"], signal.SIGKILL)
    code, output = run.result()
    assert code == 1, output
    assert "RuntimeError: a fault of the stand-in" in output
    summary = read_json(run.run_dir, "summary.json")
    assert summary["restarts"]["simul-learner-0"] == MOST_FAILED_STARTS
    events = "\n".join(summary["events"])
    assert "simul-learner-0 has not worked for" in events
    assert "it died with: RuntimeError: a fault of the stand-in" in events
    assert "nothing was learned for" in events
    assert imbalances(summary) == []


@pytest.mark.slow  # .ci/long runs it
def test_a_rank_that_dies_in_a_clean_stop_is_no_error_where_everything_was_saved(up):
    """Where something was not, tests/unit/launch/supervisor/test_supervisor.py."""
    run = up("--set", "cluster.learner.ranks=2")
    run.wait_until_training()
    (run.run_dir.root / "killed-learner-1").touch()
    code, output = run.finish()
    assert code == 0, output
    assert "rank 1 of the learner ended with signal 9" in output
    assert "The learner had saved everything that was learned: nothing is lost." in output


@pytest.mark.slow  # .ci/long runs it
def test_a_worker_that_is_dead_at_the_stop_leaves_no_episode_alive(up):
    run = up("--set", "workers.count=2")
    run.wait_until_training()
    (run.run_dir.root / "crash-env_worker").touch()
    os.kill(run.process_of("simul-worker-1")["pid"], signal.SIGKILL)
    run.wait_for(lambda status: any("worker 1 died" in event for event in status["events"]))
    _, output = run.finish()
    summary = read_json(run.run_dir, "summary.json")
    assert summary["battles"]["alive"] == 0
    assert summary["battles"]["aborted_by_cause"] == {"shutdown": 4, "worker_died": 4}
    assert imbalances(summary) == []
    assert "8 aborted (shutdown 4, worker_died 4)" in output


def _curves(root) -> list[dict[str, str]]:
    with (root / "curves.csv").open() as file:
        return list(csv.DictReader(file))


def _steps(root) -> list[int]:
    return [int(row["decisions"]) for row in _curves(root)]


def _shown(root) -> list[int]:
    """Steps of the rows that TensorBoard shows."""
    board = EventAccumulator(str(root / "tensorboard"))
    board.Reload()
    return [event.step for event in board.Scalars("server/latency_us_p50")]


@pytest.mark.slow  # .ci/long runs it; every role dies in tests/chaos/test_kills.py
def test_a_killed_supervisor_leaves_no_process_and_curves_go_on_with_no_step_out_of_order(up):
    reached, ends = 0.0, []
    for ending in ("stopped", "killed", "stopped"):
        run = up()
        run.wait_for(
            lambda status, reached=reached: (
                status.get("figures", {}).get("run/decisions_per_sec") and status["run_decisions"] > reached + 500
            )
        )
        if ending == "killed":
            pids = run.pids()
            run.wait_for(lambda _, root=run.run_dir.root: _shown(root) == _steps(root))  # not between two writers
            os.kill(run.process.pid, signal.SIGKILL)
            run.process.wait()
            wait_for(lambda pids=pids: not any(map(psutil.pid_exists, pids)))
        else:
            assert run.finish()[0] == 0
        rows = _curves(run.run_dir.root)
        ends.append(len(rows))
        before, reached = reached, run.status()["run_decisions"]
        assert before < float(rows[-1]["decisions"]) <= reached
        if ending == "stopped":
            assert float(rows[-1]["decisions"]) == reached, "the last state is the last row"
            assert rows[-1]["run/decisions_per_sec"] == ""
            assert run.summary()["decisions"] == pytest.approx(reached - before)
    assert ends == sorted(set(ends)), "each start has added rows"
    for axis in ("decisions", "training_sec", "time"):
        values = [float(row[axis]) for row in rows]
        assert values == sorted(values)
    assert _shown(run.run_dir.root) == _steps(run.run_dir.root), "nothing is hidden"
    assert rows[-1]["learner/policy_version"] == "1"


def _scrape(port: int) -> str:
    """What Prometheus gets; empty while nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SEC) as answer:
            return answer.read().decode()
    except urllib.error.URLError:
        return ""


def test_a_prometheus_port_that_is_taken_is_refused(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = ["up", "configs/cartpole.yaml", "--run-dir", str(tmp_path / "run"), "--plain"]
        assert cli.main([*line, "--set", f"prometheus_port={port}"]) == 2
    refused = capsys.readouterr().err
    assert f"cannot be served at 127.0.0.1:{port}: " in refused
    assert "another prometheus_port" in refused


@pytest.mark.slow  # .ci/long runs it
def test_the_best_checkpoint_is_evaluated_in_training_and_kept_and_prometheus_gets_the_runs_figures(up, tmp_path):
    spec = GameSpec("test/stand-in", 4, 2)
    checkpoints = tmp_path / "run" / "checkpoints"
    write_small_checkpoint(checkpoints / "000000003", 3, spec=spec)
    port = free_port()
    run = up(
        "--set", "evaluation.every_decisions=300", "--set", "evaluation.games=4", "--set", f"prometheus_port={port}"
    )
    status = run.wait_for(lambda status: status.get("figures", {}).get("evaluation/score") and status)
    assert status["figures"]["evaluation/score"] == 10.0
    assert status["figures"]["evaluation/policy_version"] == 3
    assert any("evaluation of version 3: mean return of 4 greedy games 10" in event for event in status["events"])
    for line in (r"simul_run_decisions_per_sec \d", r'simul_run_process_memory_mb{role="env_worker"} \d'):
        run.wait_for(lambda _, line=line: re.search(f"^{line}", _scrape(port), re.MULTILINE), line)
    code, output = run.finish()
    assert code == 0, output
    evaluated = [row for row in _curves(run.run_dir.root) if row.get("evaluation/score")]
    assert [(row["evaluation/score"], row["evaluation/policy_version"]) for row in evaluated] == [("10", "3")]
    assert read_json(RunDir(checkpoints), "best/meta.json")["version"] == 3
    assert imbalances(run.summary()) == []
    assert sorted(path.name for path in checkpoints.iterdir()) == ["000000003", "best", "best-000000003", "version"]


@pytest.mark.slow  # .ci/long runs it
def test_a_run_resumed_in_an_unpacked_directory_of_others_writes_through_none_of_its_links(up, tmp_path):
    """At the name of every file that a run writes there is a link to a file of the user's."""
    run, users = tmp_path / "run", tmp_path / "users"
    assert up("--stop-after-decisions", "100").result()[0] == 0
    files = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for name in files:
        (users / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).replace(users / name)
        (run / name).symlink_to(users / name)
    code, output = up("--stop-after-decisions", "200").result()
    assert code == 0, output
    assert "curves.csv could not be written: a symbolic link" in output
    assert {path.relative_to(users): path.read_bytes() for path in users.rglob("*") if path.is_file()} == files
