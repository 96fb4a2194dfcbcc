"use strict";
// Fetches the log of a battle, then starts the player of the replay pages, which shows it as text.

async function load() {
  const replay = namedReplay(), box = document.getElementById("now");
  if (replay === null) {
    box.textContent = "There is no such replay.";
    return;
  }
  const answer = await answerTo(replay.address, box);
  if (answer === null) return;
  const log = document.createElement("script");
  log.id = "battle";
  log.type = "application/json"; // data, which no browser runs
  log.textContent = await answer.text();
  document.body.append(log);
  document.title = document.querySelector("h1").textContent = replay.name.replace(/\.log$/, "");
  await import("/static/battle/player.mjs");
}

load();
