"""tools/check_site: dead links, errors in the browser, pages that are too wide, lost sidebars, a vain search."""

import shutil

import pytest

from tools import api_reference, check_site


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
    write(
        tmp_path,
        "aside.html",
        "<style>@media (min-width:1000px) {.bd-sidebar-secondary {position:fixed; left:1200px}}</style>"
        '<div class="bd-sidebar-secondary"><a href="good.html">a_name_that_is_too_long_for_the_place</a></div>',
    )
    write(tmp_path, "wrong.html", "<script>missing()</script>")
    write(tmp_path, "search.html", '<div id="search-results"><a href="good.html">tape</a></div>')
    aside, wide, script, search = check_site.browser_findings(tmp_path, "chromium")
    assert aside == "aside.html: the sidebar cuts 1 links off, first a_name_that_is_too_long_for_the_place"
    assert script == "wrong.html: Uncaught ReferenceError: missing is not defined"
    assert wide.startswith("wide.html: is 9") and wide.endswith("at 390")
    assert search == "search: none does not lead to nowhere (1 hits)"


def entry(path):
    return "\n".join(api_reference._entry(path, api_reference.value_at(path)))


def test_the_reference_says_everything_of_an_operation():
    text = entry("math.sin")
    for part in (
        "tf.math.sin(x: TensorLike, name: str | None = None) -> Tensor",
        "- `x`: A tensor, floating or complex.",
        "`dx = dy * cos(x)`.",
        ">>> tf.sin([0., 1.])",
        "- Derivatives: by a rule",
        "- Dtypes: `x` floating, complex\n",
        "NumPy `numpy.sin`, PyTorch `torch.sin`, JAX `jax.numpy.sin`",
        "../source/core/ops/math/trigonometric.cc.html#L",
    ):
        assert part in text


def test_the_reference_of_a_class_has_inherited_methods():
    tape = entry("GradientTape")
    assert "- `gradient(" in tape and "- `watch(" in tape and "- `jacobian(" in tape


def test_the_reference_says_what_differs_from_tensorflow():
    assert "- Differs: second order of `nn.moments`. TensorFlow: takes the mean" in entry("nn.moments")


def test_names_in_other_libraries_belong_to_public_functions():
    lines = (api_reference.ROOT / "tools" / "names_elsewhere.txt").read_text().splitlines()[1:]
    paths = [line.partition(": ")[0] for line in lines]
    assert paths == sorted(set(paths))
    assert [path for path in paths if api_reference.value_at(path) is None] == []


def test_the_source_of_an_entry_has_its_line():
    for path in ("math.sin", "concat", "nn.moments", "GradientTape", "vectorized_map", "nn.conv2d"):
        file, line = api_reference._place(api_reference.value_at(path))
        assert len((api_reference.ROOT / file).read_text(encoding="utf-8").splitlines()) >= line > 1
