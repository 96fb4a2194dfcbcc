"""Checkpoints in a store: any URL that fsspec opens. docs/store.md has the settings and what is promised."""

# Of `python -m simul.common.store`: the exit code, and what precedes the sentence that explains it.
REFUSED, REASON = 2, "refused: "
