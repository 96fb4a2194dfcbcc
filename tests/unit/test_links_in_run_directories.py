"""A run that is resumed in an unpacked run directory of others writes and removes nothing through its links."""

from __future__ import annotations

import ast
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from simul.common.checkpoints.folders import NEW_BEST, RESULT_FILE, link_folder, replace_best
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role import run_lock
from simul.common.role.run_directory import FILES, RunDir
from simul.common.runtime.installation import ROOT
from simul.common.runtime.private_files import open_new, open_to_change, replace_file
from simul.common.transport import PullSocket
from simul.launch.cluster.agent import LogTails
from simul.launch.commands import profile
from simul.launch.monitoring.curves.curves_csv import BASE_COLUMNS, CsvWriter
from simul.launch.monitoring.curves.figures import CurveReport
from simul.launch.monitoring.curves.metric_services import mlflow_writer
from simul.launch.monitoring.profiling.flame_graphs import FlameGraphs
from simul.launch.processes import log_rotation
from simul.learner.checkpoints.last_version import LastVersionFile
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.sample_layout import SampleLayout

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
PRECIOUS = b"of the user, without a line's end"
SPEC = GameSpec(name="gymnasium/CartPole-v1", observation_size=4, num_actions=2)


@pytest.fixture
def run(tmp_path) -> RunDir:
    made = RunDir(tmp_path / "theirs")
    made.create()
    return made


@pytest.fixture
def victim(tmp_path) -> Path:
    file = tmp_path / "victim"
    file.write_bytes(PRECIOUS)
    return file


def rotate(run: RunDir) -> None:
    (run.logs / "simul-worker-0.log").write_bytes(b"a line\n" * 100)
    log_rotation.rotate_logs(run.logs, 10)
    assert (run.logs / "simul-worker-0.log.1").stat().st_size == 700, "a link stops no other file's rotation"


def append_samples(run: RunDir) -> None:
    columns = {
        "outcome": np.zeros(1, np.float32), "policy_version": np.zeros(1, np.int64),
        "target_count": np.ones(1, np.int32), "observation": np.zeros((1, 4), np.float32),
        "mask": np.ones((1, 1), np.uint8), "target_action": np.zeros(1, np.int32),
        "target_probability": np.ones(1, np.float32),
    }  # fmt: skip
    assert ReplayFiles(run.root / "replay", SampleLayout(SPEC), 10**9).append(0, ReceivedSamples(1, columns)) == ""


def report_curves(run: RunDir, **figures: float) -> None:
    CsvWriter(run.root).write(CurveReport(decisions=1, training_sec=1.0, time=1.0, figures=figures), 0.0)


def make_best(run: RunDir) -> None:
    checkpoint = run.checkpoints / "000000005"
    copied = run.checkpoints / "evaluated-000000005"
    link_folder(checkpoint, copied)
    replace_best(copied, b"{}")


def read_agents_logs(run: RunDir) -> None:
    assert dict(LogTails(run.logs).read()) == {}


def write_with_mlflow(run: RunDir) -> None:
    """SQLite, which would follow the link, is not reached."""
    services = {"mlflow.entities": types.SimpleNamespace(Metric=None, Param=None)}
    services["mlflow.tracking"] = types.SimpleNamespace(MlflowClient=lambda **_: pytest.fail("the file was opened"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for name, service in services.items():
            patch.setitem(sys.modules, name, service)
        writer = mlflow_writer(run.root, "key", {})
        assert any("a symbolic link" in said for said in writer.close(lambda: False))


def record_flame_graph(run: RunDir) -> None:
    """`sh` stands for py-spy: it writes where its last argument says."""
    program = run.root / "py-spy"
    program.write_text('#!/bin/sh\nfor last; do :; done\necho picture > "$last"\n')
    program.chmod(0o700)
    with FlameGraphs(str(program)) as graphs:
        graphs.start({"learner": 1}, 0.1, run.root / "profile")
        assert graphs.finish()[0] == [run.root / "profile-learner.svg"]


def hold_run_lock(run: RunDir) -> None:
    with run_lock.hold(run):
        pass


WRITERS: dict[str, Callable[[RunDir], object]] = {
    "logs/.simul-worker-0.log.1": rotate,
    "logs/notes.log": rotate,
    "logs/agents.log": read_agents_logs,
    "checkpoints/.last_version": lambda run: LastVersionFile(run.checkpoints).write(7),
    "checkpoints/last_version": lambda run: LastVersionFile(run.checkpoints).write(7),
    f"checkpoints/000000005/{RESULT_FILE}": make_best,
    "replay/.aside": append_samples,
    "replay/000000000000000": append_samples,
    "curves.csv": report_curves,
    "sockets/own.ipc.lock": lambda run: PullSocket(run.endpoint("own")).close(),
    f"sockets/{run_lock.LOCK_FILE}": hold_run_lock,
    "mlflow.db": write_with_mlflow,
    "profile.json": lambda run: profile._write(run.root / "profile.json", "{}", run),
    "profile-learner.svg": record_flame_graph,
    **{name: lambda run, name=name: run.write(name, b"new") for name in FILES},
    **{f".{name}.PID": lambda run, name=name: run.write(name, b"new") for name in FILES},
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing"])
def test_a_writer_does_not_write_where_a_link_leads(run, victim, name, there, monkeypatch):
    monkeypatch.setattr("simul.launch.cluster.agent.MOST_LOG_BYTES", 1)
    if not there:
        victim.unlink()
    link = run.root / name.replace("PID", str(os.getpid()))
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    try:
        WRITERS[name](run)
    except ConfigError:
        assert name.endswith(".lock")
    assert (victim.read_bytes() if victim.exists() else None) == (PRECIOUS if there else None)


def test_a_new_column_is_not_written_where_a_link_leads(run, victim):
    header = ",".join(BASE_COLUMNS).encode() + b"\n"
    victim.write_bytes(header)
    (run.root / "curves.csv").symlink_to(victim)
    report_curves(run, mine=1.0)
    assert victim.read_bytes() == header


@pytest.mark.parametrize("name", ["checkpoints", "checkpoints/past", "logs", "replay", "tensorboard", "wandb"])
def test_a_folder_that_is_a_link_is_refused_before_anything_is_written(tmp_path, name):
    (tmp_path / "photos").mkdir()
    run = RunDir(tmp_path / "theirs")
    (run.root / name).parent.mkdir(parents=True)
    (run.root / name).symlink_to(tmp_path / "photos")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=rf"{name} is a link to another folder, .*photos, .*--run-dir"):
        run.create()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_start_removes_links_among_the_sockets(run, victim):
    link = run.sockets / "ranks-1"  # torch.distributed would open it
    link.symlink_to(victim)
    run.create()
    assert list(run.sockets.iterdir()) == []
    assert victim.read_bytes() == PRECIOUS


def test_links_that_the_user_names_or_simul_makes_are_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to("disk")
    run = RunDir(tmp_path / "run")
    run.create()
    (run.checkpoints / "evaluated-000000005").mkdir()
    replace_best(run.checkpoints / "evaluated-000000005", b"{}")
    (run.checkpoints / NEW_BEST).symlink_to("best-000000005")  # of a start that was killed
    run.create()
    (run.checkpoints / "evaluated-000000006").mkdir()
    replace_best(run.checkpoints / "evaluated-000000006", b"{}")
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["best", "best-000000006"]
    run.create()
    assert (run.checkpoints / "best" / RESULT_FILE).read_bytes() == b"{}"


def test_a_new_file_replaces_a_link_and_a_changed_one_must_be_a_regular_file(tmp_path, victim):
    for name in ("new", "changed", ".replaced.aside"):
        (tmp_path / name).symlink_to(victim)
    os.close(open_new(tmp_path / "new"))
    replace_file(tmp_path / "replaced", b"1", aside=".replaced.aside")
    with pytest.raises(OSError, match="a symbolic link"):
        open_to_change(tmp_path / "changed")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        open_to_change(tmp_path / "fifo")
    assert victim.read_bytes() == PRECIOUS
    assert not (tmp_path / "new").is_symlink()
    assert (tmp_path / "replaced").read_bytes() == b"1"


WRITING_CALLS = {"write_bytes", "write_text", "copyfile", "copy", "copy2", "truncate", "ftruncate", "move"}
KNOWN_WRITERS = {  # files with another way to write than `private_files`, and why
    "common/checkpoints/folders.py": "copies into a folder that it has just made",
    "common/config/run_signature.py": "O_EXCL, in the user's own state folder",
    "common/nets/bfloat16.py": "into a folder that `launch/zoo/export.py` has just made",
    "common/protocol/shared_memory.py": "anonymous files",
    "common/runtime/private_files.py": "the way itself",
    "common/store/fetch.py": "into a folder that it has just made",
    "common/transport/curve.py": "into a folder that the user names, or a new one",
    "common/transport/endpoints.py": "a lock, O_NOFOLLOW",
    "launch/api.py": "into a folder that it has just made",
    "launch/cli.py": "the null device", "launch/monitoring/view/output.py": "the null device",
    "launch/commands/init.py": "into a folder that it has just made",
    "launch/commands/profile.py": "a file that the user names, outside a run directory",
    "launch/cluster/agent.py": "truncates what `open_to_change` opened",
    "launch/loadtest/options.py": "a folder that the user names", "launch/loadtest/report.py": "the same folder",
    "launch/monitoring/curves/curves_csv.py": "truncates what `open_to_change` opened",
    "launch/monitoring/curves/side_file.py": "truncates what `open_to_append` opened",
    "launch/processes/log_rotation.py": "truncates what `open_to_change` opened",
    "launch/processes/role_process.py": "a file without a name, and the null device",
    "launch/supervisor/checkpoint_files.py": "into a folder that it has just made",
    "launch/supervisor/evaluations.py": "truncates what `open_to_append` opened, and the null device",
    "launch/zoo/export.py": "into folders that it has just made",
    "learner/checkpoints/checkpoint_store.py": "into a folder that it has just made",
    "learner/replay/files.py": "truncates what `open_to_append` opened",
    "inference_server/loadtest/subject.py": "into a folder that it has just made",
}  # fmt: skip


def test_what_writes_files_follows_no_link_or_is_known_to_write_elsewhere():
    """A new place has to be looked at: in a run directory it writes by `simul.common.runtime.private_files`."""
    found = set()
    for folder in ("common", "inference_server", "launch", "learner"):
        for file in (ROOT / folder).rglob("*.py"):
            calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
            if any(_writes(call) for call in calls):
                found.add(str(file.relative_to(ROOT)))
    assert found == KNOWN_WRITERS.keys()


def _writes(call: ast.Call) -> bool:
    """True for a call that may write to a file that its argument names."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name == "copy" and owner != "shutil":
        return False
    if name == "open" and owner == "os":
        flags = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
        return bool(flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"})
    if name == "open":
        modes = [*call.args, *(given.value for given in call.keywords if given.arg == "mode")]
        texts = [node.value for node in modes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        return any(set(text) <= set("rwaxbt+") and set(text) & set("wax+") for text in texts)
    return name in WRITING_CALLS
