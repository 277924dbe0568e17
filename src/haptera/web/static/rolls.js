// How far a roll is: of the systems in it those that run the new image, and are as they should be.

import { make } from "./dom.js";

export function progressOf(roll, views) {
  const [image, name] = [roll.desired.image?.value, roll.name];
  let [done, all] = [0, 0];
  for (const { kind, desired, condition } of views) {
    if (kind !== "system" || desired.roll?.value !== name) continue;
    all += 1;
    if (desired.image?.value === image && condition === "converged") done += 1;
  }
  return { done, all, text: `${done} of ${all}` };
}

export function bar({ done, all, text }) {
  const told = { ...(all && { max: all, value: done }), aria: { label: `${text} run the new image` } };
  return make("span", { classes: "progress" }, make("progress", told), ` ${text}`);
}
