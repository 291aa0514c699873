"""Functions with variables of their own."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_variables_are_made_once():
    def layer(x, factor):
        return x * factor * v1.get_variable("w", initializer=2.0)

    with tf.Graph().as_default(), v1.Session() as session:
        first, second = (v1.make_template("layer", layer, factor=3.0) for _ in range(2))
        results = [first(1.0), first(2.0), second(1.0)]
        session.run(v1.global_variables_initializer())
        assert session.run(results) == [6.0, 12.0, 6.0]
        assert [v.name for v in v1.global_variables()] == ["layer/w:0", "layer_1/w:0"]
        assert [v.name for v in second.variables] == ["layer_1/w:0"]


def scaled(x):
    return x * v1.get_variable("w", initializer=2.0), v1.get_variable("count", initializer=0, trainable=False)


def test_a_template_keeps_its_variables_without_a_graph():
    template = v1.make_template("scale", scaled)
    assert template.variable_scope_name is None and template.variables == []
    first, second = template(1.0), template(2.0)
    assert second[0].numpy() == 4.0 and first[1] is second[1]
    assert [v.name for v in template.trainable_weights] == ["scale/w:0"]
    assert [v.name for v in template.non_trainable_variables] == ["scale/count:0"]
    assert len(template.weights) == len(template.global_variables) == 2 and template.local_variables == []
    assert template.func is scaled and template.variable_scope_name == "scale/"


def test_a_template_is_saved(tmp_path):
    template, other = (v1.make_template("scale", scaled) for _ in range(2))
    template(1.0)
    other(1.0)
    template.trainable_variables[0].assign(5.0)
    path = tf.train.Checkpoint(inner=template).save(str(tmp_path / "model"))
    assert "inner/w/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(path))
    tf.train.Checkpoint(inner=other).restore(path).assert_consumed()
    assert other.trainable_variables[0].numpy() == 5.0


def test_the_arguments_of_make_template():
    asked = []

    def getter(getter, name, *args, **kwargs):
        asked.append(name)
        return getter(name, *args, **kwargs) + 1

    template = v1.make_template("asked", scaled, custom_getter_=getter)
    assert template(1.0)[0].numpy() == 3.0 and asked == ["asked/w", "asked/count"]
    assert [v.name for v in template.trainable_variables] == ["asked/w:0"]
    with pytest.raises(ValueError, match="unique_name_ cannot be used when eager"):
        v1.make_template("scale", scaled, unique_name_="other")
    with tf.Graph().as_default():
        now = v1.make_template("scale", scaled, create_scope_now_=True)
        later = v1.make_template("scale", scaled)
        later(1.0)
        now(1.0)
        assert (now.name, later.name) == ("scale", "scale_1")


def test_a_new_default_graph_forgets_scopes():
    names = []
    for _ in range(2):
        v1.reset_default_graph()
        with v1.variable_scope(None, default_name="layer"):
            names.append(v1.get_variable("w", initializer=2.0).name)
    assert names == ["layer/w:0"] * 2


def test_later_calls_make_no_trainable_variables():
    with tf.Graph().as_default():
        template = v1.make_template("s", lambda: v1.Variable(1.0))
        template()
        with pytest.raises(ValueError, match="Trainable variable created when calling a template after the first time"):
            template()
    eager = v1.make_template("s", lambda name: v1.get_variable(name, [2]))
    assert eager("a") is eager("a")
    with pytest.raises(ValueError, match="Trainable variable created when calling a template after the first time"):
        eager("b")
    with pytest.raises(ValueError, match="name cannot be None"):
        v1.make_template(None, lambda: 1)
