from benchmarks.pokemon_layers.arguments import PURE_SELF_PLAY
from benchmarks.pokemon_layers.samples import Sample
from benchmarks.pokemon_layers.sweep import ENVS, WORKERS, Point, markdown, points
from simul.common.config.loader import load_config
from simul.common.runtime.installation import ROOT


def test_every_setting_is_one_that_can_be_configured():
    every = points(ENVS, WORKERS)
    assert len(set(every)) == len(every) == 1 + len(ENVS) * len(WORKERS) + 5
    for point in every:
        config = load_config(ROOT / "configs" / "pokemon.yaml", (*PURE_SELF_PLAY, *point.overrides))
        assert config.opponents.self_play == 1
        for wanted, got in (
            (point.envs, config.workers.envs), (point.workers, config.workers.count),
            (point.replies_per_write, config.pokemon.replies_per_write), (point.team_uses, config.pokemon.team_uses),
        ):  # fmt: skip
            assert wanted in (None, got)


def test_a_row_a_setting_with_an_empty_cell_for_what_was_not_measured():
    sample = Sample(1000.0, 10.0, 0.5, 0.6, 2, {"mean_batch": 40.0})
    rows = markdown({(Point(), "make_up"): [sample], (Point(envs=8), "hosts"): [sample]}).splitlines()
    assert rows[2:] == ["| as configured | 100 | 500 | 40 |  |  |", "| workers.envs=8 |  |  |  | 100 | 500 |"]
