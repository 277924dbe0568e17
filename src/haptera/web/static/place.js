// What is looked at, kept in the fragment of the address: browsers never send it to anybody.

import { token } from "./api.js";

const DEFAULTS = { group: "rack", colour: "condition", select: "", only: "", node: "", within: "", alone: "", zoom: "", view: "", at: "", since: "", show: "" };

export const place = { ...DEFAULTS };

// Takes a token out of the address: it would stay in the history, in bookmarks, on screens.
export function readPlace() {
  const told = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
  const given = told.get("token");
  for (const [name, value] of Object.entries(DEFAULTS)) place[name] = told.get(name) ?? value;
  if (given) {
    token.set(given);
    writePlace();
  }
  return given;
}

export function writePlace() {
  const told = Object.entries(place).filter(([name, value]) => value && value !== DEFAULTS[name]);
  const text = new URLSearchParams(told).toString().replaceAll("+", "%20");
  history.replaceState(null, "", location.pathname + location.search + (text && `#${text}`));
}

// What was looked at, and by whom, is nobody's any more: not even its names stay in the address.
export function leavePlace() {
  token.forget();
  history.replaceState(null, "", location.pathname);
}

// Which labels alone are shown; none for all.
export const onlyLabels = () => (place.only ? place.only.split(",").map(plain) : []);

export function toggleLabel(label) {
  const some = new Set(onlyLabels());
  if (!some.delete(label)) some.add(label);
  place.only = [...some].map((one) => one.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
}

const plain = (text) => text.replaceAll("%2C", ",").replaceAll("%25", "%");
