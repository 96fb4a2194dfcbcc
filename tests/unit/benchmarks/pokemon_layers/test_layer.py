from __future__ import annotations

import pytest

from benchmarks.pokemon_layers.layer import Sample, spread, summarise
from benchmarks.pokemon_layers.promises import cost_ratio, paired_ratio, promises
from benchmarks.pokemon_layers.training import facts


def sample(rate, *, seconds=10.0, cpu=12.0, busy=15.0, notes=None):
    return Sample(rate * seconds, seconds, cpu, busy, cores=2, notes=notes or {})


def test_a_sample_knows_its_rate_its_cost_and_what_others_took():
    one = sample(1000)
    assert one.decisions_per_sec == 1000
    assert one.us_per_decision == pytest.approx(1200)
    assert one.others_share == pytest.approx(3 / 20)
    assert sample(1000, busy=11.0).others_share == 0  # clocks differ a little


def test_summary_is_the_median_with_its_spread():
    found = summarise([sample(rate) for rate in (900, 1000, 1300)])
    assert found["decisions_per_sec"] == 1000
    assert found["decisions_per_sec_spread"] == spread([900, 1000, 1300]) == 0.4
    assert found["repeats"] == 3


def test_ratios_are_taken_within_a_repeat_and_by_cost_do_not_depend_on_how_busy_the_machine_was():
    ours, theirs = [sample(300), sample(150), sample(320)], [sample(1000), sample(500), sample(1000)]
    assert paired_ratio(ours, theirs) == pytest.approx(0.30)
    assert cost_ratio([sample(100, cpu=1.0)], [sample(900, cpu=3.0)]) == pytest.approx(1 / 3, abs=1e-3)


US = {"simulator hosts": 530.0, "simul-learner-0": 115.0, "simul-inference-0": 75.0, "simul-worker-0": 42.0}


def run(*, slower=1.0, **notes):
    """Pairs of `make up` and the stock simulator; one of three in a slow minute."""
    learned = {"parameters": 1_100_000, "learned_share": 0.99, "us_by_process": US} | notes
    spent = sum(learned["us_by_process"].values()) * slower / 100
    return {
        "simulator": [sample(1000, cpu=us / 100) for us in (500, 900, 500)],
        "learning": [sample(1000, cpu=cpu, notes=learned) for cpu in (spent, 1.8 * spent, spent)],
    }


def missed(samples):
    return [promise.name for promise in promises(samples) if not promise.kept]


def test_what_each_process_costs_is_judged_beside_the_stock_simulator():
    assert len(promises(run())) == 7
    assert missed(run()) == []
    assert missed(run(slower=1.25)) == ["all of make up / simulator alone, stock"]
    for process in US:
        slow = missed(run(us_by_process=US | {process: 1.5 * US[process]}))
        assert any(name.startswith(process.removesuffix("-0")) for name in slow)
    assert missed(run(learned_share=0.94, parameters=999_999)) == [
        "share of the decisions learned from", "parameters of the network",
    ]  # fmt: skip
    assert str(promises(run())[4]) == (
        "PASS  all of make up / simulator alone, stock: 1.52 (promised at most 1.65)"
    )  # fmt: skip


def test_a_missing_figure_is_a_broken_promise_and_a_missing_layer_is_not_judged():
    assert missed(run(learned_share=None)) == ["share of the decisions learned from"]
    assert "simul-learner / simulator alone, stock" in missed(run(us_by_process={"simulator hosts": 1.0}))
    assert promises({"ipc": [sample(100)], "poke_env": [sample(100)]}) == []
    assert len(promises({"learning": run()["learning"]})) == 2


def test_the_learned_share_leaves_out_only_what_is_still_under_way():
    server = {"steps": {"seen": 10_000, "open": 1000, "dropped": {"aborted": 400}}}
    learner = {"steps_waiting": 600, "decisions_learned_since_start": 8000, "updates": 4}
    status = {"server": server, "learner": learner, "processes": []}
    found = facts({**status, "learner": {"updates": 1}}, status)
    assert found["learned_share"] == pytest.approx(8000 / 8400, abs=1e-4)
    assert found["updates"] == 3
