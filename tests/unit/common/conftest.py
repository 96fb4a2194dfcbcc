"""Where sockets of a test meet."""

import pytest


@pytest.fixture
def endpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    if len(str(folder)) > 80:
        pytest.skip("the temporary directory is too deep for an ipc path")
    return f"ipc://{folder}/a"
