"""The live view: fits a small terminal, and lives with figures that are missing."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from simul.common.config.schema import Config
from simul.launch.monitoring.accounting import ACCOUNTS
from simul.launch.monitoring.snapshot import ProcessFigures, Rate, Snapshot
from simul.launch.monitoring.summary import summarise, summary_text
from simul.launch.monitoring.view.panel import (
    format_causes,
    format_histogram,
    format_store,
    format_win_rates,
    run_line,
    run_panel,
)
from simul.launch.processes.role_reports import number

OFC = ("foul_rate", "royalties_per_hand", "royalties_top", "royalties_middle", "royalties_bottom",
       "fantasyland_entry", "fantasyland_stay", "fantasyland_hands", "score_per_hand")  # fmt: skip


def table_of_three() -> dict:
    """The workers' figures of a run that has played every opponent of OFC from each seat."""
    own = {f"figure.{name}": 0.1234 for name in OFC}
    against = {"games": 200, "win_rate": 1.0, "return_mean": -12.345, **own}
    seats = {f"seat_{seat}": {"games": 60, "return_mean": seat - 12.5, **own} for seat in range(3)}
    opponents = {name: against for name in ("monte_carlo", "past", "random", "rule_based", "self_play")}
    return {
        **snapshot().workers, "returns": {"mean": -20.0, "count": 4, "recent_mean": -30.5},
        "recent": {"all": {"games": 200, "return_mean": -30.5, **own}, **opponents, **seats},
    }  # fmt: skip


def snapshot(**changes) -> Snapshot:
    process = ProcessFigures("simul-worker-0", 1, 0.0, "ready", 3, 99.0, 150.0, 400.0, 160.0, 500.0)
    full = {
        "phase": "training", "run_dir": "/somewhere/runs/pokemon", "game": "pokemon", "time": 0.0,
        "elapsed_sec": 4000.0,
        "ready_sec": 3900.0, "decisions_per_sec": 12345.6, "battles_per_sec": 45.67,
        "server": {
            "decisions": 10**9, "batches": 10**7, "batch_histogram": {str(2**n): 10 * n for n in range(9)},
            "latency_us": {"p50": 12345.6, "p99": 234567.8}, "policy_version": 123456,
            "steps": {"seen": 10, "sent": 4, "open": 3, "dropped": {"closed": 2, "learner_down": 1}},
            "unrolls": {"completed": 13, "sent": 10, "waiting": 0, "dropped": {"learner_down": 3}},
        },
        "learner": {
            "policy_version": 123457, "policy_lag": {"mean": 1.23, "max": 20}, "policy_loss": -0.0123,
            "value_loss": 0.345, "entropy": 1.9, "learning_rate": 3e-4,
            "store_state": "unreachable", "store_behind_sec": 1312.3,
            "unrolls": {"received": 10, "learned": 7, "waiting": 1, "dropped": {"stale": 2}},
        },
        "workers": {
            "episodes": {"started": 9, "finished": 4, "alive": 3, "aborted": {"shutdown": 1, "simulator_died": 1}},
            "recent": {n: {"games": 200, "win_rate": 1.0} for n in ("max_base_power", "random", "simple_heuristics")},
        },
        "figures": {
            "worker/wait_share": 0.621, "worker/envs_share": 0.2, "worker/messages_share": 0.17,
            "worker/other_share": 0.01, "worker/env_step_us": 1234.5, "evaluation/score": 487.25,
            "evaluation/best_score": 490.0, "evaluation/policy_version": 123456.0,
        },
        "processes": [process] * 9, "events": [f"12:00:0{n} worker {n} died{' long' * 30}" for n in range(9)],
    }  # fmt: skip
    return Snapshot(**{**full, **changes})


def drawn(snap: Snapshot) -> list[str]:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=False)
    console.print(run_panel(snap))
    return console.file.getvalue().splitlines()


def test_the_fullest_panel_fits_80_by_24_with_nothing_cut_off():
    lines = drawn(snapshot())
    assert len(lines) <= 23  # the cursor stands on the line below
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for figure in ("12,346", "45.67", "123,456", "1.23 mean, 20 max", "12.3 ms p50, 234.6 ms p99", "-0.0123",
                   "max_base_power 100% of 200", "simple_heuristics 100% of 200", "unrolls stale 2", "and 3 more",
                   "worker 8 died", "550", "62% waiting, 20% envs, 17% messages, 1% other; 1,234.5 us a step",
                   "evaluation 487.25, best 490.00"):  # fmt: skip
        assert figure in text
    assert "…" not in "".join(line for line in lines if " long" not in line)


def test_the_fullest_panel_of_a_table_of_three_fits_too():
    ranks = {f"simul-learner-{n}": {"decisions_learned_since_start": 100 * n} for n in range(1, 3)}
    both = {f"simul-inference-{n}": {"decisions": 5} for n in range(2)}
    for changes in ({}, {"servers": both}, {"servers": both, "ranks": ranks}):
        lines = drawn(snapshot(game="ofc", workers=table_of_three(), **changes))
        assert len(lines) <= 23
        assert max(map(len, lines)) <= 80
        text = " ".join("\n".join(lines).split())
        assert all(f"{name} 0.123" in text for name in OFC)
        for figure in ("; seat 0 -12.50, 1 -11.50, 2 -10.50", "wins, score monte_carlo 100% of 200 (-12.35)",
                       "rule_based 100% of 200 (-12.35)", "worker 8 died", "more"):  # fmt: skip
            assert figure in text


def test_processes_on_other_machines_are_shown_with_them():
    process = ProcessFigures(
        "simul-inference-0", 1, 0.0, "silent 12 s", 3, 99.0, 150.0, 400.0, 160.0, 500.0, node="192.168.100.12"
    )
    lines = drawn(snapshot(processes=[process]))
    assert any("simul-inference-0@192.168.100.12" in line and "silent 12 s" in line for line in lines)
    assert "simul-inference-0@192.168.100.12 silent 12 s" in run_line(snapshot(processes=[process]))


def test_several_servers_are_shown_each_and_the_panel_still_fits():
    server = {**snapshot().server, "policy_version": 123456, "policy_version_max": 123458}
    each = {f"simul-inference-{n}": {"decisions": 100 * n, "policy_version": 123456 + n} for n in range(5)}
    lines = drawn(snapshot(server=server, servers=each))
    assert len(lines) <= 23
    text = " ".join("\n".join(lines).split())
    assert "123,456 to 123,458" in text
    assert "0 0%, 1 10%, 2 20%, 3 30% of the decisions, and 1 more" in text
    assert "servers 0 0%, 1 100% of the decisions" in run_line(
        snapshot(servers={"simul-inference-0": {"policy_version": 7}, "simul-inference-1": {"decisions": 3}})
    )
    assert "servers" not in run_line(snapshot())


def test_ranks_of_the_learner_are_shown_each_beside_servers_and_the_panel_still_fits():
    ranks = {f"simul-learner-{n}": {"decisions_learned_since_start": 100 * n} for n in range(1, 3)}
    both = {f"simul-inference-{n}": {"decisions": 5} for n in range(2)}
    lines = drawn(snapshot(ranks=ranks, servers=both))
    assert len(lines) <= 23
    text = " ".join("\n".join(lines).split())
    assert "ranks 1 33%, 2 67% of what was learned from" in text
    assert "ranks 1 33%, 2 67% of what was learned from" in run_line(snapshot(ranks=ranks))
    assert "ranks" not in run_line(snapshot())


def test_after_a_fault_long_values_wrap_and_labels_stay_whole():
    unrolls = {"received": 10, "learned": 7, "dropped": {"learner_died": 1234, "too_old": 56789, "stale_network": 3}}
    aborted = {"server_lost": 1234, "simulator_died": 567, "worker_died": 89, "shutdown": 12, "host_silent": 1}
    workers = {**snapshot().workers, "episodes": {"aborted": aborted}}
    server = {**snapshot().server, "steps": {"dropped": {"server_died": 98765, "learner_down": 4321, "closed": 21}}}
    lines = drawn(snapshot(server=server, workers=workers, learner={**snapshot().learner, "unrolls": unrolls}))
    text = " ".join("\n".join(lines).split())
    assert max(map(len, lines)) <= 80
    for label in ("batches", "recent wins", "dropped", "aborted"):
        assert any(line.startswith(f"{label} ") for line in lines)
    for cause in ("server_died 98,765", "unrolls learner_died 1,234", "unrolls stale_network 3", "host_silent 1"):
        assert cause in text


def test_a_resumed_run_shows_the_decisions_of_all_its_starts_and_of_this_one():
    resumed = snapshot(server={"decisions": 6343}, run_decisions=193129.0)
    assert "decisions       193,129 (+6,343)" in "\n".join(drawn(resumed))
    assert "decisions 193,129 (6,343 this start)" in run_line(resumed)
    text = summary_text(summarise(Config(), resumed))
    assert "6,343 decisions in" in text
    assert "the whole run: 193,129 decisions" in text
    first = snapshot(server={"decisions": 6343}, run_decisions=6343.0)
    assert "decisions 6,343 |" in run_line(first)
    assert "the whole run" not in summary_text(summarise(Config(), first))


def test_the_clock_of_training_starts_at_readiness():
    ready = snapshot(elapsed_sec=16.2, ready_sec=0.4)
    assert run_line(ready).startswith("training 0 s")
    assert drawn(ready)[0].startswith("Simul  training 0:00:00")
    assert drawn(snapshot(phase="starting", elapsed_sec=16.2, ready_sec=0.0))[0].startswith("Simul  starting 0:00:16")


def test_numbers_of_a_callback_are_shown_as_many_as_fit():
    few = snapshot(callback_figures={"mine/x": 1.5, "mine/y": 0.25})
    assert any(line.startswith("callback     mine/x 1.5, mine/y 0.25") for line in drawn(few))
    assert "| callback mine/x 1.5, mine/y 0.25 |" in run_line(few)
    lines = drawn(snapshot(callback_figures={f"mine/number_{n}": n / 7 for n in range(100)}, servers={"s-0": {}}))
    assert len(lines) <= 23
    assert any(re.search(r"mine/number_0 0, .*, 9\d more *$", line) for line in lines)
    assert "callback" not in run_line(snapshot())


def test_a_panel_without_any_figure():
    nothing = snapshot(server={}, learner={}, workers={}, processes=[], events=[], decisions_per_sec=None)
    assert any("decisions/s  -" in line for line in drawn(nothing))
    assert "decisions/s -" in run_line(nothing)


def test_the_mean_return_stands_where_a_game_has_returns():
    workers = {"returns": {"mean": 20.0, "count": 4, "recent_mean": 30.5}}
    assert "mean return 30.50 recently" in run_line(snapshot(workers=workers))


def test_a_game_of_several_seats_shows_its_own_figures_and_win_rates_too():
    workers = {
        "returns": {"mean": 20.0, "count": 4, "recent_mean": 30.5},
        "recent": {"all": {"games": 9, "figure.foul": 0.25}, "random": {"games": 4, "win_rate": 0.5, "figure.foul": 0}},
    }
    line = run_line(snapshot(workers=workers))
    assert "mean return 30.50 recently" in line
    assert "the game foul 0.25" in line
    assert "recent wins random 50% of 4" in line


def test_the_summary_shows_scores_and_the_games_own_figures_by_opponent():
    lines = summary_text(summarise(Config(game="ofc"), snapshot(workers=table_of_three()))).splitlines()
    assert (
        "recent wins (and mean scores): monte_carlo 100% of 200 (-12.35), past 100% of 200 (-12.35), "
        "random 100% of 200 (-12.35), rule_based 100% of 200 (-12.35)"
    ) in lines
    assert "recent mean scores by seat: 0 -12.50, 1 -11.50, 2 -10.50" in lines
    own = ", ".join(f"{name} 0.123" for name in OFC)
    assert f"the game: {own}" in lines
    assert f"the game against rule_based: {own}" in lines
    assert not any("seat_" in line for line in lines)


def test_a_nan_is_not_a_figure():
    assert number({"loss": float("nan")}, "loss") is None


def test_the_store_stands_there_where_the_run_has_one():
    assert "unreachable, 1,312 s behind" in "\n".join(drawn(snapshot()))
    assert "store unreachable, 1,312 s behind" in run_line(snapshot())
    assert format_store({"store_state": "ok", "store_behind_sec": 0.0}) == "up to date"
    assert format_store({"store_state": "ok", "store_behind_sec": 3.2}) == "3 s behind"
    assert format_store({"store_state": "taken_over", "store_behind_sec": 3.2}) == "taken over by a newer run"
    assert format_store({"store_state": "", "store_behind_sec": None}) == format_store({}) == ""
    assert " store" not in run_line(snapshot(learner={}))


def test_histogram_orders_sizes_as_numbers():
    assert format_histogram({"16": 1, "2": 8, "128": 4}) == "2█ 16▂ 128▄" or format_histogram({}) == "-"
    assert format_histogram({"16": 1, "2": 8, "128": 4}).split()[0].startswith("2")


def test_causes_are_ordered_and_zeros_left_out():
    assert format_causes({"stale": 0, "closed": 1, "learner_down": 1200}) == "learner_down 1,200, closed 1"


def test_ties_and_games_without_opponent_are_no_win_rates():
    assert format_win_rates({"recent": {"self_play": {"games": 5, "win_rate": 1.0}}}) == []


def test_rates_are_of_the_window():
    rate = Rate(window_sec=10)
    assert rate.add(0.0, 0.0) is None
    assert rate.add(5.0, 50.0) == 10.0
    assert rate.add(15.0, 50.0) == 0.0


def test_the_summary_holds_the_promised_keys_and_balanced_accounts():
    summary = summarise(Config(), snapshot())
    for key in ("decisions", "battles", "decisions_per_sec", "mean_batch", "latency_us", "policy_version",
                "policy_lag", "unrolls", "peak_memory_mb", "versions", "config_fingerprint"):  # fmt: skip
        assert summary[key] is not None
    assert [account["difference"] for account in summary["accounting"].values()] == [0] * len(ACCOUNTS)
    assert "does not balance" not in summary_text(summary)


def test_the_summary_says_when_an_account_does_not_balance():
    broken = snapshot(workers={"episodes": {"started": 9, "finished": 4, "alive": 3, "aborted": {}}})
    assert "the account of battles does not balance" in summary_text(summarise(Config(game="pokemon"), broken))


@pytest.mark.parametrize(
    ("game", "word"), [("pokemon", "battles"), ("gymnasium", "episodes"), ("mine:Env", "episodes")]
)
def test_episodes_are_called_what_people_call_them(game, word):
    snap = snapshot(game=game)
    assert f"{word}/s" in "\n".join(drawn(snap))
    assert f"{word}/s 45.67" in run_line(snap)
    assert f"{word}: 9 started" in summary_text(summarise(Config(game=game), snap))


def test_the_summary_of_a_run_without_figures():
    summary = summarise(Config(), snapshot(server={}, learner={}, workers={}, processes=[]))
    assert summary["decisions"] == 0
    assert "0 decisions" in summary_text(summary)


@pytest.mark.parametrize("phase", ["training", "stopping"])
def test_plain_line_is_one_line(phase):
    assert "\n" not in run_line(snapshot(phase=phase))
