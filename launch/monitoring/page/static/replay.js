"use strict";
// A replay of a table game, frame by frame. Pictures are images, never markup of the page; all else is text.

const [place, name] = location.hash.slice(1).split("/", 2);
const step = document.getElementById("step");
const position = document.getElementById("position");
const address = "/runs/" + Number(place) + "/replays/" + encodeURIComponent(decodeURIComponent(name || ""));
let frames = [];

function show(number) {
  const at = Math.max(0, Math.min(frames.length - 1, number)), frame = frames[at];
  step.value = String(at);
  document.getElementById("count").textContent = at + 1 + " of " + frames.length;
  const shown = document.createElement(frame.picture ? "img" : "pre");
  if (frame.picture) {
    shown.src = address + "/" + at + ".svg";
    shown.alt = frame.text;
  } else {
    shown.textContent = frame.text;
    shown.tabIndex = 0; // it scrolls sideways
  }
  position.replaceChildren(shown);
  document.querySelector(".said").replaceChildren(...frame.said.map((words) => {
    const item = document.createElement("li");
    item.textContent = words;
    return item;
  }));
}

async function load() {
  const answer = await fetch(address).catch(() => null);
  const title = document.getElementById("name");
  if (answer === null || !answer.ok) {
    title.textContent = answer === null ? "the page's process does not answer" : await answer.text();
    return;
  }
  frames = await answer.json();
  title.textContent = decodeURIComponent(name);
  step.max = String(frames.length - 1);
  show(0);
  step.focus();
}

step.addEventListener("input", () => show(Number(step.value)));
document.getElementById("back").addEventListener("click", () => show(Number(step.value) - 1));
document.getElementById("next").addEventListener("click", () => show(Number(step.value) + 1));
load();
