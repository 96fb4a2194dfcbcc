"""Commands: exit codes and sentences; no role and no torch is imported."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib.metadata import version

import pytest

from simul.common.runtime.installation import ROOT
from simul.launch import cli
from simul.launch.commands.policies import LIST_TIMEOUT_SEC
from simul.launch.processes import role_process


def test_a_bad_configuration_is_exit_code_2_and_names_every_problem(tmp_path, capsys):
    (tmp_path / "run.yaml").write_text("sed: 1\n")
    code = cli.main(["up", str(tmp_path / "run.yaml"), "--run-dir", str(tmp_path / "run"), "--set", "learner.clp=1"])
    words = capsys.readouterr().err
    assert code == 2
    assert "did you mean seed?" in words
    assert "did you mean learner.clip?" in words
    assert not (tmp_path / "run").exists()


SECRET = "s3cr3t-t0k3n"


@pytest.mark.parametrize(
    ("addresses", "settings", "words"),
    [
        (f"discrod://1/{SECRET}", [], "simul: SIMUL_NOTIFY: apprise knows no service for address 1 of 1, which begins"),
        ("", [f"notify=json://{SECRET}@h"], "do not belong in a configuration. Set the environment variable SIMUL_"),
        ("", [f"notify.urls=[json://{SECRET}@h]"], "do not belong in a configuration"),
    ],
)
def test_a_wrong_or_misplaced_address_of_notices_is_refused_before_anything_starts_and_not_shown(
    addresses, settings, words, tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("SIMUL_NOTIFY", addresses)
    line = ["up", "cartpole", "--run-dir", str(tmp_path / "run"), *(f"--set={setting}" for setting in settings)]
    assert cli.main(line) == 2
    out, said = capfd.readouterr()
    assert words in said
    assert (out, SECRET in said) == ("", False)
    assert not (tmp_path / "run").exists()


def test_no_command_at_all_lists_them(capsys):
    assert cli.main([]) == 2
    words = capsys.readouterr().err
    assert all(f"\n    {command} " in words for command in ("up", "status", "eval", "serve", "loadtest"))


@pytest.mark.parametrize(("name", "words"), [("run", "is a file; expected a folder"), ("run/x", "cannot be written")])
def test_a_run_directory_that_cannot_be_is_named(name, words, tmp_path, capsys):
    (tmp_path / "run").write_text("mine")
    assert cli.main(["up", "cartpole", "--run-dir", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("command", ["status", "down"])
def test_without_any_run_the_sentence_says_what_to_do(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    assert cli.main([command]) == 2
    assert "simul up" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    ["up --run-dir=", "status --run-dir=", "down --run-dir=", "eval --checkpoint=", "serve --checkpoint=",
     "play --accept 1 --run-dir=", "connect --keys=", "policies list --run-dir="],
)  # fmt: skip
def test_an_empty_path_is_refused_and_not_the_current_folder(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = arguments.split()
    with pytest.raises(SystemExit) as end:
        cli.main(line)
    assert end.value.code == 2
    assert f"argument {line[-1].removesuffix('=')}: expected a path, got ''" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "names"), [("--episodes", "--games/--battles/--episodes"), ("--workers", "--workers")]
)
def test_a_number_below_one_is_refused_by_the_name_of_its_option(option, names, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["eval", option, "0"])
    assert f"argument {names}: expected a whole number, at least 1; got '0'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["up", "up-set", "policies list"])
def test_a_run_directory_whose_name_is_too_long_is_a_sentence(command, capsys):
    name = "x" * 5000
    line = ["up", "--set", f"run_dir={name}"] if command == "up-set" else [*command.split(), "--run-dir", name]
    assert cli.main(line) == 2
    assert "File name too long" in (words := capsys.readouterr().err) or "No run is active in" in words


@pytest.mark.parametrize(
    "command", ["policies list", "policies load name folder", "policies unload name", "profile", "play"]
)
def test_a_run_that_is_not_active_is_refused_at_once(command, tmp_path, capsys):
    (tmp_path / "token").write_text("of a run that has ended")
    began = time.monotonic()
    assert cli.main([*command.split(), "--run-dir", str(tmp_path)]) == 2
    assert f"No run is active in {tmp_path}. Start it with `simul up`" in capsys.readouterr().err
    assert time.monotonic() - began < LIST_TIMEOUT_SEC


def test_keys_for_the_mock_server_are_refused_and_not_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(role_process, "run_in_foreground", lambda *_: 0)
    assert cli.main(["connect", "--listen", "tcp://127.0.0.1:5556", "--keys", str(tmp_path)]) == 2
    assert "The mock server of --listen has no keys" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["up", "eval", "policies list", "keys new"])
def test_an_unknown_option_shows_the_usage_of_its_command(command, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main([*command.split(), *["name"] * (command == "keys new"), "--bogus"])
    words = capsys.readouterr().err
    assert words.startswith(f"usage: simul {command} ")
    assert words.endswith(f"simul {command}: error: unrecognized arguments: --bogus\n")


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"simul {version('simul')}\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("up", ["Train: start everything", "CONFIG", "(default: pokemon)", "--mode NAME"]),
        ("eval", ["of each pair (default: 1000)", "step games (default: 1)", "Play checkpoints"]),
        ("policies load", ["Serve a checkpoint, frozen, under a name of its own."]),
        ("keys new", ["Make a server's and a client's."]),
    ],
)
def test_help_says_what_a_command_does_and_what_its_defaults_are(command, words, capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main([*command.split(), "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("module", ["command_line", "commands.up"])
def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback(module):
    code = f"""if True:
    import sys
    class CtrlC:
        def find_spec(self, name, *_):
            if name == "simul.launch.{module}":
                raise KeyboardInterrupt
    sys.meta_path.insert(0, CtrlC())
    from simul.launch.cli import main
    sys.exit(main(["--version"]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_command_line_alone_loads_nothing_heavy():
    """Each command imports what it needs when it runs, so that `simul --help` stays fast."""
    code = (
        "import sys, simul.launch.cli, simul.launch.command_line; "
        "print([m for m in ('numpy', 'zmq', 'msgspec', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
