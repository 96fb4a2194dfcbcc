"""What a page owes people with keys alone, small windows, or weak sight: axe's rules, and what axe does not see."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Browser
from tests.support.npm_packages import AXE

SCRIPT = AXE / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]  # WCAG 2.1, levels A and AA, as far as a program can decide it
OUTLINE_CONTRAST = 3.0  # what the WCAG ask of marks; axe measures texts alone
# Pixels that a page scrolls sideways.
SIDEWAYS = "(page => page.scrollWidth - page.clientWidth)(document.documentElement)"
FIND = """
const [runOnly, done] = arguments;
axe.run({ runOnly, resultTypes: ['violations', 'incomplete'] }).then(done, (error) => done(String(error)));
"""
# Every area that scrolls shows all that it holds.
LAY_OPEN = """
const scrolls = ({ overflowX, overflowY }) => /auto|scroll/.test(overflowX + overflowY);
const areas = [...document.body.querySelectorAll('*')].filter((element) => scrolls(getComputedStyle(element)));
window.laidOpen = areas.map(({ style }) => [style, style.cssText]);
for (const { style } of areas) Object.assign(style, { overflow: 'visible', height: 'auto', maxHeight: 'none' });
"""
CLOSE = "for (const [style, before] of laidOpen) style.cssText = before;"
# The next Tab begins at the top.
GATHER = """
const controls = 'a[href], button, input, select, textarea, summary, [tabindex]';
const usable = (element) => !element.matches(':disabled, [tabindex="-1"]') && element.offsetWidth > 0
  && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
window.called = (element) => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '')
  + [...element.classList].map((name) => '.' + name).join('');
window.controls = [...document.body.querySelectorAll(controls)].filter(usable);
document.body.tabIndex = -1;
document.body.focus();
document.body.removeAttribute('tabindex');
return window.controls.map(called);
"""
FOCUSED = f"""
const {{ Color, flattenColors, getContrast, getOwnBackgroundColor }} = axe.commons.color;
const behind = (element) => element === null ? new Color(255, 255, 255)
  : flattenColors(getOwnBackgroundColor(getComputedStyle(element)), behind(element.parentElement));
const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
const outline = new Color();
outline.parseString(style.outlineColor);
const ring = style.outlineStyle === 'auto' || parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none'
  && getContrast(behind(element.parentElement), outline) >= {OUTLINE_CONTRAST};
const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
return [controls.indexOf(element), called(element), element.matches(':focus-visible') && ring, inside];
"""


def load_axe(browser: Browser) -> None:
    """Once a document."""
    if not browser.ask("'axe' in window"):
        browser.driver.execute_script(SCRIPT.read_text(encoding="utf-8"))


def run_axe(browser: Browser, rules: list[str], *results: str) -> dict[str, str]:
    """Elements with `results` of these rules or tags, and what axe says of them."""
    load_axe(browser)
    found: dict[str, Any] | str = browser.driver.execute_async_script(FIND, rules)
    assert isinstance(found, dict), found
    return {
        f"{rule['id']} {node['target']}": node["failureSummary"]
        for result in results
        for rule in found[result]
        for node in rule["nodes"]
    }


def violations(browser: Browser) -> dict[str, str]:
    """Elements that break a rule. What axe leaves to a person is none: a sign as a button's text, an empty table."""
    return run_axe(browser, RULES, "violations")


def pale_texts(browser: Browser) -> dict[str, str]:
    """Texts with too little contrast, and those of which axe cannot tell.

    It cannot of texts that an area which scrolls cuts off. Here none is: make the window wide before.
    """
    browser.driver.execute_script(LAY_OPEN)
    found = run_axe(browser, ["color-contrast"], "violations", "incomplete")
    browser.driver.execute_script(CLOSE)
    return found


def unreached(browser: Browser) -> dict[str, str]:
    """Controls that Tab does not reach, or where a person does not see that it has."""
    load_axe(browser)
    controls: list[str] = browser.driver.execute_script(GATHER)
    faults = {f"{name} [{place}]": "Tab does not reach it" for place, name in enumerate(controls)}
    for _ in range(len(controls) + 1):  # what follows the last control scrolls, if it takes the focus
        browser.press("TAB")
        place, name, ringed, inside = browser.driver.execute_script(FOCUSED)
        label = f"{name} [{place}]"
        faults.pop(label, None)
        if name.partition(".")[0] == "body":
            continue
        if place < 0:
            faults[label] = "scrolls, and has no tabindex"  # Chromium stops there, other browsers do not
        elif not (ringed and inside):
            faults[label] = "no outline that is seen" if inside else "outside of the window"
    return faults
