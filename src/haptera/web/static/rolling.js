// Beginning a roll of an image: which systems, how many at once, what it would disrupt; then doing it.

import { ask } from "./api.js";
import { make } from "./dom.js";
import { drawn } from "./setting.js";

// The form that asks for it; `close` ends it, `done` says what was done.
export function rollForm(image, { close, done }) {
  const field = (id, value, options = {}) =>
    make("input", { id, value, required: true, autocomplete: "off", spellcheck: false, ...options });
  const select = field("select-systems", "system:*");
  const canary = field("canary", "1", { type: "number", min: "1" });
  const unavailable = field("unavailable", "10%", { pattern: "[0-9]+%?" });
  const why = make("input", { id: "why", maxLength: 500, autocomplete: "off" });
  const told = make("div", { role: "status" });
  const wrong = make("p", { classes: "wrong", role: "alert" });
  const go = make("button", { type: "submit", classes: "go" });
  const asked = () => [select.value.trim(), Number(canary.value), unavailable.value.trim()];
  let seen = null; // what is written, once what it disrupts is shown
  for (const input of [select, canary, unavailable]) input.addEventListener("input", unsee);
  unsee();
  return make(
    "form",
    { onsubmit: step },
    make("h2", { id: "deed", textContent: `Roll out ${image}?` }),
    make("label", {}, "On which systems (a selector)", select),
    make("label", {}, "How many first, as canaries", canary),
    make("label", {}, "How many away at once (a number, or a share as 10%)", unavailable),
    make("label", {}, "Why (optional)", why),
    told,
    wrong,
    make("p", { classes: "actions" }, go, make("button", { type: "button", textContent: "Cancel", onclick: close })),
  );

  function unsee() {
    seen = null;
    told.replaceChildren();
    wrong.textContent = "";
    go.textContent = "Show what it disrupts";
  }

  async function step() {
    go.disabled = true;
    wrong.textContent = "";
    try {
      await (seen === null ? show() : begin());
    } catch (error) {
      wrong.textContent = error.message;
    }
    go.disabled = false;
  }

  async function show() {
    const shown = asked();
    const body = bodyOf(image, ...shown);
    const { systems, owners, rolls, plans } = await send(body, { dry_run: 1 });
    if (String(asked()) !== String(shown)) return; // another was typed meanwhile
    if (rolls.length) throw new Error(`roll ${rolls[0]} has some of them: wait for it, or haptera roll rm ${rolls[0]}`);
    const text = `${systems} systems, ${body.canary} first, at most ${body.unavailable} away at once. In the end:`;
    const whose = `their images are desired by ${owners.join(", ")}; they will be yours`;
    told.replaceChildren(
      make("p", { textContent: text }),
      make("p", { classes: "quiet", textContent: whose }),
      ...plans.flatMap(drawn),
    );
    [seen, go.textContent] = [body, "Begin"];
  }

  async function begin() {
    const because = why.value.trim();
    const { systems } = await send(seen, because ? { why: because } : {});
    close();
    done(`Roll of ${image} on ${systems} systems, begun`);
  }
}

function bodyOf(image, select, canary, unavailable) {
  return { image, select, canary, unavailable };
}

function send(body, query) {
  return ask("POST", "rolls", { query: { take: 1, ...query }, body });
}
