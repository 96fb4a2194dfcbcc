"""Which run writes to a store: the one that started last. owner.json in the store, and a copy in the run directory."""

from __future__ import annotations

import platform
import time
from datetime import UTC, datetime

import msgspec

from simul.common.role.run_directory import STORE_CLAIM, RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.common.store.layout import Owner
from simul.common.store.remote import Store


def claim_store(store: Store, run_dir: RunDir) -> Owner:
    """Make this start of the run the one that writes; an older run stops writing when it notices.

    Raises StoreError; OSError where the run directory cannot be written.
    """
    before = store.owner()
    owner = _new_owner(time.time_ns())
    if before is not None and before.run_id >= owner.run_id:  # the clocks of two machines may differ
        owner = msgspec.structs.replace(owner, run_id=before.run_id + 1)
    store.write_owner(owner)
    run_dir.write(STORE_CLAIM, msgspec.json.encode(owner))
    return owner


def read_claim(run_dir: RunDir, run_id: int) -> Owner:
    """The claim of this start of the run; of a learner that was started without `simul up`, one with its `run_id`."""
    try:
        return msgspec.json.decode(read_regular(run_dir.root / STORE_CLAIM), type=Owner)
    except (OSError, *DECODE_ERRORS):
        return _new_owner(run_id)


def _new_owner(run_id: int) -> Owner:
    return Owner(run_id, datetime.now(UTC).isoformat(timespec="seconds"), platform.node())
