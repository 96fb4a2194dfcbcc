"""The run's token: a process that shows it belongs to the run."""

from __future__ import annotations

import hmac


def is_run_token(shown: str, token: str) -> bool:
    """Compare in constant time. A run without a token trusts no process."""
    return bool(token) and hmac.compare_digest(shown.encode(), token.encode())
