"""A fault of every row does not fill the disk."""

from __future__ import annotations

import logging

from simul.common.runtime.logs import MAX_A_MINUTE, RateLimitFilter


def _record(line: int, now: float) -> logging.LogRecord:
    record = logging.LogRecord("simul-test", logging.ERROR, "actor.py", line, "row failed: %s", ("nan",), None)
    record.created = now
    return record


def test_the_first_lines_of_every_minute_are_written_and_the_last_of_them_says_so() -> None:
    sparing = RateLimitFilter()
    records = [_record(7, now=100.0 + n / 100) for n in range(1000)]
    written = [record for record in records if sparing.filter(record)]
    assert len(written) == MAX_A_MINUTE
    assert written[0].getMessage() == "row failed: nan"
    assert written[-1].getMessage() == "row failed: nan (further ones within this minute are not logged)"
    assert sparing.filter(_record(8, now=105.0)), "another place in the code"
    assert sparing.filter(_record(7, now=161.0)), "the next minute"
