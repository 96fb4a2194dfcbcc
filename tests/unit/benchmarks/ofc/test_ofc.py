"""Both sides play the same game with networks of one size, and the faster peer counts."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ofc.main import promises, ratios
from benchmarks.ofc.one_seat import OPPONENTS, make_ofc
from benchmarks.ofc.settings import OURS
from simul.common.config.loader import load_config


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_one_seat_plays_whole_games_for_what_our_side_learns_from(opponent: str) -> None:
    env, draw, seats, fouled = make_ofc(opponent), np.random.default_rng(1), [], False
    for episode in range(9):
        env.reset(seed=7 if episode == 0 else None)
        seats.append(env._seat)
        rewards, over = [], False
        while not over:
            mask = env.action_masks()
            assert (mask == env._game.mask(env._seat).astype(bool)).all()
            _, reward, terminated, truncated, _ = env.step(int(draw.choice(np.flatnonzero(mask))))
            rewards.append(reward)
            over = terminated or truncated
        assert sum(rewards) == pytest.approx(0.1 * env._game.learned_returns()[env._seat])
        fouled |= env._game.learned_returns() != env._game.returns()
    assert seats == [0, 1, 2] * 3
    assert fouled, "in no game did the cost of a foul make a difference"


def _rates(*per_sec: float, cpu_us: float = 100.0) -> list[dict[str, float]]:
    return [{"per_sec": rate, "cpu_us": cpu_us} for rate in per_sec]


def test_the_faster_peer_of_each_repeat_counts() -> None:
    found = {
        "mlp": _rates(6000.0, 8000.0, 9000.0), "lstm": _rates(3000.0, 3000.0, 3000.0),
        "rows": _rates(2000.0, 2000.0, 2000.0),
        "same": _rates(1000.0, 1000.0, 3000.0, cpu_us=600.0), "same_threads": _rates(1.0, 1.0, 1.0),
        "sb3": _rates(500.0, 2000.0, 100.0, cpu_us=700.0),
    }  # fmt: skip
    assert ratios(found, "mlp") == [6.0, 4.0, 3.0]
    (promise,) = promises(found)
    assert (promise.found, promise.promised, promise.kept) == (4.0, 5.0, False)
    assert promise.by_cpu == pytest.approx(6.0)
    assert promises({"mlp": found["mlp"]}) == []


def test_both_sides_have_networks_of_equal_width() -> None:
    for name in ("mlp", "lstm"):
        network = load_config("ofc", [*OURS[name]]).network
        assert network.name == "mlp_lstm"
        assert network.options == {"hidden": 256, "layers": 2, "memory": name == "lstm"}
    assert load_config("ofc", [*OURS["rows"]]).network.name == "ofc"
