"""When a process is restarted, what is restored before, and a system that has no process to give."""

from __future__ import annotations

import errno
import re
import shutil
import stat
import sys
import time
from types import SimpleNamespace

import msgspec
import pytest

from simul.common.config.loader import config_from_tree
from simul.common.config.schema import Config
from simul.common.protocol.messages import Report
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import EXIT_RANK_LOST, SAVE_PATIENCE_SEC
from simul.common.role.run_directory import RunDir
from simul.launch.processes import process_group, restart_policy, role_process
from simul.launch.processes.needed_files import NEEDED_FILE_NAMES, NeededFiles
from simul.launch.processes.process_group import GANG_PATIENCE_SEC, READY_LIMIT_SEC, ProcessGroup, RoleDied
from simul.launch.processes.restart_policy import LONGEST_DELAY_SEC, MOST_FAILED_STARTS
from simul.launch.processes.role_process import RoleLife
from simul.launch.processes.role_reports import RoleReports
from tests.support.waiting import wait_for

END_AT_ONCE = [sys.executable, "-c", "pass"]


def report(child: RoleLife, **metrics: object) -> Report:
    """That it is ready."""
    return Report(role=child.role, index=child.index, run_id=child.run_id, pid=1, state="ready", metrics=metrics)


def _no_process(*_: object) -> None:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.fixture
def group(tmp_path):
    """A group whose only process has ended."""
    run_dir = RunDir(tmp_path)
    run_dir.create()
    group = ProcessGroup(run_dir, RoleReports(), lambda role: END_AT_ONCE)
    group.start("learner", 1, 1)
    group.members["learner", 0].child._process.wait(100)
    group.restart_dead(0.0)
    yield group
    group.kill_all()


def test_a_restart_that_gets_no_process_is_tried_again(group, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(role_process, "_popen", _no_process)
        failed = "the learner could not be started (Resource temporarily unavailable), trying again"
        assert group.restart_dead(LONGEST_DELAY_SEC) == [failed]
        assert group.restart_dead(LONGEST_DELAY_SEC) == [], "it waits"
    assert group.members["learner", 0].restarts == 0
    assert group.restart_dead(2 * LONGEST_DELAY_SEC) == []
    assert group.members["learner", 0].restarts == 1


def test_the_reports_of_every_life_that_it_has_started_are_its_own_and_no_others(group):
    """A last report may arrive after the next life has begun."""
    lives = [group.members["learner", 0].child]
    for now in (LONGEST_DELAY_SEC, 2 * LONGEST_DELAY_SEC):
        group.restart_dead(now)
    lives.append(group.members["learner", 0].child)
    reports = [report(child) for child in lives]
    assert [group.has_started(each) for each in reports] == [True, True]
    assert not group.has_started(msgspec.structs.replace(reports[0], run_id=1))
    assert not group.has_started(msgspec.structs.replace(reports[0], role="env_worker"))


def test_restarts_that_get_no_process_end_the_run_in_the_end(group, monkeypatch):
    monkeypatch.setattr(role_process, "_popen", _no_process)
    turns = [turn * LONGEST_DELAY_SEC for turn in range(1, MOST_FAILED_STARTS)]  # its first life failed, too
    for now in turns[:-1]:
        assert len(group.restart_dead(now)) == 1
    with pytest.raises(RoleDied, match=r"the learner could not be started .* too often"):
        group.restart_dead(turns[-1])


def test_a_first_start_that_gets_no_process_ends_the_run_with_a_sentence(group, monkeypatch):
    monkeypatch.setattr(role_process, "_popen", _no_process)
    with pytest.raises(RoleDied, match=r"simul-worker-0 could not be started \(Resource .*\)\. Free memory"):
        group.start("env_worker", 2, 1)


SPEC = GameSpec("test", 4, 2)


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_config(Config())
    run_dir.write_spec(SPEC)
    return run_dir


class Starts:
    """A worker whose first lives end with `code` and the words `last`; the next one lives, and is ready."""

    def __init__(self, run_dir: RunDir, code: int, lives: int, last: str = "") -> None:
        count = run_dir.root / "lives"
        program = (
            f"import os, time; file = open({str(count)!r}, 'ab'); file.write(b'x'); file.close()\n"
            f"if os.path.getsize({str(count)!r}) <= {lives}: os.write(2, {last.encode()!r}); os._exit({code})\n"
            "time.sleep(1000)"
        )
        self._reports = RoleReports()
        self.group = ProcessGroup(run_dir, self._reports, lambda role: [sys.executable, "-c", program])
        self._count, self._lives = count, lives
        self.said: list[str] = []
        self.group.start("env_worker", 1, 1)

    def wait(self) -> None:
        self.group.wait_until_ready("env_worker", self._meanwhile, self.said.append)

    def _meanwhile(self) -> bool:
        time.sleep(0.005)
        if self._count.exists() and self._count.stat().st_size > self._lives:
            self._reports.add_report(report(self.group.members["env_worker", 0].child), 0.0)
        return False


@pytest.fixture
def starts(run_dir, monkeypatch):
    """Makes `Starts` whose restarts follow at once."""
    monkeypatch.setattr(restart_policy, "FIRST_DELAY_SEC", 0.0)
    made = []

    def make(code: int, lives: int, last: str = "") -> Starts:
        made.append(Starts(run_dir, code, lives, last))
        return made[-1]

    yield make
    for each in made:
        each.group.kill_all()


def test_a_process_that_ends_in_its_start_without_a_word_is_started_again(starts):
    trying = starts(7, 2)
    trying.wait()
    assert trying.said == ["worker 0 died (exit code 7), restarting"] * 2
    assert trying.group.members["env_worker", 0].restarts == 2


def test_one_that_always_ends_in_its_start_without_a_word_is_named_with_its_exit_code_and_the_game(starts):
    with pytest.raises(RoleDied, match=r"died too often; last with \(exit code 7\)\. .* by the game test itself"):
        starts(7, MOST_FAILED_STARTS).wait()


@pytest.mark.parametrize("code", [process_group.EXIT_RAISED, process_group.EXIT_REFUSED])
def test_one_that_says_in_its_start_why_it_ends_is_not_started_again(starts, code):
    refused = starts(code, MOST_FAILED_STARTS, "This game has another encoder.\n")
    with pytest.raises(RoleDied, match=r"This game has another encoder\.") as died:
        refused.wait()
    assert (died.value.exit_code, refused.said) == (code, [])
    assert refused.group.members["env_worker", 0].restarts == 0


def test_a_fetch_from_the_store_is_a_state_of_its_own_and_takes_as_long_as_it_does(tmp_path, monkeypatch):
    now, said = [0.0], []
    monkeypatch.setattr(process_group, "time", SimpleNamespace(monotonic=lambda: now[0]))
    launched = SimpleNamespace(role="learner", index=0, run_id=1, node="", fetching=True, log_fault="")
    launched.exit_code, launched.measure = lambda: None, lambda meter: None
    group = ProcessGroup(RunDir(tmp_path), RoleReports(), launch=lambda *_: launched)
    group.start("learner", 1, 1)
    states = []

    def meanwhile() -> bool:
        states.append(group.state_of(("learner", 0)))
        now[0] += 20.0
        launched.fetching = now[0] < 2 * READY_LIMIT_SEC
        return False

    with pytest.raises(RoleDied, match="did not become ready within 300 s"):
        group.wait_until_ready("learner", meanwhile, said.append)
    assert now[0] > 3 * READY_LIMIT_SEC, "the limit begins with the process"
    assert [*dict.fromkeys(states)] == ["fetching", "starting"]
    fetched = [sentence for sentence in said if sentence.endswith(": checkpoints are being fetched from the store")]
    assert 1 < len(fetched) < len(said)
    assert all("slow to start" in sentence for sentence in said[len(fetched) :])


@pytest.mark.parametrize(
    ("saves_sec", "ends_sec", "killed_sec"),
    [(0.0, 1000.0, 120.0), (400.0, 500.0, None), (500.0, 1000.0, 620.0), (1000.0, 1000.0, 720.0)],
)
def test_a_learner_that_saves_when_the_run_stops_is_not_killed_before_that_is_over(
    tmp_path, monkeypatch, saves_sec, ends_sec, killed_sec
):
    now, killed = [0.0], []
    monkeypatch.setattr(process_group, "time", SimpleNamespace(monotonic=lambda: now[0]))
    learner = SimpleNamespace(role="learner", index=0, run_id=1, node="", log_fault="", request_stop=lambda: None)
    learner.exit_code, learner.exited_cleanly = lambda: 0 if now[0] >= ends_sec else None, lambda: True
    learner.kill = lambda: killed.append(now[0])
    reports = RoleReports()
    group = ProcessGroup(RunDir(tmp_path), reports, launch=lambda *_: learner)
    group.start("learner", 1, 1)

    def meanwhile() -> bool:
        now[0] += 10.0
        reports.add_report(report(learner, saving=now[0] <= saves_sec), now[0])
        return False

    said = [] if killed_sec is None else [f"the learner did not stop in {killed_sec:.0f} s and was killed"]
    assert group.stop("learner", 120.0, meanwhile) == said
    assert killed == [killed_sec or ends_sec]


def test_what_vanished_is_written_again_as_it_was(run_dir):
    run_dir.write_config(config_from_tree({"game": "own.game:Game"}, "the test"))  # signed
    files = NeededFiles(run_dir)
    files.remember()
    before = {name: (run_dir.root / name).read_bytes() for name in NEEDED_FILE_NAMES}
    assert files.restore() == []
    shutil.rmtree(run_dir.root)
    said = files.restore()
    assert said == [f"{run_dir.root / name} had vanished and was written again" for name in before]
    assert {name: (run_dir.root / name).read_bytes() for name in before} == before
    assert stat.S_IMODE((run_dir.root / "token").stat().st_mode) == 0o600
    for folder in (run_dir.root, run_dir.logs, run_dir.checkpoints):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files.restore() == []
    (run_dir.root / "token").write_text("")
    (run_dir.root / "config.yaml").write_bytes(b"\x00\xff{")
    changed, emptied = files.restore()
    assert (changed.split()[1:4], emptied.split()[1:3]) == (["had", "been", "changed"], ["had", "vanished"])
    assert {name: (run_dir.root / name).read_bytes() for name in before} == before


def test_where_it_cannot_be_written_a_sentence_says_so(run_dir):
    files = NeededFiles(run_dir)
    files.remember()
    shutil.rmtree(run_dir.logs)
    run_dir.logs.write_text("in the way")
    assert files.restore() == [f"{run_dir.logs} is missing and cannot be written again: File exists"]


def test_a_log_that_cannot_be_written_is_said_once(group):
    log = group.members["learner", 0].child.log
    log.unlink()
    log.symlink_to("elsewhere")
    said = []
    for now in range(1, 4):
        said += group.restart_dead(float(now))
        group.members["learner", 0].child._process.wait(100)
    assert said.count(f"the log {log} cannot be written: a symbolic link") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_those_that_are_late_are_named_by_what_they_use_of_the_processor(run_dir, monkeypatch):
    monkeypatch.setattr(restart_policy, "START_ALERT_SEC", 0.9)
    hangs_or_works = 'case "$4" in 0) exec sleep 600;; *) while :; do :; done;; esac'
    group, said = ProcessGroup(run_dir, RoleReports(), lambda role: ["sh", "-c", hangs_or_works, "sh"]), []
    group.start("env_worker", 2, 1)
    try:
        group.wait_until_ready("env_worker", lambda: bool(time.sleep(0.01)) or any("slow start" in s for s in said),
                               said.append)  # fmt: skip
    finally:
        group.kill_all()
    assert any(re.fullmatch(r"worker 0 is not ready after \d+ s: slow to start, or hung", each) for each in said), said
    assert re.fullmatch(r"worker 1 is not ready after \d+ s: a slow start \(\d+ s of processor time\)", said[-1])


RANK = """
import os, sys, time
from pathlib import Path
index, lives = int(sys.argv[sys.argv.index("--index") + 1]), Path(sys.argv[1])
meeting = sys.argv[sys.argv.index("--meeting") + 1]
with (lives / str(index)).open("a") as file:
    print(meeting, file=file)
while not (lives / f"end-{index}").exists():
    time.sleep(0.005)
end = (lives / f"end-{index}").read_text()
(lives / f"end-{index}").unlink()
os._exit(int(end))
"""


class Gang:
    """Three processes that are started again together; `now` passes as the test says."""

    def __init__(self, folder) -> None:
        self.lives = folder / "lives"
        self.lives.mkdir()
        run_dir = RunDir(folder / "run")
        run_dir.create()
        self.reports = RoleReports()
        self.group = ProcessGroup(run_dir, self.reports, lambda role: [sys.executable, "-c", RANK, str(self.lives)])
        self.now = 0.0
        self.group.start("learner", 3, 1, gang=True)

    def meetings(self, index: int) -> list[str]:
        """Of each life of a rank."""
        path = self.lives / str(index)
        return path.read_text().split() if path.exists() else []

    def all_live(self, lives: int) -> None:
        wait_for(lambda: all(len(self.meetings(index)) == lives for index in range(3)))
        assert len({self.meetings(index)[-1] for index in range(3)}) == 1

    def all_ready(self) -> None:
        for member in self.group.members.values():
            self.reports.add_report(report(member.child), self.now)

    def report_saving(self, index: int, *, saving: bool) -> None:
        self.reports.add_report(report(self.group.members["learner", index].child, saving=saving), self.now)

    def end(self, index: int, code: int) -> None:
        aside = self.lives / f"aside-{index}"
        aside.write_text(str(code))
        aside.replace(self.lives / f"end-{index}")  # whole from the start: the rank may look at any moment
        self.group.members["learner", index].child._process.wait(100)

    def turn(self, seconds: float = 0.0) -> list[str]:
        self.now += seconds
        return self.group.restart_dead(self.now)

    def live_again(self) -> None:
        for _ in range(3):
            self.turn(1.0)
        self.all_live(2)


@pytest.fixture
def gang(tmp_path):
    made = Gang(tmp_path)
    made.all_live(1)
    yield made
    made.group.kill_all()


def test_where_a_rank_dies_all_start_again_together_and_one_death_is_counted(gang):
    gang.all_ready()
    gang.end(1, 7)
    assert gang.turn() == ["rank 1 of the learner died (exit code 7), restarting"]
    gang.end(0, EXIT_RANK_LOST)
    assert gang.turn(1.0) == [], "rank 2 has not ended yet"
    assert [len(gang.meetings(index)) for index in range(3)] == [1, 1, 1]
    gang.end(2, EXIT_RANK_LOST)
    gang.live_again()
    assert gang.meetings(0)[0] != gang.meetings(0)[1]
    assert {member.restarts for member in gang.group.members.values()} == {1}


@pytest.mark.parametrize("saving", [False, True])
def test_a_rank_that_hangs_when_the_others_have_lost_it_is_killed_and_in_a_save_at_last(gang, saving):
    gang.all_ready()
    gang.report_saving(0, saving=saving)
    for index in (1, 2):
        gang.end(index, EXIT_RANK_LOST)
    assert gang.turn() == ["rank 1 of the learner died (exit code 75), restarting"]
    gang.turn(GANG_PATIENCE_SEC + (SAVE_PATIENCE_SEC if saving else 0.0))
    gang.live_again()


def test_a_rank_that_writes_a_checkpoint_when_the_others_have_lost_it_is_not_killed_before_that_is_over(gang):
    gang.all_ready()
    gang.report_saving(0, saving=True)
    gang.end(1, 7)
    gang.turn()
    gang.end(2, EXIT_RANK_LOST)
    gang.turn(SAVE_PATIENCE_SEC)
    assert gang.group.members["learner", 0].child.exit_code() is None
    gang.report_saving(0, saving=False)
    gang.live_again()


def test_a_rank_that_always_dies_ends_the_run(gang):
    for life in range(1, MOST_FAILED_STARTS):
        gang.all_live(life)
        gang.end(2, 1)
        assert gang.turn(1.0) == ["rank 2 of the learner died (exit code 1), restarting"]
        for _ in range(3):
            gang.turn(GANG_PATIENCE_SEC)
    gang.all_live(MOST_FAILED_STARTS)
    gang.end(2, 1)
    with pytest.raises(RoleDied, match=r"rank 2 of the learner died too often"):
        gang.turn(1.0)


def test_a_start_that_fails_names_the_rank_that_failed_and_not_the_one_that_lost_it(gang):
    gang.end(1, 7)
    gang.end(0, EXIT_RANK_LOST)
    with pytest.raises(RoleDied, match=r"[Rr]ank 1 of the learner died \(exit code 7\)"):
        gang.group.check_alive()
