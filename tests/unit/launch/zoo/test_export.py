"""An entry of a zoo out of a run, but for the games, which tests/integration/test_zoo.py plays."""

from __future__ import annotations

import json
import shutil

import pytest

from simul.common.checkpoints.meta import CONFIG_FILE, OPTIMIZER_FILE, WEIGHTS_FILE, file_hash, read_meta
from simul.common.checkpoints.zoo import CARD, RESULTS
from simul.common.config.loader import load_config
from simul.common.config.trust import NOTHING
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.processes.process_group import RoleDied
from simul.launch.supervisor.checkpoint_files import InitialCheckpoint, config_of, find_fault
from simul.launch.zoo import export as module
from simul.launch.zoo.card import card_facts
from simul.launch.zoo.export import FLOAT32, Terms, export
from tests.support.checkpoints import SMALL, write_checkpoint

SPEC = GameSpec("gymnasium/CartPole-v1", 4, 2)
RESULT = {"pairs": [], "mean_return": 321.5, "t_95": [300.0, 343.0], "episodes": 20, "wanted": 20}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of CartPole with frames of its own, and an evaluation that takes no time."""
    monkeypatch.setattr(module, "_play", lambda folder, bots, games, workers: RESULT)
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_config(load_config("cartpole", ["gymnasium.frame_stack=2", "seed=9", "network.options.hidden=16"]))
    run_dir.write_spec(SPEC)
    write_checkpoint(run_dir.checkpoints / "000000004", SPEC, 4)
    return run_dir


def make(run, folder, **options):
    said = []
    terms = options.pop("terms", Terms("CC0-1.0", "Made for a\ntest."))
    card = export(run.root, folder, terms, games=20, precision=FLOAT32, trust=NOTHING, say=said.append, **options)
    return card, said


def test_an_entry_is_whole_and_its_card_says_how_strong_whose_and_of_what_it_is(run, tmp_path):
    folder = tmp_path / "pole"
    card, said = make(run, folder)
    assert said == ["pole plays 20 games"]
    assert find_fault(folder) == ""
    assert {path.name for path in folder.iterdir()} == {CARD, RESULTS, WEIGHTS_FILE, CONFIG_FILE, "meta.json"}
    assert json.loads((folder / RESULTS).read_text())[""]["mean_return"] == 321.5
    assert (folder / CARD).read_text() == card
    for words in (
        "# pole\n", "| 321.500 | [300.000, 343.000] | 20 |", "- licence: CC0-1.0\n", "people. Made for a test.\n",
        "--set gymnasium.frame_stack=2", "--set seed=9", "learned by ppo from random weights, and from its own games",
        "game: gymnasium", "(MIT License)", "`simul eval --checkpoint pole`, `simul serve` and `simul up --from` take",
    ):  # fmt: skip
        assert words in card
    assert str(tmp_path) not in card


def test_the_command_of_a_resumed_run_names_its_horizon_in_place_of_its_last_start(run, tmp_path):
    shares = ["opponents=self:0.8,past:0.2", "learner.total_decisions=auto"]
    run.write_config(load_config("openspiel", [*shares, "stop_after_decisions=70"]))
    checkpoint = run.checkpoints / "000000005"
    horizon = load_config("openspiel", [*shares, "stop_after_decisions=3000"]).horizon(2)
    write_checkpoint(checkpoint, GameSpec("openspiel/tic_tac_toe", 4, 2, seats=2), 5, horizon=horizon)
    card, _ = make(run, tmp_path / "toe")
    assert "--set stop_after_decisions=3000`" in card
    assert "`simul play`, `simul watch`, `simul serve`" in card


def test_a_run_whose_schedules_were_raised_says_so(run, tmp_path):
    spec = GameSpec("openspiel/tic_tac_toe", 4, 2, seats=2)
    run.write_config(load_config("openspiel", ["opponents=self:1", "learner.total_decisions=8116"]))
    write_checkpoint(run.checkpoints / "000000005", spec, 5, horizon=8116)
    card, _ = make(run, tmp_path / "once")
    assert "learner.total_decisions=8116" in card
    write_checkpoint(run.checkpoints / "000000003", spec, 3, horizon=4000)
    card, _ = make(run, tmp_path / "twice")
    assert "--set learner.total_decisions=4000`, resumed with learner.total_decisions=8116 (--new-horizon)" in card


def test_the_command_makes_the_schedules_that_the_run_had(run, tmp_path):
    def command(settings, **learned):
        spec, checkpoint = GameSpec("openspiel/tic_tac_toe", 4, 2, seats=2), run.checkpoints / "000000005"
        run.write_config(load_config("openspiel", ["opponents=self:1", *settings]))
        shutil.rmtree(checkpoint, ignore_errors=True)
        write_checkpoint(checkpoint, spec, 5, **learned)
        return card_facts(make(run, tmp_path / "toe")[0])["command"].partition(" --set opponents")[2]

    total, stop = "learner.total_decisions=4000", "stop_after_decisions=6000"
    assert command([total, stop], horizon=4000, decisions=6050).endswith(f"--set {total} --set {stop}`")
    resumed = command(["learner.total_decisions=auto", stop], horizon=4000, decisions=9000)  # that began with `total`
    assert resumed.endswith(f"--set {total} --set stop_after_decisions=9000`")
    rates = ["learner.learning_rate=1.0e-05", "learner.final_learning_rate=0.0001"]  # the latter as in openspiel.yaml
    assert all(f" --set {rate} " in command([*rates, stop], horizon=500_000, decisions=6000) for rate in rates)


def test_an_entry_of_an_entry_keeps_what_its_card_says(run, tmp_path):
    def again(origin, folder, licence):
        card = export(
            origin, folder, Terms(licence), games=20, precision=FLOAT32, trust=NOTHING, say=lambda words: None
        )  # fmt: skip
        return card_facts(card)

    run.write("summary.json", b'{"versions": {"commit": "0123456789ab"}}')
    first = card_facts(make(run, tmp_path / "pole")[0])
    assert ", commit 0123456789ab" in first["made with"]
    assert first["weights"] == f"SHA-256 {file_hash(tmp_path / 'pole' / WEIGHTS_FILE)}"
    second = again(tmp_path / "pole", tmp_path / "again", "MIT")
    assert [second[key] for key in ("command", "origin")] == [first[key] for key in ("command", "origin")]
    assert second["licence"] == "MIT; of the weights that it was made of: CC0-1.0"
    assert second["exported from"].startswith("pole, ")
    assert ", commit 0123456789ab" in second["made with"]
    assert again(tmp_path / "again", tmp_path / "third", "MIT")["licence"] == second["licence"]


def test_of_a_checkpoint_without_its_run_it_invents_nothing(run, tmp_path):
    make(run, tmp_path / "pole")
    (tmp_path / "pole" / CARD).unlink()
    terms = Terms("CC0-1.0")
    card = export(
        tmp_path / "pole", tmp_path / "again", terms, games=20, precision=FLOAT32, trust=NOTHING, say=lambda words: None
    )
    assert "- command: not known" in card
    assert "- origin: not known" in card
    assert "learned by" not in card


def test_its_own_settings_are_read_with_it_but_nothing_that_runs_or_is_watched(run, tmp_path):
    make(run, tmp_path / "pole")
    config = config_of(tmp_path / "pole", [])
    assert config.gymnasium.frame_stack == 2
    assert config.network == SMALL
    assert (config.run_dir, config.seed) == ("runs/default", 1)


def test_a_run_that_begins_with_it_has_only_files_that_it_copied(run, tmp_path):
    make(run, tmp_path / "pole")
    new = RunDir(tmp_path / "new")
    new.create()
    InitialCheckpoint(tmp_path / "pole", new).copy_into_run(SPEC, SMALL.name)
    (copied,) = new.checkpoints.glob("0*")
    assert read_meta(copied).files.keys() == {WEIGHTS_FILE}
    assert OPTIMIZER_FILE not in {path.name for path in copied.iterdir()}


def test_what_would_be_lost_or_not_stated_is_refused(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"is no entry of a zoo: there is diary\.txt"):
        make(run, tmp_path / "mine")
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "config.yaml").write_text("mine: 1")
    past = write_checkpoint(run.checkpoints / "past" / "000000002", SPEC, 2)
    (past / OPTIMIZER_FILE).unlink()  # as the league's past selves are
    for folder, name in ((tmp_path / "settings", r"config\.yaml"), (past, r"meta\.json")):
        with pytest.raises(ConfigError, match=f"is no entry of a zoo: there is {name}"):
            make(run, folder)
    with pytest.raises(ConfigError, match="--licence MIT"):
        make(run, tmp_path / "pole", terms=Terms(" "))
    with pytest.raises(ConfigError, match="has one seat and no opponents"):
        make(run, tmp_path / "new" / "above" / "pole", opponents=["random"])
    assert not (tmp_path / "new").exists()
    make(run, tmp_path / "pole")
    make(run, tmp_path / "pole")  # an older entry is replaced


def test_what_cannot_be_written_is_found_before_the_games(run, tmp_path, monkeypatch):
    make(run, tmp_path / "pole")
    monkeypatch.setattr(module, "_play", lambda *arguments: pytest.fail("games were played"))
    (tmp_path / "link").symlink_to(tmp_path / "pole")
    with pytest.raises(ConfigError, match="link is a link"):
        make(run, tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written: (Not a directory|File exists)"):
        make(run, tmp_path / "file" / "pole")


def test_games_that_were_not_played_to_their_end_are_said(run, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_play", lambda *arguments: {**RESULT, "episodes": 17})
    card, said = make(run, tmp_path / "pole")
    assert "| 17 |" in card
    assert said[-1] == "3 games were not played to their end; the card counts the others"


def test_nothing_is_left_where_the_games_are_not_played(run, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_play", lambda *arguments: {**RESULT, "mean_return": None})
    with pytest.raises(RoleDied, match="no episode was played"):
        make(run, tmp_path / "pole")
    assert not (tmp_path / "pole").exists()
