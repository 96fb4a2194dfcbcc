"""Whatever is written for a setting: its error names the key, what was expected and what came, or what to do."""

from __future__ import annotations

import pytest

from simul.common.config.loader import load_config
from simul.common.config.validation import config_keys
from simul.common.errors import ConfigError

WRONG = ("{a: {b: [1]}}", "-7", "no-such-word")


@pytest.mark.parametrize("value", WRONG)
def test_every_error_of_a_setting_says_what_was_expected_and_what_came(value: str) -> None:
    silent, accepted = [], 0
    for key in config_keys():
        try:
            load_config("cartpole", [f"{key}={value}"])
            accepted += 1
        except ConfigError as error:
            words = str(error)
            said = "expected" in words or "`simul " in words or " use " in words
            if f"--set {key}={value}" not in words or not said:
                silent.append(words)
    assert silent == []
    assert accepted < 40
