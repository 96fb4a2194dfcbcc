from __future__ import annotations

import sys

import pytest

from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install import node, setup_node

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uses shell scripts as stand-ins for Node")


def fake_node(folder, version, name="node"):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho v{version}\n")
    path.chmod(0o755)
    return path


def offer(monkeypatch, own=None, on_path=None, wheel=None):
    monkeypatch.delenv("SIMUL_NODE", raising=False)
    monkeypatch.setattr(node, "own_node_path", lambda: own)
    monkeypatch.setattr(node, "path_node", lambda: on_path)
    monkeypatch.setattr(node, "wheel_node_path", lambda: wheel)


@pytest.mark.parametrize(
    ("own", "on_path", "wheel", "expected"),
    [
        ("26.10.0", "22.1.0", "24.19.0", "26.10.0"),
        (None, "22.1.0", "24.19.0", "24.19.0"),
        (None, "20.20.2", "24.19.0", "24.19.0"),
        ("26.10.0", "28.0.0", None, "28.0.0"),
        (None, "24.1.0", None, "24.1.0"),
    ],
)
def test_the_newest_node_is_taken(monkeypatch, tmp_path, own, on_path, wheel, expected):
    paths = {
        key: fake_node(tmp_path, version, key) if version else None
        for key, version in {"own": own, "on_path": on_path, "wheel": wheel}.items()
    }
    offer(monkeypatch, **paths)
    assert node.find_node().version == expected


def test_of_equals_ours_is_taken(monkeypatch, tmp_path):
    offer(monkeypatch, own=fake_node(tmp_path, "26.10.0", "a"), on_path=fake_node(tmp_path, "26.12.0", "b"))
    assert node.find_node().version == "26.10.0"


def test_too_old_only_is_refused_with_what_to_do(monkeypatch, tmp_path):
    offer(monkeypatch, on_path=fake_node(tmp_path, "20.20.2"))
    with pytest.raises(ConfigError, match="make setup"):
        node.find_node()


def test_simul_node_is_taken_or_refused(monkeypatch, tmp_path):
    offer(monkeypatch, own=fake_node(tmp_path, "26.10.0", "own"))
    monkeypatch.setenv("SIMUL_NODE", str(fake_node(tmp_path, "24.0.0", "mine")))
    assert node.find_node().why == "SIMUL_NODE names it"
    monkeypatch.setenv("SIMUL_NODE", str(fake_node(tmp_path, "22.0.0", "old")))
    with pytest.raises(ConfigError, match="24 or newer"):
        node.find_node()
    monkeypatch.setenv("SIMUL_NODE", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match="not a Node that runs"):
        node.find_node()


def test_what_does_not_run_is_passed_over(tmp_path):
    broken = tmp_path / "node"
    broken.write_text("not a program")
    broken.chmod(0o755)
    assert node.inspect_node(broken, "") is None
    assert node.inspect_node(fake_node(tmp_path, "what", "odd"), "") is None


@pytest.fixture
def setup_folder(monkeypatch, tmp_path):
    """A host without packages, so that nothing real is installed."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "package-lock.json").write_text("{}")
    monkeypatch.setattr(setup_node, "HOST_FOLDER", tmp_path)
    monkeypatch.setattr(setup_node, "STAMP", tmp_path / "node_modules" / ".simul-stamp")
    monkeypatch.setattr(setup_node, "fallback_note", lambda: tmp_path / "fallback")
    return tmp_path


def fake_npm(folder, body):
    path = folder / "npm"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


def test_setup_installs_once_and_again_after_the_lock_file_changes(monkeypatch, setup_folder, capsys):
    offer(monkeypatch, own=fake_node(setup_folder, "26.10.0"))
    calls = setup_folder / "calls"
    npm = fake_npm(setup_folder, f"echo $1 >> {calls}")
    monkeypatch.setattr(setup_node, "_find_npm", lambda: npm)
    assert [setup_node.main(), setup_node.main()] == [0, 0]
    assert calls.read_text() == "ci\n"
    (setup_folder / "package-lock.json").write_text("{ }")
    assert setup_node.main() == 0
    assert calls.read_text() == "ci\nci\n"
    assert "ready: Node 26.10.0" in capsys.readouterr().out


def test_setup_says_how_far_a_step_is(monkeypatch, setup_folder, capsys):
    offer(monkeypatch, own=fake_node(setup_folder, "26.10.0"))
    monkeypatch.setattr(setup_node, "EVERY_SEC", 0.05)
    body = "mkdir -p node_modules; head -c 3145728 /dev/zero > node_modules/a; sleep 1"
    monkeypatch.setattr(setup_node, "_find_npm", lambda: fake_npm(setup_folder, body))
    assert setup_node.main() == 0
    out = capsys.readouterr().out
    assert "npm packages, about 155 MiB" in out
    assert "[simulator] 0 s, 3 MiB so far" in out


def test_a_step_that_takes_too_long_is_killed_and_a_sentence(monkeypatch, setup_folder, capsys):
    offer(monkeypatch, own=fake_node(setup_folder, "26.10.0"))
    monkeypatch.setattr(setup_node, "EVERY_SEC", 0.05)
    monkeypatch.setattr(setup_node, "LONGEST_SEC", 0.1)
    monkeypatch.setattr(setup_node, "_find_npm", lambda: fake_npm(setup_folder, "exec sleep 60"))
    assert setup_node.main() == 2
    assert "npm could not install the simulator" in capsys.readouterr().err


def test_setup_failing_says_what_to_do_and_exits_2(monkeypatch, setup_folder, capsys):
    offer(monkeypatch, own=fake_node(setup_folder, "26.10.0"))
    npm = fake_npm(setup_folder, "echo 'npm ERR! network request failed' >&2; exit 1")
    monkeypatch.setattr(setup_node, "_find_npm", lambda: npm)
    assert setup_node.main() == 2
    error = capsys.readouterr().err
    assert "network request failed" in error
    assert "make setup" in error
    assert error.count("\n") == 1


def test_setup_tries_again_after_a_fallback_until_the_newest_node_is_there(monkeypatch, setup_folder, capsys):
    offer(monkeypatch, on_path=fake_node(setup_folder, "24.5.0"))
    monkeypatch.setattr(node, "own_node_folder", lambda: setup_folder / "own")
    calls = setup_folder / "calls"
    npm = fake_npm(setup_folder, f'echo "$*" >> {calls}; [ "$1" = ci ]')
    monkeypatch.setattr(setup_node, "_find_npm", lambda: npm)
    assert [setup_node.main(), setup_node.main()] == [0, 0]
    assert (setup_folder / "fallback").exists()
    first, second = [line for line in calls.read_text().splitlines() if line.startswith("install")]
    assert "--fetch-retries=0" not in first
    assert "--fetch-retries=0" in second, "a later try costs seconds, not minutes"
    out = capsys.readouterr().out
    assert "`make setup` tries again, other targets in an hour" in out
    assert "ready: Node 24.5.0 (on PATH)" in out
    fake_npm(setup_folder, "exit 0")
    monkeypatch.setattr(node, "own_node_path", lambda: fake_node(setup_folder, "26.10.0", "new"))
    assert setup_node.main() == 0
    assert not (setup_folder / "fallback").exists()
    assert "ready: Node 26.10.0" in capsys.readouterr().out


def test_the_shell_looks_for_the_note_that_setup_leaves():
    script = (ROOT / "launch" / "setup" / "setup.sh").read_text()
    assert f"FALLBACK=.venv/{setup_node.fallback_note().name} " in script


@pytest.mark.parametrize("package", [None, "node-for-another-libc"])
def test_setup_takes_the_wheel_where_no_platform_package_runs(monkeypatch, setup_folder, capsys, package):
    offer(monkeypatch, on_path=fake_node(setup_folder, "20.0.0"))
    monkeypatch.setattr(node, "platform_package", lambda: package)
    monkeypatch.setattr(node, "own_node_folder", lambda: setup_folder / "own")
    monkeypatch.setattr(setup_node, "_find_npm", lambda: fake_npm(setup_folder, "exit 0"))
    wheel = fake_node(setup_folder, "24.19.0", "wheel")
    monkeypatch.setattr(
        setup_node, "_install_wheel", lambda: monkeypatch.setattr(node, "wheel_node_path", lambda: wheel)
    )
    assert setup_node.main() == 0
    assert "ready: Node 24.19.0" in capsys.readouterr().out
