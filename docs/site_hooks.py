"""mkdocs hook: the site includes the Markdown files that lie outside docs/, so that their links are checked, too."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

OUTSIDE = {  # file of the checkout: page of the site
    "README.md": "overview.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security_policy.md",
    "benchmarks/RESULTS.md": "results.md",
}
SOURCES = {page: source for source, page in OUTSIDE.items()}
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of `OUTSIDE`."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(_root(config) / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links between files of the checkout into links between pages; links to other existing files into text."""
    here = SOURCES.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def turned(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        to = OUTSIDE.get(path) or path.removeprefix("docs/")
        if path in OUTSIDE or path.startswith("docs/"):
            start = posixpath.dirname(page.file.src_uri) or "."
            return f"[{label}]({posixpath.relpath(to, start)}{anchor})"
        return label if (_root(config) / path).exists() else match[0]

    return LINK.sub(turned, markdown)


def _root(config: Any) -> Path:
    return Path(config.config_file_path).parent
