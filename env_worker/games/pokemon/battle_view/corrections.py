"""What poke-env's `Battle` gets wrong, corrected line by line.

One function a fault: it reads the line by `read` and corrects what that leaves. Its docstring names the fault;
docs/pokemon.md lists them. The functions work on any battle of poke-env's: tests correct the stock classes with them.
The simulator host's tracker does the same in its handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.double_battle import DoubleBattle
from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.battle.pokemon_type import PokemonType
from poke_env.battle.status import Status
from poke_env.data import to_id_str

from simul.env_worker.games.pokemon.battle_view.counters import SLEEP_STARTS_ANEW, Counters, full_pp, move_key
from simul.env_worker.games.pokemon.battle_view.pp_costs import FIRST_GEN, NO_TARGET, aim, cause_of, pp_costs

Event = list[str]  # a line, split at |
Read = Callable[[Event], Any]
SWITCH_PARTS = 5  # of a line that poke-env reads
PASSES = ("[from] Baton Pass", "[from] Shed Tail")
_PASSED = """
aqua_ring bind charge clamp confusion curse embargo fire_spin focus_energy g_max_centiferno g_max_sandblast gastro_acid
heal_block infestation ingrain laser_focus leech_seed magma_storm magnet_rise no_retreat octolock perish0 perish1
perish2 perish3 power_trick sand_tomb snap_trap substitute tar_shot taunt telekinesis throat_chop thunder_cage
whirlpool wrap
"""
LAST_GEN_THAT_PASSES_TRAPS = 4
FULL_HP = 100  # a foe's hp comes in percent
LAST_GEN_WITHOUT_LIMIT = 1  # in which a move is prepared until something ends it
# Causes of moves that their users have chosen all the same; other moves and abilities as a cause call them.
CHOSEN = ("Grass Pledge", "Water Pledge", "Fire Pledge", "lockedmove")
HASTENED = ("Round", "Pursuit", "Quick Claw")  # the same, and nothing else follows from them
FAILURES = ("[miss]", "[still]", "[notarget]")
# Gen 1: moves of two turns, which are used, and cost their pp, in the second.
TWO_TURNS = ("Dig", "Fly", "Razor Wind", "Skull Bash", "Sky Attack", "Solar Beam")
ABILITY = ("[from] ability: ", "[from]ability: ")
REPLACED = 4  # part of an `-ability` line
GEN_OF_UNMARKED_TURNS = 2  # in which the line of a move of several turns does not say that it goes on
NOT_OWNED = "[from] Mirror Move"  # poke-env: the move is none of its user's, and costs nothing
TRAPPING = ("Bind", "Clamp", "Fire Spin", "Wrap")
THRASHING = ("outrage", "petaldance", "thrash")  # gen 2: two or three turns
LONGEST_BIND = 5  # turns, in gen 1
ROLLOUT, ROLLS = "rollout", 5  # turns at most
PRESSURE = "pressure"
FIRST_GEN_WITH_ABILITIES = 3
UNSEEN_ABILITY = ""  # of a Pokemon that has another one's: what this is, or what its own was, is not known
SKILL_SWAPS = ("Skill Swap", "move: Skill Swap")
GRUDGE = "move: Grudge"
TAKING_PP = ("move: Spite", "move: Eerie Spell", "move: G-Max Depletion", GRUDGE)
LAST_GEN_OF_LATE_PRESSURE = 4
LASTING_WITH_TERA = "morpeko"
SHORTEST_MOVE = 4  # parts of a `move` line without a target


@cache
def passed_effects(gen: int) -> frozenset[Effect]:
    """Effects that Baton Pass hands over; Shed Tail hands over a substitute only."""
    names = _PASSED.split() + (["trapped"] if gen <= LAST_GEN_THAT_PASSES_TRAPS else [])
    return frozenset(Effect[name.upper()] for name in names)


class Copied(NamedTuple):
    """Whose stats a transformed Pokemon has.

    Attributes:
        model: an own one, None for a foe's.
        entry: the stats of an own model at that time, None before the first request.
        tricked: the model had used Power Trick.
    """

    base_stats: dict[str, int]
    level: int
    model: Pokemon | None
    entry: dict[str, int] | None
    tricked: bool

    @property
    def stats(self) -> dict[str, int] | None:
        """Exact ones, None for a foe's."""
        if self.model is None or self.entry is not None:
            return self.entry
        known = self.model._last_request
        return known["stats"] if known else None


class Health(NamedTuple):
    """Hp, status and its counters: before a Pokemon seemed to come in, or as a disguise shows them."""

    hp: int = FULL_HP
    full: int = FULL_HP
    status: Status | None = None
    ailment: tuple[int, bool, int] = (0, False, 0)

    @classmethod
    def of(cls, mon: Pokemon, counters: Counters) -> Health:
        """Full for a Pokemon that has not been seen before."""
        if not mon._max_hp:
            return cls()
        ailment = counters.ailment_of(mon)
        return cls(mon._current_hp or 0, mon._max_hp, mon._status, (ailment.asleep, ailment.resting, ailment.hurt))

    def give(self, mon: Pokemon, counters: Counters) -> None:
        mon._current_hp, mon._max_hp, mon._status, _ = self
        self.give_counters(mon, counters)

    def give_counters(self, mon: Pokemon, counters: Counters) -> None:
        ailment = counters.ailment_of(mon)
        ailment.asleep, ailment.resting, ailment.hurt = self.ailment

    def unmask(self, mon: Pokemon, counters: Counters) -> None:
        """Illusion: the counters go to who wore the disguise; of an older sleep it has counted the turns itself."""
        ailment = counters.ailment_of(mon)
        asleep, resting = ailment.asleep, ailment.resting
        self.give_counters(mon, counters)
        if mon._status is Status.SLP and self.status is Status.SLP:
            ailment.resting = resting
            if mon._gen != SLEEP_STARTS_ANEW:
                ailment.asleep = asleep


class Facts:
    """Facts about one Pokemon for which poke-env has no place.

    Attributes:
        last_move: id of the move it used last since it came in, "" for none.
        copied: while it is transformed.
        returns_to: species, while it has a forme that ends when it leaves the field; "" for none.
        prepared_turn: in which it began to prepare a move.
        trapper: who keeps it from leaving by Mean Look or its like.
        before: its health before it came in.
        goes_on: gen 2: id of the move that it goes on with next turn, "" for none.
        rolls: turns of Rollout in a row.
        bound_turn: gen 1: the last one in which a trapping move hit it.
        bound_turns: in a row.
        caller: gen 1: id of the move that called the one that is prepared.
    """

    __slots__ = (
        "before",
        "bound_turn",
        "bound_turns",
        "caller",
        "copied",
        "goes_on",
        "last_move",
        "prepared_turn",
        "returns_to",
        "rolls",
        "trapper",
    )

    def __init__(self) -> None:
        self.last_move = ""
        self.copied: Copied | None = None
        self.returns_to = ""
        self.prepared_turn = 0
        self.trapper: Pokemon | None = None
        self.before: Health | None = None
        self.goes_on = ""
        self.rolls = 0
        self.bound_turn = 0
        self.bound_turns = 0
        self.caller = ""


NO_FACTS = Facts()
_STANDING = ("_must_recharge", "_preparing_move", "_preparing_target", "_protect_counter", "_active_turns")
_STANDING_FACTS = ("last_move", "prepared_turn", "trapper")


class Standing(NamedTuple):
    """What a Pokemon has only while it is on the field."""

    boosts: dict[str, int]
    effects: dict[Effect, int]
    temporary_types: list[PokemonType]
    slots: list[Any]
    facts: list[Any]

    @classmethod
    def of(cls, mon: Pokemon, facts: Facts) -> Standing:
        return cls(
            dict(mon._boosts),
            dict(mon._effects),
            list(mon._temporary_types),
            [getattr(mon, name) for name in _STANDING],
            [getattr(facts, name) for name in _STANDING_FACTS],
        )

    def give(self, mon: Pokemon, facts: Facts) -> None:
        """All of it: Illusion, `mon` was it all the time."""
        mon._boosts.update(self.boosts)
        mon._effects.update(self.effects)
        mon._temporary_types = self.temporary_types
        for name, value in zip(_STANDING, self.slots):
            setattr(mon, name, value)
        for name, value in zip(_STANDING_FACTS, self.facts):
            setattr(facts, name, value)

    def hand_over(self, mon: Pokemon, facts: Facts, move: str) -> None:
        """What `move`, Baton Pass or Shed Tail, hands over."""
        passed = passed_effects(mon._gen)
        if move == "Shed Tail":
            passed = frozenset([Effect.SUBSTITUTE])
        else:
            mon._boosts.update(self.boosts)
        mon._effects.update({effect: count for effect, count in self.effects.items() if effect in passed})
        if Effect.TRAPPED in mon._effects:
            facts.trapper = self.facts[-1]


Slots = dict[str, tuple[Pokemon, Standing, Health]]


class Corrections:
    """The corrections of one battle, and the facts that they keep.

    Args:
        battle: to be corrected.
        counters: of that battle.
        mark: is called with Pokemon on the bench that a line has changed.

    Attributes:
        hidden_faints: foes that fainted in a disguise and have never been seen without one.
    """

    def __init__(self, battle: AbstractBattle, counters: Counters, mark: Callable[[Iterable[Pokemon]], None]) -> None:
        self._battle = battle
        self._counters = counters
        self._mark = mark
        self._facts: dict[Pokemon, Facts] = {}
        self._moved: Event = []  # the last |move| line
        self._requested = False
        self.hidden_faints = 0

    def facts(self, mon: Pokemon) -> Facts:
        """To be read only."""
        return self._facts.get(mon, NO_FACTS)

    def facts_of(self, mon: Pokemon) -> Facts:
        """To be changed."""
        found = self._facts.get(mon)
        if found is None:
            found = self._facts[mon] = Facts()
        return found

    def read(self, event: Event, read: Read) -> None:
        """Read a line of a kind that CORRECTED names, by `read`, and correct the battle."""
        CORRECTED[event[1]](self, event, read)

    def out(self, slot: str) -> Pokemon | None:
        """Who stands in a slot ("p1a"), fainted or not."""
        battle = self._battle
        own = slot[:2] == battle._player_role
        if isinstance(battle, DoubleBattle):
            return (battle._active_pokemon if own else battle._opponent_active_pokemon).get(slot[:3])
        team = battle._team if own else battle._opponent_team
        return next((mon for mon in team.values() if mon._active), None)

    def _slots(self, role: str) -> list[str]:
        """Of one side: "p1a", in doubles "p1b" too."""
        return [f"{role}{letter}" for letter in ("ab" if isinstance(self._battle, DoubleBattle) else "a")]

    def before_request(self) -> Slots:
        """Who seems to be out on the own side, for `after_request`."""
        found = {slot: self.out(slot) for slot in self._slots(self._battle._player_role or "")}
        return {
            slot: (mon, Standing.of(mon, self.facts_of(mon)), Health.of(mon, self._counters))
            for slot, mon in found.items()
            if mon is not None
        }

    def after_request(self, before: Slots, out: Sequence[Pokemon]) -> None:
        """Illusion: an own Pokemon that a request unmasks loses its stages, effects and turns. `out`: who is."""
        known = [mon for mon, _, _ in before.values()]
        wrong = [seeming for seeming in before.values() if not seeming[0]._active]
        came = [mon for mon in out if mon not in known]
        if len(wrong) != 1 or len(came) != 1:
            return
        disguise, standing, health = wrong[0]
        earlier = self.facts(disguise).before
        self._unmask(disguise, standing, came[0])
        health.unmask(came[0], self._counters)
        if earlier is not None:
            earlier.give_counters(disguise, self._counters)

    def request(self, request: dict[str, Any], read: Callable[[dict[str, Any]], None]) -> None:
        """Read a request by `read`, poke-env's `parse_request`."""
        seeming = self.before_request()
        formes = [(mon, mon._species, mon._last_details) for mon, facts in self._facts.items() if facts.returns_to]
        seen = [mon for mon in self._battle._team.values() if mon._revealed]
        read(request)
        for mon in self._battle._team.values():
            mon._revealed = mon in seen  # the other side has seen a disguise, not who wears it
        for mon, forme, details in formes:
            self.keep_forme(mon, forme, details)
        self.after_request(seeming, [mon for mon in self._battle._team.values() if mon._active])
        self.name_copied_abilities()

    def name_copied_abilities(self) -> None:
        """The first request tells the ability of an own Pokemon that a foe copied before it."""
        if self._requested:
            return
        self._requested = True
        for mon, facts in self._facts.items():
            if facts.copied is not None and facts.copied.model and mon._temporary_ability == UNSEEN_ABILITY:
                mon._temporary_ability = facts.copied.model.ability
                self._mark([mon])

    def offered(self, mon: Pokemon, moves: list[dict[str, Any]]) -> None:
        """What a request offers an active Pokemon: it need not recharge, it is free to choose."""
        if moves[0]["id"] != "recharge":
            mon._must_recharge = False
        if "pp" in moves[0] and self.facts(mon).goes_on:
            self.facts_of(mon).goes_on = ""

    def keep_forme(self, mon: Pokemon, forme: str, details: str) -> None:
        """A request entry names the species that a Pokemon returns to, not the forme it has.

        Args:
            forme: that.
            details: of the entry before.
        """
        facts = self.facts(mon)
        if not facts.returns_to or mon._last_details == details:
            return
        facts.returns_to = mon._species
        if mon._species != forme:
            mon._update_from_pokedex(forme)

    def _unmask(self, disguise: Pokemon, standing: Standing, mon: Pokemon) -> None:
        self.left_field(disguise)
        standing.give(mon, self.facts_of(mon))
        self._release(disguise, mon)

    def left_field(self, mon: Pokemon) -> None:
        """Forget what `mon` had only while it was on the field."""
        if mon._ability == UNSEEN_ABILITY:
            mon._ability = None
        facts = self._facts.get(mon)
        if facts is None:
            return
        if facts.returns_to:
            mon._update_from_pokedex(facts.returns_to)
        facts.last_move = facts.returns_to = facts.goes_on = ""
        facts.copied = facts.trapper = None

    def _release(self, mon: Pokemon, heir: Pokemon | None = None) -> None:
        """Those whom `mon` trapped are trapped by its heir, or free."""
        for other, known in self._facts.items():
            if known.trapper is mon:
                known.trapper = heir
                if heir is None:
                    other._effects.pop(Effect.TRAPPED, None)

    def weather(self, event: Event, read: Read) -> None:
        """`-weather`: a line that only says that the weather goes on (`[upkeep]`) sets its first turn anew."""
        before = self._battle._weather
        read(event)
        if event[3:4] == ["[upkeep]"] and before.keys() == self._battle._weather.keys():
            self._battle._weather = before

    def switch(self, event: Event, read: Read) -> None:
        """`switch`: what Baton Pass and Shed Tail hand over (stages, Substitute, Leech Seed, ...) is dropped."""
        battle = self._battle
        own = event[2][:2] == battle._player_role
        left = self.out(event[2][:3])
        passes = event[5] if len(event) > 5 and event[5] in PASSES and left and left._status is not Status.FNT else ""
        standing = Standing.of(left, self.facts_of(left)) if left and passes else None
        if left is not None and len(event) >= SWITCH_PARTS:
            self.left_field(left)
        team = battle._team if own else battle._opponent_team
        known = team.get(event[2][:2] + event[2][3:])
        before = {mon: Health.of(mon, self._counters) for mon in ([known] if known else team.values())}
        read(event)
        mon = self.out(event[2][:3])
        if mon is None:
            return
        health = self.facts_of(mon).before = before.get(mon, Health())
        if not own and health.status is Status.FNT:
            self._fainted_in_disguise(mon)
        if standing is not None:
            standing.hand_over(mon, self.facts_of(mon), passes[len("[from] ") :])
        if left is not None:
            keeps = passes and Effect.TRAPPED in passed_effects(mon._gen)
            self._release(left, mon if keeps else None)

    def _fainted_in_disguise(self, mon: Pokemon) -> None:
        """Who has fainted comes in: another one fainted in its disguise."""
        wearers = [
            other
            for other in self._battle._opponent_team.values()
            if other is not mon
            and not other._active
            and other.ability == "illusion"
            and other._status is not Status.FNT
        ]
        if len(wearers) == 1:
            wearers[0].faint()
            self._mark(wearers)
        else:
            self.hidden_faints += 1

    def faint(self, event: Event, read: Read) -> None:
        """`faint`: a fainted Pokemon keeps its stages, its types and what it was about to do until it is replaced."""
        read(event)
        mon = self._battle.get_pokemon(event[2])
        mon.clear_boosts()
        mon._temporary_types = []
        mon._must_recharge = False
        mon._preparing_move = mon._preparing_target = None
        mon._protect_counter = 0
        self.left_field(mon)
        self._release(mon)

    def replace(self, event: Event, read: Read) -> None:
        """`replace`: a Pokemon that was disguised loses its stages, effects, turns and status, its disguise its hp."""
        disguise = self.out(event[2][:3])
        if disguise is None:
            read(event)
            return
        standing = Standing.of(disguise, self.facts_of(disguise))
        health, before = Health.of(disguise, self._counters), self.facts(disguise).before
        read(event)
        mon = self._battle.get_pokemon(event[2])
        mon._revealed = True
        if mon is disguise:
            return
        self._unmask(disguise, standing, mon)
        health.unmask(mon, self._counters)
        mon._current_hp, mon._max_hp, mon._status = health[:3]
        if before is not None:
            before.give(disguise, self._counters)

    def forme(self, event: Event, read: Read) -> None:
        """`-formechange`: a forme is not the species, does not end when its Pokemon leaves the field, and keeps the
        types that a move has given.
        """
        mon = self._battle.get_pokemon(event[2])
        base = self.facts(mon).returns_to or mon._species
        read(event)
        _end_type_changes(mon)
        if mon._moves._transform_moves is None:
            mon._species = to_id_str(event[3].split(",")[0])
        self.facts_of(mon).returns_to = base

    def terastallize(self, event: Event, read: Read) -> None:
        """`-terastallize`: the forme that Morpeko has then ends when it leaves the field."""
        read(event)
        mon = self._battle.get_pokemon(event[2])
        if self.facts(mon).returns_to == LASTING_WITH_TERA:
            self.facts_of(mon).returns_to = ""

    def details(self, event: Event, read: Read) -> None:
        """`detailschange`: a forme that lasts (mega evolution, broken disguise) is not the species of a foe, and keeps
        the types that a move has given.
        """
        read(event)
        mon = self._battle.get_pokemon(event[2])
        _end_type_changes(mon)
        mon._species = to_id_str(event[3].split(",")[0])
        if self.facts(mon).returns_to:
            self.facts_of(mon).returns_to = ""

    def transform(self, event: Event, read: Read) -> None:
        """`-transform`: a copy has its own stats, the types that its model's species is born with, and its own ability
        where the model's is not known.
        """
        battle = self._battle
        mon, model = battle.get_pokemon(event[2]), battle.get_pokemon(event[3])
        read(event)
        _take_ability(mon, model.ability)
        own = any(model is one for one in battle._team.values())
        entry = model._last_request["stats"] if own and model._last_request else None
        tricked = Effect.POWER_TRICK in model._effects
        copied = Copied(model.base_stats, model._level, model if own else None, entry, tricked)
        self.facts_of(mon).copied = self.facts(model).copied or copied
        mon._effects.pop(Effect.POWER_TRICK, None)
        if self.facts(mon).returns_to:  # a forme of its own ends
            mon._species = self.facts(mon).returns_to
        mon._temporary_base_stats = model.base_stats
        mon._temporary_types = list(model.base_types)

    def move(self, event: Event, read: Read) -> None:
        """`move`: Z-moves and max moves are not kept as the last move; Max Guard is not counted as a protecting move;
        called moves (Assist, Nature Power) count as their user's, hastened ones (Pursuit, Round, Quick Claw) as called;
        Pressure acts on moves that aim at their user or that items and conditions bring about, and not on Imprison,
        Snatch and Me First; gens 1 and 2: moves of several turns cost pp each turn; gen 1: trapping moves bind nobody,
        what Mimic learns has pp of its own; Flash Fire ends with the first Fire move.
        """
        mon = self._battle.get_pokemon(event[2])
        protected = mon._protect_counter
        self._moved = event
        name = event[3]
        key = move_key(name)
        if mon._gen == GEN_OF_UNMARKED_TURNS and (mon._preparing_move is not None or self.facts(mon).goes_on == key):
            event = [*event[:5], "[from] lockedmove", *event[5:]]
        mimicked = mon._moves.mimic_move if mon._gen == LAST_GEN_WITHOUT_LIMIT else None
        pp = mimicked._current_pp if mimicked is not None else 0
        inflamed = mon._effects.get(Effect.FLASH_FIRE)
        caused = event[-1].startswith("[") or event[-1] == "null"
        costs = self._costs(event, caused) if mon._gen >= FIRST_GEN else None
        known = {one: move._current_pp for one, move in mon.moves.items()} if costs is not None else {}
        if caused:
            called, prepares = self._read_caused(mon, event, read)
        else:
            called = prepares = False
            read(event)
        if costs is not None:
            _charge(mon, known, costs)
        if inflamed is not None:
            mon._effects[Effect.FLASH_FIRE] = inflamed
        if name == "Max Guard":
            mon._protect_counter = protected + 1 if not any(part in FAILURES for part in event) else 0
        if not prepares and (not called or mon._gen == LAST_GEN_WITHOUT_LIMIT):
            self.facts_of(mon).last_move = move_key(name.removeprefix("Z-"))
        if mimicked is not None and "mimic" in mon.base_moves:  # the same pp
            mon.base_moves["mimic"]._current_pp -= pp - mimicked._current_pp
        if mon._gen == GEN_OF_UNMARKED_TURNS:
            self._go_on(mon, key, event)
        elif mon._gen == LAST_GEN_WITHOUT_LIMIT:
            mon._effects.pop(Effect.PARTIALLY_TRAPPED, None)  # or it could not have moved
            if name in TRAPPING:
                self._trap(event)

    def _trap(self, event: Event) -> None:
        """Gen 1: whom a trapping move aims at need not recharge, hit or missed; hit, it cannot move next turn."""
        target = self._opposite(event[2])
        if target is None:
            return
        target._must_recharge = False
        if any(part in FAILURES for part in event):
            return
        facts = self.facts_of(target)
        facts.bound_turns = facts.bound_turns + 1 if Effect.PARTIALLY_TRAPPED in target._effects else 1
        facts.bound_turn = self._battle._turn
        target._effects[Effect.PARTIALLY_TRAPPED] = 0

    def _go_on(self, mon: Pokemon, key: str, event: Event) -> None:
        """Gen 2: whether a move goes on next turn, as far as lines tell; its first turn alone costs pp."""
        facts = self.facts_of(mon)
        if key == ROLLOUT:
            facts.rolls = facts.rolls + 1 if facts.goes_on == key else 1
            hits = not any(part in FAILURES for part in event)
            goes_on = hits and facts.rolls < ROLLS and mon._status is not Status.SLP
        else:
            goes_on = key in THRASHING
        facts.goes_on = key if goes_on else ""

    def _opposite(self, ident: str) -> Pokemon | None:
        """Who stands opposite in singles."""
        return self.out("p2a" if ident.startswith("p1") else "p1a")

    def _stop(self, mon: Pokemon) -> None:
        """The move of several turns is over."""
        if self.facts(mon).goes_on:
            self.facts_of(mon).goes_on = ""

    def _read_caused(self, mon: Pokemon, event: Event, read: Read) -> tuple[bool, bool]:
        """Read a `move` line with bracketed parts. Returns whether the move was called, and whether it is prepared."""
        name, key = event[3], move_key(event[3])
        long = mon._gen == LAST_GEN_WITHOUT_LIMIT and name in TWO_TURNS
        parts, caller, called, prepares = event[:4], "", False, long
        for part in event[4:]:
            cause = cause_of(part)
            if cause == name and mon._gen == LAST_GEN_WITHOUT_LIMIT:  # it goes on
                prepares = False
                if not long or key not in mon.moves:
                    parts.append("[from] lockedmove")
                if long and key not in mon.moves:
                    _pay(mon, self.facts(mon).caller, 1)
            elif cause in HASTENED:
                continue
            elif cause and cause not in CHOSEN and cause != name:
                called = True
                foreign = not part.startswith(ABILITY)
                caller = cause if foreign else caller
                parts.append(NOT_OWNED if foreign else part)
            else:
                parts.append(part)
        move = mon.moves.get(key)
        pp = move._current_pp if move else None
        read(parts)
        if caller == "Sleep Talk":
            mon._add_move(name)  # its own
        if prepares and called:
            self.facts_of(mon).caller = move_key(caller)
            _pay(mon, move_key(caller), -1)
        elif prepares:
            move = mon.moves[key]
            unused = Move(move._id, move._gen, from_transform=move._from_transform)
            move._current_pp = unused._current_pp if pp is None else pp
        return called, prepares

    def _costs(self, event: Event, caused: bool) -> dict[str, int] | None:
        """`pp_costs` of a line; None where poke-env counts right: nothing is `caused`, and there is no Pressure."""
        pressure = any(mon is not None and mon.ability == PRESSURE for mon in self._battle.all_active_pokemons)
        return pp_costs(self._battle._gen, event, self._pressure(event)) if caused or pressure else None

    def _presses(self, mon: Pokemon) -> bool:
        """Whether moves that aim at it cost more."""
        if mon.ability != PRESSURE or mon._status is Status.FNT or Effect.GASTRO_ACID in mon._effects:
            return False
        return Field.NEUTRALIZING_GAS not in self._battle._fields or mon._item == "abilityshield"

    def _pressure(self, event: Event) -> int:
        """How many foes' Pressure the move of a line meets."""
        user, name = event[2:4]
        aims = aim(self._battle._gen, name)
        if not aims.aimed or NO_TARGET in event:
            return 0
        target = event[4] if len(event) > SHORTEST_MOVE and event[4][:2] in ("p1", "p2") else ""
        if target and not aims.at_all_foes:
            foes = [self._battle.get_pokemon(target)] if target[:2] != user[:2] else []
        else:
            side = "p2" if user.startswith("p1") else "p1"
            foes = [mon for slot in self._slots(side) if (mon := self.out(slot)) is not None]
        pressing = sum(map(self._presses, foes))
        return pressing if aims.at_all_foes else min(pressing, 1)

    def fail(self, event: Event, read: Read) -> None:
        """`-fail`: gen 2: a protecting move that fails counts."""
        mon = self._battle.get_pokemon(event[2])
        if mon._gen == GEN_OF_UNMARKED_TURNS and self._moved[2:3] == [event[2]]:
            mon._protect_counter = 0

    def item(self, event: Event, read: Read) -> None:
        """`-item`: Bestow is not read."""
        if event[4:5] != ["[from] move: Bestow"]:
            read(event)
            return
        self._battle.get_pokemon(event[2]).item = to_id_str(event[3])
        self._battle.get_pokemon(event[5].removeprefix("[of] ")).item = None

    def cant(self, event: Event, read: Read) -> None:
        """`cant`: a Pokemon that cannot move still prepares its move, and recharges until it moves again."""
        read(event)
        mon = self._battle.get_pokemon(event[2])
        self._stop(mon)
        if event[3] == "recharge":
            mon._must_recharge = False
        if mon._gen > LAST_GEN_WITHOUT_LIMIT or event[3] == "par":
            mon._preparing_move = mon._preparing_target = None

    def damage(self, event: Event, read: Read) -> None:
        """`-damage`: a berry that was eaten (Jaboca, Rowap) is held again; confusion does not end protecting moves."""
        eaten = len(event) == 6 and event[4].startswith("[from] item:") and event[4].endswith(" Berry")
        read(event[:4] if eaten else event)
        if event[4:5] == ["[from] confusion"]:
            mon = self._battle.get_pokemon(event[2])
            mon._preparing_move = mon._preparing_target = None
            mon._protect_counter = 0
            self._stop(mon)

    def status(self, event: Event, read: Read) -> None:
        """`-status`: gen 1: who falls asleep still recharges."""
        read(event)
        mon = self._battle.get_pokemon(event[2])
        if mon._gen == LAST_GEN_WITHOUT_LIMIT and mon._status is Status.SLP:
            mon._must_recharge = False

    def prepare(self, event: Event, read: Read) -> None:
        """`-prepare`, `turn`: a move is prepared for ever, although it lasts one turn."""
        read(event)
        self.facts_of(self._battle.get_pokemon(event[2])).prepared_turn = self._battle._turn

    def turn(self, event: Event, read: Read) -> None:
        read(event)
        battle = self._battle
        if battle._gen == LAST_GEN_WITHOUT_LIMIT:
            self._end_binds()
            return
        for mon, facts in self._facts.items():
            if mon._preparing_move is not None and battle._turn > facts.prepared_turn + 1:
                mon._preparing_move = mon._preparing_target = None

    def _end_binds(self) -> None:
        """Gen 1: who was not hit again is free."""
        last = self._battle._turn - 1
        for mon, facts in self._facts.items():
            if facts.bound_turn < last or facts.bound_turns == LONGEST_BIND:
                mon._effects.pop(Effect.PARTIALLY_TRAPPED, None)

    def anim(self, event: Event, read: Read) -> None:
        """`-anim`: a move that is used at once (Power Herb, Solar Beam in the sun) is still being prepared."""
        read(event)
        mon = self._battle.get_pokemon(event[2])
        mon._preparing_move = mon._preparing_target = None

    def start(self, event: Event, read: Read) -> None:
        """`-start`: an added type (Trick-or-Treat, Forest's Curse) is no type; Smack Down does not end Fly."""
        battle, effect = self._battle, event[3]
        if effect == "typeadd":
            mon = battle.get_pokemon(event[2])
            types = list(mon.base_types)
            if Effect.TYPEADD in mon._effects and len(types) > 1:  # it takes the place of the one before
                types.pop()
            mon._temporary_types = [*types, PokemonType.from_name(event[4])]
        read(event)
        if effect == "typechange":
            battle.get_pokemon(event[2])._effects.pop(Effect.TYPEADD, None)
        elif effect == "Smack Down":
            mon = battle.get_pokemon(event[2])
            mon._preparing_move = mon._preparing_target = None
        elif effect == "confusion" and event[4:5] == ["[silent]"]:  # gen 2: the end of Thrash
            self._stop(battle.get_pokemon(event[2]))

    def ability(self, event: Event, read: Read) -> None:
        """`-ability`: a foe is said to have been born with an ability that replaces its own (Role Play), or that of its
        mega evolution (Trace).
        """
        mon = self._battle.get_pokemon(event[2])
        if mon._forme_change_ability is not None and mon._ability is None:
            mon._ability = UNSEEN_ABILITY
        replaces = len(event) > REPLACED + 1 and event[REPLACED + 1].startswith("[from] move: ")
        if replaces and mon.ability is None and not event[REPLACED].startswith("["):
            mon.ability = event[REPLACED]
        read(event)

    def copyboost(self, event: Event, read: Read) -> None:
        """`-copyboost`: Psych Up copies the user's stages to its target, not the target's to its user."""
        user, target = event[2:4]
        read([*event[:2], target, user, *event[4:]])

    def activate(self, event: Event, read: Read) -> None:
        """`-activate`: who is trapped (Mean Look) stays so when the trapper leaves; Gravity does not end Fly;
        Sketch stays beside the move that takes its place; Skill Swap leaves abilities that are not known where they
        are, and shows one of two; moves that take pp (Spite, Grudge) take none, and until gen 4 Snatch meets no
        Pressure.
        """
        sketches = event[3] == "move: Mimic" and self._moved[2:4] == [event[2], "Sketch"]  # gens 3 and 4
        if event[3] == "move: Sketch" or sketches:
            _sketch(self._battle.get_pokemon(event[2]).base_moves, event[4], self._battle._gen)
            return
        if event[3] in SKILL_SWAPS and event[-1].startswith("[of] "):
            if not any(event[4:-1]):
                self._swap_abilities(event)
                return
            other = self._battle.get_pokemon(event[-1].removeprefix("[of] "))
            if other.ability is None:
                other.ability = event[4]
        read(event)
        if event[3] in TAKING_PP:
            self._take_pp(event)
        elif event[3] == "move: Snatch" and self._battle._gen <= LAST_GEN_OF_LATE_PRESSURE:
            self._take_pp_of_snatch(event)
        elif event[3] == "trapped":
            mon = self._battle.get_pokemon(event[2])
            self.facts_of(mon).trapper = self._trapper_of(mon, event[2])
        elif event[3] == "move: Gravity":
            mon = self._battle.get_pokemon(event[2])
            mon._preparing_move = mon._preparing_target = None
            mon._effects.pop(Effect.MAGNET_RISE, None)
            mon._effects.pop(Effect.TELEKINESIS, None)
        elif event[3] == "Protect":  # Rollout ends where it does not hit
            foe = self._opposite(event[2])
            if foe is not None and self.facts(foe).goes_on == ROLLOUT:
                self._stop(foe)

    def _swap_abilities(self, event: Event) -> None:
        """Skill Swap, until gen 4 and between partners: no line tells the abilities."""
        mon = self._battle.get_pokemon(event[2])
        other = self._battle.get_pokemon(event[-1].removeprefix("[of] "))
        given = mon.ability
        _take_ability(mon, other.ability)
        _take_ability(other, given)

    def _take_pp(self, event: Event) -> None:
        """Spite and its like name a move and the pp it loses; Grudge takes all."""
        move = self._battle.get_pokemon(event[2]).moves.get(move_key(event[4]))
        if move is None:
            return
        if event[3] == GRUDGE:
            self._counters.set_pp(move, 0)
        else:
            move._current_pp = max(move._current_pp - int(event[5]), 0)

    def _take_pp_of_snatch(self, event: Event) -> None:
        """It meets the Pressure of the Pokemon from which it takes the move when it does so, not when it is used."""
        snatch = self._battle.get_pokemon(event[2]).moves.get("snatch")
        if snatch is not None and self._presses(self._battle.get_pokemon(event[-1].removeprefix("[of] "))):
            snatch._current_pp = max(snatch._current_pp - 1, 0)

    def endability(self, event: Event, read: Read) -> None:
        """`-endability`: an ability without effect (Gastro Acid) is no longer known."""
        self._battle.get_pokemon(event[2])._effects[Effect.GASTRO_ACID] = 0

    def heal(self, event: Event, read: Read) -> None:
        """`-heal`: Lunar Dance gives no pp back."""
        read(event)
        if event[-1] == "[from] move: Lunar Dance":
            for move in self._battle.get_pokemon(event[2]).moves.values():
                self._counters.set_pp(move, full_pp(move._id, move._gen, move._from_transform))

    def _trapper_of(self, mon: Pokemon, ident: str) -> Pokemon | None:
        """In singles who stands opposite; in doubles who has just moved, or its target (Jaw Lock)."""
        if not isinstance(self._battle, DoubleBattle):
            return self._opposite(ident)
        for other in self._moved[2:3] + self._moved[4:5]:
            found = self.out(other[:3])
            if found is not None and found is not mon:
                return found
        return None


def _take_ability(mon: Pokemon, ability: str | None) -> None:
    """Another one's ability, unknown for None, until it leaves the field; what is seen of it is not its own."""
    if mon._gen < FIRST_GEN_WITH_ABILITIES:
        mon._temporary_ability = None
        return
    mon._temporary_ability = UNSEEN_ABILITY if ability is None else ability
    if mon._ability is None:
        mon._ability = UNSEEN_ABILITY


def _end_type_changes(mon: Pokemon) -> None:
    mon._temporary_types = []
    mon._effects.pop(Effect.TYPECHANGE, None)
    mon._effects.pop(Effect.TYPEADD, None)


def _sketch(moves: dict[str, Move], name: str, gen: int) -> None:
    """Put the sketched move where Sketch is."""
    known = list(moves.items())
    moves.clear()
    for key, move in known:
        if key == "sketch":
            moves[move_key(name)] = Move(move_key(name), gen)
        else:
            moves[key] = move


def _pay(mon: Pokemon, caller: str, pp: int) -> None:
    """Gen 1: a called move of two turns gives the pp of its caller back and takes them in the second turn."""
    if caller in mon.moves:
        mon.moves[caller]._current_pp -= pp


def _charge(mon: Pokemon, known: dict[str, int], costs: dict[str, int]) -> None:
    """Take pp for a `move` line that has been read. `known`: pp of the moves that were known before."""
    for key, move in mon.moves.items():
        left = known.get(key)
        if left is None:
            left = Move(move._id, move._gen, from_transform=move._from_transform)._current_pp
        move._current_pp = max(left - costs.get(key, 0), 0)


CORRECTED: dict[str, Callable[[Corrections, Event, Read], None]] = {
    "-ability": Corrections.ability,
    "-activate": Corrections.activate,
    "-anim": Corrections.anim,
    "-copyboost": Corrections.copyboost,
    "-damage": Corrections.damage,
    "-endability": Corrections.endability,
    "-fail": Corrections.fail,
    "-formechange": Corrections.forme,
    "-heal": Corrections.heal,
    "-item": Corrections.item,
    "-prepare": Corrections.prepare,
    "-start": Corrections.start,
    "-status": Corrections.status,
    "-terastallize": Corrections.terastallize,
    "-transform": Corrections.transform,
    "-weather": Corrections.weather,
    "cant": Corrections.cant,
    "detailschange": Corrections.details,
    "drag": Corrections.switch,
    "faint": Corrections.faint,
    "move": Corrections.move,
    "replace": Corrections.replace,
    "switch": Corrections.switch,
    "turn": Corrections.turn,
}
