"""Chromium without a window, driven by selenium: what it logged, what it asked for, its keys, width and colours."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from simul.common.runtime.extras import install_extra
from tests.support.waiting import wait_for

PROGRAMS = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
MISSING = ", ".join(
    [name for name, found in PROGRAMS.items() if found is None] + ["selenium"] * (find_spec("selenium") is None)
)
LACKS = f"no {MISSING}: apt-get install chromium chromium-driver; {install_extra('browser')}"
FLAGS = ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--window-size=1280,1000")  # fmt: skip


class Browser:
    """One tab."""

    def __init__(self) -> None:
        from selenium.webdriver import Chrome, ChromeOptions, ChromeService

        options = ChromeOptions()
        options.binary_location = PROGRAMS["chromium"] or ""
        for flag in (*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = Chrome(options, ChromeService(PROGRAMS["chromedriver"]))

    def open(self, address: str) -> None:
        """Begin anew with this page; what was logged before is dropped."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.resize(1280, 1000)
        self.colours("light")
        self.driver.get(address)

    def ask(self, expression: str, *arguments: Any) -> Any:
        """The value of an expression of JavaScript."""
        return self.driver.execute_script(f"return {expression}", *arguments)

    def wait_for(self, expression: str, timeout_sec: float = 60.0) -> Any:
        """Until the expression is true."""
        return wait_for(lambda: self.ask(expression), timeout_sec)

    def text(self, selector: str) -> str:
        """What the first element shows."""
        return str(self.ask("document.querySelector(arguments[0]).innerText", selector))

    def press(self, *keys: str) -> None:
        """Keys, to what has the focus."""
        from selenium.webdriver import ActionChains, Keys

        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def resize(self, width: int, height: int) -> None:
        """The window's inner size in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def colours(self, scheme: str) -> None:
        """`dark` or `light`, as the system would ask for."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def errors(self) -> list[str]:
        """What the console calls an error, refusals by the Content-Security-Policy included."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def hosts(self) -> set[str]:
        """Whom the page has asked for anything."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return {urlsplit(url).netloc for url in sent if urlsplit(url).scheme not in ("data", "about", "blob")}


def verdict() -> str:
    """What tests that passed or were skipped tell of the page."""
    return f"the page was tried in no browser: {LACKS}" if MISSING else "the page works in a browser"


if __name__ == "__main__":
    print(verdict())
