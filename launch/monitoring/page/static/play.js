"use strict";
// One game, played by the lines that `simul play` understands. Text is set as text; pictures are images.

const MOST_SAID = 500;
const MOST_SHOWN = 400; // legal moves; writing finds the others
const state = document.getElementById("state");
const words = document.getElementById("words");
const position = document.getElementById("position");
const legal = document.getElementById("legal");
const said = document.getElementById("said");
let source = null;
let over = false;
let names = [];

function made(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function take(event) {
  if (event.kind === "position") {
    const shown = made(event.picture === undefined ? "pre" : "img");
    if (event.picture === undefined) {
      shown.textContent = event.text;
      shown.tabIndex = 0; // it scrolls sideways
    } else {
      shown.src = "/pictures/" + event.picture + ".svg";
      shown.alt = event.text;
    }
    position.replaceChildren(shown);
  } else if (event.kind === "say") {
    said.prepend(made("li", event.style === "red" ? "bad" : "", event.text));
    while (said.children.length > MOST_SAID) said.lastElementChild.remove();
  } else if (event.kind === "ask") {
    names = event.legal;
    state.textContent = "your turn";
    document.getElementById("count").textContent = event.count + (event.count === 1 ? " legal move" : " legal moves");
    showLegal();
  } else if (event.kind === "end") {
    over = true;
    state.textContent = "the game has ended; start another one with simul play";
    document.getElementById("move").hidden = true;
    document.getElementById("count").textContent = "";
    legal.replaceChildren();
  }
}

function showLegal() { // those that contain what is written; a click plays one
  const part = words.value.trim().toLowerCase();
  const found = names.filter((name) => name.toLowerCase().includes(part));
  const more = found.length > MOST_SHOWN ? [made("span", "more", "and " + (found.length - MOST_SHOWN) + " more: write a part of one")] : [];
  legal.replaceChildren(...found.slice(0, MOST_SHOWN).map((name) => {
    const button = made("button", "", name);
    button.type = "button";
    button.addEventListener("click", () => send(name));
    return button;
  }), ...more);
}

async function send(line) {
  if (state.textContent !== "your turn") return;
  state.textContent = "the others play";
  const answer = await fetch("/line", { method: "POST", body: line }).catch(() => null);
  if (answer !== null && answer.ok) {
    words.value = "";
    return;
  }
  const refusal = answer === null ? "the game does not answer" : await answer.text();
  if (over || (answer !== null && answer.status === 409)) { // it asks for nothing
    state.textContent = refusal;
    return;
  }
  state.textContent = "your turn"; // the line did not arrive: it is still there to be sent again
  said.prepend(made("li", "bad", refusal));
}

function connect() {
  source = new EventSource("/events");
  source.addEventListener("open", () => said.replaceChildren()); // the stream begins with everything
  source.addEventListener("message", (message) => {
    for (const event of JSON.parse(message.data)) take(event);
    if (!over && document.activeElement === document.body) words.focus();
  });
  source.addEventListener("error", () => {
    if (over) source.close();
    else state.textContent = "the game does not answer";
  });
}

async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) {
    history.replaceState(null, "", location.pathname);
    await fetch("/login", { method: "POST", body: token }).catch(() => null);
  }
  const answer = await fetch("/login").catch(() => null);
  if (answer !== null && await answer.json()) connect();
  else state.textContent = "open the address that simul play printed, with its token";
}

words.addEventListener("input", showLegal);
document.getElementById("move").addEventListener("submit", (event) => {
  event.preventDefault();
  if (words.value.trim()) send(words.value.trim());
});
for (const button of document.querySelectorAll("[data-line]")) {
  button.addEventListener("click", () => send(button.dataset.line));
}
begin();
