"""Cells of recurrent networks against their formulas, and the names of their variables."""

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf

cells = tf.nn.rnn_cell
X, H, C = (np.random.RandomState(i).randn(2, n).astype("f") for i, n in enumerate((3, 4, 4)))


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def step(cell, state):
    """What a cell gives, and the values of its variables by their last names."""
    found = cell(tf.constant(X), tapeflow.nest.map_structure(tf.constant, state))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([v.assign(tf.random_normal(v.shape, seed=1)) for v in cell.variables])
        values = {v.op.name: session.run(v) for v in cell.variables}
        return session.run(found), values


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_basic_rnn():
    (output, state), values = step(cells.BasicRNNCell(4), H)
    expected = np.tanh(np.hstack([X, H]) @ values["basic_rnn_cell/kernel"] + values["basic_rnn_cell/bias"])
    np.testing.assert_allclose(output, expected, rtol=1e-5)
    np.testing.assert_array_equal(output, state)


def test_gru():
    (output, _), values = step(cells.GRUCell(4), H)
    gates = sigmoid(np.hstack([X, H]) @ values["gru_cell/gates/kernel"] + values["gru_cell/gates/bias"])
    r, u = gates[:, :4], gates[:, 4:]
    candidate = np.hstack([X, r * H]) @ values["gru_cell/candidate/kernel"] + values["gru_cell/candidate/bias"]
    np.testing.assert_allclose(output, u * H + (1 - u) * np.tanh(candidate), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("in_tuple", [True, False])
def test_basic_lstm(in_tuple):
    state = cells.LSTMStateTuple(C, H) if in_tuple else np.hstack([C, H])
    (output, found), values = step(cells.BasicLSTMCell(4, forget_bias=0.5, state_is_tuple=in_tuple), state)
    gates = np.hstack([X, H]) @ values["basic_lstm_cell/kernel"] + values["basic_lstm_cell/bias"]
    i, j, f, o = np.split(gates, 4, 1)
    c = C * sigmoid(f + 0.5) + sigmoid(i) * np.tanh(j)
    h = np.tanh(c) * sigmoid(o)
    np.testing.assert_allclose(output, h, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.hstack(found) if in_tuple else found, np.hstack([c, h]), rtol=1e-4, atol=1e-6)


def test_lstm_with_everything():
    cell = cells.LSTMCell(4, use_peepholes=True, cell_clip=0.8, num_proj=2, proj_clip=0.5)
    (output, found), values = step(cell, (C, H[:, :2]))
    values = {name.removeprefix("lstm_cell/"): value for name, value in values.items()}
    i, j, f, o = np.split(np.hstack([X, H[:, :2]]) @ values["kernel"] + values["bias"], 4, 1)
    c = sigmoid(f + 1 + values["w_f_diag"] * C) * C + sigmoid(i + values["w_i_diag"] * C) * np.tanh(j)
    c = np.clip(c, -0.8, 0.8)
    h = sigmoid(o + values["w_o_diag"] * c) * np.tanh(c) @ values["projection/kernel"]
    np.testing.assert_allclose(output, np.clip(h, -0.5, 0.5), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.c, c, rtol=1e-4, atol=1e-6)
    assert cell.state_size == (4, 2) and cell.output_size == 2


def test_cells_above_each_other_are_named_by_their_place():
    cell = cells.MultiRNNCell([cells.BasicLSTMCell(4), cells.GRUCell(5)])
    x = tf.placeholder(tf.float32, [None, 6, 3])
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    assert outputs.shape.as_list() == [None, 6, 5] and isinstance(state[0], cells.LSTMStateTuple)
    names = [v.op.name for v in tf.trainable_variables()]
    assert names[:2] == [f"rnn/multi_rnn_cell/cell_0/basic_lstm_cell/{name}" for name in ("kernel", "bias")]
    assert names[2] == "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel"
    with pytest.raises(ValueError, match="Some cells return tuples of states"):
        cells.MultiRNNCell([cells.BasicLSTMCell(4)], state_is_tuple=False)


def test_one_cell_has_one_set_of_variables():
    cell = cells.BasicLSTMCell(4)
    for _ in range(2):
        tf.nn.static_rnn(cell, [tf.constant(X)] * 3, dtype=tf.float32)
    assert len(tf.trainable_variables()) == 2
    with tf.variable_scope("rnn", reuse=True):
        again = cells.BasicLSTMCell(4)
        again(tf.constant(X), again.zero_state(2, tf.float32))
    assert again.variables == cell.variables
    assert len(tf.trainable_variables()) == 2


def test_own_cells_find_their_variables_again():
    class Own(cells.RNNCell):
        state_size = output_size = 3

        def call(self, inputs, state):
            y = inputs * tf.get_variable("scale", [3]) + state
            return y, y

    tf.nn.dynamic_rnn(Own(), tf.ones([2, 4, 3]), dtype=tf.float32)
    assert [v.op.name for v in tf.trainable_variables()] == ["rnn/own/scale"]


def test_dropout():
    state = cells.LSTMStateTuple(C, H)
    whole = cells.BasicLSTMCell(4)
    outputs = [whole, cells.DropoutWrapper(whole, output_keep_prob=0.5, seed=1)]
    outputs = [cell(tf.constant(X), state)[0] for cell in outputs]
    dropped = cells.DropoutWrapper(whole, state_keep_prob=1e-9)(tf.constant(X), state)[1]
    keep = tf.placeholder(tf.float32, [])
    fed = cells.DropoutWrapper(whole, input_keep_prob=keep)(tf.constant(X), state)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        full, half = session.run(outputs)
        assert np.all((half == 0) | np.isclose(half, 2 * full)) and (half == 0).any() and (half != 0).any()
        memory, last = session.run(dropped)
        assert (memory != 0).all() and (last == 0).all()
        np.testing.assert_allclose(session.run(fed, {keep: 1.0}), full, rtol=1e-5)
    with pytest.raises(ValueError, match="Parameter output_keep_prob must be between 0 and 1"):
        cells.DropoutWrapper(whole, output_keep_prob=1.5)


def test_variational_dropout_is_the_same_in_all_steps():
    cell = cells.DropoutWrapper(
        cells.BasicRNNCell(50), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
    )
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([1, 4, 3]), dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (first, *others) = session.run(outputs)[0] == 0
    assert first.any() and not first.all() and all((other == first).all() for other in others)


def test_residual():
    cell = cells.GRUCell(3)
    plain, summed = (
        cell(tf.constant(X), tf.zeros([2, 3]))[0],
        cells.ResidualWrapper(cell)(tf.constant(X), tf.zeros([2, 3]))[0],
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b = session.run([plain, summed])
    np.testing.assert_allclose(b, a + X, rtol=1e-5)
