"use strict";
// Fetches the log of a battle, then starts the player of the replay pages, which shows it as text.

const [place, name] = location.hash.slice(1).split("/", 2);

async function load() {
  const answer = await fetch("/runs/" + Number(place) + "/replays/" + encodeURIComponent(decodeURIComponent(name || "")));
  if (!answer.ok) {
    document.getElementById("now").textContent = await answer.text();
    return;
  }
  const log = document.createElement("script");
  log.id = "battle";
  log.type = "application/json"; // data, which no browser runs
  log.textContent = await answer.text();
  document.body.append(log);
  document.title = document.querySelector("h1").textContent = decodeURIComponent(name).replace(/\.log$/, "");
  await import("/static/battle/player.mjs");
}

load();
