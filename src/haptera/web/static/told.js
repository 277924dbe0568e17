// Changes and happenings in words: as the panel and the timeline list them.

import { make } from "./dom.js";

// Both lists as one, latest first.
export function told(changes, happenings, countMax) {
  const rows = [
    ...changes.map((one) => [one.at_s, one.entity, changeText(one)]),
    ...happenings.map((one) => [one.at_s, one.entity, happeningText(one)]),
  ].sort((a, b) => b[0] - a[0]);
  if (!rows.length) return [make("li", { textContent: "nothing" })];
  return rows.slice(0, countMax).map(([at_s, entity, text]) => {
    const when = new Date(at_s * 1000);
    const time = make("time", { dateTime: when.toISOString(), textContent: when.toLocaleTimeString() });
    return make("li", {}, time, ` ${entity} `, make("span", { textContent: text }));
  });
}

function changeText(one) {
  const who = `by ${one.who ?? one.owner}${one.why ? `: ${one.why}` : ""}`;
  if (one.name === null) return `${one.after === null ? "undeclared" : "declared"} ${who}`;
  return `desired ${one.name} ${one.before ?? "unset"} \u2192 ${one.after ?? "unset"} ${who}`;
}

function happeningText(one) {
  return [one.sort, one.name, one.value, one.note && `(${one.note})`].filter(Boolean).join(" ");
}
