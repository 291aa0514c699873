"""Training Keras's models: the numbers are those of TensorFlow with the same Keras and the same seed."""

import numpy as np
import pytest

import tapeflow as tf

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")  # Keras's own


def history(model, *args, epochs=3, **kwargs):
    return model.fit(*args, epochs=epochs, verbose=0, **kwargs).history


@pytest.mark.parametrize("settings", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_fit(keras, rows, perceptron, settings):
    model = perceptron()
    np.testing.assert_allclose(model.get_weights()[0][0, :3], [-0.182581, 0.22987, 0.453916], atol=1e-6)
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"], **settings)
    found = history(model, *rows, batch_size=16)
    np.testing.assert_allclose(found["loss"], [0.675741, 0.657462, 0.640205], atol=3e-6)
    np.testing.assert_allclose(found["accuracy"], [0.671875, 0.75, 0.875])
    np.testing.assert_allclose(
        model.predict(rows[0], verbose=0)[:4, 0], [0.537098, 0.471155, 0.473928, 0.566102], atol=3e-6
    )


def test_validation_and_momentum(keras, rows, perceptron):
    model = perceptron()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    found = history(model, *rows, batch_size=16, shuffle=False, validation_split=0.25)
    np.testing.assert_allclose(found["loss"], [0.233598, 0.179714, 0.114335], atol=2e-6)
    np.testing.assert_allclose(found["val_loss"], [0.208567, 0.14557, 0.094206], atol=2e-6)


def test_tape(keras, rows, perceptron):
    x, y = rows
    model, optimizer = perceptron(), keras.optimizers.Adam(0.01)
    loss = keras.losses.BinaryCrossentropy()

    def step():
        with tf.GradientTape() as tape:
            value = loss(y[:, None], model(x, training=True))
        dx = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(dx, model.trainable_variables))
        return value

    step_of_graph = tf.function(step)
    found = [float(f()) for f in (step, step, step_of_graph, step_of_graph)]
    np.testing.assert_allclose(found, [0.682689, 0.634909, 0.591508, 0.550801], atol=2e-6)


def test_custom_train_step(keras, rows, perceptron):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
            self.mean = keras.metrics.Mean(name="mine")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x)[:, 0] - y) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            self.mean.update_state(loss)
            return {"mine": self.mean.result()}

    model = Model()
    model.compile("rmsprop")
    found = history(model, *rows)["mine"]
    assert found[0] > found[1] > found[2] > 0


def test_steps_per_execution(keras, rows, perceptron):
    losses = []
    for steps in (1, 3):
        keras.utils.set_random_seed(7)
        model = perceptron()
        model.compile("adam", "mse", steps_per_execution=steps)
        losses.append(history(model, *rows, batch_size=16, shuffle=False)["loss"])
        assert int(model.optimizer.iterations) == 12
    assert len(losses[1]) == 3


def test_datasets(keras, rows, perceptron):
    dataset = tf.data.Dataset.from_tensor_slices(rows).shuffle(64, seed=1).batch(16).prefetch(2)
    model = perceptron()
    model.compile("adam", "mse", metrics=["mae"])
    found = history(model, dataset, validation_data=dataset, shuffle=False)
    assert set(found) == {"loss", "mae", "val_loss", "val_mae"}
    assert found["val_loss"][2] < found["val_loss"][0]
    assert model.evaluate(dataset, verbose=0, return_dict=True)["loss"] == pytest.approx(found["val_loss"][2])


def test_class_weights(keras, rows):
    kinds = np.eye(4, dtype=np.float32)[np.arange(64) % 4]
    dataset = tf.data.Dataset.from_tensor_slices((rows[0], kinds)).batch(16)
    losses = []
    for weights in (None, dict.fromkeys(range(4), 2.0)):
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, activation="softmax")])
        model.compile(keras.optimizers.SGD(0.0), "categorical_crossentropy")
        losses.append(history(model, dataset, epochs=1, shuffle=False, class_weight=weights)["loss"][0])
    assert losses[1] == pytest.approx(2 * losses[0], rel=1e-5)


def test_batches(keras, rows, perceptron):
    model = perceptron()
    model.compile("sgd", "mse")
    before, after = (float(model.train_on_batch(*rows)) for _ in range(2))
    assert after < before
    assert model.test_on_batch(*rows) < after
    assert model.predict_on_batch(rows[0]).shape == (64, 1)


def test_recurrent_layers(keras):
    layers = keras.layers
    numbers = np.random.randint(0, 10, (16, 5))
    model = keras.Sequential(
        [
            keras.Input((5,)),
            layers.Embedding(10, 4, mask_zero=True),
            layers.LSTM(6, return_sequences=True),
            layers.GRU(3),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    found = history(model, numbers, numbers[:, 0].astype(np.float32), shuffle=False)["loss"]
    np.testing.assert_allclose(found, [34.991249, 34.891006, 34.79039], rtol=1e-6)


def test_attention(keras):
    layers = keras.layers
    numbers = keras.Input((6,))
    embedded = layers.Embedding(20, 8)(numbers)
    attended = layers.MultiHeadAttention(2, 4, dropout=0.1)(embedded, embedded, use_causal_mask=True)
    pooled = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(attended + embedded))
    model = keras.Model(numbers, layers.Dense(2)(pooled))
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    given = np.arange(96).reshape(16, 6) % 20
    found = history(model, given, given[:, 0] % 2, shuffle=False)["loss"]
    np.testing.assert_allclose(found, [0.682923, 0.508862, 0.356096], atol=3e-6)


def test_convolutions(keras):
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile("rmsprop", "sparse_categorical_crossentropy")
    images = np.sin(np.arange(32 * 144, dtype=np.float32)).reshape(32, 12, 12, 1)
    found = history(model, images, np.arange(32) % 3, batch_size=8)["loss"]
    np.testing.assert_allclose(found, [1.962837, 2.057165, 1.791081], atol=2e-5)


def test_mixed_precision(keras, rows, perceptron):
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = perceptron()
    assert model.layers[0].compute_dtype == "float16" and model.layers[0].kernel.dtype == "float32"
    model.compile("adam", "mse")
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"
    np.testing.assert_allclose(history(model, *rows, shuffle=False)["loss"], [0.243595, 0.238678, 0.233923], atol=2e-4)


OPTIMIZERS = [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "Adafactor", "Lamb",
    "Muon",
]  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(keras, rows, perceptron, name):
    model = perceptron()
    before = model.get_weights()
    model.compile(getattr(keras.optimizers, name)(1e-2), "mse")
    assert np.isfinite(history(model, *rows, epochs=2)["loss"]).all()
    assert any((one != other).any() for one, other in zip(before, model.get_weights()))


def test_optimizer_options(keras, rows, perceptron):
    rate = keras.optimizers.schedules.CosineDecay(0.1, 10)
    for options in ({"clipnorm": 1.0, "use_ema": True}, {"gradient_accumulation_steps": 2, "global_clipnorm": 1.0}):
        model = perceptron()
        model.compile(keras.optimizers.Adam(rate, weight_decay=0.01, **options), "mse")
        found = history(model, *rows, epochs=2)["loss"]
        assert found[1] < found[0]


def test_gradient_of_an_embedding_has_rows(keras):
    embedding = keras.layers.Embedding(10, 3)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(embedding(np.array([1, 2, 2])))
    (dx,) = tape.gradient(y, embedding.trainable_variables)
    assert isinstance(dx, tf.IndexedSlices)
    before = embedding.get_weights()[0]
    keras.optimizers.SGD(1.0).apply_gradients([(dx, embedding.trainable_variables[0])])
    change = before - embedding.get_weights()[0]
    np.testing.assert_allclose(change.sum(1)[:4], [0.0, 3.0, 6.0, 0.0], atol=1e-6)


def test_callbacks(keras, rows, perceptron, tmp_path):
    callbacks = keras.callbacks
    model = perceptron()
    model.compile("adam", "mse")
    found = history(
        model,
        *rows,
        epochs=2,
        validation_split=0.2,
        callbacks=[
            callbacks.EarlyStopping(patience=5),
            callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras"),
            callbacks.ReduceLROnPlateau(),
            callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
            callbacks.TensorBoard(tmp_path / "board", histogram_freq=1),
            callbacks.CSVLogger(tmp_path / "log.csv"),
            callbacks.TerminateOnNaN(),
            callbacks.BackupAndRestore(tmp_path / "backup"),
        ],
    )
    np.testing.assert_allclose(found["learning_rate"], [9e-4, 8.1e-4], rtol=1e-6)
    assert (tmp_path / "2.keras").exists()
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3
    assert list((tmp_path / "board" / "train").glob("events*"))


def test_a_checkpoint_restored_before_the_model_is_built(keras, rows, tmp_path):
    """Variables of a model and of its optimizer that come later begin with the values of the checkpoint."""

    class Line(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dense(1)

        def call(self, x):
            return self.inner(x)

    def step(model, optimizer):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(rows[0]) - rows[1][:, None]) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return float(loss)

    first, optimizer = Line(), keras.optimizers.Adam(0.1)
    step(first, optimizer)
    path = tf.train.Checkpoint(model=first, optimizer=optimizer).save(tmp_path / "c")
    second, other = Line(), keras.optimizers.Adam(0.1)
    tf.train.Checkpoint(model=second, optimizer=other).restore(path)
    assert [step(first, optimizer) for _ in range(3)] == [step(second, other) for _ in range(3)]
    assert len(second.trainable_variables) == 2


@pytest.mark.parametrize("optimizer", ["RMSprop", "Adagrad", "Adadelta", "Adafactor", "Adam", "SGD"])
def test_fit_of_an_embedding(optimizer):
    """The sparse gradient passes a `tf.cond` in which Keras merges repeated indices; other rows stay as they are."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(10, 4), layers.Flatten(), layers.Dense(1)])
    model.compile(optimizer, "mse")
    ids = np.arange(48).reshape(16, 3) % 7
    before = model.evaluate(ids, np.ones([16, 1]), verbose=0)
    table = np.array(model.layers[0].embeddings)
    model.fit(ids, np.ones([16, 1]), epochs=3, verbose=0)
    assert model.evaluate(ids, np.ones([16, 1]), verbose=0) < before
    np.testing.assert_array_equal(np.array(model.layers[0].embeddings)[7:], table[7:])


def test_the_loss_scale_of_mixed_float16_settles(keras):
    keras.utils.set_random_seed(7)
    x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
    policy = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1, dtype="float32")])
        model.compile("sgd", "mse")
        losses = model.fit(x, x.sum(1), epochs=4, verbose=0, shuffle=False).history["loss"]
    finally:
        keras.mixed_precision.set_global_policy(policy)
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.8 * losses[0]
    assert float(model.optimizer.dynamic_scale) >= 4096.0  # it is halved only while gradients overflow
