"""Anonymous files that are open."""

from __future__ import annotations

import gc
import os


def anonymous_files() -> int:
    """How many of Simul's this process has open; two of each that is mapped: ours, and the one that mmap keeps."""
    gc.collect()  # those that other tests have let go are closed now, and not in between
    names = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            names.append(os.readlink(entry.path))
        except OSError:  # closed since
            continue
    return sum("memfd:simul" in name for name in names)
