from __future__ import annotations

import pytest

from benchmarks.pokemon_layers.layer import Sample, one_after_another, spread, summarise, together
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


def test_side_by_side_rates_and_processor_time_add_up_but_the_machine_is_counted_once():
    both = together([sample(1000, seconds=10, cpu=9, busy=19), sample(500, seconds=20, cpu=18, busy=38)])
    assert both.decisions_per_sec == pytest.approx(1500)
    assert both.us_per_decision == pytest.approx(1.8e6 / 1500)
    assert both.busy_sec / both.seconds == pytest.approx(1.9)


def test_one_after_another_times_add_up():
    both = one_after_another([sample(1000, seconds=10), sample(500, seconds=30, cpu=40)])
    assert both.seconds == 40
    assert both.decisions_per_sec == pytest.approx(25_000 / 40)
    assert both.cpu_sec == 52


def test_summary_is_the_median_with_its_spread():
    found = summarise([sample(rate) for rate in (900, 1000, 1300)])
    assert found["decisions_per_sec"] == 1000
    assert found["decisions_per_sec_spread"] == spread([900, 1000, 1300]) == 0.4
    assert found["repeats"] == 3


def test_ratios_are_taken_within_a_repeat_and_by_cost_do_not_depend_on_how_busy_the_machine_was():
    ours, theirs = [sample(300), sample(150), sample(320)], [sample(1000), sample(500), sample(1000)]
    assert paired_ratio(ours, theirs) == pytest.approx(0.30)
    assert cost_ratio([sample(100, cpu=1.0)], [sample(900, cpu=3.0)]) == pytest.approx(1 / 3, abs=1e-3)


def run(rate=700, **notes):
    learned = {"parameters": 1_100_000, "learned_share": 0.99,
               "us_by_process": {"simul-learner-0": 80.0, "simul-inference-0": 25.0}}  # fmt: skip
    return {
        "simulator": [sample(1000)],
        "learning": [sample(rate, notes={**learned, **notes})],
        "learning_python": [sample(rate - 200, cpu=12.0)],
        "poke_env": [sample(150)],
    }


def kept(samples):
    return {promise.name: promise.kept for promise in promises(samples)}


def test_every_promise_of_learning_is_judged():
    found = kept(run())
    assert list(found.values()) == [True] * 8
    assert [name for name, ok in kept(run(rate=540)).items() if not ok] == [
        "make up, encoder: python / simulator alone, stock",
        "make up, encoder: python / poke-env over a local server",
        "make up, encoder: host / simulator alone, stock",
        "make up, encoder: host / poke-env over a local server",
    ]
    slow = {"simul-learner-0": 111.0, "simul-inference-0": 26.0}
    missed = kept(run(learned_share=0.94, parameters=999_999, us_by_process=slow))
    assert list(missed.values()) == [True] * 4 + [False] * 4
    assert str(promises(run())[2]) == (
        "PASS  make up, encoder: host / simulator alone, stock: 0.70 (promised at least 0.55; by processor time 0.70)"
    )


def test_the_budget_is_of_what_each_layer_adds_within_a_repeat():
    def layer(*us):
        return [sample(1000, cpu=cost / 100) for cost in us]

    samples = {
        "ipc": layer(190, 290, 200), "parsing": layer(300, 400, 301), "encoding_bare": layer(390, 505, 405),
        "encoding": layer(490, 600, 510), "host_encoding_bare": layer(300), "host_encoding": layer(400),
    }  # fmt: skip
    found = {promise.name: promise for promise in promises(samples)}
    assert {name: round(verdict.found) for name, verdict in found.items()} == {
        "simulator and IPC, us": 200,
        "parsing and request, us": 110,
        "encoding and mask (encoder: python), us": 104,
        "damage (encoder: python), us": 100,
        "all four together (encoder: host), us": 400,
        "damage (encoder: host), us": 100,
    }
    assert [name for name, verdict in found.items() if not verdict.kept] == [
        "simulator and IPC, us",
        "encoding and mask (encoder: python), us",
    ]


def test_a_missing_figure_is_a_broken_promise_and_a_missing_layer_is_not_judged():
    assert list(kept(run(learned_share=None)).values())[-2:] == [False, True]
    assert not kept(run(us_by_process={}))["serving, us"]
    assert promises({"parsing": [sample(100)], "poke_env": [sample(100)]}) == []
    assert len(promises({"learning": run()["learning"]})) == 4


def test_the_learned_share_leaves_out_only_what_is_still_under_way():
    server = {"steps": {"seen": 10_000, "open": 1000, "dropped": {"aborted": 400}}}
    learner = {"steps_waiting": 600, "decisions_learned_since_start": 8000, "updates": 4}
    status = {"server": server, "learner": learner, "processes": []}
    found = facts({**status, "learner": {"updates": 1}}, status)
    assert found["learned_share"] == pytest.approx(8000 / 8400, abs=1e-4)
    assert found["updates"] == 3
