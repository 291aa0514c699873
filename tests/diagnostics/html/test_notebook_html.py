"""What notebooks show of tensors, variables, tapes, explanations and findings."""

import pickle
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.diagnostics.finding import Finding, Findings

HARMFUL = "<script>alert(1)</script>"


class Parsed(HTMLParser):
    """The tags of a fragment, and its text; every tag must be closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(html)
        assert not self.open
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)


def shown(value):
    parsed = Parsed(value._repr_html_())
    assert "script" not in parsed.tags
    return parsed


def test_tensors_are_tables():
    matrix = shown(tf.constant([[1.0, 0.1], [np.nan, -np.inf]]))
    assert matrix.text == "tf.Tensor shape (2, 2) dtype float32 0 1 0 1 0.1 1 nan -inf"
    assert matrix.tags.count("td") == 4
    assert shown(tf.constant([1, 2, 3])).text == "tf.Tensor shape (3,) dtype int32 0 1 2 1 2 3"
    assert shown(tf.constant(2.5)).text.endswith("2.5") and shown(tf.constant(True)).text.endswith("True")
    assert shown(tf.constant(1 + 2j)).text.endswith("1+2j")
    assert "[[[1 2]]]" in shown(tf.constant([[[1, 2]]])).text
    assert shown(tf.zeros([0, 3])).text.endswith("[]")
    assert shown(tf.constant([1.5], tf.bfloat16)).text.endswith("1.5")


def test_texts_are_escaped_and_clipped():
    assert HARMFUL in shown(tf.constant([HARMFUL])).text
    assert len(shown(tf.constant("a" * 10_000)).text) < 200


def test_large_tensors_are_summarised():
    rows = shown(tf.range(10_000_000))
    assert rows.tags.count("td") == 9 and rows.text.endswith("0 1 2 3 ... 9999996 9999997 9999998 9999999")
    assert shown(tf.zeros([5000, 5000])).tags.count("td") == 81
    assert len(shown(tf.zeros([100, 100, 100])).text) < 2000


def test_symbolic_tensors_have_no_values():
    texts = []

    @tf.function
    def double(x):
        texts.append(shown(x).text)
        return x + x

    double(tf.constant([1.0, 2.0]))
    assert texts == ["tf.Tensor name x:0 shape (2,) dtype float32"]


def test_variables_show_name_and_line():
    variable = tf.Variable([1.0, 2.0], name=HARMFUL, trainable=False)
    text = shown(variable).text
    assert HARMFUL in text and "trainable False" in text and "test_notebook_html.py:" in text
    assert text.endswith("0 1 1 2")


def test_variables_of_other_kinds_show_what_they_print():
    class Named(tf.Variable):
        def __repr__(self):
            return "<my variable>"

    class Further(Named):
        pass

    assert shown(Further(1.0)).text == "Further <my variable>"


def test_the_module_is_imported_when_a_notebook_asks():
    program = (
        "import sys, tapeflow as tf\n"
        "x = tf.constant(1.) + tf.Variable(1.)\nrepr(x), dir(x)\n"
        "assert 'tapeflow._src.diagnostics.html.values' not in sys.modules\n"
        "assert '_repr_html_' in dir(x) and '2' in x._repr_html_()\n"
        "assert 'tapeflow._src.diagnostics.html.values' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture
def notebook(monkeypatch):
    """A shell whose third cell has a temporary file name; gives what runs a cell."""
    name = "/tmp/ipykernel_7/123.py"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={name: 3}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    def run(source):
        values = {"tf": tf}
        exec(compile(source, name, "exec"), values)
        return SimpleNamespace(**values)

    return run


CELL = """w = tf.Variable(2.5, name="<b>")
with tf.GradientTape(persistent=True) as tape:
    y = tf.round(tf.sin(w))
why = tape.explain(y, w)
"""


def test_lines_are_those_of_cells(notebook):
    cell = notebook(CELL)
    for value in (cell.w, cell.why, cell.tape, cell.tape.summary()):
        assert "cell 3, line" in shown(value).text and "ipykernel" not in value._repr_html_()
    assert "cell 3, line 3" in cell.tape.svg(cell.y, cell.w)
    function = notebook("@tf.function\ndef double(x):\n    return x + x\ndouble(tf.constant(1.))").double
    assert "cell 3, line 3" in function.graph_svg()


def test_doctors_and_findings(notebook, tmp_path):
    with tf.debugging.Doctor() as doctor:
        notebook(CELL + "tape.gradient(y, w)\n")
    assert isinstance(doctor.findings, list)
    for value in (doctor, doctor.findings, doctor.findings[0]):
        text = shown(value).text
        assert "severe" in text and "cell 3, line 3" in text and "ipykernel" not in value._repr_html_()
    doctor.save_html(tmp_path / "report.html")
    assert "cell 3, line 3" in (tmp_path / "report.html").read_text()


def test_findings_are_escaped():
    found = Finding("nan", "severe", HARMFUL, HARMFUL, 3, HARMFUL, {HARMFUL: HARMFUL, "norm": 1 / 3}, HARMFUL)
    text = shown(found).text
    assert text.count(HARMFUL) == 5 and "norm: 0.333333" in text
    assert shown(Findings([found])).tags.count("tr") == 2
    assert shown(Findings()).text == "no findings"


def test_a_healthy_doctor():
    w = tf.Variable(2.0)
    with tf.debugging.Doctor() as doctor:
        with tf.GradientTape() as tape:
            loss = w * w
        tape.gradient(loss, w)
    assert shown(doctor).text.startswith("tf.debugging.Doctor healthy watched: 1 gradient call,")


def test_explanations():
    w, other = tf.Variable(2.5, name=HARMFUL), tf.Variable(1.0, name="other")
    with tf.GradientTape(persistent=True) as tape:
        y = tf.round(w) * other
    text = shown(tape.explain(y, w)).text
    assert text.startswith("operation without gradient") and "y = tf.round(w) * other" in text
    assert shown(tape.explain(y, other)).text.startswith("connected")


@pytest.mark.parametrize("pack", [list, tuple, lambda pair: dict(zip("ab", pair))])
def test_explanations_of_a_structure(pack):
    w, other = tf.Variable(2.5, name=HARMFUL), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.round(w) * other
    sources = pack([w, other])
    answers = tape.explain(y, sources)
    assert isinstance(answers, type(sources)) and len(answers) == 2
    text = shown(answers).text
    assert "operation without gradient" in text and "connected" in text and "test_notebook_html.py" in text


def test_summaries_are_text_with_a_table():
    w = tf.Variable([2.5])
    with tf.GradientTape() as tape:
        tf.sin(w) * w
    summary = tape.summary()
    assert isinstance(summary, str) and summary.startswith("2 records, ")
    assert shown(summary).tags.count("tr") == 2
    copy = pickle.loads(pickle.dumps(summary))
    assert copy == summary and copy.rows == summary.rows


def test_tapes_are_harmless():
    w = tf.Variable([2.5], name=HARMFUL)
    with tf.GradientTape() as tape:
        tf.sin(w)
    assert HARMFUL in shown(tape).text
