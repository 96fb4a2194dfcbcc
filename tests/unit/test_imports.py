"""Imports between modules have no circles. Who may import whom is for `lint-imports`."""

from __future__ import annotations

import importlib
from graphlib import CycleError, TopologicalSorter

import pytest


def test_no_circle_of_modules_typing_only_imports_included():
    import grimp  # only here, with its graphs

    graph = grimp.build_graph("simul")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 200
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_names_of_before_say_where_they_are_now(capsys):
    with pytest.raises(ImportError, match=r"simul\.launch\.api"):
        importlib.import_module("simul.common.launch.api")
    with pytest.raises(ImportError, match=r"simul\.errors now"):
        importlib.import_module("simul.common.protocol.errors")
    assert importlib.import_module("simul.errors").ConfigError is importlib.import_module("simul").errors.ConfigError
    assert importlib.import_module("simul.common.cli").main() == 2
    assert "make setup" in capsys.readouterr().err
