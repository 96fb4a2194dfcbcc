"""A training run in cells of a notebook shows progress and ends cleanly when interrupted; the example notebook runs.

    python notebook.py EXAMPLE.ipynb

Needs nbclient and ipykernel beside simul; called by `.ci/wheel`.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time

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


def interrupt_when_shown(client: NotebookClient, cell: nbformat.NotebookNode) -> None:
    """As the stop button does, once the cell shows the rate of the run."""
    while "decisions/s" not in printed(cell):
        time.sleep(0.2)
    asyncio.run(client.km.interrupt_kernel())


def run_example(path: str) -> None:
    """Run every cell of the example; it has to learn. Raises AssertionError or CellExecutionError."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=900).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = " ".join(printed(cell) for cell in cells)
    mean = float(re.search(r"mean return ([0-9.]+)", said)[1])
    assert mean > 50, f"an untrained policy reaches about 20: {said}"
    pictures = [output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 2, said


def main() -> None:
    """Raises AssertionError or CellExecutionError."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(TRAIN), nbformat.v4.new_code_cell(INTERRUPTED)]
    )
    client = NotebookClient(notebook, timeout=300)
    with client.setup_kernel():
        client.execute_cell(notebook.cells[0], 0)
        shown = printed(notebook.cells[0])
        assert "episodes:" in shown, shown
        assert int(shown.split()[-1]) >= 5000, shown
        threading.Thread(target=interrupt_when_shown, args=[client, notebook.cells[1]], daemon=True).start()
        client.execute_cell(notebook.cells[1], 1)  # without a rate nothing interrupts it: the cell times out
        shown = printed(notebook.cells[1])
        assert "stopping" in shown, shown
        assert int(shown.split()[-1]) > 0, shown


if __name__ == "__main__":
    main()
    run_example(sys.argv[1])
    print("the notebook works")
