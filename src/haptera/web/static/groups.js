// What nodes can be grouped by and coloured by, and the groups themselves.

import { natural } from "./fleet.js";

const NONE = "-";

// Groups by an attribute, in their natural order; those without it come first.
export function groupsOf(fleet, by) {
  const groups = new Map();
  fleet.nodes.forEach((name, number) => {
    const key = by === NONE ? "all nodes" : (fleet.node(name).attributes[by] ?? "");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(number);
  });
  return [...groups.keys()]
    .sort(natural)
    .map((key) => ({ name: key || `no ${by}`, members: groups.get(key) }));
}

// The name of a node's group; null where all are in one.
export function groupOf(fleet, name, by) {
  return by === NONE ? null : fleet.node(name).attributes[by] || `no ${by}`;
}

// Fills the two menus with what there is; a choice that is not there yet stays chosen.
export function offer(group, colour, fleet, place) {
  const attributes = [...fleet.attributes].sort(natural);
  const variables = [...fleet.variables].sort(natural);
  const told = `${attributes}\n${variables}`;
  if (group.dataset.told !== told) {
    group.dataset.told = told;
    const groups = new Set(["rack", ...attributes, place.group]);
    groups.delete(NONE);
    group.replaceChildren(...[...groups].map((one) => new Option(one, one)), new Option("nothing", NONE));
    colour.replaceChildren(
      new Option("condition", "condition"),
      new Option("owner of difference", "owner"),
      new Option("job", "job"),
      new Option("image", "image"),
      ...variables.map((one) => new Option(one, `variable=${one}`)),
      ...attributes.map((one) => new Option(`attribute ${one}`, `attribute=${one}`)),
    );
    if (![...colour.options].some((one) => one.value === place.colour)) {
      colour.append(new Option(place.colour, place.colour));
    }
  }
  if (group.value !== place.group) group.value = place.group;
  if (colour.value !== place.colour) colour.value = place.colour;
}
