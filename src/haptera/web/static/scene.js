// What the overview shows: where each cell is, how it looks, and how it is called.

import { SPOKEN } from "./colours.js";
import { groupsOf } from "./groups.js";
import { SIZES, layOut, places, sizeFor } from "./layout.js";
import { place } from "./place.js";

const NAMED_MAX = 128; // so many nodes of one group have their names below

// Where its cells are is taken from the one `before`, as long as that is the same.
export function sceneOf(fleet, colouring, { width, focused, within }, before) {
  const key = [fleet.shape, place.group, within, place.zoom, width].join("\n");
  const laid = before?.key === key ? before : laidOut(fleet, within, width);
  const by = place.colour;
  const styles = new Map(colouring.labels.map((label) => [label, colouring.style(label, by)]));
  return {
    key,
    fleet,
    layout: laid.layout,
    at: laid.at,
    members: laid.members, // of the group that is shown alone; null for all
    chosen: fleet.index.get(place.node) ?? null,
    focused,
    asList: place.view === "list",
    styleOf: (number) => styles.get(colouring.of(number)),
    frozen: (number) => colouring.frozen[number] === 1,
    spoken: (number) => `${fleet.nodes[number]}: ${spoken(colouring, number)}`,
  };
}

export function cellSize(fleet, members) {
  const asked = Number(place.zoom);
  if (SIZES.includes(asked)) return asked;
  if (members === null) return sizeFor(fleet.nodes);
  return members.length <= NAMED_MAX ? SIZES.at(-1) : sizeFor(Array.from(members, (one) => fleet.nodes[one]));
}

export function nextSize(size, by) {
  return SIZES[Math.min(SIZES.length - 1, Math.max(0, SIZES.indexOf(size) + by))];
}

function laidOut(fleet, within, width) {
  const groups = groupsOf(fleet, place.group);
  const alone = groups.find((one) => one.name === within);
  const members = alone?.members ?? null;
  const layout = layOut(alone ? [alone] : groups, width, cellSize(fleet, members));
  return { layout, at: places(layout, fleet.nodes.length), members };
}

function spoken(colouring, number) {
  const label = colouring.of(number);
  return `${SPOKEN[label] ?? (label || "none")}${colouring.frozen[number] ? ", frozen" : ""}`;
}
