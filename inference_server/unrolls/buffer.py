"""Builds unrolls out of single steps, in preallocated tables. Pure but for the memory that a learner can open.

Every recorded session owns a recording, by number, and with it a place in the tables. Step t's reward arrives with
decision t + 1 (or the END). When T steps are complete, the decision that follows is the bootstrap row, and row 0 of the
next unroll. A recording always has a place. When its unroll is complete it lends the place to the learner on this
machine and goes on in a spare one; what comes back is spare again. So no place is written while the learner may read
it.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simul.common.protocol import messages
from simul.common.protocol.masks import PACKED_FROM, pack_masks
from simul.common.protocol.messages import NO_LABEL, SAME_LABEL, TERMINATED, TRUNCATED, Unroll
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import Tables, UnrollLayout, unroll_at
from simul.common.runtime.compiled import (
    BOOL,
    FLOAT32,
    INT16,
    INT32,
    INT64,
    LINE,
    STREAMS,
    UINT8,
    column,
    compiled,
    read,
    stream_line,
)
from simul.inference_server.base.granted_memory import AnonymousFile

MOST_LENT_BYTES = 256 * 1024 * 1024
RESERVED_BYTES = 256 * 1024 * 1024
NONE_LEGAL, ALL_BITS = 0, 255  # masks of rows that are never acted on


@compiled(read(INT64), read(INT64), read(FLOAT32), read(INT64), column(FLOAT32, 2))
def _add_rewards(
    recordings: NDArray[np.int64],
    place_of: NDArray[np.int64],
    earned: NDArray[np.float32],
    filled: NDArray[np.int64],
    reward: NDArray[np.float32],
) -> None:
    """Add to the reward of each recording's last step what it `earned`, float32 [B]; -1 stands for no recording."""
    for i in range(len(recordings)):
        if recordings[i] >= 0:  # a recording without steps: into the place behind the last
            reward[place_of[recordings[i]], filled[recordings[i]] - 1] += earned[i]


@compiled(read(INT64), read(INT64), read(INT16, 2), read(INT64), column(INT16, 3))
def _set_labels(
    recordings: NDArray[np.int64],
    place_of: NDArray[np.int64],
    label: NDArray[np.int16],
    filled: NDArray[np.int64],
    labels: NDArray[np.int16],
) -> None:
    """Set the labels [B, K] of each recording's last step, and of the steps before it that wait for the same one.

    NO_LABEL changes nothing but those that wait; -1 of `recordings` stands for no recording.
    """
    for i in range(len(recordings)):
        if recordings[i] < 0 or not filled[recordings[i]]:
            continue
        place, last = place_of[recordings[i]], filled[recordings[i]] - 1
        for k in range(labels.shape[2]):
            if label[i, k] != NO_LABEL:
                labels[place, last, k] = label[i, k]
            at = last - 1
            while at >= 0 and labels[place, at, k] == SAME_LABEL:
                labels[place, at, k] = labels[place, last, k]
                at -= 1


@compiled(
    read(INT64), read(INT64), read(BOOL), read(UINT8, 2), read(UINT8, 2), read(INT32), read(FLOAT32), read(FLOAT32),
    INT64, column(INT64), column(UINT8, 3), column(UINT8, 3), column(INT32, 2), column(FLOAT32, 2), column(FLOAT32, 2),
    column(INT64, 2), column(FLOAT32, 2), column(INT16, 3),
)  # fmt: skip
def append_rows(
    recordings: NDArray[np.int64],
    place_of: NDArray[np.int64],
    redo: NDArray[np.bool_],
    observation: NDArray[np.uint8],
    mask: NDArray[np.uint8],
    action: NDArray[np.int32],
    log_prob: NDArray[np.float32],
    value: NDArray[np.float32],
    version: int,
    filled: NDArray[np.int64],
    observations: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    actions: NDArray[np.int32],
    log_probs: NDArray[np.float32],
    values: NDArray[np.float32],
    versions: NDArray[np.int64],
    rewards: NDArray[np.float32],
    labels: NDArray[np.int16],
) -> int:
    """Write a step, arrays [B, ...], behind each recording's last one, or over it where `redo`; how many are new."""
    new, size = 0, observation.shape[1]
    for i in range(len(recordings)):
        place, at = place_of[recordings[i]], filled[recordings[i]]
        if redo[i]:
            at -= 1
        else:
            new += 1
        to = observations.ctypes.data + (place * observations.shape[1] + at) * size
        if STREAMS and to % LINE == 0 and size % LINE == 0:  # half the time, and the weights stay in the cache
            for offset in range(0, size, LINE):
                stream_line(to + offset, observation.ctypes.data + i * size + offset)
        else:
            for j in range(size):  # a slice would take twice as long
                observations[place, at, j] = observation[i, j]
        for j in range(mask.shape[1]):
            masks[place, at, j] = mask[i, j]
        actions[place, at] = action[i]
        log_probs[place, at] = log_prob[i]
        values[place, at] = value[i]
        versions[place, at] = version
        rewards[place, at] = 0.0
        for k in range(labels.shape[2]):
            labels[place, at, k] = NO_LABEL
        filled[recordings[i]] = at + 1
    return new


class UnrollPlaces:
    """`serial` int64 [recordings + spares], beside the tables: number of the unroll that is lent there; 0: none is."""

    def __init__(self, recordings: int, serial: NDArray[np.int64]) -> None:
        self.of_recording = np.arange(recordings)
        self._serial = serial
        self._spare = list(range(len(serial) - 1, recordings - 1, -1))
        self._lent: set[int] = set()
        self._last = 0

    @property
    def lent(self) -> int:
        """How many places the learner may be reading."""
        return len(self._lent)

    def lend(self, recording: int) -> tuple[int, int] | None:
        """Lend the recording's place: (place, serial). The recording gets a spare one. None: no place is spare."""
        if not self._spare:
            return None
        place = int(self.of_recording[recording])
        self._lent.add(place)
        self._last += 1
        self._serial[place] = self._last
        self.of_recording[recording] = self._spare.pop()
        return place, self._last

    def take_back(self, place: int) -> None:
        """The place is spare again; a late reader finds another serial. Raises KeyError if it is not lent."""
        self._lent.remove(place)
        self._serial[place] = 0
        self._spare.append(place)


class SharedUnrolls(AnonymousFile):
    """Places for the unrolls of so many `recordings`, and for as many that the learner reads.

    The latter have at most MOST_LENT_BYTES. The system backs what is touched.
    Raises OSError where it has no such memory to give.
    """

    def __init__(self, layout: UnrollLayout, recordings: int) -> None:
        count = recordings + max(1, min(recordings, MOST_LENT_BYTES // layout.place_bytes))
        super().__init__(layout.size(count), writable=True)
        self.recordings = recordings
        self.tables = layout.tables(self._memory, count)
        self.places = UnrollPlaces(recordings, self.tables["serial"])
        self.message = messages.UnrollMemory(
            memory=self.grant, places=count, unroll_length=layout.unroll_length, state_size=layout.state_size
        )


@dataclass(slots=True)
class FinishedUnroll:
    """A recording's unroll, see `simul.common.protocol.messages.Unroll`, and the `place` of its tensors in `tables`.

    Lend, send or copy the tensors before their recording's next step is appended.
    """

    recording: int
    message: Unroll
    tables: Tables
    place: int

    @property
    def tensors(self) -> Tables:
        """Views of the tables."""
        return unroll_at(self.tables, self.place, self.message.length)

    @property
    def steps(self) -> int:
        """Steps that will be learned from."""
        return self.message.length


class UnrollBuffer:
    """Tables [places, T + 1, ...]; `steps_open` counts steps not yet sent or dropped.

    With `memory` they lie there, and there are as many recordings as it has. Else room for `capacity` sessions, but no
    more than RESERVED_BYTES, is reserved at once, and doubled where that is not enough. The operating system backs what
    is touched: about (T + 1) * (D * itemsize + bytes of a mask) a session recorded at a time.
    """

    def __init__(
        self,
        spec: GameSpec,
        unroll_length: int,
        state_size: int,
        capacity: int = 64,
        memory: SharedUnrolls | None = None,
    ) -> None:
        self._layout = UnrollLayout(spec, unroll_length, state_size)
        self._fingerprint = spec.fingerprint()
        self._packs = spec.num_actions >= PACKED_FROM
        self._length = unroll_length
        self._free: list[int] = []
        self._filled = self._first_step = self._session = np.zeros(0, np.int64)
        self._last_session = secrets.randbits(62)  # so that two servers, or two lives of one, never name the same
        self._tables: Tables = {}
        self._labels = np.zeros((0, 0, 0), np.int16)
        self._growing = memory is None
        self.steps_open = 0
        self.dropped: Counter[str] = Counter()
        if memory is None:
            self._grow(max(1, min(capacity, RESERVED_BYTES // self._layout.place_bytes)))
        else:
            self._add_recordings(memory.recordings)
            self._use(memory.tables, memory.places)

    def open(self) -> int:
        """A recording for a new session."""
        if not self._free and self._growing:
            self._grow(2 * len(self._filled))
        recording = self._free.pop()
        self._filled[recording] = 0
        self._first_step[recording] = 0
        self._last_session += 1
        self._session[recording] = self._last_session
        return recording

    def add_rewards(
        self, recordings: NDArray[np.int64], reward: NDArray[np.float32], label: NDArray[np.int16] | None = None
    ) -> None:
        """Add to the reward of the last appended step of each recording, float32 [B]; -1 stands for no recording.

        `label`: int16 [B, K], what the opponent did at that step, see STEP; None: nothing is known.
        """
        _add_rewards(recordings, self._places.of_recording, reward, self._filled, self._tables["reward"])
        if label is not None:
            _set_labels(recordings, self._places.of_recording, label, self._filled, self._labels)

    def full(self, recordings: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [B]: the unroll is complete; the step that comes now is its bootstrap row."""
        return self._filled[recordings] == self._length

    def fresh(self, recordings: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [B]: the next appended step is the first of its unroll: `begin` needs the state before it."""
        return self._filled[recordings] == 0

    def close_full(
        self,
        recordings: NDArray[np.int64],
        observation: NDArray[Any],
        mask: NDArray[np.uint8],
        value: NDArray[np.float32],
    ) -> Iterator[FinishedUnroll]:
        """The complete unrolls of `recordings` with their bootstrap rows, arrays [B, ...]. Each is fresh afterwards."""
        self._write_last(recordings, observation, pack_masks(mask) if self._packs else mask, value)
        for recording in recordings.tolist():
            yield self._pop(recording, terminated=False, truncated=False)

    def begin(self, recordings: NDArray[np.int64], states: NDArray[np.float32]) -> None:
        """States before the first step, float32 [B, state_size]."""
        self._tables["state"][self._places.of_recording[recordings]] = states

    def append(
        self,
        recordings: NDArray[np.int64],
        redo: NDArray[np.bool_],
        observation: NDArray[Any],
        mask: NDArray[np.uint8],
        action: NDArray[np.int32],
        log_prob: NDArray[np.float32],
        value: NDArray[np.float32],
        version: int,
    ) -> None:
        """Record steps, arrays [B, ...]. A redo replaces the last recorded step of its session."""
        tables = self._tables
        if self._packs:
            mask = pack_masks(mask)
        self.steps_open += append_rows(
            recordings, self._places.of_recording, redo, observation.view(np.uint8), mask, action, log_prob, value,
            version, self._filled, self._observation, tables["mask"], tables["action"], tables["log_prob"],
            tables["value"], tables["policy_version"], tables["reward"], self._labels,
        )  # fmt: skip

    def lend(self, finished: FinishedUnroll) -> FinishedUnroll:
        """Lend the unroll's place to the learner until it gives it back; the unroll as it was if no place is spare."""
        lent = self._places.lend(finished.recording)
        if lent is None:
            return finished
        place, serial = lent
        message = msgspec.structs.replace(finished.message, place=place, serial=serial)
        return FinishedUnroll(finished.recording, message, finished.tables, finished.place)

    def end(
        self, recording: int, kind: int, final_observation: NDArray[Any] | None, cause: str
    ) -> FinishedUnroll | None:
        """The session is over: its last unroll, or None where nothing is learned (counted under `cause`)."""
        filled = int(self._filled[recording])
        finished = None
        if filled and kind == TERMINATED:
            self._write_last(recording, 0, NONE_LEGAL, 0.0)
            finished = self._pop(recording, terminated=True, truncated=False)
        elif filled and kind == TRUNCATED:
            self._write_last(recording, final_observation, ALL_BITS if self._packs else 1, 0.0)
            finished = self._pop(recording, terminated=False, truncated=True)
        elif filled:
            self.steps_open -= filled
            self.dropped[cause] += filled
        self._filled[recording] = 0
        self._free.append(recording)
        return finished

    def abort(self, recordings: NDArray[np.int64], cause: str) -> None:
        """The sessions of these recordings are over and nothing is learned from what is open."""
        filled = int(self._filled[recordings].sum())
        if filled:
            self.steps_open -= filled
            self.dropped[cause] += filled
        self._filled[recordings] = 0
        self._free.extend(recordings.tolist())

    def _pop(self, recording: int, *, terminated: bool, truncated: bool) -> FinishedUnroll:
        n, place = int(self._filled[recording]), int(self._places.of_recording[recording])
        if len(self._labels):
            waiting = self._labels[place, :n]  # the step that they wait for is in the next unroll
            waiting[waiting == SAME_LABEL] = NO_LABEL
        message = Unroll(
            length=n,
            first_step=int(self._first_step[recording]),
            terminated=terminated,
            truncated=truncated,
            spec_fingerprint=self._fingerprint,
            session=int(self._session[recording]),
        )
        self._first_step[recording] += n
        self._filled[recording] = 0
        self.steps_open -= n
        return FinishedUnroll(recording, message, self._tables, place)

    def _write_last(self, recordings: int | NDArray[np.int64], observation: Any, mask: Any, value: Any) -> None:
        """The row behind the last step of one recording, or arrays [B, ...] behind those of several."""
        place, at = self._places.of_recording[recordings], self._filled[recordings]
        self._tables["observation"][place, at] = observation
        self._tables["mask"][place, at] = mask
        self._tables["value"][place, at] = value

    def _grow(self, recordings: int) -> None:
        """Larger tables of its own; what the old ones hold is kept."""
        tables = {name: np.zeros((recordings, *shape), dtype) for name, (shape, dtype) in self._layout.shapes().items()}
        for name, table in self._tables.items():
            tables[name][: len(table)] = table
        self._add_recordings(recordings)
        self._use(tables, UnrollPlaces(recordings, tables["serial"]))

    def _add_recordings(self, recordings: int) -> None:
        old = len(self._filled)
        self._filled, self._first_step, self._session = (
            np.concatenate([column, np.zeros(recordings - old, np.int64)])
            for column in (self._filled, self._first_step, self._session)
        )
        self._free.extend(range(recordings - 1, old - 1, -1))

    def _use(self, tables: Tables, places: UnrollPlaces) -> None:
        self._tables, self._places = tables, places
        self._observation = tables["observation"].view(np.uint8)  # bytes: one compiled loop for every dtype
        self._labels = tables.get("label", np.zeros((0, 0, 0), np.int16))
