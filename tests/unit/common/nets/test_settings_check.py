"""`simul sweep` asks which values a network refuses."""

from __future__ import annotations

from simul.common.nets.settings_check import Question, refusals


def test_a_value_is_refused_where_none_of_its_settings_fits(flat_spec):
    values = (
        (("network.options.hiden=3",),),
        (("network.name=attention", "network.options.heads=3"), ("network.name=attention", "network.options.heads=4")),
        (("network.name=mlp", "network.options.heads=4"),),
        (("network.name=pokemon",),),
    )
    unknown, fits, other, game = refusals(Question(flat_spec, "cartpole", "default", (), values))
    assert unknown.startswith("network.options: the network mlp_lstm has no option 'hiden'; did you mean hidden?")
    assert fits == ""
    assert "the network mlp has no option 'heads'" in other
    assert game
