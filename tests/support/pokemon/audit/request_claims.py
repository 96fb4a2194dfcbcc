"""What a row must say of the request: masks, what is asked of each slot, the moves that are offered, team preview."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.movedex import move_info
from tests.support.pokemon.audit.slices import one_hot, own_pp_excuse
from tests.support.pokemon.audit.view import Claim, Expected, Mon, View, move_row, places

GIMMICKS = ("", " mega", " zmove", " dynamax", " terastallize")
GIMMICK_KEYS = (("canMegaEvo", "canUltraBurst"), ("canZMove",), ("canDynamax",), ("canTerastallize",))


def preview_claims(view: View) -> Iterator[Claim]:
    """What is asked at a team preview; in a turn all of it is 0."""
    picks = [*view.row.picks, *[None] * 6] if view.at_preview else []
    wanted = view.row.request.get("maxChosenTeamSize") or (2 if view.doubles else 1)
    yield Claim("global.preview", [float(view.at_preview)])
    yield Claim("global.preview_picks", [min(wanted, len(view.own["pokemon"])) / 6 if view.at_preview else 0.0])
    order = [(picks.index(place) + 1) / 6 if place in picks else 0.0 for place in range(6)]
    yield Claim("global.preview_order", order)
    if view.at_preview:
        first = 1 if view.doubles else 0  # passing
        free = [float(place in range(len(view.own["pokemon"])) and place not in picks) for place in range(6)]
        size = places(view.row.job.format)["mask"].size
        yield Claim("mask", [0.0] * first + free + [0.0] * (size - first - 6))


def request_claims(view: View) -> Iterator[Claim]:
    """The mask, and what the request says, by what the simulator accepts; what it hides from the seat is left open."""
    legal = {as_action(word) for word in view.truth["legal"]}
    asked = (view.row.request.get("active") or [{}, {}])[view.row.slot] or {}
    hidden_switch = bool(asked.get("maybeTrapped"))
    hidden_moves = bool(asked.get("maybeDisabled") or asked.get("maybeLocked"))
    words = double_words(view) if view.doubles else single_words(view)
    standing = [place for place in view.own["slots"] if place >= 0 and not view.own["pokemon"][place]["fainted"]]
    lonely = view.doubles and len(standing) < 2
    mask: list[Expected] = []
    for word in words:
        kind = word.split(" ")[0]
        unknown = (kind == "switch" and hidden_switch) or (kind == "move" and hidden_moves)
        unknown = unknown or (kind == "pass" and view.row.slot == 1)  # the left slot's pass is accepted, too
        unknown = unknown or (" -" in word and lonely)  # the simulator lets it aim at a partner that has fainted
        unknown = unknown and not (kind == "switch" and hidden_switch)
        offered = word in legal or (kind == "switch" and hidden_switch and may_come_in(view, word))
        mask.append(None if unknown else float(offered))
    yield Claim("mask", mask)
    if view.doubles:
        yield from partner_claims(view)
        yield from first_claims(view)
    who = "self." if view.doubles else ""
    forced = not any(word.startswith("move") for word in legal)
    yield Claim(f"global.{who}force_switch", [float(forced)])
    switches = [
        view.own["pokemon"][view.own["line_up"][int(word[-1]) - 1]] for word in legal if word.startswith("switch")
    ]
    yield Claim("global.reviving", [float(any(mon["fainted"] for mon in switches))])
    yield Claim(f"global.{who}maybe_trapped", [float(hidden_switch)])
    if hidden_switch:
        yield Claim(f"global.{who}trapped", [0.0])
    benched = any(not mon["fainted"] and not mon["active"] for mon in view.own["pokemon"])
    if benched and not forced and not hidden_switch and not view.truth["first"].startswith("switch"):
        yield Claim(f"global.{who}trapped", [float(not switches)])
    if not hidden_moves:
        gimmicks = [float(any(word.endswith(suffix) for word in legal)) for suffix in GIMMICKS[1:]]
        yield Claim(f"global.{who}can_gimmick", gimmicks)


def as_action(word: str) -> str:
    """The action that stands for a choice: Ultra Burst has those of mega evolution."""
    return re.sub(" ultra$", " mega", word)


def may_come_in(view: View, word: str) -> bool:
    """Whether a switch is one of those that a seat would have that does not know that it is trapped."""
    place = view.own["line_up"][int(word[-1]) - 1]
    mon = view.own["pokemon"][place]
    return not mon["fainted"] and not mon["active"] and word != view.truth["first"]


def partner_claims(view: View) -> Iterator[Claim]:
    """What the simulator has asked of the other slot."""
    request, slot = view.row.request, 1 - view.row.slot
    active = request.get("active") or []
    asked = active[slot] if slot < len(active) and active[slot] else {}
    forced = request.get("forceSwitch") or []
    yield Claim("global.partner.force_switch", [float(slot < len(forced) and forced[slot])])
    yield Claim("global.partner.trapped", [float("trapped" in asked)])
    yield Claim("global.partner.maybe_trapped", [float("maybeTrapped" in asked)])
    yield Claim("global.partner.can_gimmick", [float(any(key in asked for key in keys)) for keys in GIMMICK_KEYS])


def first_claims(view: View) -> Iterator[Claim]:
    """What the left slot has chosen, while the right one decides."""
    kind, *rest = (*as_action(view.truth["first"]).split(" "), "") if view.truth["first"] else ("pass", "")
    move = kind == "move"
    yield Claim("global.first.made", [float(view.row.slot == 1)])
    member = view.own["line_up"][int(rest[0]) - 1] if kind == "switch" else None
    yield Claim("global.first.switch", one_hot(member, 6))
    targets = [int(word) for word in rest[1:] if re.fullmatch(r"-?\d", word)]
    yield Claim("global.first.target", one_hot((targets or [0])[0] + 2 if move else None, 5))
    yield Claim(
        "global.first.gimmick", one_hot(GIMMICKS.index(f" {rest[-2]}") - 1 if move and rest[-2].isalpha() else None, 4)
    )
    partner = view.own["pokemon"][view.own["slots"][0]]
    name = partner["slots"][int(rest[0]) - 1][0] if move and not view.truth["first_lock"] else view.truth["first_lock"]
    yield Claim("global.first.move", [move_row(name) if move else 0.0])


def single_words(view: View) -> list[str]:
    """The words of each action, "" where it has none; see encoding/actions.py."""
    words = [switch_word(view, member) for member in range(6)]
    return words + [move_word(view, move, gimmick) for gimmick in GIMMICKS for move in range(4)]


def double_words(view: View) -> list[str]:
    """The same in doubles, see doubles/actions.py."""
    words = ["pass", *[switch_word(view, member) for member in range(6)]]
    for gimmick in GIMMICKS:
        for move in range(4):
            words += [move_word(view, move, f" {aim}{gimmick}" if aim else gimmick) for aim in (-2, -1, 0, 1, 2)]
    return words


def switch_word(view: View, member: int) -> str:
    line_up = view.own["line_up"]
    return f"switch {line_up.index(member) + 1}" if member in line_up else ""


def move_word(view: View, move: int, rest: str) -> str:
    """A locked move stays in its slot, any other only choice is in the first; it goes out as number 1."""
    lock, names = view.truth["lock"], [name for name, _, _ in acting(view)["slots"]]
    if not lock:
        return f"move {move + 1}{rest}"
    return f"move 1{rest}" if move == (names.index(lock) if lock in names else 0) else ""


def acting(view: View) -> Mon:
    """The own Pokemon that decides."""
    mon: Mon = view.own["pokemon"][view.own["slots"][view.row.slot]]
    return mon


def move_claims(view: View) -> Iterator[Claim]:
    """The moves that the deciding Pokemon offers; of a locked one its pp."""
    legal, mon = view.truth["legal"], acting(view)
    asked = (view.row.request.get("active") or [{}, {}])[view.row.slot] or {}
    if not any(word.startswith("move") for word in legal):
        for k in range(4):
            yield from no_move_claims(view, f"move.{k}")
        return
    if view.truth["lock"]:
        yield from locked_move_claims(view, mon)
        return
    if asked.get("maybeDisabled"):
        return
    for k, (name, (_, left, most)) in enumerate(zip(mon["moves"][:4], mon["slots"])):
        yield from known_move_claims(view, f"move.{k}", name, left / most)
        plain = [word for word in legal if re.fullmatch(rf"move {k + 1}( -?\d)?", word)]
        yield Claim(f"move.{k}.usable", [float(bool(plain))])
    for k in range(len(mon["moves"]), 4):
        yield from no_move_claims(view, f"move.{k}")


def locked_move_claims(view: View, mon: Mon) -> Iterator[Claim]:
    """Of one that has no choice the request gives no pp; what is none of its moves (Recharge) is in the first slot."""
    own = view.truth["lock"] in [name for name, _, _ in mon["slots"]]
    for k, (_, left, most) in enumerate(mon["slots"][:4]):
        if own or k > 0:
            yield Claim(f"move.{k}.pp", [min(left / most, 1.0)], own_pp_excuse(view, mon))


def partner_move_claims(view: View) -> Iterator[Claim]:
    """The moves of the other slot, as the simulator has asked for them; of a locked one nothing is claimed."""
    slot, active = 1 - view.row.slot, view.row.request.get("active") or [None, None]
    asked, place = active[slot], view.own["slots"][slot]
    mon = view.own["pokemon"][place] if place >= 0 else None
    if mon is None or mon["fainted"] or view.row.request.get("active") is None:
        for k in range(4):
            yield from no_move_claims(view, f"partner_move.{k}")
    elif asked and len(asked["moves"]) == len(mon["moves"]) and ("maxMoves" in asked) == ("canDynamax" in asked):
        for k, (name, entry) in enumerate(zip(mon["moves"][:4], asked["moves"])):
            yield from known_move_claims(view, f"partner_move.{k}", name, mon["slots"][k][1] / mon["slots"][k][2])
            if "commanding" not in mon["volatiles"]:
                yield Claim(f"partner_move.{k}.usable", [float(not entry.get("disabled"))])
        for k in range(len(mon["moves"]), 4):
            yield from no_move_claims(view, f"partner_move.{k}")


def known_move_claims(view: View, block: str, name: str, left: float) -> Iterator[Claim]:
    """What a move is, by the move table."""
    info = move_info(view.gen, name)
    assert info is not None, name
    yield Claim(f"{block}.present", [1.0])
    yield Claim(f"{block}.id", [move_row(name)])
    yield Claim(f"{block}.pp", [min(left, 1.0)])
    yield Claim(f"{block}.type", [float(info.type)])
    numbers = iter(info.static)
    for field in layout.STATIC_MOVE:
        yield Claim(f"{block}.{field.name}", [next(numbers) for _ in range(field.size)])


def no_move_claims(view: View, block: str) -> Iterator[Claim]:
    for field in doubles.MOVE if view.doubles else layout.MOVE:
        if not field.name.endswith(("effectiveness", "damage", "knock_out_chance", "stab")):
            yield Claim(f"{block}.{field.name}", [0.0] * field.size)
