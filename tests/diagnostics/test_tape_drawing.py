"""How a tape prints and draws itself."""

from xml.dom import minidom

import tapeflow as tf


def boxes(svg):
    return minidom.parseString(svg).getElementsByTagName("rect")


def test_every_record_has_a_box():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        tf.reduce_sum(tf.sin(x) * x)
    svg = tape.svg()
    assert [box.getAttribute("class") for box in boxes(svg)] == ["variable", "", "", ""]
    assert ">x</text>" in svg and "float32[2]" in svg
    assert "reduce_sum" in svg and "test_tape_drawing.py" in svg and "broken" not in svg.split("</style>")[1]


def test_the_broken_edge_is_marked():
    x = tf.Variable(2.5)
    with tf.GradientTape() as tape:
        y = tf.sin(x)
        z = tf.round(y) * 3.0
    svg = tape.svg(z, x)
    marked = [box for box in boxes(svg) if box.getAttribute("class") == "broken"]
    paths = minidom.parseString(svg).getElementsByTagName("path")
    assert len(marked) == 1 and [p.getAttribute("class") for p in paths].count("broken") == 1
    assert str(tape.explain(z, x)).split(" (")[0] in svg


def test_a_step_that_was_not_recorded_is_marked():
    x = tf.Variable(2.5)
    with tf.GradientTape() as tape:
        y = tf.sin(x)
    z = y * 2.0
    assert 'rect class="broken"' in tape.svg(z, x)


def test_a_long_tape_is_folded():
    x = tf.Variable(2.5)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(300):
            y = tf.sin(y)
        z = tf.round(y)
        for _ in range(300):
            z = tf.cos(z)
    svg = tape.svg(z, x)
    assert [box.getAttribute("class") for box in boxes(svg)] == ["variable", "fold", "broken", "fold"]
    assert "300 operations" in svg and "round" in svg


def test_notebooks():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        x * x
    html = tape._repr_html_()
    assert "&lt;tf.GradientTape: closed, 1 record&gt;" in html and "<svg" in html


def test_variables_of_a_fold_are_one_box():
    weights = [tf.Variable([[1.0]], name=f"layer{i}/kernel") for i in range(100)]
    scale = tf.Variable(1.0, name="scale")
    with tf.GradientTape() as tape:
        y = tf.ones([1, 1])
        for weight in weights:
            y = tf.tanh(tf.matmul(y, weight))
        y = y * scale
    svg = tape.svg()
    assert [box.getAttribute("class") for box in boxes(svg)] == ["group", "variable", "fold", ""]
    assert "layer0/kernel ... layer99/kernel" in svg and "100 variables" in svg
    assert "200 operations, 100 times 2" in svg


def test_long_names_are_clipped():
    x = tf.Variable(2.0, name="scope/" * 40 + "kernel")
    with tf.GradientTape() as tape:
        tf.sin(x)
    svg = tape.svg()
    assert float(minidom.parseString(svg).documentElement.getAttribute("width")) < 500
    assert f"<title>{'scope/' * 40}kernel</title>" in svg and "scope/kernel</text>" in svg


def test_a_variable_without_any_name_has_its_line():
    held = {tf.Variable(1.0).ref()}
    with tf.GradientTape() as tape:
        tf.sin(next(iter(held)).deref())
    svg = tape.svg()
    (variable,) = [g for g in minidom.parseString(svg).getElementsByTagName("g") if "variable" in g.toxml()]
    texts = [text.firstChild.data for text in variable.getElementsByTagName("text")]
    assert texts[:2] == ["Variable", "float32[]"] and texts[2].startswith("test_tape_drawing.py:")
