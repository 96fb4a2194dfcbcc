"""The cores and the memory that affinity and containers leave."""

from __future__ import annotations

import os

import psutil
import pytest

from simul.common.runtime.machine_limits import MIB, _quotas, usable_cores, usable_machine


@pytest.mark.parametrize(
    ("files", "quotas"),
    [
        ({"cpu.max": "150000 100000\n"}, [1.5]),
        ({"cpu.max": "max 100000\n"}, []),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, [0.5]),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, []),
        ({"cpu.max": "what\n"}, []),
        ({"cpu.max": "\n"}, []),
        ({}, []),
    ],
)
def test_quotas_of_containers(tmp_path, files, quotas):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _quotas(tmp_path) == quotas


def test_no_more_cores_than_there_are():
    assert 0 < usable_cores() <= os.cpu_count()


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_of_containers(tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    whole = psutil.virtual_memory().total / MIB
    for text, memory_mib in (("1048576000\n", 1000.0), ("max\n", whole), (f"{2**63}", whole), ("what", whole)):
        file.write_text(text)
        assert usable_machine(tmp_path).memory_mib == memory_mib


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_counts(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 6})
    assert usable_cores() <= 3
