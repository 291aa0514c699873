"""Functions with variables of their own."""

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
