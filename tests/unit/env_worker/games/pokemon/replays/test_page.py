"""A replay's page: complete, nothing of its log is ever markup, and its player does what its controls say."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from simul.env_worker.games.pokemon.replays.page import replay_page
from tests.support.replays import log_of, run_script

IMAGE = '<img src=x onerror="document.title=1">'
SCRIPT = "</script><script>document.title = 1</script>"
LOG = "\n".join((
    "|player|p1|Ann", "|player|p2|Bob", "|teamsize|p1|2", "|teamsize|p2|1", "|gametype|singles", "|gen|9",
    "|tier|[Gen 9] Test", "|start", "|switch|p1a: Pika|Pikachu, L50, F|100/100", "|switch|p2a: Onix|Onix, L60|100/100",
    "|turn|1", "|", "|move|p1a: Pika|Surf|p2a: Onix", "|-supereffective|p2a: Onix", "|-damage|p2a: Onix|25/100 brn",
    "|-weather|RainDance|[from] ability: Drizzle|[of] p1a: Pika", "|-weather|RainDance|[upkeep]", "|upkeep", "|turn|2",
    "|-damage|p2a: Onix|0 fnt|[from] brn", "|faint|p2a: Onix", "|", "|win|Ann", "",
))  # fmt: skip


def test_a_page_needs_nothing_from_outside_and_forbids_the_browser_to_load_anything():
    page = replay_page("t", ("Ann", "Bob"), LOG)
    script = page.split("</script>\n<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1] == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert re.findall(r"https?://[^\"' )]+", page) == ["https://github.com/smogon/pokemon-showdown"], "credits only"
    assert not re.search(r"{{[A-Z_]+}}", page), "every field is filled in"
    assert "import " not in script
    assert "export " not in script
    assert log_of(page) == LOG


@pytest.mark.parametrize("word", ["MIT License", "Guangcong Luo", "trademarks of Nintendo"])
def test_a_page_says_whose_the_simulator_and_the_names_are(word):
    assert word in replay_page("t", ("Ann", "Bob"), LOG)


def test_the_player_steps_slides_plays_and_stops():
    shown = run_script("open_page.mjs", replay_page("t", ("Ann", "Bob"), LOG))
    assert shown["errors"] == shown["requests"] == []
    assert (shown["title"], shown["format"], shown["turns"], shown["unread"]) == ("Ann vs. Bob", "[Gen 9] Test", 2, "")
    views = shown["views"]
    assert views["opened"]["count"] == "Turn 1 of 2"
    assert views["opened"]["bars"] == [100, 100]
    assert views["next"]["now"] == "Ann's Pika uses Surf on Bob's Onix"
    assert views["back"]["now"] == "Bob sends out Onix"
    assert views["slid"]["count"] == "Turn 2 of 2"
    assert views["slid"]["bars"] == [100, 25]
    assert views["slid"]["statuses"] == ["BRN"]
    assert views["end"]["now"] == "Ann wins"
    assert (views["end"]["bars"], views["end"]["statuses"], views["end"]["future"]) == ([100, 0], ["FNT"], 0)
    assert (views["playing"]["current"], views["playing"]["play"]) == (0, "Pause"), "at the end, it starts again"
    assert views["played"]["current"] == 2
    assert (views["paused"]["current"], views["paused"]["play"]) == (2, "Play")
    assert views["key"]["current"] == 3


def test_a_type_gained_by_terastallizing_stays_and_stat_changes_end_on_a_switch():
    lines = ["|player|p1|Ann", "|switch|p1a: Pika|Pikachu, L50, F|100/100", "|-terastallize|p1a: Pika|Water",
             "|-boost|p1a: Pika|atk|2", "|turn|1", "|switch|p1a: Onix|Onix, L60|100/100", "|turn|2",
             "|switch|p1a: Pika|Pikachu, L50, F, tera:Water|100/100", "|turn|3"]  # fmt: skip
    page = replay_page("t", ("Ann", "Bob"), "\n".join(lines))
    chips = [run_script("open_page.mjs", page, f"#turn={n}")["views"]["opened"]["chips"] for n in (1, 2, 3)]
    assert chips == [["+2 Atk", "Tera Water"], [], ["Tera Water"]]


@pytest.mark.parametrize(("fragment", "count"), [("#turn=2", 2), ("#turn=900", 2), ("#turn=x", 1), ("", 1)])
def test_an_address_may_name_the_turn_to_begin_with(fragment, count):
    shown = run_script("open_page.mjs", replay_page("t", ("Ann", "Bob"), LOG), fragment)
    assert shown["views"]["opened"]["count"] == f"Turn {count} of 2"


def test_nothing_of_a_log_becomes_an_element_or_runs():
    lines = [f"|player|p1|{IMAGE}", f"|player|p2|{SCRIPT}", f"|switch|p1a: {IMAGE}|Pikachu|100/100", "|turn|1",
             f"|-message|<!--<script>{SCRIPT}", f"|c|{SCRIPT}|{IMAGE}", f"|raw|{IMAGE}", f"|win|{IMAGE}"]  # fmt: skip
    log = "\n".join(lines) + "\n"
    page = replay_page("t", (IMAGE, SCRIPT), log)
    assert log_of(page) == log
    shown = run_script("open_page.mjs", page)
    assert shown["errors"] == shown["requests"] == []
    assert (shown["images"], shown["scripts"]) == (0, 2), "only the page's own log and player"
    assert shown["title"] == shown["heading"] == f"{IMAGE} vs. {SCRIPT}"
    assert shown["views"]["end"]["now"] == f"{IMAGE} wins"


def test_lines_that_are_not_understood_are_counted_on_the_page():
    log = LOG + "|-newkind|p1a: Pika|x\n|-damage|p1a: Pika\n"
    shown = run_script("open_page.mjs", replay_page("t", ("Ann", "Bob"), log))
    assert shown["errors"] == []
    assert shown["unread"] == "2 lines of the log are not shown: |-newkind|p1a: Pika|x"


def test_a_log_of_more_than_a_battle_has_does_not_stop_the_browser():
    kinds = ["|-start|p1a: Pika|e{n}e", "|-boost|p1a: Pika|s{n}|1", "|-sidestart|p1: Ann|c{n}", "|-fieldstart|f{n}",
             "|player|{n}|x", "|switch|p1{n}: x|X|9/9", "|-damage|p1: x{n}|5/9"]  # fmt: skip
    lines = [kind.format(n=n) for kind in kinds for n in range(10, 100)]
    shown = run_script("open_page.mjs", replay_page("t", ("Ann", "Bob"), LOG + "\n".join(lines)))
    assert shown["errors"] == []
    assert int(shown["unread"].split()[0]) > len(lines) / 3, shown["unread"]
    assert len(shown["views"]["end"]["bars"]) <= 48


def test_of_very_many_steps_the_first_are_shown_and_the_page_says_so():
    page = replay_page("t", ("Ann", "Bob"), LOG + "|-message|x\n" * 20 + "|-newkind|x\n")
    assert page.count("MOST_STEPS = 20000") == 1
    shown = run_script("open_page.mjs", page.replace("MOST_STEPS = 20000", "MOST_STEPS = 15"))
    assert (shown["errors"], shown["steps"]) == ([], 15)
    left_out = re.fullmatch(r"(\d+) steps after the first 15 are not shown\. 1 lines .*", shown["unread"])
    assert left_out is not None, shown["unread"]
    assert 10 < int(left_out[1]) < 20


def test_hp_stays_between_0_and_100_percent():
    damage = ["999999999999/1", "-5/100", "1e999/9"]
    lines = [line for n, hp in enumerate(damage) for line in (f"|-damage|p2a: Onix|{hp}", f"|turn|{n + 1}")]
    page = replay_page("t", ("Ann", "Bob"), "\n".join([*LOG.splitlines()[:10], *lines]))
    views = [run_script("open_page.mjs", page, f"#turn={n}")["views"]["opened"] for n in (1, 2, 3)]
    assert [view["bars"] for view in views] == [[100, 100], [100, 0], [100, 0]]


def test_names_that_objects_of_javascript_have_are_names_of_no_stat_and_no_effect():
    known = [
        "|switch|p1a: constructor|__proto__|100/100", "|cant|p1a: x|__proto__", "|-start|p1a: x|__proto__",
        "|-status|p1a: x|__proto__", "|-weather|constructor", "|-sidestart|p1: Ann|__proto__", "|turn|3",
    ]  # fmt: skip
    unread = [f"|{kind}|p1a: x|{stat}|1" for kind in ("-boost", "-setboost") for stat in ("__proto__", "constructor")]
    log = LOG + "\n".join(["|-swapboost|p1a: x|p2a: y|__proto__", *unread, *known])
    shown = run_script("open_page.mjs", replay_page("t", ("Ann", "Bob"), log), "#turn=3")
    assert shown["errors"] == []
    assert shown["unread"].startswith("5 lines of the log are not shown: |-swapboost")
    assert "[object Object]" not in shown["text"]
    assert "native code" not in shown["text"]


@pytest.mark.parametrize("log", ["", "\n", "no protocol at all\n"])
def test_a_log_without_a_battle_is_a_page_too(log):
    shown = run_script("open_page.mjs", replay_page("t", ("Ann", "Bob"), log))
    assert shown["errors"] == []


def test_a_log_cannot_end_the_script_of_showdowns_page():
    page = replay_page("t", ("<b>", "b"), "|c|x|</script><script>alert(1)</script>\n", "showdown")
    assert "</script><script>alert" not in page
    assert "<b>" not in page
    assert "replay-embed.js" in page
    page = replay_page("t", ("a", "b"), "|c|x|<!--<script>\n", "showdown")
    assert "<!--<script" not in page, "it would hide the end tag, and the player after it would not run"


@pytest.mark.parametrize("hostile", ["{REPLAY_LOG}", "{BATTLE_TAG}", "<img src=x onerror=alert(1)>", "{{LOG}}"])
@pytest.mark.parametrize("player", ["own", "showdown"])
def test_no_name_makes_html_of_itself_or_of_the_log(hostile, player):
    log = "|j|<script>alert(1)</script></script>"
    page = replay_page(hostile, (hostile, hostile), log, player)
    head = page.partition("|j|")[0]
    assert page.count("|j|") == 1
    assert "<img src=x" not in head
    assert "alert(1)</script></script>" not in page
