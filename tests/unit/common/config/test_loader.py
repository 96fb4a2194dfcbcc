"""Configuration files: all problems at once, the nearest valid name, the reason of a rule."""

from __future__ import annotations

import re
from copy import deepcopy

import msgspec
import pytest

from simul.common.config.games import GAMES
from simul.common.config.learner_presets import LEARNER_PRESETS
from simul.common.config.loader import config_from_tree, load_config, load_game
from simul.common.config.schema import Config, LearnerConfig
from simul.common.config.value_checks import config_keys
from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT

CONFIGS = ROOT / "configs"


def problems_of(load, text: str, *overrides: str) -> dict[str, str]:
    """Path -> sentence of every problem."""
    with pytest.raises(ConfigError) as caught:
        load(text, *overrides)
    head, *lines = str(caught.value).splitlines()
    assert head.startswith(f"{len(lines)} problem")
    return dict(line.strip().split(": ", 1) for line in lines)


def test_what_holds_itself_has_no_end(tmp_path):
    for text in ("game_options: &a\n  x: *a\n", "game: " + "[" * 1000 + "]" * 1000):
        (tmp_path / "run.yaml").write_text(text)
        with pytest.raises(ConfigError, match="nested too deeply"):
            load_config(tmp_path / "run.yaml")
    for value in ("&a [*a]", "[" * 100 + "]" * 100, "[" * 1000 + "]" * 1000):
        with pytest.raises(ConfigError, match=r"--set learner\.clip=.*: the value is nested too deeply"):
            load_config("configs/cartpole.yaml", [f"learner.clip={value}"])


MODES = """
seed: 3
workers: {count: 4, envs: 5}
modes: {small: {seed: 7, workers: {count: 1}}, wrong: {learner: {clp: 1}}}
"""


def test_a_mode_lies_above_the_file_and_below_overrides(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(MODES)
    config = load_config(path, ["workers.envs=6"], "small")
    assert (config.seed, config.workers.count, config.workers.envs) == (7, 1, 6)
    config = load_config(path)
    assert (config.seed, config.workers.count, config.workers.envs) == (3, 4, 5)
    with pytest.raises(ConfigError, match="There is no mode 'tiny'; the configuration has default, small, wrong"):
        load_config(path, mode="tiny")
    with pytest.raises(ConfigError, match=r"learner\.clp: there is no such key; did you mean learner\.clip"):
        load_config(path, mode="wrong")


@pytest.mark.parametrize(
    ("modes", "problem"),
    [
        ("3", "modes"),
        ("[test]", "modes"),
        ("{test: 3}", "modes.test"),
        ("{on: {seed: 2}}", "modes.True"),
        ("{default: {}}", "modes.default"),
    ],
)
def test_modes_are_sections_with_names(load, modes, problem):
    assert list(problems_of(load, f"modes: {modes}")) == [problem]


def test_a_dict_is_read_as_a_file_is_and_stays_as_it_was():
    tree = {"game": "pokemon", "opponents": "random:1.0", "modes": {"small": {"workers": {"count": 1}}}}
    before = deepcopy(tree)
    config = config_from_tree(tree, "the dict", ["opponents.random=0.5", "opponents.self_play=0.5"], "small")
    assert (config.workers.count, config.opponents.random) == (1, 0.5)
    assert tree == before


def test_a_shipped_name_is_found_beside_a_folder_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "cartpole").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_config("cartpole").gymnasium.id == "CartPole-v1"
    with pytest.raises(ConfigError, match=r"cartpol cannot be read.*Shipped by name: .*cartpole.*pokemon"):
        load_config("cartpol")


@pytest.mark.parametrize("name", ["cartpole", "pokemon"])
def test_modes_of_shipped_configurations_have_runs_of_their_own(name):
    runs = [load_config(name, mode=mode).run_dir for mode in ("default", "test", "quick")]
    assert runs == [f"runs/{name}", f"runs/{name}-test", f"runs/{name}-quick"]


def test_what_a_file_leaves_out_has_the_default(load):
    assert load("game: pokemon") == Config(game="pokemon")


@pytest.mark.parametrize("game", ["gymnasium", "my.module:Env"])
def test_learner_defaults_depend_on_the_kind_of_game_and_every_key_that_is_set_wins(tmp_path, game):
    path = tmp_path / "run.yaml"
    modes = "modes: {test: {learner: {discount: 0.5}}}"
    path.write_text(f"game: {game}\nlearner: {{epochs: 3, clip: 0.3}}\n{modes}\n")
    notes: list[str] = []
    learner = load_config(path, ["learner.minibatches=5"], "test", notes).learner
    preset = LEARNER_PRESETS["small games"]
    assert msgspec.to_builtins(learner) == {
        **msgspec.to_builtins(LearnerConfig()), **preset, "epochs": 3, "clip": 0.3, "minibatches": 5, "discount": 0.5,
    }  # fmt: skip
    assert notes == [
        "learner defaults of small games: batch_steps 2048, learning_rate 0.001, final_learning_rate 0.0001, "
        "total_decisions 1000000"
    ]
    assert config_from_tree({"game": game}, "here").learner.epochs == preset["epochs"]
    for broken, problem in (("learner: 3", "learner: expected a section"), ("game: [3]", "game: expected text")):
        path.write_text(broken)
        with pytest.raises(ConfigError, match=problem):
            load_config(path)


def test_shipped_configurations_set_their_own():
    for name, expected in (("pokemon", 4), ("cartpole", 4), ("memory", 12)):
        notes: list[str] = []
        assert load_config(name, notes=notes).learner.epochs == expected
        assert not any("learner defaults" in note for note in notes)


def test_the_documented_defaults_are_those_that_apply():
    page = (ROOT / "docs" / "custom_game.md").read_text()
    rows = {
        key: values for key, *values in re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+|auto) \|$", page, re.MULTILINE)
    }
    keys = {key for preset in LEARNER_PRESETS.values() for key in preset}
    kinds = [{**msgspec.to_builtins(LearnerConfig()), **LEARNER_PRESETS[name]} for name in ("small games", "battles")]
    assert rows == {key: [str(kind[key]) for kind in kinds] for key in keys}


@pytest.mark.parametrize(
    ("overrides", "first", "last"),
    [
        (["learner.learning_rate=3e-5"], 3e-5, 3e-5),
        (["learner.learning_rate=3e-5", "learner.final_learning_rate=1e-4"], 3e-5, 1e-4),
        (["learner.learning_rate=1e-2"], 1e-2, 1e-4),
        (["learner={learning_rate: 3e-5}"], 3e-5, 3e-5),
    ],
)
def test_a_learning_rate_that_is_set_alone_does_not_rise(overrides, first, last):
    notes = []
    learner = load_config("cartpole", overrides, notes=notes).learner
    assert (learner.learning_rate, learner.final_learning_rate) == (first, last)
    followed = any(note.startswith("learner.final_learning_rate is 3e-05, as learner.learning_rate") for note in notes)
    assert followed == (last == 3e-5)


def test_a_final_value_that_a_file_leaves_out_is_not_above_its_start_value(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("learner: {entropy_coefficient: 0, learning_rate: 5e-5}\n")
    learner = load_config(path).learner
    assert (learner.final_entropy_coefficient, learner.final_learning_rate) == (0, 5e-5)
    path.write_text("learner: {learning_rate: 5e-5, final_learning_rate: 1e-4}\n")
    learner = load_config(path).learner
    assert (learner.final_entropy_coefficient, learner.final_learning_rate) == (0.001, 1e-4)


@pytest.mark.parametrize("text", ["", "\n", "# a comment\n---\n"])
def test_an_empty_file_is_refused(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"run\.yaml is empty: expected keys such as game, .*`simul init NAME`"):
        load_config(path, ["game=pokemon"])


def test_values_and_overrides_arrive_typed(load):
    text = "learner: {learning_rate: 3e-4, total_decisions: 2e6, discount: 1}"
    config = load(text, "learner.clip=0.1", "network.options.hidden=64")
    learner = config.learner
    assert (learner.learning_rate, learner.total_decisions, learner.discount, learner.clip) == (3e-4, 2e6, 1.0, 0.1)
    assert isinstance(learner.total_decisions, int)
    assert load("learner: {total_decisions: auto}").learner.total_decisions == "auto"
    assert (
        load("game: blokus\nlearner: {algorithm: alphazero, batch_steps: 64, minibatches: 4}").learner.minibatches == 4
    )
    assert config.network.options == {"hidden": 64}


def test_schedules_end_with_the_first_start_of_the_run_unless_a_number_says_otherwise(load):
    auto = "learner: {total_decisions: auto}"
    assert load("learner: {total_decisions: 70}", "stop_after_decisions=9").horizon(1, kept=8, decisions=3) == 70
    start = load(auto, "stop_after_decisions=5000")
    assert (start.horizon(1), load(auto).horizon(1)) == (5000, 20_000_000)
    past = load(auto, "game=pokemon", "stop_after_decisions=1900", "opponents=self:0.8,past:0.1,random:0.1")
    assert (past.horizon(2), start.horizon(2)) == (1800, 5000), "the past selves' decisions are not learned"
    alphazero = "game: blokus\nlearner: {algorithm: alphazero, batch_steps: 64, minibatches: 4, total_decisions: auto}"
    searched = load(alphazero, "stop_after_decisions=5000", "opponents=self:0.5,past:0.5")
    assert searched.horizon(2) == 5000, "of searched games a run counts the samples"
    assert start.horizon(1, kept=800, decisions=700) == 800, "of the first start, which the checkpoint keeps"
    assert start.horizon(1, kept=0, decisions=700) == 20_000_000, "a checkpoint of before horizons were kept"


def test_all_problems_at_once_with_the_nearest_name(load):
    problems = problems_of(
        load,
        "learner: {clp: 0.2, epochs: yes, batch_steps: 2.5, clip: -1, learning_rate: .nan, total_decisions: all}\n"
        "unroll_length: 3\n",
        "workers.cout=2",
        "server.device=gpu",
        "run_dir=[3]",
        "pokemon=3",
        "learner.learning_rate_schedule=cosin",
        "opponents.past_by=hrad",
        "workers.count=atuo",
        "metrics=[CSV]",
    )
    assert problems == {
        "learner.clp": "there is no such key; did you mean learner.clip?",
        "learner.epochs": "expected a whole number >= 1, got True",
        "learner.batch_steps": "expected a whole number >= 1 and <= 100000000, got 2.5",
        "learner.clip": "expected a number > 0, got -1",
        "learner.learning_rate": "expected a number > 0, got nan",
        "learner.total_decisions": "expected a whole number >= 1 and <= 1000000000000000 or auto, got 'all'",
        "unroll_length": "there is no such key; did you mean learner.unroll_length?",
        "--set workers.cout=2": "there is no such key; did you mean workers.count?",
        "--set server.device=gpu": "expected one of auto, cpu, cuda, mps, got 'gpu'",
        "--set learner.learning_rate_schedule=cosin": (
            "expected one of constant, cosine, exponential, linear, got 'cosin'; did you mean cosine?"
        ),
        "--set opponents.past_by=hrad": "expected one of hard, uniform, got 'hrad'; did you mean hard?",
        "--set workers.count=atuo": (
            "expected a whole number >= 1 and <= 1024 or auto, got 'atuo'; did you mean auto?"
        ),
        "--set metrics=[CSV]": (
            "metrics.0: expected one of csv, mlflow, tensorboard, wandb, got 'CSV'; did you mean csv?"
        ),
        "--set run_dir=[3]": "expected text, got [3]",
        "--set pokemon=3": "expected a section with keys such as format, teams, opponent_teams, got 3",
    }


@pytest.mark.parametrize(
    ("text", "override", "line"),
    [
        ("", "lerner.clip=1", "--set lerner.clip=1: lerner: there is no such key; did you mean learner?"),
        ("lerner: {x: 1}", "lerner.clip=1", "lerner: there is no such key; did you mean learner?"),
        ("learner: {clp: 1}", "learner.clip=2", "learner.clp: there is no such key"),
        ("learner: {clip: 0.2}", "learner.clip=-1", "--set learner.clip=-1: expected a number > 0, got -1"),
        ("", "learner={clip: -1}", "--set learner={clip: -1}: learner.clip: expected a number > 0"),
        ("", "opponents=random:2", "--set opponents=random:2: "),
        ("game: my:Env", "opponents.past=0.5", "--set opponents.past=0.5: opponents: the shares must add up to 1"),
        ("", "workers.envs=5000", "--set workers.envs=5000: server.max_sessions: expected at least"),
    ],
)
def test_a_mistake_of_an_override_is_shown_as_it_was_given(load, text, override, line):
    with pytest.raises(ConfigError) as caught:
        load(text, override)
    assert f"\n  {line}" in str(caught.value)
    place = "--set" if line.startswith("--set") else r".*run\.yaml"
    assert re.match(rf"1 problem in {place}:\n", str(caught.value))


def test_problems_of_the_file_and_of_overrides_are_told_apart(load):
    says = r"^2 problems in .*run\.yaml and --set:\n  seed: .*\n  --set workers.count=0: "
    with pytest.raises(ConfigError, match=says):
        load("seed: -1", "workers.count=0")


def test_a_key_far_from_any_lists_the_keys(load):
    assert "the keys here are count, envs" in problems_of(load, "workers: {zzz: 1}")["workers.zzz"]


def test_duplicate_keys_are_problems(load):
    problems = problems_of(load, "seed: 1\nlearner:\n  clip: 0.1\n  clip: 0.2\nseed: 2\n")
    assert problems == {
        "line 4": "the key 'clip' is given twice here",
        "line 5": "the key 'seed' is given twice here",
    }


def test_a_colon_without_its_space_is_named(load):
    text = "network:\n  options: {hidden:8, layers: 2, also:}\ngymnasium: {kwargs: {'a:b': ''}}\n"
    problems = problems_of(load, text, "learner={clip:0.1}")
    assert problems == {
        "line 2": "YAML requires a space after a colon: hidden: 8",
        "--set learner={clip:0.1}": "YAML requires a space after a colon: clip: 0.1",
    }
    with pytest.raises(ConfigError, match="'count' is given twice here"):
        load("", "workers={count: 1, count: 2}")
    assert load("gymnasium: {kwargs: {'a:b': ''}}").gymnasium.kwargs == {"a:b": ""}


@pytest.mark.parametrize("override", ["learner.clip", "=1", "learner.clip={"])
def test_overrides_that_do_not_parse(load, override):
    assert f"--set {override}" in problems_of(load, "", override)


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("game: pokemon\nopponents: self:0.5,past:0.5\nlearner: {past_resident: 0}", "opponents.past", "none "),
        ("game: my:Env\nopponents: frozen:1", "opponents.frozen", "opponents.checkpoint does not name it"),
        (
            "game: my:Env\nopponents: {checkpoint: runs/x}",
            "opponents.checkpoint",
            "expected a share for it in opponents",
        ),
        (
            "opponents: {checkpoint: runs/x}",
            "opponents.checkpoint",
            "expected nothing: the game gymnasium has one seat",
        ),
        ("opponents: {self_play: 0.5, past: 0.5}", "opponents", "one seat and no opponents; leave past out"),
        (
            "game: my:Env\nopponents: max:0.5,past:0.5",
            "opponents",
            "self_play, past, frozen, random; leave max_base_power",
        ),
        ("learner: {batch_steps: 10}", "learner.batch_steps", "because every minibatch takes whole unrolls"),
        (
            "game: blokus\nlearner: {algorithm: alphazero, batch_steps: 3, minibatches: 4}",
            "learner.batch_steps",
            "expected at least minibatches = 4, because every minibatch is drawn",
        ),
        ("learner: {burn_in: 17}", "learner.burn_in", "at most half of unroll_length, 16, because nothing is learned"),
        (
            "learner: {entropy_schedule: exponential, final_entropy_coefficient: 0}",
            "learner.entropy_schedule",
            "above 0",
        ),
        ("workers: {envs: 5000}", "server.max_sessions", "because the server refuses"),
        ("server: {deterministic: true, precision: bfloat16}", "server.precision", "float32 only"),
        ("server: {endpoint: 'tcp://0.0.0.0:5'}", "server.endpoint", "is not local"),
        ("game: gymnasium\ngame_options: {length: 3}", "game_options", "use gymnasium.kwargs"),
        ("game: pokemon\ngame_options: {format: gen1ou}", "game_options", "use the keys of the section pokemon"),
        ("game: my:Env\ngymnasium: {kwargs: {length: 3}}", "gymnasium.kwargs", "use game_options"),
        ("game: pokemn", "game", "did you mean pokemon?"),
        ("network: {name: pokemon}", "network.name", "use mlp, mlp_lstm, "),
        ("game: pokemon\npokemon: {format: gen9vgc2026bo3, transport: websocket}", "pokemon.format", "without bo3"),
    ],
)
def test_rules_over_several_keys_say_why(load, text, path, reason):
    assert reason in problems_of(load, text)[path]


def test_a_rule_is_silent_where_what_it_reads_is_broken_already(load):
    assert list(problems_of(load, "opponents: {self_play: 0.5, randm: 0.5}")) == ["opponents.randm"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("[1, 2]", "must be a mapping"), *((text, "is not YAML") for text in ("a: [", "a: \x01", "? [a]\n: b"))],
)
def test_files_that_are_no_mapping(load, text, words):
    with pytest.raises(ConfigError, match=words):
        load(text)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("ofcc", "; did you mean ofc?"), ("blokuss", "; did you mean blokus?"), ("nothing_alike", ".")],
)
def test_a_misspelt_name_of_a_shipped_configuration_names_the_nearest(name, nearest):
    says = f"{name} cannot be read: No such file or directory{nearest} Shipped by name: blokus, "
    for load_it in (load_config, load_game):
        with pytest.raises(ConfigError, match=re.escape(says)):
            load_it(name)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_configuration_loads_and_comments_every_line(path):
    load_config(path)
    for line in path.read_text().splitlines():
        assert not line.strip() or re.search(r"(^|\s)#\s+\S", line), f"no comment: {line}"


def keys_shown_in(name: str) -> set[str]:
    """Dotted keys that have a line in a shipped configuration."""
    shown: list[str] = []
    for line in (CONFIGS / f"{name}.yaml").read_text().splitlines():
        if found := re.match(r"^((?: {2})*)([a-z_]+):", line):
            above = shown[-1].split(".")[: len(found[1]) // 2] if shown else []
            shown.append(".".join([*above, found[2]]))
    return set(shown)


def test_the_default_configuration_shows_every_key_and_another_game_shows_its_own():
    of_stored_ones = {"pokemon.encoder"}  # means nothing any more
    missing = set(config_keys()) - keys_shown_in("pokemon") - of_stored_ones
    for name, game in GAMES.items():
        own = {key for key in missing if key.startswith(f"{name}.")} | {f"opponents.{kind}" for kind in game.scripted}
        assert own - keys_shown_in(game.configuration) == set()
        missing -= own
    of_alphazero = {key for key in missing if key.startswith(("replay.", "search."))}
    of_alphazero |= {"learner.weight_decay", "learner.ending_coefficient"}
    pages = "".join((ROOT / "docs" / page).read_text() for page in ("custom_game.md", "search.md"))
    assert all(f"`{key}`" in pages for key in of_alphazero)
    of_tables = {"evaluation.openings"}
    assert of_tables <= keys_shown_in("blokus")
    assert missing - of_alphazero - of_tables == set()


def test_a_stored_encoder_means_nothing_unless_it_is_the_one_that_is_gone(load):
    assert load("game: pokemon\npokemon: {encoder: host}\n").pokemon.encoder == "host"
    with pytest.raises(ConfigError, match=r"pokemon.encoder.*gone: expected host, got python. Leave the key out"):
        load("game: pokemon\npokemon: {encoder: python}\n")


def test_a_list_of_sections(load):
    config = load("pokemon: {servers: [{host: a, port: 1}, {host: b, port: 2, max_connections: 6}]}")
    assert [(s.host, s.port, s.max_connections) for s in config.pokemon.servers] == [("a", 1, 4), ("b", 2, 6)]


@pytest.mark.parametrize(
    ("servers", "path", "sentence"),
    [
        ("8000", "", "expected a list of sections with the keys host, port, got 8000"),
        ("[8000]", ".0", "expected a section with keys such as host, port, max_connections, got 8000"),
        ("[{host: a}]", ".0", "the key port is missing"),
        ("[{host: a, port: 1}, {host: a, port: x}]", ".1.port", "expected a whole number >= 0 and <= 65535, got 'x'"),
        ("[{host: a, port: 1, prot: 2}]", ".0.prot", "there is no such key; did you mean pokemon.servers.0.port?"),
        ("[{host: a, port: 1, max_connections: 1}]", ".0.max_connections", "expected a whole number >= 2, got 1"),
    ],
)
def test_a_list_of_sections_that_is_wrong(load, servers, path, sentence):
    assert problems_of(load, f"pokemon: {{servers: {servers}}}") == {f"pokemon.servers{path}": sentence}


def test_a_frozen_opponent_that_is_named_alone_plays_all_games_and_its_settings_stand_beside_a_mix(load):
    notes: list[str] = []
    text = "game: my:Env\nopponents: {self_play: 0.7, past: 0.3, past_by: hard}"
    alone = load(text, "opponents.checkpoint=zoo:x", notes=notes).opponents
    assert {kind: share for kind, share in alone.shares().items() if share} == {"frozen": 1.0}
    assert (alone.checkpoint, alone.past_by) == ("zoo:x", "hard")
    assert any("all games are against it" in note for note in notes)
    for overrides in (
        ("opponents.checkpoint=zoo:x", "opponents=frozen:0.5,past:0.5"),
        ("opponents=frozen:0.5,past:0.5", "opponents.checkpoint=zoo:x"),
    ):
        mixed = load(text, *overrides).opponents
        assert (mixed.frozen, mixed.past, mixed.self_play, mixed.checkpoint) == (0.5, 0.5, 0.0, "zoo:x")


def test_a_section_given_as_one_string_and_by_its_keys_is_a_contradiction(load):
    overrides = ("opponents=random:1", "opponents.past=0.3")
    assert "opponents is given as a whole" in problems_of(load, "", *overrides)["--set opponents.past=0.3"]


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("seed=99999999999999999999999", "expected a whole number"),
        ("server.max_sessions=1000000000000", "expected a whole number"),
        ("server.threads=1000000", "expected a whole number"),
        ("workers.envs=100000000", "expected a whole number"),
        ("learner.unroll_length=1000000000", "expected a whole number"),
        ("learner.batch_steps=4000000000", "expected a whole number"),
        ("learner.total_decisions=1e19", "expected a whole number"),
        ("stop_after_decisions=9000000000000000000", "expected a whole number"),
        (f"seed={'9' * 400}", "expected a whole number"),
        (f"seed={'9' * 5000}", "the value is not YAML: Exceeds the limit"),
        (f"learner.clip={'9' * 400}", "expected a number"),
    ],
)
def test_numbers_that_nothing_has_room_for_are_refused(load, override, sentence):
    with pytest.raises(ConfigError, match=f"--set {override[:20]}.*: {sentence}"):
        load("", override)


@pytest.mark.parametrize("date", ["2026-11-22", "2026-22-11"])
def test_a_date_is_text(load, date):
    assert load("", f"run_dir={date}").run_dir == load(f"game: gymnasium\nrun_dir: {date}").run_dir == date


@pytest.mark.parametrize("text", ["1:30", "010", "0b11"])
def test_only_decimal_and_hexadecimal_digits_are_numbers(load, text):
    assert load("", f"run_dir={text}").run_dir == text
    with pytest.raises(ConfigError, match=r"learner\.epochs=.*expected a whole number"):
        load("", f"learner.epochs={text}")


def test_nothing_clears_a_text(load):
    assert load("metrics_callback: mine:callback", "metrics_callback=").metrics_callback == ""
    assert load("metrics_callback:").metrics_callback == ""
    assert problems_of(load, "", "run_dir=") == {"--set run_dir=": "expected text that is not empty, got nothing"}
    assert problems_of(load, "", "run_dir=''") == {"--set run_dir=''": "expected text that is not empty, got ''"}


@pytest.mark.parametrize(
    ("text", "path", "sentence"),
    [
        ("metrics: csv", "metrics", "expected a list such as [csv], got 'csv'"),
        ("metrics: 3", "metrics", "expected a list such as [a, b], got 3"),
        ("metrics: [~]", "metrics.0", "expected one of csv, "),
        ("metrics: [csv, tensorbord]", "metrics.1", "one of csv, mlflow, tensorboard, wandb, got 'tensorbord'"),
        ("metrics: [csv, csv]", "metrics.1", "'csv' is given twice"),
        ("metrics_callback: mine", "metrics_callback", "expected module:function, got 'mine'"),
        ("evaluation: {every_decision: 5}", "evaluation.every_decision", "did you mean evaluation.every_decisions?"),
        (
            "evaluation: {openings: few}",
            "evaluation.openings",
            "<= 1000 or auto, got 'few'",
        ),
        ("evaluation: {openings: 4}", "evaluation.openings", "only games of a table with several seats begin with"),
        ("game: pokemon\nevaluation: {opponents: [random, maxi]}", "evaluation.opponents.1", "got 'maxi'"),
        ("game: pokemon\nevaluation: {every_decisions: 5}", "evaluation.opponents", "name some of random, "),
        ("evaluation: {opponents: [random]}", "evaluation.opponents", "gymnasium has no scripted opponents"),
        ("store: /mnt/disk", "store", "expected one URL such as s3://bucket/run"),
        ("store: s3://", "store", "expected one URL such as s3://bucket/run"),
        ("store: simplecache::s3://bucket/run", "store", "expected one URL such as s3://bucket/run"),
        ("store: s4://bucket/run", "store", "the scheme s4:// is unknown; did you mean s3://?"),
        ("store: nothinglikeit://bucket/run", "store", "nothinglikeit:// is unknown; expected a URL such as s3://"),
        ("store: memory://run", "store", "memory:// ends with each process"),
        ("store: ftp://me:word@host/run", "store", "leave user and password out of the URL"),
        ("store_milestone_decisions: 0", "store_milestone_decisions", "expected a whole number >= 1"),
    ],
)
def test_curves_evaluations_and_stores_are_checked(load, text, path, sentence):
    with pytest.raises(ConfigError) as error:
        load(text)
    (line,) = str(error.value).splitlines()[1:]
    assert line.strip().startswith(f"{path}: ")
    assert sentence in line


def test_a_number_is_the_text_that_was_written_where_text_is_expected(load):
    settings = "game: openspiel\nopenspiel: {name: 2048}\nmodes: {other: {openspiel: {name: 1e3}}}"
    assert load(settings).openspiel.name == "2048"
    assert load_config("openspiel", ["openspiel.name=007"]).openspiel.name == "007"
    with pytest.raises(ConfigError, match="expected text, got True"):
        load_config("openspiel", ["openspiel.name=yes"])


def test_what_is_only_watched_does_not_change_the_configuration_of_a_run(load):
    watched = load(
        "metrics: [csv]\nmetrics_callback: a:b\nprometheus_port: 9101\nevaluation: {every_decisions: 5}\n"
        "store: s3://bucket/run@1\nstore_milestone_decisions: 2e6"
    )
    assert (watched.store, watched.metrics) == ("s3://bucket/run@1", ("csv",))
    assert load("metrics: []").metrics == ()
    assert watched.fingerprint() == load("").fingerprint() != load("seed: 2").fingerprint()


@pytest.mark.parametrize(
    ("settings", "path", "words"),
    [
        (["learner.algorithm=alphazero"], "learner.algorithm", "the game gymnasium has no search; use ppo, vtrace or"),
        (["learner.weight_decay=0.1"], "learner.weight_decay", "the algorithm ppo has no weight decay"),
        (["learner.ending_coefficient=1"], "learner.ending_coefficient", "does not learn from samples, which tell how"),
        (["learner.normalize_rewards=true"], "learner.normalize_rewards", "outcomes between -1 and 1; leave it out"),
        (["network.normalize_observations=true"], "network.normalize_observations", "keeps no statistics"),
        (["replay.window_samples=10"], "replay.min_samples", "at most replay.window_samples = 10, got 2000"),
        (["replay.uses=0"], "replay.uses", "expected a number > 0"),
    ],
)
def test_alphazero_is_refused_where_it_cannot_learn(settings, path, words) -> None:
    of_ppo = settings[0].startswith(("learner.algorithm", "learner.weight", "learner.ending"))
    own = [] if of_ppo else ["game=mine:Game", ALPHAZERO]
    with pytest.raises(ConfigError) as error:
        load_config(CONFIGS / "cartpole.yaml", [*own, *settings])
    assert words in str(error.value)
    assert path in str(error.value)


ALPHAZERO = "learner.algorithm=alphazero"


def test_a_game_of_ones_own_may_have_search_and_later_sections_change_no_fingerprint() -> None:
    config = load_config(CONFIGS / "cartpole.yaml", ["game=mine:Game", ALPHAZERO, "learner.weight_decay=1e-4"])
    assert config.replay.uses == 4.0
    again = msgspec.structs.replace(config, replay=msgspec.structs.replace(config.replay, uses=2.0))
    assert again.fingerprint() != config.fingerprint()
