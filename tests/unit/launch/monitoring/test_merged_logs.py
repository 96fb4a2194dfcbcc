"""The logs of several processes as one: by time, tracebacks whole, whatever becomes of the files meanwhile."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from datetime import datetime

import pytest

from simul.common.errors import ConfigError
from simul.launch.monitoring.merged_logs import (
    HEAD_BYTES,
    LONGEST,
    MergedLogs,
    check_roles,
    format_entry,
    process_filter,
)
from simul.launch.processes.log_rotation import rotate_logs

ALL = process_filter([])
LEARNER = """2026-11-22 20:00:01,500 simul-learner-0 INFO ready
2026-11-22 20:00:03,000 simul-learner-0 ERROR it failed
Traceback (most recent call last):
  File "x.py", line 1
ValueError: no
2026-11-22 20:00:09,000 asyncio WARNING a library's line
"""
WORKER = """a line of the interpreter
2026-11-22 20:00:02,000 simul-worker-0 INFO ready
2026-11-22 20:00:03,001 simul-worker-0 INFO later
"""
SUPERVISOR = """2026-11-22 20:00:01 simul-supervisor an older version wrote no milliseconds
2026-11-22 20:00:03,000 simul-supervisor at the same moment
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "simul-learner-0.log").write_text(LEARNER)
    (tmp_path / "simul-worker-0.log").write_text(WORKER)
    (tmp_path / "simul-supervisor.log").write_text(SUPERVISOR)
    return tmp_path


@pytest.fixture
def merged():
    with ExitStack() as opened:
        yield lambda *arguments: opened.enter_context(MergedLogs(*arguments))


def shown(logs: MergedLogs, *, last: bool = True) -> list[str]:
    return [line for entry in logs.entries(last=last) for line in format_entry(entry)]


def test_a_rotated_log_is_read_before_what_followed_and_once(folder, merged):
    whole = shown(merged(folder, 0.0, ALL))
    logs = merged(folder, 0.0, ALL)
    assert shown(logs) == whole
    rotate_logs(folder, 0)
    append(folder / "simul-learner-0.log", "2026-11-22 20:01:00,000 simul-learner-0 INFO after it\n")
    assert shown(logs) == ["2026-11-22 20:01:00,000 learner-0    INFO after it"]
    assert shown(merged(folder, 0.0, ALL)) == [*whole, "2026-11-22 20:01:00,000 learner-0    INFO after it"]


def test_a_line_without_end_is_cut_and_takes_no_more_time_than_its_bytes(tmp_path, merged):
    log = tmp_path / "simul-worker-0.log"
    append(log, "2026-11-22 20:00:01,000 simul-worker-0 INFO ")
    os.truncate(log, 256 << 20)
    append(log, "\n2026-11-22 20:00:02,000 simul-worker-0 INFO after it\n")
    began = time.process_time()
    cut, after = shown(merged(tmp_path, 0.0, ALL))
    assert time.process_time() - began < 30, "a copy of the line for each chunk takes minutes"
    assert cut.endswith(f" ... (cut after {LONGEST:,} bytes)")
    assert after.endswith("INFO after it")


def test_a_long_log_that_is_rotated_while_it_is_followed_is_shown_once_and_to_its_end(tmp_path, merged):
    log = tmp_path / "simul-worker-0.log"

    def lines(numbers: range) -> list[str]:
        return [f"2026-11-22 20:{n // 60:02}:{n % 60:02},000 simul-worker-0 INFO line {n}\n" for n in numbers]

    def followed() -> list[int]:
        return [int(line.split()[-1]) for _ in range(3) for line in shown(logs, last=False)]

    append(log, "".join(lines(range(20))))
    logs = merged(tmp_path, 0.0, ALL)
    assert log.stat().st_size > 2 * HEAD_BYTES
    assert followed() == [*range(20)]
    *whole, torn = lines(range(20, 25))
    append(log, "".join(whole) + torn[:10])
    rotate_logs(tmp_path, 0)
    append(log, torn[10:] + "".join(lines(range(25, 30))))
    assert followed() == [*range(20, 30)], "those of between the last look and the rotation, too"
    assert followed() == []
    log.write_text("".join(lines(range(40, 60))))
    assert followed() == [*range(40, 60)], "emptied by another program: the rotated log is not what was read"
    assert followed() == []


def append(path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_of_all_processes_come_by_time_each_with_its_process_and_a_traceback_stays_whole(folder, merged):
    assert shown(merged(folder, 0.0, ALL)) == [
        "2026-11-22 20:00:01     supervisor   an older version wrote no milliseconds",
        "2026-11-22 20:00:01,500 learner-0    INFO ready",
        "                        worker-0     a line of the interpreter",
        "2026-11-22 20:00:02,000 worker-0     INFO ready",
        "2026-11-22 20:00:03,000 learner-0    ERROR it failed",
        "                        learner-0    Traceback (most recent call last):",
        '                        learner-0      File "x.py", line 1',
        "                        learner-0    ValueError: no",
        "2026-11-22 20:00:03,000 supervisor   at the same moment",
        "2026-11-22 20:00:03,001 worker-0     INFO later",
        "2026-11-22 20:00:09,000 learner-0    asyncio WARNING a library's line",
    ]


@pytest.mark.parametrize(
    ("roles", "processes"),
    [
        (["worker"], {"worker-0"}),
        (["env_worker"], {"worker-0"}),
        (["learner-0", "supervisor"], {"learner-0", "supervisor"}),
        (["worker-1"], set()),
    ],
)
def test_roles_are_chosen_by_kind_by_module_or_by_process(folder, roles, processes, merged):
    assert {entry.process for entry in merged(folder, 0.0, process_filter(roles)).entries(last=True)} == processes


def test_an_unknown_role_is_named_with_those_that_are_known(folder):
    check_roles(["inference", "worker-0", "inference_server"], folder)
    with pytest.raises(ConfigError, match=r"--role lerner: expected one of learner, inference, .*worker-0"):
        check_roles(["lerner"], folder)


def test_since_leaves_out_what_is_older_with_its_traceback(folder, merged):
    since = datetime(2026, 11, 22, 20, 0, 3, 500_000).timestamp()
    assert shown(merged(folder, since, ALL)) == [
        "2026-11-22 20:00:09,000 learner-0    asyncio WARNING a library's line"
    ]
    since = datetime(2026, 11, 22, 20, 0, 3).timestamp()
    assert sum("Traceback" in line for line in shown(merged(folder, since, process_filter(["learner"])))) == 1


def test_a_traceback_that_is_still_being_written_is_not_torn(folder, merged):
    logs = merged(folder, 0.0, process_filter(["learner"]))
    log = folder / "simul-learner-0.log"
    log.write_text("2026-11-22 20:00:03,000 simul-learner-0 ERROR it failed\nTrace")
    assert shown(logs, last=False) == []
    append(log, "back\n  File")
    assert shown(logs, last=False) == []
    append(log, " x\nValueError: no\n")
    assert shown(logs, last=False) == []
    assert [line.split()[-1] for line in shown(logs, last=False)] == ["failed", "Traceback", "x", "no"]
    assert shown(logs, last=False) == []


def test_new_files_emptied_files_and_renamed_files_are_read_on(folder, merged):
    logs = merged(folder, 0.0, ALL)
    before = [*shown(logs, last=False), *shown(logs, last=False)]
    assert len(before) == 11
    (folder / "simul-worker-1.log").write_text("2026-11-22 20:01:00,000 simul-worker-1 INFO a new process\n")
    log = folder / "simul-learner-0.log"
    log.write_text("2026-11-22 20:01:01,000 simul-learner-0 INFO emptied and written again\n")
    worker = folder / "simul-worker-0.log"
    with worker.open("a") as held:  # by its process, which goes on writing to the renamed file
        worker.rename(folder / "simul-worker-0.log.1")
        worker.write_text("2026-11-22 20:01:03,000 simul-worker-0 INFO the new file\n")
        held.write("2026-11-22 20:01:02,000 simul-worker-0 INFO the old file\n")
    found = [*shown(logs, last=False), *shown(logs, last=False)]
    assert [line.partition("INFO ")[2] for line in found] == [
        "a new process", "emptied and written again", "the old file", "the new file",
    ]  # fmt: skip


def test_a_clock_that_is_set_back_does_not_change_the_order_within_a_file(tmp_path, merged):
    times = ("20:00:05,000", "19:00:00,000", "20:00:06,000")
    text = "".join(f"2026-11-22 {time} simul-worker-0 INFO {n}\n" for n, time in enumerate(times))
    (tmp_path / "simul-worker-0.log").write_text(text)
    assert [line[-1] for line in shown(merged(tmp_path, 0.0, ALL))] == ["0", "1", "2"]


def test_a_log_without_any_time_has_that_of_its_file(tmp_path, merged):
    log = tmp_path / "simul-evaluation.log"
    log.write_text("a warning\nand its place\n")
    at = datetime(2026, 11, 22, 20, 0, 4).timestamp()
    os.utime(log, (at, at))
    (entry,) = merged(tmp_path, 0.0, ALL).entries(last=True)
    assert (entry.time, entry.process, entry.lines) == (at, "evaluation", ["a warning", "and its place"])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("simul-worker-0 ERROR \x1b[2Jcleared\tthe screen", "ERROR \\u001b[2Jcleared    the screen"),
        ("simul-worker-0@10.0.0.7 ERROR a fault", "@10.0.0.7 ERROR a fault"),  # on another machine
    ],
)
def test_colours_are_ours_alone_and_other_machines_are_named(written, read, tmp_path, merged):
    (tmp_path / "simul-worker-0.log").write_text(f"2026-11-22 20:00:00,000 {written}\n")
    (entry,) = merged(tmp_path, 0.0, ALL).entries(last=True)
    assert format_entry(entry) == [f"2026-11-22 20:00:00,000 worker-0     {read}"]
    (line,) = format_entry(entry, coloured=True)
    assert "\x1b[31mERROR\x1b[0m" in line
    assert "\x1b[2J" not in line
