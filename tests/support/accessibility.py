"""What a page owes people with keys alone, small windows, or weak sight; measured in a browser, after axe's rules."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Browser

TEXT_CONTRAST, OUTLINE_CONTRAST = 4.5, 3.0  # what the WCAG ask of text, and of marks
NAMED_ROLES = {"button", "combobox", "image", "img", "link", "meter", "slider", "spinbutton", "textbox"}
# Pixels that a page scrolls sideways.
SIDEWAYS = "(page => page.scrollWidth - page.clientWidth)(document.documentElement)"
COLOURS = """
const numbers = (colour) => { const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
const mix = (under, over, share) => under.map((part, i) => part + (over[i] - part) * share);
const over = (colour, under) => mix(under, colour.slice(0, 3), colour[3]);
const luminance = (colour) => colour.map((part) => part / 255)
  .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const canvas = () => {
  const probe = document.createElement('i');
  probe.style.backgroundColor = 'Canvas';
  document.body.append(probe);
  const found = numbers(getComputedStyle(probe).backgroundColor).slice(0, 3);
  probe.remove();
  return found;
};
/** What is seen behind an element and in `colour` on it: backgrounds and opacities of all that it lies in. */
const seen = (element, colour, under) => {
  const chain = [];
  for (let each = element; each !== null; each = each.parentElement) chain.unshift(each);
  const paint = (i, below) => {
    const style = getComputedStyle(chain[i]), own = over(numbers(style.backgroundColor), below);
    const shown = i + 1 === chain.length ? [own, over(numbers(colour), own)] : paint(i + 1, own);
    return shown.map((each) => mix(below, each, Number(style.opacity)));
  };
  return paint(0, under);
};
const shows = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
  && element.getBoundingClientRect().width > 0;
const called = (element) => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '')
  + [...element.classList].map((name) => '.' + name).join('');
"""
PALE = f"""
const under = canvas(), found = {{}};
const look = (element, text) => {{
  if (element.closest(':disabled, script, style, noscript, template') || !shows(element)) return;
  const ratio = contrast(...seen(element, getComputedStyle(element).color, under));
  if (ratio < {TEXT_CONTRAST}) found[called(element)] ??= [ratio.toFixed(2), text.trim().slice(0, 60)];
}};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {{
  const {{ parentElement: element, data }} = texts.currentNode;
  if (data.trim() && element.tagName !== 'OPTION') look(element, data);
}}
for (const field of document.querySelectorAll('input:not([type=range]), select')) look(field, field.value);
return found;
"""
# Controls, and areas that scroll and hold none. The next Tab begins at the top.
GATHER = """
const controls = 'a[href], button, input, select, textarea, summary, [tabindex]';
const scrolls = (element) => {
  const { overflowX, overflowY } = getComputedStyle(element), moves = /auto|scroll/;
  return moves.test(overflowX) && element.scrollWidth > element.clientWidth + 1
    || moves.test(overflowY) && element.scrollHeight > element.clientHeight + 1;
};
const usable = (element) => !element.matches(':disabled, [tabindex="-1"]') && shows(element);
const within = (element) => [...element.querySelectorAll(controls)].some(usable);
window.controls = [...document.body.querySelectorAll('*')].filter((element) => element.matches(controls)
  ? usable(element) : scrolls(element) && shows(element) && !within(element));
document.body.tabIndex = -1;
document.body.focus();
document.body.removeAttribute('tabindex');
return window.controls.map(called);
"""
FOCUSED = f"""
const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
const [back, outline] = seen(element.parentElement, style.outlineColor, canvas());
const ring = style.outlineStyle === 'auto' || parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none'
  && contrast(back, outline) >= {OUTLINE_CONTRAST};
const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
return [window.controls.indexOf(element), called(element), element.matches(':focus-visible') && ring, inside];
"""


def pale_texts(browser: Browser) -> dict[str, list[str]]:
    """Elements whose text has less than 4.5 of contrast: the ratio, and the text. What is disabled may have less."""
    return browser.driver.execute_script(COLOURS + PALE)


def unnamed(browser: Browser) -> list[str]:
    """Roles of controls and pictures that a screen reader has no name for."""
    nodes: list[dict[str, Any]] = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] in NAMED_ROLES]
    return [node["role"]["value"] for node in shown if not node.get("name", {}).get("value")]


def unreached(browser: Browser) -> dict[str, str]:
    """Controls, and areas that scroll, that Tab does not reach, or where a person does not see that it has."""
    controls: list[str] = browser.driver.execute_script(COLOURS + GATHER)
    faults = {f"{name} [{place}]": "Tab does not reach it" for place, name in enumerate(controls)}
    for _ in range(len(controls)):
        browser.press("TAB")
        place, name, ringed, inside = browser.driver.execute_script(COLOURS + FOCUSED)
        label = f"{name} [{place}]"
        faults.pop(label, None)
        if name != "body" and not (ringed and inside):
            faults[label] = "no outline that is seen" if inside else "outside of the window"
    return faults
