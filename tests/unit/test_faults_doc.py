"""Every fault that docs/protocol.md lists has a test, and every such test proves that nobody else was harmed."""

from __future__ import annotations

import ast
import re

from simul.common.runtime.installation import ROOT

# without file descriptors, or told to stop, a server has nobody to serve; other weights answer everybody otherwise
ALONE = (6, 30, 32)


def _tests() -> dict[str, str]:
    """Source of every test_fault_NN_..., with its marks."""
    found = {}
    for file in sorted((ROOT / "tests" / "chaos").glob("test_faults_*.py")):
        text = file.read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_fault_"):
                marks = "\n".join(ast.unparse(decorator) for decorator in node.decorator_list)
                found[node.name] = f"{marks}\n{ast.get_source_segment(text, node)}"
    return found


def test_every_fault_has_a_test_and_every_test_looks_at_the_neighbours() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text().split("## 9. What goes wrong")[1]
    listed = {int(n) for row in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE) for n in row.split(",")}
    numbers = {name: int(name.split("_")[2]) for name in _tests()}
    assert listed == set(numbers.values()) == set(range(1, 37))
    for name, source in _tests().items():
        assert numbers[name] in ALONE or "pytest.mark.counts" in source or "unharmed(" in source, name
