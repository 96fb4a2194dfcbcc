"""What a sweep prints where no terminal shows it."""

from __future__ import annotations

from simul.launch.sweep.report import SweepView
from simul.launch.sweep.study import Tried


def test_the_table_is_whole_where_the_output_is_no_terminal(capsys):
    values = {f"network.options.a_long_name_{number}": number for number in range(6)}
    SweepView(1, 1).close([Tried(0, "finished", values, 1.0)])
    heads = capsys.readouterr().out.splitlines()[1]
    assert [key for key in values if key not in heads] == []
