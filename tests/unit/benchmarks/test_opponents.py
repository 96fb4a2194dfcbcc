import pytest

from benchmarks.bench_opponents import MIXES, Found, table
from simul.common.config.loader import load_config
from simul.common.runtime.installation import ROOT


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_is_one_that_can_be_configured(mix):
    opponents = load_config(ROOT / "configs" / "pokemon.yaml", [f"opponents={mix}"]).opponents
    assert opponents.past == 0  # nobody would play it


def test_a_row_a_mix():
    rows = table([("self:1", Found(5000.4, 11.2, (800.0, 1300.0, 3402.0)))])
    assert rows[2:] == ["| self:1 | 5,000 | 11 | 800 | 1,300 | 3,402 |"]
