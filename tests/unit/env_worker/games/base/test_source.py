"""Many games at once: decisions, rewards, ends, opponents, failures, and the books."""

from __future__ import annotations

import random
import select
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest

from simul.common.config.matchups import Contestant, Pairing
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import ConfigError, EnvError, FailingEnvError
from simul.common.protocol.messages import ABORTED, DECISION, RECORD, START, TERMINATED, TRUNCATED
from simul.env_worker.games.base import source as source_module
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.source import CurriculumSource
from tests.support.turn_games import CARDS, Always, HighCard, Raising, action_of, any_legal, play

PLAYERS = {"random": RandomPlayer, "damage": lambda: Always(1)}


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch):
    """A poll plays all games on, however slow the machine is."""
    monkeypatch.setattr(source_module, "POLL_SEC", 100.0)


def shares(**given: float) -> OpponentsConfig:
    return OpponentsConfig(**{"self_play": 0.0, **given})


def source(make=HighCard, *, opponents=None, **options) -> TurnGameSource:
    given = {"envs": 4, "seed": 7, "opponents": opponents or OpponentsConfig(), **options}
    found = TurnGameSource(make, options.pop("players", PLAYERS), **{k: v for k, v in given.items() if k != "players"})
    found.start()
    return found


def sessions(rows):
    """Rows by session."""
    found = defaultdict(list)
    for row in rows:
        found[row.env, row.seat, row.episode].append(row)
    return found


@pytest.mark.parametrize("seats", [1, 2, 3, 5])
def test_every_seat_has_a_session_of_its_own_and_earns_what_the_game_paid(seats):
    paid = []

    class Paying(HighCard):
        def figures(self):  # asked for once, of a game that is over
            paid.extend(self.earned)
            return {}

    hosted = source(lambda: Paying(seats), episodes=40, record=True)
    rows = play(hosted, any_legal(1))
    by_session = sessions(rows)
    assert len(by_session) == 40 * seats
    for session in by_session.values():
        assert [row.step for row in session] == [0, 1, 2]
        assert [row.kind for row in session] == [DECISION, DECISION, TERMINATED]
        assert [row.flags for row in session] == [START | RECORD, 0, 0]
        assert session[0].reward == 0.0
    last = hosted.metrics()
    earned = [sum(row.reward for row in session) for session in by_session.values()]
    assert sorted(earned) == pytest.approx(sorted(paid))
    assert last["episodes"] == {"started": 40, "finished": 40, "aborted": {}, "alive": 0, "truncated": 0,
                                "ties": last["episodes"]["ties"]}  # fmt: skip
    assert last["returns"]["count"] == 40


def test_rewards_are_the_differences_of_returns_scaled():
    hosted = source(lambda: HighCard(2, rounds=3), envs=1, episodes=1, reward_scale=0.5)
    rows = play(hosted, lambda row: 1)
    for session in sessions(rows).values():
        card = float(session[0].observation[0])
        assert [row.reward for row in session] == [0.0, card / 2, card / 2, card / 2]


def test_all_acting_seats_are_asked_at_once_and_the_game_goes_on_after_the_last_answer():
    hosted = source(envs=1, episodes=1)
    rows = hosted.poll()
    assert [row.seat for row in rows] == [0, 1, 2]
    hosted.act([action_of(row, 1) for row in rows[:2]])
    assert hosted.poll() == []
    hosted.act([action_of(rows[2], 1), action_of(rows[2], 1)])
    assert [row.step for row in hosted.poll()] == [1, 1, 1]


def test_a_truncated_game_ends_every_seat_with_its_final_observation():
    hosted = source(lambda: HighCard(cut=True), envs=2, episodes=4)
    ends = [row for row in play(hosted, any_legal(1)) if row.kind != DECISION]
    assert {row.kind for row in ends} == {TRUNCATED}
    assert all(row.observation[1] == 2 for row in ends), "after the last round"
    assert hosted.metrics()["episodes"]["truncated"] == 4


def first_rows(hosted):
    rows = [row for row in play(hosted, any_legal(3)) if row.step == 0]
    return {(row.env + row.episode * hosted.envs, row.seat): row.observation.tolist() for row in rows}


def test_what_chance_draws_depends_on_the_seed_and_the_games_number_only():
    one, other = source(envs=4, episodes=24), source(envs=6, episodes=24)
    assert first_rows(one) == first_rows(other)
    assert first_rows(source(envs=4, episodes=24, seed=8)) != first_rows(source(envs=4, episodes=24))
    cards = [row[0] for row in first_rows(source(envs=4, episodes=400)).values()]
    assert set(cards) == set(range(CARDS))


def test_the_learners_seat_rotates_and_one_kind_of_opponent_plays_all_other_seats():
    hosted = source(envs=2, episodes=300, opponents=shares(damage=0.5, self_play=0.5), record=True)
    rows = play(hosted, any_legal(1))
    seats = defaultdict(set)
    for row in rows:
        seats[row.env, row.episode].add(row.seat)
    alone = [next(iter(found)) for found in seats.values() if len(found) == 1]
    assert {len(found) for found in seats.values()} == {1, 3}
    assert min(Counter(alone)[seat] for seat in range(3)) > 30
    of_first_env = [
        (episode, next(iter(found))) for (env, episode), found in seats.items() if env == 0 and len(found) == 1
    ]
    assert all(seat == episode % 3 for episode, seat in of_first_env)
    results = hosted.metrics()["results"]
    assert set(results) == {"damage", "self_play"}
    assert sum(sum(counts.values()) for counts in results.values()) == 300


def test_past_selves_are_bound_for_the_game_and_only_the_learner_is_recorded():
    hosted = source(envs=3, episodes=60, opponents=shares(past=1.0), record=True)
    rows = hosted.poll()
    assert {row.policy for row in rows} == {"learner"}, "self-play before the first past self"
    hosted.set_policies(["learner", "past/2", "past/1", "eval/9"])
    rows = [row for row in play_on(hosted, rows) if row.episode > 0 and row.step == 0]
    by_game = defaultdict(list)
    for row in rows:
        by_game[row.env, row.episode].append(row)
    for game in by_game.values():
        policies = Counter(row.policy for row in game)
        assert policies["learner"] == 1
        assert len(policies) == 2
        assert [bool(row.flags & RECORD) for row in game] == [row.policy == "learner" for row in game]
    assert {row.policy for row in rows} == {"learner", "past/1", "past/2"}
    recent = hosted.metrics()["recent"]
    assert recent["past/1"]["games"] + recent["past/2"]["games"] == recent["past"]["games"] > 0
    hosted.set_policies(["learner", "past/2", "past/3"])
    assert hosted.metrics()["recent"].keys() & {"past/1", "past/2", "past"} == {"past/2", "past"}


def play_on(hosted, rows):
    hosted.act([action_of(row, 1) for row in rows if row.kind == DECISION])
    return play(hosted, any_legal(2))


def test_lost_sessions_start_again_without_ends_and_refused_ones_end_as_aborted():
    hosted = source(envs=2)
    first = hosted.poll()
    hosted.abort([0], "server_lost")
    rows = hosted.poll()
    assert {(row.env, row.episode, row.step, row.kind) for row in rows} == {(0, 1, 0, DECISION)}
    hosted.abort([1], "ERR_ORDER")
    rows = hosted.poll()
    ends = [row for row in rows if row.kind == ABORTED]
    assert {(row.env, row.seat, row.episode, row.step) for row in ends} == {(1, seat, 0, 1) for seat in range(3)}
    hosted.act([action_of(row, 1) for row in first])  # of episodes that are over
    assert hosted.poll() == []
    episodes = hosted.metrics()["episodes"]
    assert episodes["aborted"] == {"server_lost": 1, "ERR_ORDER": 1}
    assert episodes["started"] == sum(episodes["aborted"].values()) + episodes["alive"]


def test_an_illegal_action_aborts_its_game_and_the_others_go_on():
    hosted = source(envs=2)
    rows = hosted.poll()
    wrong = [action_of(row, 9 if row.env == 0 and row.seat == 0 else 1) for row in rows]
    with pytest.raises(EnvError, match=r"env 0 seat 0 episode 0 step 0: action 9 is not legal; expected one of \[0, 1"):
        hosted.act(wrong)
    rows = hosted.poll()
    assert {(row.env, row.step) for row in rows if row.kind == DECISION} == {(0, 0), (1, 1)}


def test_a_game_that_raises_costs_its_episode_and_its_line_is_named():
    class Sometimes(Raising):
        bad = (0,)

    hosted = source(Sometimes, envs=3, episodes=90, max_failed_share=0.9)
    rows = play(hosted, any_legal(1))
    metrics = hosted.metrics()
    failed = metrics["episodes"]["aborted"]["env_error"]
    assert 0 < failed < 45
    assert metrics["episodes"]["finished"] == 90 - failed
    assert len([row for row in rows if row.kind == ABORTED]) == 3 * failed
    assert "turn_games.py:" in metrics["events"][-1]
    assert "RuntimeError: the cards are gone" in metrics["events"][-1]


def test_games_that_fail_to_begin_again_are_counted_once():
    class OneGame(HighCard):
        resets = 0

        def reset(self, seed: int) -> None:
            OneGame.resets += 1
            if OneGame.resets > 1:
                raise OSError("no table")
            super().reset(seed)

    hosted = source(OneGame, envs=1, max_failed_share=0.5)
    with pytest.raises(FailingEnvError, match=r"py:\d+: OSError"):
        play(hosted, any_legal(1))
    episodes = hosted.metrics()["episodes"]
    assert (episodes["finished"], episodes["alive"]) == (1, 0)
    assert episodes["started"] == 1 + episodes["aborted"]["env_error"]


def test_a_game_that_does_not_begin_is_a_configuration_error():
    class Unborn(HighCard):
        def reset(self, seed: int) -> None:
            raise OSError("no table")

    with pytest.raises(ConfigError, match=r"does not start.*no table"):
        source(Unborn)


class Broken:
    """Fails at the third call, and says that it was closed."""

    closed = 0

    def __init__(self) -> None:
        self.calls = 0

    def choose(self, game, seat, draw) -> int:
        self.calls += 1
        if self.calls == 3:
            raise TimeoutError("the engine is silent")
        return 1

    def close(self) -> None:
        Broken.closed += 1


def test_a_player_that_raises_aborts_its_game_and_is_replaced():
    hosted = source(
        envs=1, episodes=9, opponents=shares(damage=1.0), players={"random": RandomPlayer, "damage": Broken}
    )
    play(hosted, any_legal(1))
    metrics = hosted.metrics()
    assert metrics["episodes"]["aborted"]["opponent_error"] == Broken.closed > 0
    assert "the engine is silent" in metrics["events"][0]


class Thinking(Always):
    """Takes its time."""

    def choose(self, game, seat, draw) -> int:
        time.sleep(0.03)
        return super().choose(game, seat, draw)


def test_slow_players_do_not_keep_the_worker_from_its_messages(monkeypatch):
    monkeypatch.setattr(source_module, "POLL_SEC", 0.02)
    players = {"random": RandomPlayer, "damage": lambda: Thinking(1)}
    pairing = Pairing(Contestant("a", bot="damage"), Contestant("b", bot="random"), 6, seats=3)
    hosted = source(envs=6, episodes=6, pairings=[pairing], players=players)
    polls = 0
    while not hosted.idle():
        hosted.poll()
        polls += 1
        ready, _, _ = select.select(hosted.files(), [], [], 0)
        assert bool(ready) == (not hosted.idle())
    assert polls > 6
    assert hosted.metrics()["episodes"]["finished"] == 6
    hosted.close()


def test_recent_games_are_grouped_by_the_learners_seat_too():
    hosted = source(envs=3, episodes=30)
    play(hosted, any_legal(1))
    recent = hosted.metrics()["recent"]
    seats = [recent[f"seat_{seat}"] for seat in range(3)]
    assert [seat["games"] for seat in seats] == [10, 10, 10]
    for name in ("return_mean", "figure.card"):
        assert sum(seat[name] for seat in seats) / 3 == pytest.approx(recent["all"][name])
    hosted.close()


def test_mirrored_games_share_their_cards_and_the_first_takes_every_seat():
    pairing = Pairing(Contestant("a", policy="learner"), Contestant("b", bot="random"), 30, seats=3)
    hosted = source(envs=4, episodes=30, pairings=[pairing], mirror_seed=5)
    seen = {}
    for row in play(hosted, any_legal(1)):
        if row.step == 0:
            seen[row.env + row.episode * 4] = row
    groups = [[seen[number] for number in range(start, start + 3)] for start in range(0, 30, 3)]
    assert all([row.seat for row in group] == [0, 1, 2] for group in groups)
    again = source(envs=2, episodes=30, pairings=[Pairing(pairing.second, pairing.first, 30, seats=3)], mirror_seed=5)
    cards = {(number, seat): card for (number, seat), (card, *_) in first_rows(again).items()}
    for number, row in seen.items():
        same = [cards[other, row.seat] for other in range(number - number % 3, number - number % 3 + 3)
                if (other, row.seat) in cards]  # fmt: skip
        assert same == [row.observation[0]] * len(same)
    metrics = hosted.metrics()
    assert sum(metrics["mirrored"]["0"].values()) == 10
    assert set(metrics["results"]) == {"0/p1", "0/p2", "0/p3"}
    assert metrics["recent"] == {}, "standings say more, and a report is small"
    standings = metrics["standings"]
    assert [standings[f"0/p{seat}"]["games"] for seat in (1, 2, 3)] == [10, 10, 10]
    by_seat = [standings[f"0/p{seat}"]["score"] for seat in (1, 2, 3)]
    assert sum(by_seat) / 3 == pytest.approx(standings["0/first"]["score"])
    assert (standings["0/first"]["games"], standings["0/groups"]["games"]) == (30, 10)
    assert standings["0/first"]["score"] == pytest.approx(metrics["returns"]["mean"])
    assert standings["0/groups"]["first.score"] == pytest.approx(standings["0/first"]["score"])
    ranks = standings["0/first"]["rank"] + 2 * standings["0/second"]["rank"]
    assert ranks == pytest.approx(1 + 2 + 3)
    assert 0 <= standings["0/first"]["figure.card"] <= CARDS


def test_equal_players_that_draw_do_not_play_equal_games_where_they_are_mirrored():
    pairing = Pairing(Contestant("a", bot="random"), Contestant("b", bot="random"), 40, seats=2)
    hosted = source(lambda: HighCard(seats=2), envs=4, episodes=40, pairings=[pairing], mirror_seed=5)
    play(hosted, any_legal(1))
    assert hosted.metrics()["mirrored"]["0"]["2"] > 0, "with the draws of its seat each wins one of two"


def test_after_drain_no_game_begins_and_closing_counts_what_ran():
    hosted = source(envs=3)
    rows = hosted.poll()
    hosted.drain()
    hosted.act([action_of(row, 1) for row in rows])
    hosted.act([action_of(row, 1) for row in hosted.poll() if row.env < 2])
    ends = hosted.poll()
    assert {row.kind for row in ends} == {TERMINATED}
    assert [hosted.episode(env) for env in range(3)] == [-1, -1, 0]
    assert not hosted.idle()
    hosted.close()
    episodes = hosted.metrics()["episodes"]
    assert (episodes["finished"], episodes["aborted"], episodes["alive"]) == (2, {"shutdown": 1}, 0)


@pytest.mark.parametrize(
    ("method", "gives", "says"),
    [
        ("observation", np.zeros(4, np.float32), r"float32 \[4\]; the spec declares float32 \[3\]"),
        ("figures", {"card": [1.0]}, "card are .* each of 3 seats"),
        ("figures", {"card": [1.0, 2.0, float("nan")]}, "card are .*nan"),
        ("returns", [1e308] * 3, r"high-card: the reward of seat 0 is 1e\+308; .* at most 3\.4e\+38"),
    ],
)
def test_what_breaks_a_promise_of_games_is_an_error_of_the_game(method, gives, says):
    odd = type("Odd", (HighCard,), {method: lambda self, *_: gives})
    with pytest.raises(FailingEnvError, match=says):
        play(source(odd, envs=1, max_failed_share=0.5), any_legal(1))


class Stuck(HighCard):
    """Leaves seat 1 no action in its second round."""

    def legal_actions(self, seat: int) -> np.ndarray:
        return np.arange(0) if seat == 1 and self.played == 1 else super().legal_actions(seat)


@pytest.mark.parametrize("opponent", [None, "random"], ids=["policies", "a scripted player"])
def test_a_seat_without_a_legal_action_is_an_error_of_the_game_whoever_sits_there(opponent):
    """Of a player alone the sentence would be that its draw failed, and of a policy the server's refusal of a row."""
    more = {}
    if opponent is not None:
        first, other = Contestant("new", policy="learner"), Contestant(opponent, bot=opponent)
        more = {"episodes": 40, "pairings": [Pairing(first, other, 40, seats=3)]}
    hosted = source(Stuck, envs=2, max_failed_share=0.5, **more)
    with pytest.raises(FailingEnvError, match="high-card: seat 1 must act, and no action is legal"):
        play(hosted, any_legal(1))
    metrics = hosted.metrics()
    assert metrics["episodes"]["aborted"]["env_error"] >= 20
    assert "seat 1 must act, and no action is legal (env " in metrics["events"][0]
    assert "step 1)" in metrics["events"][0]


def test_a_session_whose_first_decision_failed_never_began():
    class Blind(HighCard):
        def observation(self, seat: int) -> np.ndarray:
            if seat == 1:
                raise ValueError("dark")
            return super().observation(seat)

    hosted = source(Blind, envs=1, max_failed_share=0.5)
    rows = []
    with pytest.raises(FailingEnvError, match=r"py:\d+: ValueError: dark"):
        rows += play(hosted, any_legal(1))
    rows += hosted.poll()
    assert {row.seat for row in rows} == {0}
    assert [row.kind for row in rows[:2]] == [DECISION, ABORTED]


def test_the_random_player_takes_every_legal_action():
    game, draw = HighCard(2), random.Random(1)
    game.reset(0)
    game.apply({-1: 0})
    game.apply({-1: 3})
    chosen = [[RandomPlayer().choose(game, seat, draw) for _ in range(300)] for seat in (0, 1)]
    assert [sorted(set(each)) for each in chosen] == [[0, 1], [0, 1, 2]]
    assert min(Counter(chosen[1]).values()) > 60


class Watching(HighCard):
    """Two seats, which are told what the other did last."""

    told: tuple[int, ...] | None = None

    def __init__(self) -> None:
        super().__init__(seats=2, rounds=3)
        self.spec = msgspec.structs.replace(self.spec, opponent_labels=1, opponent_classes=3)
        self.last: Mapping[int, int] = {}

    def apply(self, actions: Mapping[int, int]) -> None:
        super().apply(actions)
        self.last = actions

    def opponent_label(self, seat: int) -> Sequence[int]:
        return (self.last[1 - seat],) if self.told is None else self.told


def test_labels_of_what_the_opponent_did_go_with_the_next_decision_and_the_end_of_recorded_seats():
    for recorded in (True, False):
        playing = source(Watching, opponents=shares(self_play=1.0), envs=1, episodes=1, record=recorded)
        said, chosen = defaultdict(list), defaultdict(list)
        while not playing.idle():
            decisions = playing.poll()
            actions = [action_of(d, 1 + d.seat * (d.step % 2 == 0)) for d in decisions if d.kind == DECISION]
            for decision in decisions:
                said[decision.seat].append(decision.label)
            for action in actions:
                chosen[action.seat].append(action.action)
            playing.act(actions)
        for seat in (0, 1):
            theirs = [(action,) if recorded else () for action in chosen[1 - seat]]
            assert said[seat] == [(), *theirs], "the first decision has none, the end has one"
        playing.close()


@pytest.mark.parametrize("label", [(3,), (1, 1), (-2,)])
def test_a_label_that_the_spec_does_not_know_costs_the_game(label, monkeypatch):
    monkeypatch.setattr(Watching, "told", label)
    playing = source(Watching, opponents=shares(self_play=1.0), envs=1, record=True)
    decisions = playing.poll()
    playing.act([action_of(decision, 1) for decision in decisions])
    playing.poll()
    metrics = playing.metrics()
    assert any("opponent_label of seat 0" in event for event in metrics["events"])
    playing.close()


class Growing(HighCard):
    """Remembers what it was told of the run's progress before each game."""

    told: list[tuple[float, bool]] = []

    def set_progress(self, share):
        self.told.append((share, bool(self.acting())))


def test_games_of_training_are_told_how_far_the_run_is_and_evaluated_ones_are_not(monkeypatch):
    monkeypatch.setattr(Growing, "told", [])
    hosted = source(Growing, envs=2, record=True)
    assert isinstance(hosted, CurriculumSource)
    rows = hosted.poll()
    hosted.set_progress(0.5)
    for _ in range(40):
        hosted.act([action_of(row, 0) for row in rows if row.kind == DECISION])
        rows = hosted.poll()
    shares = [share for share, _ in Growing.told]
    assert shares[:2] == [0.0, 0.0]
    assert len(shares) > 4
    assert set(shares[2:]) == {0.5}
    assert not any(running for _, running in Growing.told[2:]), "between two games"
    Growing.told.clear()
    pairing = Pairing(Contestant("a", policy="learner"), Contestant("b", bot="random"), 4)
    for options in ({"pairings": [pairing], "episodes": 4}, {"record": False, "episodes": 4}):
        other = source(Growing, **options)
        other.set_progress(0.5)
        play(other, any_legal(1))
    assert Growing.told == []
