"""`simul page`: runs in a browser. Reads what `simul status` and `simul plot` read; no role knows of it."""
