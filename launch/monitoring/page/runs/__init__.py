"""Runs and their finished games as the page shows them, read from their files; nothing here knows the web."""
