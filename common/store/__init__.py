"""Checkpoints in a store: any URL that fsspec opens. docs/store.md has the settings and what is promised."""
