// Jobs that a selector means, followed: first all of them, then what changed since.

import { Problem, ask } from "./api.js";

const JOBS_MAX = 10_000; // one answer has no more
const EVERY_MS = 1000; // what changed since is told in a few bytes
const REFUSED = [401, 403]; // asking again would not help

// Until it is aborted or refused. `taken` gets jobs, and the numbers of others that are meant no
// more: null where these jobs are all. `failed` gets the error; after one, all are asked for anew.
export async function followJobs(select, { signal, taken, failed }) {
  let turn = null;
  while (!signal.aborted) {
    const since = turn === null ? {} : { since: turn };
    try {
      const told = await ask("GET", "jobs", { query: { select, limit: JOBS_MAX, ...since }, signal });
      taken(told.jobs, turn === null ? null : told.others);
      turn = told.turn;
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      if (error instanceof Problem && REFUSED.includes(error.status)) return;
      turn = null;
    }
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}
