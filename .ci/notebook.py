"""A training run in the cells of a notebook: progress is shown, and an interrupt ends the run cleanly.

Needs nbclient and ipykernel beside simul; called by `.ci/wheel`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TRAIN = """
import simul
run = simul.train("cartpole", mode="test", run_dir="runs/notebook")
run.wait()["decisions"]
"""
INTERRUPTED = """
with simul.train("cartpole", run_dir="runs/interrupted") as run:
    summary = run.wait()
summary["decisions"]
"""


def printed(cell: nbformat.NotebookNode) -> str:
    """What the cell shows: streams and its value."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(texts)


def interrupt_when_training(client: NotebookClient) -> None:
    """As the stop button does, once the second run has learned something."""
    status = Path("runs/interrupted/status.json")
    while not status.exists() or json.loads(status.read_text())["phase"] != "training":
        time.sleep(0.2)
    asyncio.run(client.km.interrupt_kernel())


def main() -> None:
    """Raises AssertionError or CellExecutionError."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(TRAIN), nbformat.v4.new_code_cell(INTERRUPTED)]
    )
    client = NotebookClient(notebook, timeout=300)
    with client.setup_kernel():
        client.execute_cell(notebook.cells[0], 0)
        assert "decisions/s" in printed(notebook.cells[0]), notebook.cells[0].outputs
        threading.Thread(target=interrupt_when_training, args=[client], daemon=True).start()
        client.execute_cell(notebook.cells[1], 1)
        shown = printed(notebook.cells[1])
        assert "stopping" in shown, shown
        assert int(shown.split()[-1]) > 0, shown


if __name__ == "__main__":
    main()
    print("the notebook works")
