"use strict";
// What the pages of one game or one replay have in common: which replay they show, and what they say in place of it.

function namedReplay() { // of the hash, PLACE/NAME; null where it names none
  const [place, name = ""] = location.hash.slice(1).split("/", 2);
  try {
    const decoded = decodeURIComponent(name);
    if (!decoded || !/^\d+$/.test(place)) return null;
    return { name: decoded, address: "/runs/" + place + "/replays/" + encodeURIComponent(decoded) };
  } catch { // %zz
    return null;
  }
}

async function answerTo(address, box) { // null where it is refused; `box` says why then
  const answer = await fetch(address).catch(() => null);
  if (answer === null) {
    box.textContent = "the page's process does not answer";
  } else if (answer.status === 401) {
    const link = document.createElement("a");
    link.href = "/";
    link.textContent = "log in on the page of runs";
    box.replaceChildren("the page asks for its token: ", link, ", then open this address again");
  } else if (!answer.ok) {
    box.textContent = (await answer.text()).trim();
  }
  return answer !== null && answer.ok ? answer : null;
}
