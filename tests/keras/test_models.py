"""Layers and models of Keras: shapes that are not known yet, functions of `tf` in layers, preprocessing, saving."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import tapeflow as tf

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")  # Keras's own


def test_layer_of_tensorflow_functions(keras):
    class Mirrored(keras.layers.Layer):
        def call(self, x):
            return tf.concat([x, tf.reverse(x, [1])], 1)[:, ::2]

    y = Mirrored()(keras.Input((4, 3)))
    assert y.shape == (None, 4, 3)
    x = keras.Input((8,))
    model = keras.Model(x, keras.layers.Lambda(lambda x: tf.reduce_sum(tf.sin(x), 1, keepdims=True))(x))
    assert model.output_shape == (None, 1)
    np.testing.assert_allclose(model(np.ones((2, 8))), np.full((2, 1), 8 * np.sin(1)), rtol=1e-6)


def test_variables_are_tensors(keras):
    variable = keras.Variable([1.0, 2.0])
    assert tf.is_tensor(variable)
    np.testing.assert_allclose(tf.square(variable) + variable, [2.0, 6.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(variable * variable)
    np.testing.assert_allclose(tape.gradient(y, variable), [2.0, 4.0])


def test_gradients_of_higher_order(keras):
    dense = keras.layers.Dense(1, activation="tanh", kernel_initializer="ones")
    x = tf.constant([[0.5, 0.25]])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = dense(x)
        dx = inner.gradient(y, x)
    y = np.tanh(0.75)
    np.testing.assert_allclose(outer.gradient(dx, x), np.full((1, 2), -4 * y * (1 - y * y)), rtol=1e-5)


def test_stateless_call(keras):
    model = keras.Sequential([keras.Input((2,)), keras.layers.BatchNormalization()])
    y, state = model.stateless_call(
        model.trainable_variables, model.non_trainable_variables, np.ones((3, 2), np.float32), training=True
    )
    assert y.shape == (3, 2) and len(state) == 2


def test_augmentation(keras):
    images = np.sin(np.arange(32 * 144, dtype=np.float32)).reshape(32, 12, 12, 1)[:2]
    for layer, expected in (
        (keras.layers.RandomFlip(seed=1), [0.363443, 0.505645]),
        (keras.layers.RandomRotation(0.2, seed=1), [-4.074799, -1.039629]),
        (keras.layers.Dropout(0.5, seed=3), [-0.756325, -3.325337]),
    ):
        np.testing.assert_allclose(np.sum(layer(images, training=True), (1, 2, 3)), expected, atol=3e-5)


def test_preprocessing(keras):
    layers = keras.layers
    normalization = layers.Normalization()
    normalization.adapt(np.array([[1.0], [3.0]]))
    np.testing.assert_allclose(normalization(np.array([[5.0]])), [[3.0]])
    words = layers.TextVectorization(10, output_sequence_length=4)
    words.adapt(["a b c", "a d"])
    assert words(["a b z"]).numpy().tolist() == [[2, 5, 1, 0]]
    assert layers.StringLookup(vocabulary=["a", "b"])(tf.constant(["b", "q"])).numpy().tolist() == [2, 0]
    assert layers.IntegerLookup(vocabulary=[5, 7])(np.array([7, 1])).numpy().tolist() == [2, 0]
    assert layers.Discretization([0.0, 1.0])(np.array([-1.0, 0.5, 3.0])).numpy().tolist() == [0, 1, 2]
    assert layers.CategoryEncoding(3, "multi_hot")(np.array([[0, 2]])).numpy().tolist() == [[1.0, 0.0, 1.0]]
    dataset = tf.data.Dataset.from_tensor_slices(["a b", "d"]).batch(2).map(words)
    assert next(iter(dataset)).shape == (2, 4)


def test_ragged_and_sparse_inputs(keras):
    sparse = tf.sparse.from_dense([[0.0, 2.0], [1.0, 0.0]])
    dense = keras.layers.Dense(3)
    np.testing.assert_allclose(dense(sparse), dense(tf.sparse.to_dense(sparse)), rtol=1e-6)
    model = keras.Sequential([keras.Input((2,), sparse=True), dense])
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(csr_matrix(np.eye(2, dtype=np.float32)), np.ones((2, 3)), verbose=0).history["loss"])
    product = keras.ops.matmul(sparse, sparse)
    np.testing.assert_allclose(tf.sparse.to_dense(product), [[2.0, 0.0], [0.0, 2.0]])


def test_slice_update(keras):
    found = keras.ops.slice_update(tf.zeros([3, 3]), (1, 2), tf.ones([2, 2]))
    np.testing.assert_allclose(found, [[0, 0, 0], [0, 1, 1], [0, 1, 1]])  # moved so that it lies inside


def test_saving(keras, rows, perceptron, tmp_path):
    model = perceptron()
    model.compile("adam", "mse")
    model.fit(*rows, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    expected = model.predict(rows[0], verbose=0)
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(rows[0], verbose=0), expected)
    for one, other in zip(model.optimizer.variables, again.optimizer.variables):
        np.testing.assert_array_equal(one, other)
    again = perceptron()
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(again.predict(rows[0], verbose=0), expected)
    again = keras.models.clone_model(model)
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again.predict(rows[0], verbose=0), expected)


def test_checkpoint(keras, rows, perceptron, tmp_path):
    model = perceptron()
    model.compile("adam", "mse")
    model.fit(*rows, verbose=0)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.save(tmp_path / "checkpoint")
    weights = model.get_weights()
    names = set(tf.train.load_checkpoint(path).get_variable_to_shape_map())
    assert "optimizer/_trainable_variables/0/.ATTRIBUTES/VARIABLE_VALUE" in names
    assert "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE" in names
    model.fit(*rows, verbose=0)
    checkpoint.restore(path).assert_consumed()
    for one, other in zip(weights, model.get_weights()):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["OneDeviceStrategy", "MirroredStrategy"])
def test_strategies(keras, rows, perceptron, kind):
    strategy = getattr(tf.distribute, kind)(*(["/cpu:0"] if kind == "OneDeviceStrategy" else []))
    with strategy.scope():
        model = perceptron()
        model.compile("adam", "binary_crossentropy")
    found = model.fit(*rows, epochs=2, batch_size=16, verbose=0).history["loss"]
    np.testing.assert_allclose(found, [0.675741, 0.657462], atol=3e-6)


def test_summary(keras, perceptron):
    lines = []
    perceptron().summary(print_fn=lambda text, **_: lines.append(text))
    assert "161" in lines[0]


def test_errors_name_what_was_given(keras):
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 2, but received input with"):
        dense = keras.layers.Dense(3)
        dense.build((None, 2))
        dense(np.ones((1, 4)))


def test_export(keras, rows, perceptron, tmp_path):
    """An exported model runs without Keras."""
    x, _ = rows
    model = perceptron()
    model.export(tmp_path, verbose=False)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.serve(x), model(x), rtol=1e-6)
    assert len(loaded.variables) == 4 and loaded.variables[0].shape == (8, 16)
    loaded.variables[3].assign_add([100.0])
    np.testing.assert_allclose(loaded.serve(x), np.ones([64, 1]))
    layer = keras.layers.TFSMLayer(tmp_path, call_endpoint="serve")
    np.testing.assert_allclose(layer(x), model(x), rtol=1e-6)


def test_export_of_a_recurrent_model(keras, tmp_path):
    """Loops, and batches and lengths that are not known, are in the file."""
    layers = keras.layers
    model = keras.Sequential([keras.Input((None,)), layers.Embedding(10, 4), layers.LSTM(5), layers.Dense(2)])
    model.export(tmp_path, verbose=False)
    ids = np.arange(12).reshape(3, 4) % 10
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).serve(ids.astype("float32")), model(ids), rtol=1e-6)


def test_ragged_batches_and_their_shape(keras):
    """A model that takes ragged rows counts them with `tf.shape`."""
    model = keras.Sequential([layer := keras.layers.Embedding(5, 2)])
    model.compile("sgd", lambda y, p: tf.reduce_sum(p.flat_values))
    x = tf.ragged.constant([[1], [2, 3]])
    model.fit(x, x, verbose=0)
    assert layer(x).shape == [2, None, 2]


def test_export_of_words(keras, tmp_path):
    """Tables of words are in the file, and so are the functions of strings."""
    vectorize = keras.layers.TextVectorization(output_sequence_length=4, vocabulary=["sun", "moon"])
    model = keras.Sequential([keras.Input((1,), dtype="string"), vectorize, keras.layers.Embedding(4, 3)])
    model.export(tmp_path, verbose=False)
    words = tf.constant([["Sun, MOON"], ["a moon"]])
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path).serve(words), model(words))
