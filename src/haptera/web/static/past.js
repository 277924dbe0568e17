// The cluster as it was at a time, made of what the parent kept: a fleet that no event changes.

import { ask } from "./api.js";
import { Fleet } from "./fleet.js";

// Throws a Problem where the parent tells nothing of that time.
export async function fleetAt(at_s, cluster) {
  const told = await ask("GET", "past", { query: { at: at_s } });
  const fleet = new Fleet();
  fleet.take("snapshot", { cluster, entities: told.entities.map(viewOf), gone: [] });
  return fleet;
}

// Who read a value and whose a wish was is told by the history, not by the past.
function viewOf(was) {
  const [kind, rest] = apart(was.entity, ":");
  const [name, node] = apart(rest, "@");
  const seen = ([key, text]) => [key, { value: text.replace(/\?$/, ""), known: !text.endsWith("?"), by: null }];
  const wanted = ([key, value]) => [key, { value, owner: null }];
  return {
    ...{ entity: was.entity, kind, name, node: node ?? null, attributes: was.attributes },
    observed: Object.fromEntries(Object.entries(was.observed).map(seen)),
    desired: Object.fromEntries(Object.entries(was.desired).map(wanted)),
    ...{ condition: was.condition ?? "idle", why: was.why, chain: [], doing: null, frozen: null },
    ...{ unblock: null, again_in_ms: null, error: null },
  };
}

function apart(text, sign) {
  const at = text.indexOf(sign);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
