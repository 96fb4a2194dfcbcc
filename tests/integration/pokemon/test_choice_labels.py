"""Labels of what the opponent did: real battles, a real server, and the unrolls that its learner gets.

What each label should be is found a second way, from what the opponent was offered and the action it was given.
"""

from __future__ import annotations

import select
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from poke_env.data import GenData, to_id_str

from simul.common.client.client import InferenceClient
from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION, TERMINATED
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.source.source import PokemonSource
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from simul.env_worker.games.pokemon.tables.layout import FIRST_MOVE_CLASS
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.battles import make_source
from tests.support.hosts import GEN9, wait
from tests.support.stand import Stand
from tests.support.waiting import wait_for

NONE, UNSEEN, TEAM = -1, 6, 6
Session = tuple[int, int, int]
STAYS = {vocabulary().move[name] for name in ("struggle", "recharge")}  # offered in the place of the first move

BASE = {row: to_id_str(GenData.from_gen(9).pokedex[name]["baseSpecies"]) for name, row in vocabulary().species.items()}

HIDDEN_POWER = vocabulary().move["hiddenpower"]  # its user knows its type, who sees it does not
TYPED = {row for name, row in vocabulary().move.items() if name.startswith("hiddenpower")}


class Reader:
    """Reads decisions by the names of their layout."""

    def __init__(self, spec: GameSpec) -> None:
        self.slots = spec.opponent_labels
        self._at = {part.name: part.start for part in spec.layout}

    def number(self, decision: Decision, name: str) -> float:
        assert decision.observation is not None
        return float(decision.observation[self._at[name]])

    def slot(self, decision: Decision) -> int:
        return int(self.number(decision, "global.right")) if self.slots == 2 else 0

    def label(self, observer: Decision, opponent: Decision, action: int) -> int:
        """What the opponent does, as the observer sees it."""
        plain, per_move, moves = (0, 1, 4) if self.slots == 1 else (1, 5, 20)
        if self.number(opponent, "global.preview") or self.number(opponent, "global.reviving") or action < plain:
            return NONE
        action -= plain
        if action >= TEAM:
            row = int(self.number(opponent, f"move.{(action - TEAM) % moves // per_move}.id"))
            return FIRST_MOVE_CLASS + (HIDDEN_POWER if row in TYPED else row)
        species = BASE[int(self.number(opponent, f"own.{action}.species"))]  # a preview hides formes
        seen = [BASE.get(int(self.number(observer, f"foe.{j}.species"))) for j in range(TEAM)]
        return seen.index(species) if species in seen else UNSEEN


@dataclass
class Rounds:
    """The choices that both seats make at once, and with them what each step's label should be."""

    reader: Reader
    expected: dict[Session, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    open: dict[tuple[int, int], dict[int, list[tuple[Decision, int]]]] = field(default_factory=dict)

    def play(self, batch: list[tuple[Decision, int]]) -> None:
        """Decisions that were asked, and answered, at the same time."""
        for battle in dict.fromkeys((d.env, d.episode) for d, _ in batch):
            ours = [(d, action) for d, action in batch if (d.env, d.episode) == battle]
            if not all(self._goes_on(battle, decision) for decision, _ in ours):
                self.close(battle)
            choices = self.open.setdefault(battle, {})
            for decision, action in ours:
                made = choices.setdefault(decision.seat, [])
                if decision.attempt:
                    made.pop()
                made.append((decision, action))

    def _goes_on(self, battle: tuple[int, int], decision: Decision) -> bool:
        """The decision is another one of the same request."""
        made = self.open.get(battle, {}).get(decision.seat)
        if decision.attempt or not made:
            return bool(decision.attempt)
        last, preview = made[-1][0], "global.preview"
        if self.reader.number(last, preview):
            return self.reader.number(decision, preview) > 0
        return self.reader.slot(last) < self.reader.slot(decision)

    def close(self, battle: tuple[int, int]) -> None:
        """Both have chosen all."""
        choices = self.open.pop(battle, {})
        for seat, made in choices.items():
            session = self.expected.setdefault((battle[0], seat, battle[1]), {})
            for decision, _ in made:
                label = [NONE] * self.reader.slots
                if not self.reader.number(decision, "global.preview"):
                    for theirs, action in choices.get(1 - seat, ()):
                        label[self.reader.slot(theirs)] = self.reader.label(decision, theirs, action)
                session[decision.step] = tuple(label)


def answered(client: InferenceClient, decisions: list[Decision]) -> dict[Session, Action]:
    """The server's actions for decisions and ends."""
    actions: list[Action] = []
    client.submit(decisions)

    def all_answered() -> bool:
        replies = client.poll()
        assert not replies.failures
        actions.extend(replies.actions)
        return len(actions) == len(decisions)

    wait_for(all_answered)
    return {(action.env, action.seat, action.episode): action for action in actions}


def play_all(source: PokemonSource, client: InferenceClient, rounds: Rounds) -> dict[bytes, tuple[Session, int]]:
    """Play every battle; which step of which session each observation is."""
    steps = {}
    source.start()
    try:
        while not source.idle():
            decisions = source.poll()
            if not decisions:
                select.select(source.files(), [], [], 0.05)
                continue
            actions = answered(client, decisions)
            batch = []
            for d in decisions:
                key = (d.env, d.seat, d.episode)
                if d.kind != DECISION:
                    assert d.kind == TERMINATED
                    rounds.close((d.env, d.episode))
                    continue
                assert d.observation is not None
                steps[d.observation.tobytes()] = key, d.step
                batch.append((d, actions[key].action))
            rounds.play(batch)
            source.act([action for action in actions.values() if action.action >= 0])
    finally:
        source.close()
    return steps


FORMATS: dict[str, dict[str, Any]] = {
    "gen9randombattle": {},
    "gen9randomdoublesbattle": {},
    "gen8randombattle": {},
    "gen7randombattle": {},
    "gen9bssregi": {"teams": "tests/golden/pokemon/teams/gen9bssregi.txt"},
    "gen9championsvgc2026regmb": {"teams": "tests/golden/pokemon/teams/gen9championsvgc2026regmb.txt"},
}


# .ci/long runs them. Doubles in make test: those with a team preview.
BETWEEN = {"gen8randombattle", "gen7randombattle", "gen9bssregi", "gen9randomdoublesbattle"}


@pytest.mark.parametrize(
    "battle_format", [pytest.param(name, marks=pytest.mark.slow if name in BETWEEN else ()) for name in FORMATS]
)
def test_the_label_of_every_step_is_what_the_opponent_did(battle_format: str) -> None:
    config = PokemonConfig(format=battle_format, **FORMATS[battle_format])
    spec = pokemon_spec(config)
    reader = Reader(spec)
    rounds = Rounds(reader)
    source = make_source(config, OpponentsConfig(self_play=1.0, past=0.0), envs=3, episodes=6, seed=11)
    with Stand(spec, unroll_length=8) as stand:
        steps = play_all(source, stand.client("worker"), rounds)
        total = sum(len(session) for session in rounds.expected.values())
        wait_for(lambda: stand.learner.steps() == total)
        unrolls = list(stand.learner.unrolls)
    kinds: Counter[str] = Counter()
    for message, tensors in unrolls:
        session, newest = steps[tensors["observation"][message.length - 1].tobytes()]  # previews may look alike
        wanted, first = rounds.expected[session], message.first_step
        assert newest == first + message.length - 1
        for i, label in enumerate(tensors["label"].tolist()):
            decision, last = tensors["observation"][i], i == message.length - 1
            found, expected = tuple(label), wanted[first + i]
            at_the_border = spec.opponent_labels == 2 and last and set(found) == {NONE} and not message.terminated
            if at_the_border and not decision[spec.slice("global.right").start]:
                kinds["border"] += 1  # the step that has the same label is in the next unroll
                continue
            _check(found, expected, kinds)
            kinds["end"] += last and message.terminated and max(found) > NONE
    assert kinds["seen"] > 5
    assert kinds["moves"] > 100
    assert kinds["none"] > 5, "forced switches of one side"
    assert kinds["end"] >= 6, "of the last turn at least one seat sees what the other did"
    assert bool(kinds["unseen"]) == (not config.teams), "a team preview shows all"
    assert kinds["border"] < total / 8


def _check(found: tuple[int, ...], expected: tuple[int, ...], kinds: Counter[str]) -> None:
    for said, wanted in zip(found, expected, strict=True):
        if said != wanted and said - FIRST_MOVE_CLASS in STAYS and wanted >= FIRST_MOVE_CLASS:
            wanted = said
        kinds["none" if said == NONE else "unseen" if said == UNSEEN else "seen" if said < UNSEEN else "moves"] += 1
        assert said == wanted, (found, expected)


def _turns(log: str) -> dict[int, list[list[str]]]:
    """Lines of each turn, split."""
    turns: dict[int, list[list[str]]] = {0: []}
    for line in log.splitlines():
        parts = line.split("|")
        if len(parts) > 2 and parts[1] == "turn":
            turns[int(parts[2])] = []
        turns[max(turns)].append(parts)
    return turns


@pytest.mark.slow  # .ci/long runs it
def test_labels_agree_with_the_log_of_a_battle_against_a_bot(host) -> None:
    host.send_tables(encoder_tables(9))
    reader, moves = Reader(pokemon_spec(PokemonConfig())), vocabulary().move
    start = BattleStart(names=("a", "b"), encode=(True, False), play=(None, ("one_ply", 3)), log=True)
    kinds: Counter[str] = Counter()
    for number in range(8):
        seeds = [number, 2, 3, 4], ([5, number, 7, 8], [9, 10, number, 12])
        host.start_battle(number, GEN9, start._replace(seed=seeds[0], team_seeds=seeds[1]))
        host.flush()
        asked: list[tuple[int, bool]] = []  # turn of each request, and whether it demands a switch
        labels: list[int] = []
        while not (tick := wait(host)).ended:
            for row in tick.rows:
                decision = Decision(0, 0, 0, 0, observation=row.observation)
                labels += [row.label[0]] if asked else []
                asked.append((row.turn, bool(reader.number(decision, "global.force_switch"))))
                host.act(number, 0, row.request_number, int(row.mask.argmax()))
            host.flush()
        ((_, log),), (end,) = tick.logs, tick.ended
        labels.append(end.labels[0][0])
        turns = _turns(log)
        for (turn, forced), label in zip(asked, labels, strict=True):
            if forced:  # the bot waits, or has to switch too
                assert label <= UNSEEN
                continue
            theirs = [parts for parts in turns[turn] if len(parts) > 2 and parts[2].startswith("p2a")]
            used = [to_id_str(parts[3]) for parts in theirs if parts[1] == "move" and "[from]" not in "|".join(parts)]
            if label >= FIRST_MOVE_CLASS:  # unless it fainted or lost its turn before
                assert used[:1] in ([], [next(name for name, row in moves.items() if row == label - FIRST_MOVE_CLASS)])
                kinds["move"] += bool(used)
            else:
                assert label >= 0
                assert any(parts[1] == "switch" for parts in theirs)
                kinds["switch"] += 1
    assert kinds["move"] > 50, kinds
