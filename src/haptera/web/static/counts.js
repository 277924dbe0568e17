// The legend: how many nodes have each colour; one that is pressed lights these alone.

import { SHORT } from "./colours.js";
import { at, make, refill, write } from "./dom.js";
import { natural } from "./fleet.js";
import { onlyLabels, place, toggleLabel } from "./place.js";

export class Counts {
  #shown = "";

  // `changed` is called once others are chosen.
  constructor(element, changed) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const key = event.target.dataset.key;
      if (key === undefined) return;
      toggleLabel(key.slice(1));
      changed();
    });
  }

  update(scene, colouring) {
    write(at("lit"), scene.matches ? litOf(scene) : "");
    const rows = rowsOf(colouring.labels, countsOf(scene, colouring));
    const told = JSON.stringify([rows, place.only, place.colour]);
    if (told === this.#shown) return;
    this.#shown = told;
    refill(this.element, ...rows.map((row) => button(row, colouring)));
  }
}

function litOf({ matches, members }) {
  const shown = members === null ? matches : members.map((number) => matches[number]);
  return `${shown.reduce((sum, one) => sum + one, 0)} of ${shown.length} nodes`;
}

// Of one group they are counted anew: it is small.
function countsOf({ members }, colouring) {
  if (members === null) return colouring.counts;
  const counts = new Map(colouring.labels.map((label) => [label, 0]));
  for (const number of members) counts.set(colouring.of(number), counts.get(colouring.of(number)) + 1);
  return [...counts.values()];
}

// What is chosen stays, though it is gone: who chose it takes it back.
function rowsOf(labels, counts) {
  const only = onlyLabels();
  const shown = [...new Set([...labels, ...only])];
  const rows = shown.map((label, number) => ({ label, count: counts[number] ?? 0 }));
  if (place.colour !== "condition") rows.sort((one, other) => natural(one.label, other.label));
  return rows.filter(({ label, count }) => count || only.includes(label));
}

function button({ label, count }, colouring) {
  const aria = { pressed: String(onlyLabels().includes(label)) };
  const textContent = `${count} ${SHORT[label] ?? (label || "none")}`;
  const options = { type: "button", data: { key: `=${label}` }, aria, textContent };
  return make("li", { classes: colouring.style(label, place.colour) }, make("button", options));
}
