"""`simul page` in a real browser: what a person sees, with keys alone, on a narrow screen, in the dark."""

from __future__ import annotations

import io
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator

import msgspec
import psutil
import pytest
from PIL import Image

from simul.common.protocol.specs import GameSpec, Slice
from simul.common.role.run_directory import RunDir
from simul.common.role.spectating import RequestReader, SpectatorRecord
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.page.runs.replays import FILE_BYTES
from tests.support.browser import LACKS, MISSING
from tests.support.command import Command, Simul, address_in
from tests.support.recorded_run import process, snapshot, write_run
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=LACKS)]
SHOWN_SEC = 3.0
MARKUP = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
SERVER_ROW = "[...document.querySelectorAll('.processes tr')].find(row => row.innerText.includes('simul-inference-0'))"
INSIDE = "canvas => canvas.getBoundingClientRect().right <= innerWidth"
COLOUR = "each => getComputedStyle(document.querySelector(each)).color"
ACTION_CELLS = "document.querySelectorAll('#actions tbody td:nth-child(2)')"
READY = f"({SERVER_ROW})?.innerText.includes('ready')"


@pytest.fixture
def page(tmp_path) -> Iterator[Callable[..., tuple[Command, str]]]:
    """Starts `simul page`, and returns it and its address."""
    started: list[Command] = []

    def start(*arguments: object) -> tuple[Command, str]:
        line = [sys.executable, "-P", "-m", "simul.launch.cli", "page", "--port", "0", *map(str, arguments)]
        started.append(Command(line, tmp_path / "page"))
        return started[-1], address_in(started[-1])

    yield start
    for one in started:
        one.end_now()


def test_a_run_is_seen_to_go_on_and_its_killed_server_within_3_s(up, browser):
    run = up("--page-port", "0")
    address = address_in(run)
    run.wait_until_training()
    browser.open(address)
    browser.wait_for(f"document.querySelector('#connection').innerText === 'live' && {READY}")
    browser.wait_for("document.querySelectorAll('.chart:not([hidden]) canvas').length > 3")
    points, figures = browser.ask("runs.get(0).charts[0].data[0].length"), browser.text(".figures")
    browser.wait_for(f"runs.get(0).charts[0].data[0].length > {points + 2}")
    browser.wait_for(f"document.querySelector('.figures').innerText !== {figures!r}")
    killed_at = time.monotonic()
    psutil.Process(run.process_of("simul-inference-0")["pid"]).kill()
    browser.wait_for("document.querySelector('.events').innerText.includes('the inference server died (signal 9)')")
    browser.wait_for(f"({SERVER_ROW}).lastElementChild.innerText === '1' || !{READY}")
    assert time.monotonic() - killed_at < SHOWN_SEC
    browser.wait_for(f"({SERVER_ROW}).lastElementChild.innerText === '1' && {READY}")
    assert browser.errors() == []
    assert browser.hosts() == {address.removeprefix("http://").rstrip("/")}
    code, output = run.finish()
    assert code == 0, output
    browser.wait_for("document.querySelector('.phase').innerText.startsWith('stopped')")
    browser.wait_for("document.querySelector('#connection').innerText.includes('does not answer')")


def test_two_runs_side_by_side_and_nothing_of_theirs_is_markup(page, browser, tmp_path):
    theirs = tmp_path / "<b>theirs<"
    write_run(theirs)
    status = snapshot(
        game=MARKUP, events=[MARKUP], processes=[process(MARKUP, state=MARKUP, node=MARKUP)],
        workers={"recent": {MARKUP: {"games": 1, "win_rate": 1.0}}}, server={"batch_histogram": {MARKUP: 3}},
    )  # fmt: skip
    (theirs / "status.json").write_bytes(msgspec.json.encode(status))
    curves = (theirs / "curves.csv").read_text()
    column = MARKUP.replace("/", "_")
    (theirs / "curves.csv").write_text(re.sub(r"win_rate(\w*)/x", lambda found: f"win_rate{found[1]}/{column}", curves))
    pair = {"first": MARKUP, "second": MARKUP, "battles": 9, "win_rate": 0.5, "wilson_95": [0.4, 0.6]}
    (theirs / "evaluation.json").write_bytes(msgspec.json.encode({"pairs": [pair]}))
    (theirs / "batch.png").write_bytes((ROOT / "docs" / "images" / "loadtest.png").read_bytes())
    _, address = page(write_run(tmp_path / "ours"), theirs)
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.run').length === 2")
    browser.wait_for("document.querySelectorAll('.run:last-child .chart:not([hidden]) canvas').length === 3")
    assert browser.ask("document.title") == "Simul"
    markup = "main script, main b:not(.batches b), main iframe, main img:not([src^='/runs/'])"
    assert browser.ask("document.querySelectorAll(arguments[0]).length", markup) == 0
    shown = browser.text(".run:last-child")
    assert shown.count("<img src=x onerror") >= 6, shown
    browser.wait_for("[...document.images].every(image => image.naturalWidth > 100) && document.images.length === 1")
    tops = browser.ask("[...document.querySelectorAll('.run')].map(run => run.getBoundingClientRect().top)")
    assert tops[0] == tops[1], "side by side"
    assert browser.errors() == []


def test_the_command_that_plays_against_a_run_is_text(page, browser, tmp_path):
    run = write_run(tmp_path / "<b>it's")
    (run / "checkpoints" / "000000012").mkdir(parents=True)
    (run / "status.json").write_bytes(msgspec.json.encode(snapshot(game="ofc")))
    _, address = page(run)
    browser.open(address)
    browser.wait_for("document.querySelector('.play')?.hidden === false")
    command = f"simul play --checkpoint {shlex.quote(str(run))} --page --page-port 0"
    assert browser.text(".play") == f"Play against it: {command}"
    browser.resize(360, 800)
    browser.wait_for("document.documentElement.scrollWidth <= 360", 5.0)
    assert browser.errors() == []


def test_keys_alone_suffice(page, browser, tmp_path):
    _, address = page(write_run(tmp_path / "run"))
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.chart:not([hidden]) canvas').length === 3")
    focus = "document.activeElement"
    browser.press("TAB")
    assert browser.ask(f"{focus}.id") == "axis"
    browser.press("ARROW_DOWN")
    browser.press("TAB")
    assert "roles" in browser.ask(f"{focus}.className")
    browser.press("TAB")
    assert "events" in browser.ask(f"{focus}.className")
    browser.press("TAB")
    assert browser.ask(f"{focus}.className") == "chart"
    assert browser.ask(f"getComputedStyle({focus}).outlineStyle") == "solid"
    browser.press("ARROW_LEFT")
    assert "at 980 decisions" in browser.text(":focus .legend")
    browser.press("HOME")
    assert "at 10 decisions" in browser.text(":focus .legend")
    width = "(() => { const x = runs.get(0).charts[0].plot.scales.x; return x.max - x.min; })()"
    whole = browser.ask(width)
    browser.press("ARROW_RIGHT", "+")
    assert browser.ask(width) == pytest.approx(whole / 2)
    browser.press("ESCAPE")
    assert browser.ask(width) == pytest.approx(whole)
    assert " at " not in browser.text(":focus .legend")
    assert "answered 199" in browser.ask(f"{focus}.getAttribute('aria-label')")
    assert browser.errors() == []


def test_narrow_wide_dark_and_light(page, browser, tmp_path):
    _, address = page(write_run(tmp_path / "run"))
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.chart:not([hidden]) canvas').length === 3")
    backs = []
    for scheme in ("light", "dark"):
        browser.colours(scheme)
        for width in (1280, 1200, 360):
            browser.resize(width, 800)
            browser.wait_for(f"innerWidth === {width} && document.documentElement.scrollWidth <= {width}", 5.0)
            browser.wait_for(f"[...document.querySelectorAll('.chart canvas')].every({INSIDE})", 5.0)
            if width > 360:
                whole = "(panel => panel.scrollWidth <= panel.clientWidth)(document.querySelector('.roles'))"
                browser.wait_for(whole, 5.0)
        colours = f"['dd', 'dt', '.legend', 'td.good', '.panel'].map({COLOUR})"
        back = browser.ask("getComputedStyle(document.querySelector('.panel')).backgroundColor")
        backs.append(luminance(back))
        ratios = {colour: contrast(colour, back) for colour in browser.ask(colours)}
        assert min(ratios.values()) >= 4.5, (scheme, ratios)
    assert backs[0] > 0.8 > 0.1 > backs[1]
    assert browser.errors() == []


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, 0 to 1, as the WCAG define it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """1 to 21; 4.5 is what the WCAG ask of text."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_token_in_the_address_and_by_hand(page, browser, tmp_path):
    _, address = page(write_run(tmp_path / "run"), "--token")
    plain, _, token = address.partition("#token=")
    browser.open(plain)
    browser.wait_for("!document.querySelector('#login').hidden")
    assert browser.ask("document.activeElement.id") == "token"
    browser.press("wrong token", "ENTER")
    browser.wait_for("document.querySelector('#refusal').innerText.includes('That is not the token')")
    browser.ask("document.querySelector('#token').value = ''")
    browser.press(token, "ENTER")
    browser.wait_for("document.querySelectorAll('.run').length === 1 && document.querySelector('#login').hidden")
    browser.driver.delete_all_cookies()
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.run').length === 1")
    assert browser.ask("location.href") == plain, "no history of browsers keeps the token"
    assert browser.ask("document.cookie") == ""
    assert browser.errors() == []


def test_without_the_cookie_the_other_pages_lead_to_the_login(page, browser, tmp_path):
    _, address = page(write_run(tmp_path / "run"), "--token")
    plain = address.partition("#token=")[0]
    for path, box in (("game#0", "#state"), ("replay#0/a-0-1.json", "#name"), ("battle#0/a-0-1.log", "#now")):
        browser.open(plain + path)
        browser.wait_for(f"document.querySelector('{box}').innerText.includes('the page asks for its token')")
        assert browser.ask("document.querySelector(arguments[0]).href", f"{box} a") == plain


def test_an_address_that_names_no_replay_and_a_log_that_is_too_large_are_said(page, browser, tmp_path):
    run = write_run(tmp_path / "run")
    (run / "replays").mkdir()
    (run / "replays" / "a-0-1.log").write_text("x" * (FILE_BYTES + 1))
    _, address = page(run)
    for path, box in (("battle", "#now"), ("replay", "#name")):
        for name in ("#0", "#0/%zz", "#x/a-0-1.log", ""):
            browser.open(f"{address}{path}{name}")
            browser.wait_for(f"document.querySelector('{box}').innerText === 'There is no such replay.'")
            assert browser.errors() == []
    browser.open(f"{address}battle#0/a-0-1.log")
    browser.wait_for("document.querySelector('#now').innerText.endsWith('at most 4,194,304 of them.')")


def test_a_page_that_ended_says_so_and_goes_on_when_it_is_there_again(page, browser, tmp_path):
    run = write_run(tmp_path / "run")
    first, address = page(run)
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.run').length === 1")
    assert first.finish(signal.SIGTERM)[0] == 0
    browser.wait_for("document.querySelector('#connection').innerText.includes('does not answer')", SHOWN_SEC)
    page(run, "--port", address.rpartition(":")[2].rstrip("/"))
    live = "document.querySelector('#connection').innerText === 'live'"
    browser.wait_for(f"{live} && document.querySelectorAll('.run').length === 1")


def test_a_finished_game_move_by_move_and_a_battle(page, browser, tmp_path):
    rules = {"game": "openspiel/tic_tac_toe", "settings": {"game": "openspiel", "openspiel": {"name": "tic_tac_toe"}}}
    turns = [[{"seat": n % 2, "action": action, "name": MARKUP}] for n, action in enumerate((0, 3, 1, 4, 2))]
    ended = {"returns": [1.0, -1.0], "outcome": "terminated"}
    won = {**rules, "seed": 1, "players": [MARKUP, "b"], "turns": turns, **ended}
    hand = {"game": "ofc", "settings": {"game": "ofc"}, "seed": 5, "players": ["a", "b", "c"], "turns": [],
            "returns": [0.0, 0.0, 0.0], "outcome": "unfinished"}  # fmt: skip
    log = ["|player|p1|<b>a</b>|", "|player|p2|b|", "|start", "|switch|p1a: <i>x|Pikachu, L50|100/100",
           "|switch|p2a: y|Eevee, L50|100/100", "|turn|1", "|win|b"]  # fmt: skip
    folder = tmp_path / "games"
    folder.mkdir()
    (folder / "a-vs-b-0-1.json").write_bytes(msgspec.json.encode(won))
    (folder / "ofc-0-2.json").write_bytes(msgspec.json.encode(hand))
    (folder / "battle-0-3.log").write_text("\n".join(log))
    _, address = page(folder)
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.replays a').length === 3")
    browser.driver.find_element("partial link text", "a-vs-b").click()
    browser.wait_for("document.querySelector('#count')?.innerText === '1 of 6'")
    assert MARKUP in browser.text(".said")
    browser.press("ARROW_RIGHT")
    assert browser.ask("document.querySelector('#count').innerText") == "2 of 6"
    assert "0 x . ." in browser.text("#position pre")
    browser.press("END")
    assert "The game is over" in browser.text(".said")
    browser.driver.back()
    browser.wait_for("document.querySelectorAll('.replays a').length === 3")
    browser.driver.find_element("partial link text", "ofc").click()
    browser.wait_for("document.querySelector('#position img')?.naturalWidth > 100")
    assert browser.ask("document.querySelectorAll('svg, main script').length") == 0, "a picture is no markup"
    browser.driver.back()
    browser.wait_for("document.querySelectorAll('.replays a').length === 3")
    browser.driver.find_element("partial link text", "battle").click()
    browser.wait_for("document.querySelector('#count')?.innerText === 'Turn 1 of 1'")
    assert "<b>a</b>" in browser.text("#sides")
    assert "Pikachu" in browser.text("#sides")
    assert browser.errors() == []
    assert browser.hosts() == {address.removeprefix("http://").rstrip("/")}


@pytest.fixture
def cartpole(tmp_path) -> Iterator[Simul]:
    """A run whose roles play and learn."""
    run = Simul("configs/cartpole.yaml", tmp_path / "run", "--page-port", "0")
    yield run
    run.end_now()


def test_a_running_game_is_watched_by_keys_alone(cartpole, browser):
    address = address_in(cartpole)
    cartpole.wait_for(lambda status: status.get("phase") == "training" and status["server"].get("decisions"))
    browser.open(address)
    browser.wait_for("document.querySelector('.games')?.hidden === false")
    browser.press("TAB", "TAB")
    assert browser.ask("document.activeElement.innerText") == "Watch a running game"
    browser.press("ENTER")
    browser.wait_for("document.activeElement.id === 'worker'")
    assert browser.ask("byId('worker').max") == "0"
    assert re.fullmatch(r"Worker\s+\(0\)\s+Game\s+\(0 to \d+\)\s+Seat .*", browser.text("#choice"), re.DOTALL)
    browser.press("TAB", "ARROW_UP", "TAB", "TAB", "ENTER")
    browser.wait_for("document.querySelector('#state').innerText === 'live: game 1, seat 0'")
    browser.wait_for("document.querySelectorAll('#actions tbody tr').length === 2")
    browser.wait_for("document.querySelectorAll('#actions .played').length === 1")
    shares = [float(text.rstrip("%")) for text in browser.ask(f"[...{ACTION_CELLS}].map(each => each.innerText)")]
    assert sum(shares) == pytest.approx(100.0, abs=0.2)
    browser.wait_for("document.querySelectorAll('#values canvas').length === 1 && rows.length > 3")
    slices = (
        "[...document.querySelectorAll('#slices tbody tr')].filter(row => row.innerText.split(/\\s+/).length === 5)"
    )
    browser.wait_for(f"{slices}.length === 1")
    assert browser.ask("location.hash") == "#0/0/1/any"
    browser.resize(360, 800)
    browser.wait_for("document.documentElement.scrollWidth <= 360", 5.0)
    assert browser.errors() == []
    assert browser.hosts() == {address.removeprefix("http://").rstrip("/")}
    code, output = cartpole.finish()
    assert code == 0, output


def test_boards_and_battles_that_run_are_shown_and_nothing_of_theirs_is_markup(page, browser, tmp_path):
    run_dir = RunDir(write_run(tmp_path / "run"))
    run_dir.create()
    run_dir.write_spec(GameSpec("cards", 3, 3, layout=(Slice(MARKUP, 0, 1), Slice("foe.hp", 1, 2))))
    _, address = page(run_dir.root)
    battle = ["|player|p1|<b>a</b>|", "|player|p2|b|", "|start", "|switch|p1a: <i>x|Pikachu, L50|60/100 par",
              "|switch|p2a: y|Eevee, L50|100/100", "|-weather|RainDance", "|turn|1"]  # fmt: skip
    shown = SpectatorRecord(
        "decision", policy=MARKUP, policy_version=3, value=0.5, actions=[(MARKUP, 0.75)], chosen=MARKUP, text=MARKUP,
        observation=[0.25, 1.0, 2.0], said=MARKUP,
        svg="<svg xmlns='http://www.w3.org/2000/svg' width='200' height='200'><circle r='50'/></svg>",
    )  # fmt: skip
    browser.open(f"{address}game#0/0/0/any")
    reader = RequestReader(run_dir, 0)
    sender = reader.connect(wait_for(reader.read))
    sender.send(shown)
    browser.wait_for("document.querySelector('#board img')?.naturalWidth === 200")
    browser.ask(
        "show({kind: 'decision', picture: '/games/gone/1.svg', text: 'in words', actions: [], observation: []})"
    )
    browser.wait_for("document.querySelector('#board').innerText === 'in words'")  # instead of a broken picture
    assert [error.partition(" - ")[0].endswith("/games/gone/1.svg") for error in browser.errors()] == [True]
    sender.send(SpectatorRecord("decision", step=1, observation=[0.5], battle="\n".join(battle)))
    browser.wait_for("document.querySelectorAll('#sides .bar').length === 2")
    sides = browser.text("#sides")
    assert "<b>a</b>" in sides
    assert "60%" in sides
    assert "PAR" in sides
    assert "Rain" in browser.text("#weather")
    assert browser.ask("document.title") == "Simul: game of run"
    assert browser.ask("document.querySelectorAll('main b, main i, main script, main svg image').length") == 0
    assert MARKUP in browser.text("#said")
    sender.send(
        SpectatorRecord("decision", step=0, value=3e38, observation=[float("nan")] * 3)
    )  # its worker was killed
    sender.send(SpectatorRecord("decision", step=1, value=-3e38, observation=[float("nan"), 1e38, -1e38]))
    browser.wait_for("rows.length === 2 && document.querySelectorAll('#values canvas').length === 1")
    assert "NaN" in browser.text("#slices")
    assert browser.text("#sides") == ""
    sender.send(SpectatorRecord("decision", step=2, observation=[0.5], battle="\n".join(battle)))
    browser.wait_for("document.querySelectorAll('#sides .bar').length === 2")
    browser.ask("byId('filter').focus()")
    browser.press("foe")
    browser.wait_for("[...document.querySelectorAll('#slices tbody tr')].filter(row => !row.hidden).length === 1")
    for scheme in ("light", "dark"):
        browser.colours(scheme)
        browser.resize(360, 800)
        browser.wait_for("document.documentElement.scrollWidth <= 360", 5.0)
        back = browser.ask("getComputedStyle(document.body).backgroundColor")
        ratios = {each: contrast(each, back) for each in browser.ask(f"['dd', 'dt', 'th', '.side h2'].map({COLOUR})")}
        assert min(ratios.values()) >= 4.5, (scheme, ratios)
    browser.ask("byId('pause').click()")
    wait_for(lambda: reader.read() is None)
    sender.close()
    assert browser.errors() == []


def test_a_game_is_played_by_clicks_and_keys(browser, tmp_path):
    line = [sys.executable, "-P", "-m", "simul.launch.cli", "play", "openspiel:tic_tac_toe", "--opponent", "random"]
    game = Command([*line, "--page-port", "0", "--page", "--seed", "3"], tmp_path / "play")
    try:
        address = address_in(game)
        browser.open(address)
        browser.wait_for("document.querySelectorAll('#legal button').length === 9")
        assert "#token" not in browser.ask("location.href")
        assert browser.ask("document.activeElement.id") == "words"
        browser.ask("document.querySelector('[data-line=hint]').click()")
        browser.wait_for("document.querySelector('#said').innerText.includes('Hints come from a policy')")
        first = browser.ask("document.querySelector('#legal button').textContent")
        browser.press(first, "ENTER")
        browser.wait_for("document.querySelectorAll('#legal button').length === 7")
        assert browser.ask("document.querySelector('#position').innerText.includes('x')")
        browser.ask("document.querySelector('[data-line=undo]').click()")
        browser.wait_for("document.querySelectorAll('#legal button').length === 9")
        over = "document.querySelector('#state').innerText.includes('the game has ended')"
        for left in (9, 7, 5, 3, 1):
            browser.wait_for(f"{over} || document.querySelectorAll('#legal button').length === {left}")
            browser.ask("document.querySelector('#legal button')?.click()")
        browser.wait_for(over)
        assert "The game is over" in browser.text("#said")
        assert browser.errors() == []
        assert browser.hosts() == {address.removeprefix("http://").partition("/")[0]}
        assert game.result()[0] == 0
    finally:
        game.end_now()


def test_a_hand_of_cards_is_played_against_the_shipped_policy(browser, tmp_path):
    line = [sys.executable, "-P", "-m", "simul.launch.cli", "play", "--checkpoint", "zoo:ofc"]
    game = Command([*line, "--page", "--page-port", "0", "--seed", "3"], tmp_path / "play")
    state = "document.querySelector('#state').innerText"
    over = f"{state}.includes('the game has ended')"
    try:
        browser.open(address_in(game))
        browser.wait_for(f"{state} === 'your turn' && document.querySelector('#position img')?.naturalWidth > 100")
        browser.press(browser.ask("document.querySelector('#legal button').textContent"), "ENTER")
        for _ in range(4):  # as many streets are left of the hand
            browser.wait_for(f"{state} === 'your turn' && document.querySelector('#legal button') !== null")
            browser.ask("document.querySelector('#legal button').click()")
            browser.wait_for(f"{state} !== 'the others play'")
        browser.wait_for(over)
        assert "The game is over" in browser.text("#said")
        assert browser.errors() == []
        assert game.result()[0] == 0
    finally:
        game.end_now()


@pytest.fixture
def pictured(browser, request) -> Iterator[str]:
    """The run of `--page-picture`, without which no picture is made."""
    run = request.config.getoption("--page-picture")
    if run is None:
        pytest.skip("--page-picture RUN_DIR writes docs/images/page*.png")
    browser.colours("light")
    browser.resize(1200, 900)
    yield run
    browser.colours("dark")


def save_picture(browser, name: str) -> None:
    time.sleep(1.0)  # charts are drawn anew
    with Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())) as picture:
        picture.convert("RGB").quantize(192, kmeans=1).save(ROOT / "docs" / "images" / name, optimize=True)


def test_the_picture_of_a_run(page, browser, pictured):
    _, address = page(pictured)
    browser.open(address)
    browser.wait_for("document.querySelectorAll('.chart:not([hidden]) canvas').length > 3")
    save_picture(browser, "page.png")


def test_the_picture_of_a_watched_game(browser, pictured, tmp_path):
    run = Simul("configs/ofc.yaml", tmp_path / "run", "--page-port", "0")
    try:
        address = address_in(run)
        run.wait_for(lambda status: status.get("phase") == "training" and status["server"].get("decisions"))
        browser.open(f"{address}game#0/0/0/any")
        browser.wait_for("document.querySelector('#board img')?.naturalWidth && rows.length > 3")
        browser.ask("waiting = []; source.close()")
        save_picture(browser, "page_game.png")
    finally:
        run.end_now()


def test_the_picture_of_a_played_game(browser, pictured, tmp_path):
    line = [sys.executable, "-P", "-m", "simul.launch.cli", "play", "ofc", "--page-port", "0", "--page", "--seed", "3"]
    game = Command(line, tmp_path / "play")
    try:
        browser.open(address_in(game))
        browser.wait_for("document.querySelectorAll('#legal button').length > 1")
        browser.ask("document.querySelector('[data-line=hint]').click()")
        browser.wait_for("document.querySelector('#said').innerText.includes('%')")
        save_picture(browser, "page_play.png")
    finally:
        game.end_now()
