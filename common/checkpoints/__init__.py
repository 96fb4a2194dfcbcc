"""Checkpoints on disk, read without torch: their files, their folders, and those that are shipped."""
