// The parents of the tree: which nodes each keeps, who is silent, whose version is another.

import { badge, duration, make, short } from "./dom.js";
import { expand } from "./nodeset.js";
import { table } from "./table.js";

const HEADINGS = ["parent", "", "reports to", "version", "nodes", "which"];

// The first of them is the one that answers.
export function parentsTable({ parents, standby_lag: lag }) {
  const [own, ...below] = parents;
  const nameOf = (name) => name ?? own.name ?? "the root";
  const rows = [row(own, "", own), ...below.map((one) => row(one, nameOf(one.above), own))];
  const standby = make("p", { textContent: standbyText(lag) });
  return [table("parents", HEADINGS, rows), standby];

  function row(one, above, { version }) {
    const other = one.version !== null && one.version !== version;
    const nodes = one.keeps ? expand(one.keeps) : [];
    const which = make("td", { textContent: short(one.keeps ?? ""), title: one.keeps ?? "" });
    return make(
      "tr",
      {},
      make("th", { scope: "row", textContent: nameOf(one.name) }),
      make("td", {}, one === own ? badge("converged", "answers") : heard(one.heard_ms)),
      make("td", { textContent: above }),
      make("td", { classes: other ? "differs" : "", textContent: `${one.version ?? "unknown"}${other ? ", another" : ""}` }),
      make("td", { textContent: one.keeps === null ? "" : String(nodes.length) }),
      which,
    );
  }
}

function heard(ms) {
  return ms === null ? badge("stuck", "silent") : badge("converged", `heard ${duration(ms)} ago`);
}

function standbyText(lag) {
  if (lag === null) return "This parent has no standby.";
  return lag === 0 ? "Its standby has every commit." : `Its standby lacks ${lag} commits.`;
}
