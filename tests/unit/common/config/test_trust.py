"""What data names is run only where the user named it, signed it, or says --trust."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
import yaml

from simul.common.checkpoints.meta import decode_meta
from simul.common.config.loader import command_line_trust, config_from_tree, load_config
from simul.common.config.named_class import import_user_module, load_class
from simul.common.config.schema import Config, NetworkConfig
from simul.common.config.section import ArgumentsOf, Names
from simul.common.config.trust import EVERYTHING, NOTHING, Trust, marked_keys, values_to_trust
from simul.common.config.value_checks import config_keys
from simul.common.errors import CheckpointError, ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.io import load_policy
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.runtime.installation import CONFIGS, ROOT
from simul.common.store.fetch import fetch_checkpoint
from simul.common.store.remote import Store
from simul.common.transport import new_keys
from simul.env_worker.games.base.replays import Replay, game_settings
from simul.env_worker.games.blokus.players.gtp_engine import GtpEngine
from simul.env_worker.games.loading import build_source, game_spec, scripted_players, turn_game
from simul.launch import cli
from simul.launch.supervisor.checkpoint_files import InitialCheckpoint, config_of, networks_of
from simul.launch.supervisor.inference_only import frozen_run
from tests.support.checkpoints import write_small_checkpoint
from tests.support.stores import make_mirror, new_run, new_url

MARKS = dict(marked_keys())
HARMLESS = {  # texts and mappings of the schema that run nothing, and why
    "opponents.checkpoint": "weights; the class that they name as their network is trusted or refused by itself",
    "run_dir": "a path; commands that read data write elsewhere",
    "pokemon.format": "looked up by Showdown",
    "pokemon.servers": "addresses that are connected to",
    "openspiel.name": "looked up in pyspiel", "openspiel.parameters": "of a registered game",
    "server.endpoint": "not taken out of data", "server.curve_keys": "not taken out of data",
    "metrics": "looked up", "store": "a URL of an installed fsspec protocol",
}  # fmt: skip
SPEC = GameSpec(name="gymnasium/CartPole-v1", observation_size=4, num_actions=2)


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Exists where something was run: the import of `stranger`, or `touch` of it."""
    path = tmp_path / "was_run"
    (tmp_path / "stranger.py").write_text(f"open({str(path)!r}, 'w').close()\ndef run(*_, **__): ...\n")
    monkeypatch.chdir(tmp_path)
    yield path
    sys.modules.pop("stranger", None)


def hostile_settings(key: str, marker: Path) -> tuple[dict, str]:
    """Settings with a hostile value at the marked `key`, and the value as the refusal shows it."""
    mark, tree = MARKS[key], {}
    value = {"note": "of a stranger"} if isinstance(mark, ArgumentsOf) else "stranger:run"
    if key == "blokus.gtp":
        value = f"touch {marker}"
    several = {"opponents.classes": {"stranger:run": 1.0}, "evaluation.opponents": ["stranger:run"]}
    put(tree, key, several.get(key, value))
    if isinstance(mark, ArgumentsOf):
        put(tree, mark.callable, "stranger:run")
    section = key.partition(".")[0]
    if section in ("pettingzoo", "blokus"):
        tree["game"] = section
    if key == "opponents.classes":
        tree["opponents"]["self_play"] = 0
    if section in ("opponents", "evaluation"):
        tree["game"] = "blokus"
    return tree, msgspec.json.encode(value).decode()


def put(tree: dict, key: str, value: object) -> None:
    *above, last = key.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value


def run_directory(root: Path, tree: dict) -> Path:
    """A run directory of a stranger, with a checkpoint whose meta.json is harmless."""
    checkpoint = write_small_checkpoint(root / "checkpoints" / "000000001", 1, spec=SPEC)
    settings = {"game": "gymnasium", **tree}
    (root / "config.yaml").write_text(yaml.safe_dump(settings))
    return checkpoint


def stranger_checkpoint(folder: Path, key: str) -> Path:
    """A checkpoint without config.yaml whose meta.json alone names what `key` names."""
    names = {
        "game": "stranger:run",
        "gymnasium.id": "gymnasium/stranger:run",
        "pettingzoo.id": "pettingzoo/stranger:run",
    }
    network = NetworkConfig(
        name="stranger:run" if key.startswith("network.") else "mlp_lstm",
        options={"note": "of a stranger"} if key == "network.options" else {},
    )
    spec = msgspec.structs.replace(SPEC, name=names.get(key, SPEC.name))
    return write_small_checkpoint(folder / "checkpoints" / "000000001", 1, spec=spec, network=network)


def assert_refused(error: BaseException, key: str, value: str, marker: Path) -> None:
    text = str(error)
    assert f"{key}: {value}" in text
    assert "--trust" in text
    assert "\n" not in text
    assert not marker.exists()


@pytest.mark.parametrize("key", MARKS)
def test_a_marked_key_of_config_yaml_is_not_run(key, marker, tmp_path):
    tree, value = hostile_settings(key, marker)
    checkpoint = run_directory(tmp_path / "theirs", tree)
    with pytest.raises(ConfigError) as refused:
        config_of(checkpoint, [])
    assert_refused(refused.value, key, value, marker)
    config = config_from_tree(tree, "the test")
    (tmp_path / "theirs" / "config.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(config)))
    with pytest.raises(ConfigError) as refused:  # as a role reads it
        RunDir(tmp_path / "theirs").read_trusted_config()
    assert_refused(refused.value, key, value, marker)
    source = partial(build_source, index=0, episodes=None, greedy=False, record=False)
    for load in (turn_game, game_spec, scripted_players, source):
        with pytest.raises(ConfigError) as refused:
            load(config)
        assert_refused(refused.value, key, value, marker)
    assert config_of(checkpoint, [], EVERYTHING) is not None


@pytest.mark.parametrize("key", ["game", "gymnasium.id", "pettingzoo.id", "network.name", "network.options"])
def test_meta_json_alone_runs_nothing_here_or_out_of_a_store(key, marker, tmp_path):
    checkpoint = stranger_checkpoint(tmp_path / "theirs", key)
    value = '{"note":"of a stranger"}' if key == "network.options" else '"stranger:run"'
    store, run_dir = Store(new_url()), new_run(tmp_path / "uploading")
    (run_dir.checkpoints / "000000001").parent.mkdir(exist_ok=True)
    stranger_checkpoint(run_dir.root, key)
    make_mirror(store.url, run_dir, 1).copy_all(store)
    fetch_checkpoint(store, tmp_path / "fetched" / "checkpoints", lambda _: None)
    for folder in (checkpoint, tmp_path / "fetched" / "checkpoints" / "000000001"):
        with pytest.raises(ConfigError) as refused:
            config_of(folder, [])
        assert_refused(refused.value, key, value, marker)
        if key.startswith("network."):
            with pytest.raises(ConfigError) as refused:
                networks_of([folder], NOTHING)
            assert_refused(refused.value, key, value, marker)
            network = msgspec.json.encode(decode_meta(folder).network).decode()
            assert networks_of([folder], command_line_trust([f"network={network}"]))


@pytest.mark.parametrize("key", ["network.name", "network.options"])
def test_load_policy_and_up_from_do_not_run_the_network_of_a_stranger(key, marker, tmp_path):
    checkpoint = stranger_checkpoint(tmp_path / "theirs", key)
    value = '{"note":"of a stranger"}' if key == "network.options" else '"stranger:run"'
    with pytest.raises(CheckpointError) as refused_load:
        load_policy(checkpoint)
    assert_refused(refused_load.value, key, value, marker)
    run_dir = RunDir(tmp_path / "mine")
    run_dir.create()
    with pytest.raises(ConfigError) as refused:
        InitialCheckpoint(checkpoint, run_dir).copy_into_run(SPEC, "stranger:run")
    assert_refused(refused.value, key, value, marker)
    with pytest.raises(CheckpointError, match="is not a class"):
        load_policy(checkpoint, trust=True)
    assert marker.exists()  # which shows that the refusals above could have failed


@pytest.mark.parametrize("key", [key for key in MARKS if not key.startswith(("network.", "metrics_callback"))])
def test_a_replay_runs_nothing_that_it_names(key, marker, tmp_path):
    tree, value = hostile_settings(key, marker)
    settings = game_settings(config_from_tree(tree, "the test"))
    if key == "blokus.gtp":
        assert "gtp" not in settings["blokus"]  # a replay that Simul writes names no program
    settings |= tree
    replay = Replay(game="x", settings=settings, seed=1, players=["a"], turns=[], returns=[0.0], outcome="terminated")
    with pytest.raises(ConfigError) as refused:
        replay.config(NOTHING)
    assert_refused(refused.value, key, value, marker)
    assert replay.config(EVERYTHING) is not None


@pytest.mark.parametrize("line", ["eval --games 1", "serve --plain", "play", "watch"])
@pytest.mark.parametrize("source", ["config.yaml", "meta.json", "network"])
def test_a_command_says_what_would_be_run_and_starts_nothing(line, source, marker, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    keys = {"config.yaml": "game", "meta.json": "gymnasium.id", "network": "network.name"}
    if source == "config.yaml":
        tree, _ = hostile_settings("game", marker)
        run_directory(tmp_path / "theirs", tree)
    else:
        stranger_checkpoint(tmp_path / "theirs", keys[source])
    assert cli.main([*line.split(), "--checkpoint", str(tmp_path / "theirs")]) == 2
    said = capsys.readouterr().err
    assert f'{keys[source]}: "stranger:run"' in said
    assert "--trust" in said
    assert not marker.exists()


@pytest.mark.parametrize("line", ["eval --games 1", "serve --plain"])
def test_a_harmless_config_yaml_does_not_vouch_for_the_network_of_meta_json(
    line, marker, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    checkpoint = stranger_checkpoint(tmp_path / "theirs", "network.name")
    (tmp_path / "theirs" / "config.yaml").write_text("game: gymnasium\n")
    config = config_of(checkpoint, [])
    assert cli.main([*line.split(), "--checkpoint", str(tmp_path / "theirs")]) == 2
    assert 'meta.json names what would be run, network.name: "stranger:run"' in capsys.readouterr().err
    with pytest.raises(ConfigError) as refused, frozen_run(checkpoint, config):  # as `play` and `watch`
        pass
    assert_refused(refused.value, "network.name", '"stranger:run"', marker)


@pytest.mark.parametrize("config", sorted(file.stem for file in CONFIGS.glob("*.yaml")))
def test_a_run_of_a_stranger_with_registered_names_needs_no_trust(config, tmp_path):
    settings = load_config(config)
    assert values_to_trust(settings) == frozenset()
    run_directory(tmp_path / "theirs", msgspec.to_builtins(settings))
    assert config_of(tmp_path / "theirs" / "checkpoints" / "000000001", []).game == settings.game
    RunDir(tmp_path / "theirs").read_trusted_config()


def test_arguments_of_a_registered_environment_need_trust_only_where_they_may_name_a_module():
    def values(**kwargs):
        return values_to_trust({"gymnasium": {"id": "GymV26Environment-v0", "kwargs": kwargs}})

    assert not values(env_id="CartPole-v1", desc=["SFF", "FFG"], size=3)
    assert values(env_id="stranger:Env-v0")
    assert values(make_kwargs={"below": ["stranger:Env"]})
    assert values(makers={1: None, None: {"stranger:Env"}, 2**70: b"x"})  # what YAML has and JSON has not


def test_what_equals_a_value_that_the_command_line_names_is_trusted(marker, tmp_path):
    tree, _ = hostile_settings("game_options", marker)
    checkpoint = run_directory(tmp_path / "theirs", tree)
    with pytest.raises(ConfigError, match="game_options") as refused:
        config_of(checkpoint, [], command_line_trust(["game=stranger:run"]))
    assert 'game: "stranger:run"' not in str(refused.value)
    named = ["game=stranger:run", "game_options={note: of a stranger}"]
    assert config_of(checkpoint, named, command_line_trust(named)).game == "stranger:run"
    part = ["game=stranger:run", "game_options.size=3"]  # the other options are the stranger's
    with pytest.raises(ConfigError, match="would be run, game_options"):
        config_of(checkpoint, part, command_line_trust(part))
    assert config_of(checkpoint, [], command_line_trust([], trust=True)).game == "stranger:run"


def test_where_a_server_is_reached_is_not_taken_out_of_data(tmp_path):
    """A stranger's settings would open a port, or take a path of the user's; the command line may do both."""
    new_keys(tmp_path / "keys")
    port = {"endpoint": "tcp://0.0.0.0:7777", "curve_keys": str(tmp_path / "keys"), "prometheus_port": 7778}
    path = {"endpoint": f"ipc://{tmp_path}/authorized_keys", "ipc_access": "everyone"}
    for name, server in (("port", port), ("path", path)):
        checkpoint = run_directory(tmp_path / name, {"server": server, "prometheus_port": 7779})
        config = config_of(checkpoint, [])
        own = config.server
        assert (own.endpoint, own.ipc_access, own.curve_keys) == ("", "owner", "")
        assert (own.prometheus_port, config.prometheus_port) == (0, 0)
        named = config_of(checkpoint, ["server.endpoint=tcp://127.0.0.1:7777", "prometheus_port=7780"])
        assert (named.server.endpoint, named.prometheus_port) == ("tcp://127.0.0.1:7777", 7780)


def test_the_refusal_shows_no_control_characters_and_is_short(marker, tmp_path):
    tree = {"game": "stranger:run", "game_options": {"args": "\x1b]52;c;\u202e" + "x" * 5000}}
    checkpoint = run_directory(tmp_path / "theirs\x1b[31m", tree)
    with pytest.raises(ConfigError) as refused:
        config_of(checkpoint, [])
    assert str(refused.value).isprintable()
    assert "\u202e" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_every_text_of_the_schema_is_marked_or_known_to_run_nothing():
    texts = {key for key in config_keys() if type(_value(Config(), key)) in (str, dict, tuple)}
    texts = {key for key in texts if not _is_choice(key)}
    assert texts == MARKS.keys() | HARMLESS.keys()
    for key, mark in MARKS.items():
        assert isinstance(mark, Names) or MARKS[mark.callable] is Names.CODE, key


def _value(config: Config, key: str) -> object:
    found: object = config
    for name in key.split("."):
        found = getattr(found, name)
    return found


def _is_choice(key: str) -> bool:
    """True for a key that takes one of given words, or a number."""
    with pytest.raises(ConfigError) as raised:
        load_config("cartpole", [f"{key}=no_such_word", "no_such_key=1"])
    return bool(re.search(f"{key}=no_such_word: expected (one of|a (whole )?number)", str(raised.value)))


@pytest.mark.parametrize("starts", [load_class, import_user_module, GtpEngine.__init__])
def test_what_runs_named_code_takes_trust_without_a_default(starts):
    assert inspect.signature(starts).parameters["trust"].default is inspect.Parameter.empty


def test_what_runs_named_code_refuses_without_trust(marker):
    with pytest.raises(ConfigError, match="--trust"):
        load_class("stranger:run", trust=NOTHING)
    with pytest.raises(ConfigError, match="--trust"):
        import_user_module("stranger", NOTHING)
    with pytest.raises(ConfigError, match="--trust"):
        GtpEngine(["touch", str(marker)], 1.0, trust=NOTHING)
    with pytest.raises(ConfigError, match="--trust"):
        build_network(NetworkConfig(name="stranger:run"), SPEC)
    other = Trust(values=values_to_trust({"game": "other:run", "blokus": {"gtp": "true"}}))
    with pytest.raises(ConfigError, match="--trust"):
        load_class("stranger:run", trust=other)
    assert not marker.exists()
    load_class("stranger:run", trust=Trust(values=values_to_trust({"game": "stranger:run"})))
    assert marker.exists()


def test_modules_with_names_out_of_data_are_imported_in_known_places_only():
    """A new place has to be looked at: it takes a Trust, or its names come from our own tables."""
    known = {
        "common/config/named_class.py",  # import_user_module
        "env_worker/games/loading.py", "env_worker/games/pettingzoo/game.py",  # names of GAMES; of FAMILIES
    }  # fmt: skip
    found = set()
    for folder in ("common", "env_worker", "inference_server", "launch", "learner"):
        for file in (ROOT / folder).rglob("*.py"):
            calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
            if any(
                getattr(call.func, "attr", getattr(call.func, "id", "")) in ("import_module", "__import__")
                and not isinstance(call.args[0], ast.Constant)
                for call in calls
            ):
                found.add(str(file.relative_to(ROOT)))
    assert found == known
