"""Every page and panel of `simul page` and `simul play --page`, with keys alone, at 360 pixels, dark and light."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import pytest

from simul.common.protocol.specs import GameSpec, Slice
from simul.common.role.run_directory import RunDir
from simul.common.role.spectating import RequestReader, SpectatorRecord
from simul.common.runtime.installation import ROOT
from tests.support.accessibility import SIDEWAYS, pale_texts, unreached, violations
from tests.support.browser import LACKS, MISSING, Browser
from tests.support.command import Command, address_in
from tests.support.league import write_league
from tests.support.recorded_run import write_run
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=LACKS)]
BATTLE = ["|player|p1|ours|", "|player|p2|theirs|", "|teamsize|p1|6", "|teamsize|p2|6", "|tier|[Gen 9] Random Battle",
          "|start", "|switch|p1a: Pika|Pikachu, L50, M|60/100 par", "|switch|p2a: Eevee|Eevee, L50|100/100 brn",
          "|turn|1", "|move|p1a: Pika|Swords Dance|p1a: Pika", "|-boost|p1a: Pika|atk|2", "|-weather|RainDance",
          "|-sidestart|p2: theirs|move: Spikes", "|move|p2a: Eevee|Tackle|p1a: Pika", "|-damage|p1a: Pika|15/100 psn",
          "|-unboost|p2a: Eevee|def|1", "|turn|2", "|faint|p1a: Pika", "|switch|p1a: Vap|Vaporeon, L50|100/100 slp",
          "|turn|3", "|win|theirs"]  # fmt: skip
BOARD = "<svg xmlns='http://www.w3.org/2000/svg' width='400' height='400'><circle r='50'/></svg>"
LONG = "a_name_without_a_place_to_break_it_" * 4


class Site(NamedTuple):
    """`simul page` and the run that it shows, as place 0."""

    address: str
    run: RunDir


def simul(*arguments: object) -> list[str]:
    return [sys.executable, "-P", "-m", "simul.launch.cli", *map(str, arguments)]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """A run with all that a page can show."""
    folder = tmp_path_factory.mktemp("site")
    run = RunDir(write_run(folder / "run", phase="training"))  # its supervisor has ended, which the page says
    run.create()
    run.write_spec(GameSpec("cards", 60, 3, layout=tuple(Slice(f"{LONG}{n}", n, 1) for n in range(60))))
    pair = {"first": "zoo:pokemon", "second": LONG, "battles": 9, "win_rate": 0.5, "wilson_95": [0.4, 0.6]}
    rating = {"label": LONG, "elo": 12.4, "elo_95": [-3.0, 28.0]}
    write(run.root / "evaluation.json", {"pairs": [pair], "ratings": [rating]})
    rates = {"win_rate": {"random": 0.9}, "win_rate_low": {"random": 0.8}, "win_rate_high": {"random": 0.95}}
    best = {"score": 0.9, "measure": "mean win rate", "result": {"policy_version": 7, **rates}}
    (run.root / "checkpoints" / "best").mkdir(parents=True)
    write(run.root / "checkpoints" / "best" / "evaluation.json", best)
    write_league(run.root)
    for name in ("batch.png", "rate.png"):
        (run.root / name).write_bytes((ROOT / "docs" / "images" / "loadtest.png").read_bytes())
    replays = run.root / "replays"
    replays.mkdir(exist_ok=True)
    rules = {"game": "openspiel/tic_tac_toe", "settings": {"game": "openspiel", "openspiel": {"name": "tic_tac_toe"}}}
    turns = [[{"seat": n % 2, "action": action, "name": LONG}] for n, action in enumerate((0, 3, 1, 4, 2))]
    won = {**rules, "seed": 1, "players": [LONG, "b"], "turns": turns, "returns": [1.0, -1.0], "outcome": "terminated"}
    hand = {"game": "ofc", "settings": {"game": "ofc"}, "seed": 5, "players": ["a", "b", "c"], "turns": [],
            "returns": [0.0] * 3, "outcome": "unfinished"}  # fmt: skip
    write(replays / "text-0-1.json", won)
    write(replays / "hand-0-2.json", hand)
    (replays / "battle-0-3.log").write_text("\n".join(BATTLE))
    for number in range(20):  # more than the panel is high
        write(replays / f"{LONG}-1-{number}.json", {})
    command = Command(simul("page", "--port", 0, run.root), folder / "page")
    yield Site(address_in(command), run)
    command.end_now()


def write(file, content: object) -> None:
    file.write_bytes(msgspec.json.encode(content))


def check(browser: Browser, address: str, *, refused: str = "") -> None:
    """What each page has to be. `refused`: what the console says of answers that the page itself expects."""
    faults: dict[str, object] = {}
    for width in (1280, 360):
        browser.resize(width, 800)
        with contextlib.suppress(AssertionError):  # charts follow the window's width a little later
            browser.wait_for(f"innerWidth === {width} && {SIDEWAYS} === 0", 5.0)
        faults[f"pixels that it scrolls sideways at {width}"] = browser.ask(SIDEWAYS)
        for scheme in ("dark", "light"):
            browser.colours(scheme)
            faults[f"axe, {scheme}, {width}"] = violations(browser)
    faults["keys, light"] = unreached(browser)
    browser.colours("dark")
    faults["keys, dark"] = unreached(browser)
    browser.resize(5000, 800)
    for scheme in ("dark", "light"):
        browser.colours(scheme)
        faults[f"pale, {scheme}"] = pale_texts(browser)
    faults["errors"] = [error for error in browser.errors() if not (refused and re.search(refused, error))]
    faults["other hosts"] = browser.hosts() - {address.removeprefix("http://").partition("/")[0]}
    assert {what: fault for what, fault in faults.items() if fault} == {}


FAULTY = f"""<!doctype html><meta name=viewport content='width=device-width'>
<style>button.bare {{ outline: none }}</style> <p style='color: #999; background: #fff'>pale</p>
<b style='opacity: 0.4'>faint</b><i style='background: linear-gradient(red, blue)'>who knows</i>
<button disabled>off</button> <button class=bare>bare</button> <img src='data:,' width=9 height=9>
<a href='#' style='order: 1'>seen</a>
<input aria-label=jumps tabindex=0 onfocus='this.blur()'> <div style='width: 400px; height: 9px'></div>
<a href='#' style='position: fixed; left: -99px'>away</a> <pre style='width: 9em; overflow: auto'>{LONG}</pre>"""


def test_the_checks_find_what_is_wrong(browser):
    browser.open("data:text/html," + quote(FAULTY))
    browser.resize(360, 800)
    browser.wait_for(f"{SIDEWAYS} > 0", 5.0)
    assert [fault for fault in violations(browser) if not fault.startswith("color")] == [
        "document-title ['html']", "html-has-lang ['html']", "image-alt ['img']", "scrollable-region-focusable ['pre']"
    ]  # fmt: skip
    assert unreached(browser) == {
        "button.bare [0]": "no outline that is seen",
        "input [2]": "Tab does not reach it",
        "a [3]": "outside of the window",
        "pre [-1]": "scrolls, and has no tabindex",
    }
    assert list(pale_texts(browser)) == ["color-contrast ['p']", "color-contrast ['b']", "color-contrast ['i']"]


def test_a_run_with_every_panel(site, browser):
    browser.open(site.address)
    browser.wait_for("document.querySelectorAll('.chart:not([hidden]) canvas').length === 3")
    panels = "'.processes', '.batches', '.figures', '.events', '.pairs', '.ratings', '.league', '.replays', '.pictures'"
    browser.wait_for(f"[{panels}, '.games', '.fault'].every(each => document.querySelector('.run ' + each).innerText"
                     " || document.querySelector(each + ' img'))")  # fmt: skip
    browser.wait_for("[...document.images].every(image => image.naturalWidth) && document.images.length === 2")
    check(browser, site.address)


def test_the_login(browser, tmp_path):
    command = Command(simul("page", "--port", 0, "--token", write_run(tmp_path / "run")), tmp_path / "page")
    try:
        address = address_in(command).partition("#")[0]
        browser.open(address)
        browser.wait_for("!document.querySelector('#login').hidden")
        browser.press("wrong token", "ENTER")
        browser.wait_for("document.querySelector('#refusal').innerText.includes('That is not the token')")
        check(browser, address, refused="/login - .* 401")
    finally:
        command.end_now()


@pytest.mark.parametrize(
    ("replay", "shown", "refused"),
    [
        ("replay#0/text-0-1.json", "document.querySelector('#count')?.innerText === '1 of 6'", ""),
        ("replay#0/hand-0-2.json", "document.querySelector('#position img')?.naturalWidth > 100", ""),
        ("replay#0/nothing.json", "document.querySelector('#name').innerText.includes('no such replay')", " 404 "),
        ("battle#0/nothing.log", "document.querySelector('#now').innerText.includes('no such replay')", " 404 "),
    ],
)
def test_a_replay(site, browser, replay, shown, refused):
    browser.open(f"{site.address}{replay}")
    browser.wait_for(shown)
    check(browser, site.address, refused=refused)


def test_a_battle_move_by_move(site, browser):
    browser.open(f"{site.address}battle#0/battle-0-3.log")
    for turn in (1, 2):  # the second with boosts, and more on the field
        browser.wait_for(f"document.querySelector('#count')?.innerText === 'Turn {turn} of 3'")
        check(browser, site.address)
        browser.ask("document.querySelector('#turn').focus()")
        browser.press("ARROW_RIGHT")


@pytest.fixture
def sender(site):
    """What the worker sends of the game that the page watches."""
    sockets = []

    def send(*records: SpectatorRecord) -> None:
        reader = RequestReader(site.run, 0)
        sockets.append(reader.connect(wait_for(reader.read)))
        for record in records:
            sockets[-1].send(record)

    yield send
    for each in sockets:
        each.close()


DECISION = SpectatorRecord(
    "decision", policy=LONG, policy_version=3, value=0.5, actions=[("hit", 0.75), (LONG, 0.25)], chosen="hit",
    observation=[0.125] * 60, said="The worker draws."
)  # fmt: skip


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"text": f"{LONG}\n" * 3, "svg": BOARD}, "document.querySelector('#board img')?.naturalWidth === 400"),
        ({"text": f"{LONG}\n" * 3}, "document.querySelector('#board pre') !== null"),
        ({"battle": "\n".join(BATTLE[:-1])}, "document.querySelectorAll('#sides .bar').length === 2"),
    ],
    ids=["board", "text", "battle"],
)
def test_a_running_game(site, browser, sender, record, shown):
    browser.open(f"{site.address}game#0/0/0/any")
    sender(*(msgspec.structs.replace(DECISION, step=step, **record) for step in range(3)))
    browser.wait_for(f"{shown} && rows.length === 3 && document.querySelectorAll('#values canvas').length === 1")
    check(browser, site.address)
    browser.ask("byId('pause').click()")


def test_a_game_that_is_chosen_and_one_that_cannot_be_watched(site, browser):
    browser.open(f"{site.address}game#0")
    browser.wait_for("document.activeElement.id === 'worker' && document.querySelectorAll('#slices tr').length > 60")
    check(browser, site.address)
    browser.open(f"{site.address}game#7")
    browser.wait_for("document.querySelector('#state').innerText.includes('There is no run')")
    check(browser, site.address, refused=" 404 ")


def test_a_played_game_its_end_and_a_missing_token(browser, tmp_path):
    line = ("play", "openspiel:tic_tac_toe", "--opponent", "random", "--page-port", 0, "--page", "--seed", 3)
    game = Command(simul(*line), tmp_path / "play")
    try:
        address = address_in(game)
        browser.open(address.partition("#")[0])
        browser.wait_for("document.querySelector('#state').innerText.includes('with its token')")
        check(browser, address)
        browser.open(address)
        browser.wait_for("document.querySelectorAll('#legal button').length === 9")
        browser.ask("document.querySelector('[data-line=hint]').click()")
        browser.wait_for("document.querySelector('#said').innerText.includes('Hints come from a policy')")
        browser.wait_for("document.querySelectorAll('#legal button').length === 9")
        check(browser, address)
        browser.ask("document.querySelector('[data-line=resign]').click()")
        browser.wait_for("document.querySelector('#state').innerText.includes('the game has ended')")
        check(browser, address)
    finally:
        game.end_now()
