// Beginning a roll of an image: which systems, how many at once, what it would disrupt; then doing it.

import { ask } from "./api.js";
import { make } from "./dom.js";
import { drawn } from "./setting.js";

const DEADLINE_S = 2 * 3600; // as `haptera roll` sets it

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
    const order = orderOf(image, ...shown);
    const systems = await systemsFor(image, order.select);
    const patches = patchesOf(image, order, systems);
    await send(patches, { dry_run: 1 });
    const { plans } = await send(systems.map(({ entity }) => ({ entity, desired: { image } })), { dry_run: 1 });
    if (String(asked()) !== String(shown)) return; // another was typed meanwhile
    const text = `${systems.length} systems, ${order.canary} first, at most ${order.unavailable} away at once. In the end:`;
    told.replaceChildren(make("p", { textContent: text }), owners(systems), ...plans.flatMap(drawn));
    [seen, go.textContent] = [patches, "Begin"];
  }

  async function begin() {
    const because = why.value.trim();
    await send(seen, because ? { why: because } : {});
    close();
    done(`Roll of ${image} on ${seen.length - 1} systems, begun`);
  }
}

function orderOf(image, select, canary, unavailable) {
  const deadline = Math.floor(Date.now() / 1000) + DEADLINE_S;
  const open = { wish: "run", halted: null, finished: null };
  return { image, select, canary, unavailable, on_failure: "give-back", deadline, ...open };
}

// Those that run another image; refused where nothing rolls, or another roll has one of them.
async function systemsFor(image, select) {
  const { entities: modules } = await ask("GET", "entities", { query: { kind: "module" } });
  if (!modules.some(({ entity }) => entity === "module:roll")) {
    throw new Error("no controller of rolls runs at this parent: add it to the site file");
  }
  const { entities } = await ask("GET", "entities", { query: { select } });
  const others = ({ kind, desired }) => kind === "system" && desired.image && desired.image.value !== image;
  const systems = entities.filter(others);
  if (!systems.length) throw new Error(`${select}: no system there runs another image`);
  for (const name of new Set(systems.map(({ desired }) => desired.roll?.value))) {
    if (name !== undefined && name !== image && (await unfinished(name))) {
      throw new Error(`roll ${name} has some of them: wait for it, or haptera roll rm ${name}`);
    }
  }
  return systems;
}

async function unfinished(name) {
  const { entities } = await ask("GET", "entities", { query: { kind: "roll" } });
  return entities.some((one) => one.name === name && one.desired.image && !one.desired.finished);
}

// As `haptera roll` writes it: the image is claimed as it is, so that it is one's own to change.
function patchesOf(image, order, systems) {
  const attempt = 1 + Math.max(...systems.map(({ desired }) => Number(desired.attempt?.value ?? 0)));
  const many = systems.map(({ entity, desired }) => {
    const claimed = { image: desired.image.value, spare: image, roll: image, attempt };
    return { entity, desired: claimed };
  });
  return [{ entity: `roll:${image}`, desired: order }, ...many];
}

// All of it, or nothing.
async function send(patches, query) {
  const answer = await ask("POST", "bulk", { query: { take: 1, ...query }, body: { patches, all_or_nothing: true } });
  const problem = answer.results.find((one) => one.problem)?.problem;
  if (problem) throw new Error([problem.what, problem.do].filter(Boolean).join(": "));
  return answer;
}

function owners(systems) {
  const names = [...new Set(systems.map(({ desired }) => desired.image.owner))].join(", ");
  return make("p", { classes: "quiet", textContent: `their images are desired by ${names}; they will be yours` });
}
