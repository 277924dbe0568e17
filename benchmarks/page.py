"""What 10,000 nodes cost the page: until all are drawn, while panned, until a change is seen.

    python -m benchmarks.page [NODES]

Headless Chromium shows a fleet that a server on loopback tells of, on the processor alone: no
machine of these has a GPU. Baselines, in the same browser: the same answer fetched and parsed, and
nothing done with it; frames of the same page while nothing is drawn; the event read from a stream
by a script that does nothing else. Times are of the wall, and other processes are in them; of
opening, the CPU time of the page's main thread is told too.
"""

import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from haptera.model.entity import node_id
from tests.api.serving import Serving, serving
from tests.web.chromium import Page, browsing
from tests.web.seen import changes

NODES, IN_RACK = 10_000, 40
OPENED, FRAMES, CHANGES = 5, 120, 20
SIZE = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}

DRAWN_AT = "new Promise((done) => requestAnimationFrame(() => done(performance.now())))"
# Reads the stream until its first event is whole.
PARSED = """
(async () => {
  const began = performance.now(), headers = {Authorization: 'Bearer read-token'};
  const reader = (await fetch('/v1/events', {headers})).body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  const more = async () => decoder.decode((await reader.read()).value, {stream: true});
  while (!text.includes('\\n\\n')) text += await more();
  reader.cancel();
  JSON.parse(/^data: (.*)$/m.exec(text)[1]);
  return performance.now() - began;
})()
"""
# Times between frames, while DONE is done in each.
PANNED = """
new Promise((done) => {
  const map = document.getElementById('map'), times = [];
  let last = null;
  const next = (now) => {
    if (last !== null) times.push(now - last);
    last = now;
    %s;
    if (times.length < %d) requestAnimationFrame(next); else done(times);
  };
  requestAnimationFrame(next);
})
"""
# When the first cell's colour is another, and when a script that only reads the events was told.
LISTEN = """
(async () => {
  const headers = {Authorization: 'Bearer read-token'};
  const reader = (await fetch('/v1/events', {headers})).body.getReader();
  const decoder = new TextDecoder();
  while (!decoder.decode((await reader.read()).value).includes('\\n\\n'));
  (async () => { for (;;) { await reader.read(); window.came?.(performance.now()); } })();
})()
"""
BOTH = """
window.both = Promise.all([
  new Promise((done) => {
    const pen = document.getElementById('canvas').getContext('2d');
    const colour = () => String(pen.getImageData(16, 34, 1, 1).data);
    const before = colour();
    const look = () => {
      if (colour() === before) requestAnimationFrame(look);
      else done(performance.now());
    };
    look();
  }),
  new Promise((done) => { window.came = done; }),
]), 0
"""


def main() -> None:
    logging.disable(logging.WARNING)  # Streams that a page left are noted by asyncio.
    count = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    names = [f"r{at // IN_RACK + 1}n{at % IN_RACK + 1:02}" for at in range(count)]
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(*changes(names)) as parent,
        browsing(Path(folder)) as page,
    ):
        page.ask("Emulation.setDeviceMetricsOverride", **SIZE)
        page.ask("Performance.enable", timeDomain="threadTicks")
        opened = [opened_ms(page, parent, count) for _ in range(OPENED)]
        parsed = [with_cpu_ms(page, lambda: page.evaluate(PARSED)) for _ in range(OPENED)]
        both = zip(*opened, strict=True), zip(*parsed, strict=True)
        for what, ours, bare in zip(("", " of CPU time"), *both, strict=True):
            told(f"open to all drawn, ms{what}", list(ours), list(bare))
        pan = "map.scrollTop += 40"
        told("between frames while panned, ms", *(frames(page, one) for one in (pan, "")))
        page.evaluate("document.getElementById('map').scrollTop = 0")
        told("a change until it is seen, ms", *seen_ms(page, parent, names[0]))


def opened_ms(page: Page, parent: Serving, count: int) -> tuple[float, float]:
    """How long it takes, and the CPU time of it."""
    page.go("about:blank")

    def opens() -> float:
        page.go(f"{parent.url}/#token=read-token")
        page.await_(f"document.getElementById('counts')?.textContent === '{count} converged'")
        return page.evaluate(DRAWN_AT)

    return with_cpu_ms(page, opens)


def with_cpu_ms(page: Page, does: Callable[[], float]) -> tuple[float, float]:
    def cpu_ms() -> float:
        told = page.ask("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in told if one["name"] == "TaskDuration") * 1000

    before = cpu_ms()
    return does(), cpu_ms() - before


def frames(page: Page, done: str) -> list[float]:
    return page.evaluate(PANNED % (done, FRAMES))


def seen_ms(page: Page, parent: Serving, name: str) -> tuple[list[float], list[float]]:
    """Of each change how long it takes until it is seen, and until it is heard."""
    seen, heard = [], []
    page.evaluate(LISTEN)
    for number in range(CHANGES):
        page.evaluate(BOTH)
        condition = "stuck" if number % 2 == 0 else "converged"
        began = perf_counter()
        parent.do(parent.backend.say, node_id(name), condition=condition)
        seen_at, heard_at = page.evaluate("window.both")
        seen.append((perf_counter() - began) * 1000)
        heard.append(seen[-1] - (seen_at - heard_at))
    return seen, heard


def told(what: str, some: list[float], baseline: list[float]) -> None:
    def one(times: list[float]) -> str:
        ordered = sorted(times)
        late = ordered[int(len(ordered) * 0.95)]
        return f"median {median(ordered):.1f}, 95 % {late:.1f}, most {ordered[-1]:.1f}"

    sys.stdout.write(f"{what}: {one(some)}; baseline: {one(baseline)}\n")


if __name__ == "__main__":
    main()
