"""What the view, the plain line and the summary show of a run; the view fits a small terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from simul.common.config.schema import Config
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.summary import summarise, summary_text
from simul.launch.monitoring.view.figure_texts import (
    format_causes,
    format_histogram,
    format_results,
    format_store,
    run_line,
)
from simul.launch.monitoring.view.panel import run_panel
from simul.launch.processes.role_reports import number
from tests.support import recorded_run
from tests.support.recorded_run import process, workers

OFC = ("foul_rate", "royalties_per_hand", "royalties_top", "royalties_middle", "royalties_bottom",
       "fantasyland_entry", "fantasyland_stay", "fantasyland_hands", "score_per_hand")  # fmt: skip
OWN = {f"figure.{name}": 0.1234 for name in OFC}
AGAINST = {"games": 200, "win_rate": 1.0, "return_mean": -12.345, **OWN}
TABLE_OF_THREE = {  # every opponent of OFC played from each seat
    **workers(3900.0), "returns": {"mean": -20.0, "count": 4, "recent_mean": -30.5},
    "recent": {
        "all": {"games": 200, "return_mean": -30.5, **OWN},
        **dict.fromkeys(("monte_carlo", "past", "random", "rule_based", "self_play"), AGAINST),
        **{f"seat_{seat}": {"games": 60, "return_mean": seat - 12.5, **OWN} for seat in range(3)},
    },
}  # fmt: skip
SERVER, LEARNER = ({**report, "samples": {}} for report in (recorded_run.server(3900.0), recorded_run.LEARNER))
RANKS = {f"simul-learner-{n}": {"decisions_learned_since_start": 100 * n} for n in range(1, 3)}
BOTH = {f"simul-inference-{n}": {"decisions": 5} for n in range(2)}
FIVE = {f"simul-inference-{n}": {"decisions": 100 * n, "policy_version": 123456 + n} for n in range(5)}
LEAGUE = {
    "league/policy_version": 1200.0, "league/rank": 2.0, "league/members": 9.0, "league/elo/learner": 84.2,
    "league/elo_low/learner": 31.0, "league/elo_high/learner": 137.4,
}  # fmt: skip
FAR = process("simul-inference-0", state="silent 12 s", node="192.168.100.12")
NOTHING = {
    "server": {}, "learner": {}, "workers": {}, "processes": [], "events": [], "decisions_per_sec": None, "figures": {},
}  # fmt: skip
OF_THREE = {"game": "ofc", "workers": TABLE_OF_THREE}
IN_THE_TABLE = [
    *(f"{name} 0.123" for name in OFC), "; seat 0 -12.50, 1 -11.50, 2 -10.50", "rule_based 100% of 200 (-12.35)",
    "wins, score monte_carlo 100% of 200 (-12.35)", "worker 8 died", "more",
]  # fmt: skip
OWN_TEXT = ", ".join(f"{name} 0.123" for name in OFC)
OF_THREE_SUMMARY = [
    "recent wins (and mean scores): monte_carlo 100% of 200 (-12.35), past 100% of 200 (-12.35), "
    "random 100% of 200 (-12.35), rule_based 100% of 200 (-12.35)\n",
    "recent mean scores by seat: 0 -12.50, 1 -11.50, 2 -10.50\n", f"the game: {OWN_TEXT}\n",
    f"the game against rule_based: {OWN_TEXT}\n",
]  # fmt: skip


def snapshot(**changes) -> Snapshot:
    """Of a run without search, which has no samples."""
    return recorded_run.snapshot(**{"server": SERVER, "learner": LEARNER, **changes})


def drawn(**changes) -> list[str]:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=False)
    console.print(run_panel(snapshot(**changes)))
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("changes", "panel", "line", "summary"),
    [
        (
            {},
            ["12,346", "45.67", "123,456", "1.23 mean, 20 max", "12.3 ms p50, 234.6 ms p99", "-0.0123",
             "recent wins max_base_power 100% of 200", "simple_heuristics 100% of 200", "unrolls stale 2", "and 3 more",
             "worker 8 died", "550", "62% waiting, 20% envs, 17% messages, 1% other; 1,234.5 us a step",
             "evaluation 487.25, best 490.00", "unreachable, 1,312 s behind"],
            ["store unreachable, 1,312 s behind", "evaluation 487.25, best 490.00"],
            ["battles: 7,805 started, 7,800 finished, 5 aborted (shutdown 4, simulator_died 1)"],
        ),
        (OF_THREE, IN_THE_TABLE, [], OF_THREE_SUMMARY),
        ({**OF_THREE, "servers": BOTH}, IN_THE_TABLE, [], []),
        ({**OF_THREE, "servers": BOTH, "ranks": RANKS}, IN_THE_TABLE, [], []),
        (
            {"workers": {"returns": {"mean": 20.0, "count": 4, "recent_mean": 30.5},
                         "recent": {"all": {"figure.foul": 0.25}, "random": {"games": 4, "win_rate": 0.5}}}},
            [], ["mean return 30.50 recently", "the game foul 0.25", "recent wins random 50% of 4"], [],
        ),
        (
            {"processes": [FAR]},
            ["simul-inference-0@192.168.100.12 silent 12 s"], ["simul-inference-0@192.168.100.12 silent 12 s"], [],
        ),
        (
            {"servers": FIVE, "server": {**SERVER, "policy_version": 123456, "policy_version_max": 123458}},
            ["123,456 to 123,458", "0 0%, 1 10%, 2 20%, 3 30% of the decisions, and 1 more"], [], [],
        ),
        (
            {"servers": {"simul-inference-0": {"policy_version": 7}, "simul-inference-1": {"decisions": 3}}},
            [], ["servers 0 0%, 1 100% of the decisions"], [],
        ),
        (
            {"ranks": RANKS, "servers": BOTH},
            ["ranks 1 33%, 2 67% of what was learned from"], ["ranks 1 33%, 2 67% of what was learned from"], [],
        ),
        (
            {"server": {"decisions": 6343}, "run_decisions": 193129.0},
            ["decisions 193,129 (+6,343)"], ["decisions 193,129 (6,343 this start)"],
            ["6,343 decisions in", "the whole run: 193,129 decisions"],
        ),
        ({"server": {"decisions": 6343}, "run_decisions": 6343.0}, [], ["decisions 6,343 |"], []),
        ({"elapsed_sec": 16.2, "ready_sec": 0.4}, ["Simul training 0:00:00"], ["training 0 s"], []),
        ({"phase": "starting", "elapsed_sec": 16.2, "ready_sec": 0.0}, ["Simul starting 0:00:16"], [], []),
        (
            {"callback_figures": {"mine/x": 1.5, "mine/y": 0.25}},
            ["callback mine/x 1.5, mine/y 0.25"], ["| callback mine/x 1.5, mine/y 0.25 |"], [],
        ),
        ({"callback_figures": {f"mine/number_{n}": n / 7 for n in range(100)}, "servers": BOTH},
         ["callback mine/number_0 0, "], [], []),
        (
            {"workers": {"scripted": {"decisions": 1234, "raised": 1, "invalid": 2}}},
            ["replaced invalid 2, raised 1 of 1,234 choices"], ["| replaced invalid 2, raised 1 of 1,234 choices of"],
            ["replaced by random legal choices: invalid 2, raised 1 of 1,234 choices of scripted players"],
        ),
        (
            {**OF_THREE, "servers": BOTH, "ranks": RANKS, "figures": LEAGUE},
            ["league version 1,200: Elo +84 (95%: +31 to +137), rank 2 of 9"],
            ["| league version 1,200: Elo +84 (95%: +31 to +137), rank 2 of 9 |"], [],
        ),
        (NOTHING, ["decisions/s -"], ["decisions/s -"], ["0 decisions in"]),
        ({"game": "pokemon"}, ["battles/s"], ["battles/s 45.67"], ["battles: 7,805 started"]),
        ({"game": "gymnasium"}, ["episodes/s"], ["episodes/s 45.67"], ["episodes: 7,805 started"]),
        ({"game": "mine:Env"}, ["episodes/s"], ["episodes/s 45.67"], ["episodes: 7,805 started"]),
    ],
)  # fmt: skip
def test_what_is_shown_and_that_it_fits_80_by_24(changes, panel, line, summary):
    lines = drawn(**changes)
    assert len(lines) <= 23  # the cursor stands on the line below
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    plain = run_line(snapshot(**changes))
    long = summary_text(summarise(Config(game=changes.get("game", "pokemon")), snapshot(**changes))) + "\n"
    assert [words for words in panel if words not in text] == []
    assert [words for words in line if words not in plain] == []
    assert [words for words in summary if words not in long] == []
    assert "\n" not in plain
    assert "seat_" not in long


def test_past_selves_have_a_line_of_their_own_by_version():
    recent = {f"past/{version}": {"games": 100, "win_rate": version / 200} for version in (9, 100, 20)}
    rows = dict(format_results({"recent": {**recent, "past": {"games": 300, "win_rate": 0.4}}}))
    assert rows["past selves"] == "9 4% of 100, 20 10% of 100, 100 50% of 100"
    assert rows["recent wins"] == "past 40% of 300"


def test_what_a_run_does_not_have_is_not_shown():
    shown = run_line(snapshot(learner={}, figures={}))
    assert [word for word in ("servers", "ranks", "callback", "store", "evaluation", "league") if word in shown] == []
    assert "the whole run" not in summary_text(summarise(Config(), snapshot(run_decisions=1.0)))
    assert "self_play" not in run_line(snapshot(workers={"recent": {"self_play": {"games": 5, "win_rate": 1.0}}}))
    assert number({"loss": float("nan")}, "loss") is None


def test_only_events_are_cut_off():
    assert "…" not in "".join(line for line in drawn() if " long" not in line)
    many = drawn(callback_figures={f"mine/number_{n}": n / 7 for n in range(100)})
    assert any(re.search(r", 9\d more *$", line) for line in many)


def test_after_a_fault_long_values_wrap_and_labels_stay_whole():
    unrolls = {"received": 10, "learned": 7, "dropped": {"learner_died": 1234, "too_old": 56789, "stale_network": 3}}
    aborted = {"server_lost": 1234, "simulator_died": 567, "worker_died": 89, "shutdown": 12, "host_silent": 1}
    steps = {"dropped": {"server_died": 98765, "learner_down": 4321, "closed": 21}}
    lines = drawn(
        server={**SERVER, "steps": steps}, learner={**LEARNER, "unrolls": unrolls},
        workers={**workers(3900.0), "episodes": {"aborted": aborted}},
    )  # fmt: skip
    text = " ".join("\n".join(lines).split())
    assert max(map(len, lines)) <= 80
    for label in ("batches", "recent wins", "dropped", "aborted"):
        assert any(line.startswith(f"{label} ") for line in lines)
    for cause in ("server_died 98,765", "unrolls learner_died 1,234", "unrolls stale_network 3", "host_silent 1"):
        assert cause in text


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        ({"store_state": "ok", "store_behind_sec": 0.0}, "up to date"),
        ({"store_state": "ok", "store_behind_sec": 3.2}, "3 s behind"),
        ({"store_state": "taken_over", "store_behind_sec": 3.2}, "taken over by a newer run"),
        ({"store_state": "", "store_behind_sec": None}, ""),
        ({}, ""),
    ],
)
def test_states_of_the_store(learner, text):
    assert format_store(learner) == text


def test_histograms_order_sizes_as_numbers_and_causes_come_by_number_without_zeros():
    assert format_histogram({"16": 1, "2": 8, "128": 4}).split()[0].startswith("2")
    assert format_histogram({}) == "-"
    assert format_causes({"stale": 0, "closed": 1, "learner_down": 1200}) == "learner_down 1,200, closed 1"
