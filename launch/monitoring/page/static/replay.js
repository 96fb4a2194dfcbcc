"use strict";
// A replay of a table game, frame by frame. Pictures are images, never markup of the page; all else is text.

const replay = namedReplay();
const step = document.getElementById("step");
const position = document.getElementById("position");
let frames = [];

function show(number) {
  if (!frames.length) return; // the buttons of a replay that is not there
  const at = Math.max(0, Math.min(frames.length - 1, number)), frame = frames[at];
  step.value = String(at);
  document.getElementById("count").textContent = at + 1 + " of " + frames.length;
  const shown = document.createElement(frame.picture ? "img" : "pre");
  if (frame.picture) {
    shown.src = replay.address + "/" + at + ".svg";
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
  const title = document.getElementById("name");
  if (replay === null) {
    title.textContent = "There is no such replay.";
    return;
  }
  const answer = await answerTo(replay.address, title);
  if (answer === null) return;
  frames = await answer.json();
  title.textContent = replay.name;
  step.max = String(frames.length - 1);
  show(0);
  step.focus();
}

step.addEventListener("input", () => show(Number(step.value)));
document.getElementById("back").addEventListener("click", () => show(Number(step.value) - 1));
document.getElementById("next").addEventListener("click", () => show(Number(step.value) + 1));
load();
