"""What Simul raises: `from simul.errors import ConfigError`."""

from simul.common.errors import *  # noqa: F403
