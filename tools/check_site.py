"""Checks the built site: every link has its target, and each page works in a browser, on a phone and on a desktop.

python -m tools.check_site build/docs

Headless Chromium opens the pages in a frame. A page must not report an error and must not be wider than the frame, and
no link of its sidebars may leave it; the search must find what it is asked for. Without Chromium only the links
are tried.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PHONE, DESKTOP = 390, 1280  # CSS pixels
SEARCHES = {
    "GradientTape": "api/",
    "fusion": "performance",
    "placeholder": "from_tensorflow_1",
    "torch.cat": "api/tf.html#",
    "jax.numpy.linalg.inv": "api/linalg.html#",
    "numpy.take": "api/tf.html#",
}
PATIENCE = 100  # tenths of a second, for the results of a search
SECONDS = 900

# Stands first in every page: it collects the errors, those of scripts and images that do not load among them.
COLLECTOR = """<script>
window.siteErrors = [];
addEventListener("error", (e) => siteErrors.push(e.message || "not loaded: " + (e.target.src || e.target.href)), true);
addEventListener("unhandledrejection", (e) => siteErrors.push("" + e.reason));
console.error = (...words) => siteErrors.push(words.join(" "));
</script>"""

DRIVER = """<!doctype html><iframe style="height:800px;border:0"></iframe><script>
const phone = %d, desktop = %d, pages = %s, searches = %s, patience = %d;
const frame = document.querySelector("iframe"), found = [];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const open = (url) => new Promise((done) => { frame.onload = done; frame.src = url; });
const cut = (link, width) => link.getClientRects().length && link.getBoundingClientRect().right > width;
async function run() {
  for (const page of pages) {
    frame.style.width = phone + "px";
    await open("/" + page);
    await pause(20);
    const { contentWindow: w, contentDocument: d } = frame;
    for (const text of w.siteErrors) found.push(page + ": " + text);
    const wide = d.documentElement.scrollWidth;
    if (wide > w.innerWidth) found.push(page + ": is " + wide + " pixels wide at " + w.innerWidth);
    frame.style.width = desktop + "px";
    const links = [...d.querySelectorAll(".bd-sidebar-primary a, .bd-sidebar-secondary a")];
    const lost = links.filter((link) => cut(link, w.innerWidth)).map((link) => link.textContent);
    if (lost.length) found.push(page + ": the sidebar cuts " + lost.length + " links off, first " + lost[0]);
  }
  for (const [word, expected] of Object.entries(searches)) {
    await open("/search.html?q=" + word);
    let hits = [];
    for (let i = 0; i < patience && !hits.some((hit) => hit.includes(expected)); ++i) {
      await pause(100);
      hits = [...frame.contentDocument.querySelectorAll("#search-results a")].map((a) => a.href);
    }
    if (!hits.some((hit) => hit.includes(expected)))
      found.push("search: " + word + " does not lead to " + expected + " (" + hits.length + " hits)");
  }
}
const report = () => fetch("/found", { method: "POST", body: JSON.stringify(found) });
run().catch((e) => found.push("driver: " + e)).then(report);
</script>"""


class Anchors(HTMLParser):
    """The links of a page and the names it can be entered by."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name in ("id", "name"):
                self.names.add(value)


def page_files(site: Path) -> list[Path]:
    """The pages, without the templates that a theme may leave among its own files."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def broken_links(site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere. Search and JavaScript have their own names behind `#`."""
    pages = {path: Anchors(path.read_text(encoding="utf-8")) for path in page_files(site)}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{path.relative_to(site)}: {link} is missing"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                yield f"{path.relative_to(site)}: {link} has no such place"


class Server(http.server.ThreadingHTTPServer):
    """Serves the site with the collector in each page, and the driver, whose findings it waits for."""

    def __init__(self, site: Path) -> None:
        pages = [path.relative_to(site).as_posix() for path in page_files(site)]
        self.driver = DRIVER % (PHONE, DESKTOP, json.dumps(pages), json.dumps(SEARCHES), PATIENCE)
        self.site = site
        self.found: list[str] = [f"browser: no answer in {SECONDS} seconds"]
        self.done = threading.Event()
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the browser left a page before all of it had come
            super().handle_error(request, client_address)


class Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/")
        if path == "driver":
            return self.answer(self.server.driver)
        if path.endswith(".html") and (self.server.site / path).is_file():
            page = (self.server.site / path).read_text(encoding="utf-8")
            return self.answer(page.replace("<head>", "<head>" + COLLECTOR, 1))
        return super().do_GET()

    def do_POST(self) -> None:
        self.server.found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer("")
        self.server.done.set()

    def answer(self, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def browser_findings(site: Path, chromium: str) -> list[str]:
    """What goes wrong in the pages at both widths, and in the search."""
    server = Server(site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
        "--remote-debugging-port=0",
    ]
    flags += ["--disable-background-networking", "--disable-component-update"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [chromium, *flags, f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/driver"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server.done.wait(SECONDS)
        browser.terminate()
        browser.wait()
    server.shutdown()
    server.server_close()
    return server.found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.check_site", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, help="the folder of the built site")
    site = parser.parse_args().site.resolve()
    findings = [*broken_links(site)]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium:
        findings += browser_findings(site, chromium)
    print(*findings, sep="\n" if findings else "")
    how = "links and browser" if chromium else "links only: Chromium is not installed"
    print(f"{len(page_files(site))} pages, {len(findings)} findings ({how})")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
