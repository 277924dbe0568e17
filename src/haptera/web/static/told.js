// Changes and happenings in words, those of `haptera history`: as the panel and the timeline list them.

import { make } from "./dom.js";

export const failed = ({ sort, value }) =>
  (sort === "tried" && value !== "worked") || (sort === "stands" && value === "stuck");

// Both lists as one, latest first.
export function told(changes, happenings, countMax) {
  const rows = [
    ...changes.map((one) => ({ ...one, text: changeText(one), classes: "" })),
    ...happenings.map((one) => ({ ...one, text: happeningText(one), classes: failed(one) ? "failed" : "" })),
  ].sort((a, b) => b.at_s - a.at_s);
  if (!rows.length) return [make("li", { textContent: "nothing" })];
  return rows.slice(0, countMax).map(({ at_s, entity, text, classes }) => {
    const options = { dateTime: new Date(at_s * 1000).toISOString(), textContent: spokenTime(at_s) };
    return make("li", { classes }, make("time", options), ` ${entity} `, make("span", { textContent: text }));
  });
}

// Of seconds since 1970, a number or digits; "" is now.
export function spokenTime(at_s) {
  if (at_s === "") return "now";
  const when = new Date(at_s * 1000);
  const day = when.toDateString() === new Date().toDateString() ? "" : `${when.toLocaleDateString("en-CA")} `;
  return day + when.toLocaleTimeString("en-GB");
}

function changeText(one) {
  const who = `by ${one.who ?? one.owner}${one.why ? `: ${one.why}` : ""}`;
  if (one.name === null) return `${one.after === null ? "undeclared" : "declared"} ${who}`;
  return `desired ${one.name} ${one.before ?? "unset"} \u2192 ${one.after ?? "unset"} ${who}`;
}

function happeningText({ sort, name, value, note }) {
  const because = note ? `: ${note}` : "";
  if (sort === "seen") return `${name} is ${value ?? "not known"}${note ? `, seen by ${note}` : ""}`;
  if (sort === "stands") return `is ${value}${because}`;
  if (sort === "tried") return `${name} ${value}${because}`;
  if (sort === "gone") return "is no longer there";
  if (sort === "begun") return "the parent began, with nothing known";
  return `${value} events could not be recorded`;
}
