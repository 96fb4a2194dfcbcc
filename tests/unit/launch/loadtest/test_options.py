"""Every mistake on the command line is one sentence."""

import pytest

from simul.common.errors import ConfigError
from simul.launch.loadtest.options import parse


def test_defaults_sweep_and_lists_are_read() -> None:
    options = parse([])
    assert (options.clients, options.precisions, options.rates) == ((1, 2, 4), ("auto",), None)
    options = parse(["--clients", "3", "--envs", "2,16", "--rates", "900,1e2", "--precisions", "float32,bfloat16"])
    assert (options.clients, options.envs, options.rates) == ((3,), (2, 16), (100.0, 900.0))
    assert options.precisions == ("float32", "bfloat16")
    assert parse(["--rates", "none"]).rates == ()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--envs", "0"], "--envs: expected a whole number from 1 on, or several with commas between; got '0'."),
        (["--envs", "4,,8"], "--envs: expected a whole number"),
        (["--clients", "two"], "--clients: expected a whole number"),
        (["--rates", "fast"], "--rates: expected a number from 1 on, or several with commas between; got 'fast'."),
        (["--rates", "nan"], "--rates: expected a number"),
        (["--p99-ms", "-5"], "--p99-ms: expected a number from 0.001 on; got '-5'."),
        (["--p99-ms", "inf"], "--p99-ms: expected a number"),
        (["--precisions", "float64"], "--precisions: expected auto, float32, bfloat16; got 'float64'."),
        (["--baseline", "remote"], "invalid choice: 'remote'"),
        (["--enws", "4"], "unrecognized arguments: --enws 4"),
        (["--clients", "1,100000"], "--clients 100000: each is a process; at most 256."),
        (["--clients", "200", "--envs", "1000"], "--clients x --envs is 200000 sessions; at most 65536."),
        (["--keys", "keys"], "--keys: a server that is started here wants none"),
        (["--connect", "runs/x", "--precisions", "float32"], "A running server has its own precision"),
    ],
)
def test_mistakes(arguments: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(arguments)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
