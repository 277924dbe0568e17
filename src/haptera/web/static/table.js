// What is on no node as a table, one kind at a time: groups, rolls, pools, images, modules, rules.

import { badge, make, refill, short } from "./dom.js";

const ROWS_MAX = 500;

export class EntityTable {
  #shown = "";

  constructor(element, choose) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) choose(key);
    });
  }

  update(kind, views, chosen) {
    const shown = views.slice(0, ROWS_MAX);
    const told = [kind, chosen, views.length, ...shown.map((view) => `${view.entity} ${view.arrived}`)].join();
    if (told === this.#shown) return;
    this.#shown = told;
    const names = [...new Set(views.flatMap((view) => [...Object.keys(view.observed), ...Object.keys(view.desired)]))];
    const rows = shown.map((view) => row(view, names, view.entity === chosen));
    const more = views.length - rows.length;
    const heading = more > 0 ? `${kind}: ${views.length}, of which the first ${ROWS_MAX}` : `${kind}: ${views.length}`;
    refill(this.element, table(heading, ["name", "", ...names, "why"], rows));
  }
}

export function table(caption, headings, rows) {
  const cells = headings.map((one) => make("th", { scope: "col", textContent: one }));
  return make(
    "table",
    {},
    make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, ...cells)),
    make("tbody", {}, ...rows),
  );
}

function row(view, names, chosen) {
  const aria = { pressed: String(chosen) };
  const name = make("button", { type: "button", data: { key: view.entity }, aria, textContent: view.name });
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, name),
    make("td", {}, badge(view.condition)),
    ...names.map((one) => value(view.observed[one], view.desired[one])),
    make("td", { classes: "why", textContent: [view.why, view.frozen].filter(Boolean).join("; ") }),
  );
}

// As it is; and as it should be, where that is something else.
function value(seen, wanted) {
  const now = seen ? seen.value + (seen.known ? "" : "?") : "";
  const other = wanted !== undefined && now !== String(wanted.value);
  const text = other ? [now, String(wanted.value)].filter(Boolean).join(" \u2192 ") : now;
  const cell = make("td", { textContent: short(text), classes: other && now ? "differs" : "" });
  if (cell.textContent !== text) cell.title = text;
  return cell;
}
