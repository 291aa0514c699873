"""tools/check_site: dead links, errors in the browser, pages that are too wide and a search that finds nothing."""

import shutil

import pytest

from tools import check_site


def write(site, name, body):
    path = site / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<html><head></head><body>{body}</body></html>")


def test_dead_links_are_found(tmp_path):
    write(
        tmp_path,
        "index.html",
        '<a href="a/page.html#here">1</a> <a href="https://example.org/x">2</a> <img src="no.png">',
    )
    write(tmp_path, "a/page.html", '<p id="here"></p> <a href="../index.html#there">3</a> <a href="#here">4</a>')
    assert [*check_site.broken_links(tmp_path)] == [
        "a/page.html: ../index.html#there has no such place",
        "index.html: no.png is missing",
    ]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_a_browser_finds_errors_and_wide_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(check_site, "SEARCHES", {"tape": "good", "none": "nowhere"})
    monkeypatch.setattr(check_site, "PATIENCE", 10)
    write(tmp_path, "good.html", "<p>short</p>")
    write(tmp_path, "wide.html", '<div style="width:900px">long</div>')
    write(tmp_path, "wrong.html", "<script>missing()</script>")
    write(tmp_path, "search.html", '<div id="search-results"><a href="good.html">tape</a></div>')
    wide, script, search = check_site.browser_findings(tmp_path, "chromium")
    assert script == "wrong.html: Uncaught ReferenceError: missing is not defined"
    assert wide.startswith("wide.html: is 9") and wide.endswith("at 390")
    assert search == "search: none does not lead to nowhere (1 hits)"
