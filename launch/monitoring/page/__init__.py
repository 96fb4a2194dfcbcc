"""`simul page`: runs in a browser. Reads what `simul status` and `simul plot` read; no role knows of it."""

HOST = "127.0.0.1"  # unless the command line names another
