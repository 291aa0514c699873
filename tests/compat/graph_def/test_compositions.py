"""Operations that TensorFlow lacks, checks, printing, and images of unknown size are written and read back."""

import numpy as np
import pytest

import tapeflow as tf

parse_saved_model = tf.__internal__.saved_model.parse_saved_model
RANDOM = np.random.default_rng(3)
MATRICES = RANDOM.normal(size=(2, 3, 3)).astype(np.float32)
LOGITS = RANDOM.normal(size=(6, 2, 5)).astype(np.float32)
IMAGES = RANDOM.uniform(size=(2, 8, 6, 3)).astype(np.float32)


def restored(function, specs, folder):
    """A function after it was saved and loaded."""
    module = tf.Module()
    module.f = tf.function(function, input_signature=specs, autograph=False)
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder).f


def gradient_of(function):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.math.asinh(function(x)))
        return tape.gradient(y, x)

    return run


def normalized(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, tf.ones([3]), tf.ones([3]) * 2, 1e-3)


def ctc(blank, labels):
    return lambda x: tf.nn.ctc_loss(labels, x, [3, 2], [6, 5], blank_index=blank)


COMPOSITIONS = {
    "expm": (tf.linalg.expm, 2 * MATRICES),
    "pinv": (tf.linalg.pinv, MATRICES),
    "cumulative_logsumexp": (lambda x: tf.math.cumulative_logsumexp(x, 1, reverse=True), MATRICES),
    "cumprod": (lambda x: tf.math.cumprod(x, 1, exclusive=True), MATRICES),
    "top_k": (lambda x: tf.math.top_k(x, 2).values, MATRICES),
    "gather": (lambda x: tf.gather(x, [[0, 2], [1, 1]], axis=2, batch_dims=1), MATRICES),
    "gather_nd": (lambda x: tf.gather_nd(x, [[[0], [2]], [[1], [1]]], batch_dims=1), MATRICES),
    "normalized": (normalized, MATRICES),
    "ctc first": (ctc(0, [[1, 1, 2], [3, 1, 0]]), LOGITS),
    "ctc middle": (ctc(2, [[1, 1, 3], [3, 1, 0]]), LOGITS),
    "ctc impossible": (lambda x: tf.nn.ctc_loss([[1, 1, 2]] * 2, x, [3, 2], [2, 5], blank_index=0), LOGITS),
    "argmax of a pool": (lambda x: tf.nn.max_pool_with_argmax(x, 3, 2, "SAME")[0], IMAGES),
    "argmax of a batch": (
        lambda x: tf.nn.max_pool_with_argmax(x, 2, 1, "VALID", include_batch_in_index=True)[0],
        IMAGES,
    ),
    "dilated": (
        lambda x: tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 3, 2]) * [[1.0, 2.0]], [1] * 4, "SAME", None, [2, 3]),
        IMAGES,
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("taken", ["values", "gradients"])
def test_operations_without_one_of_tensorflow(name, taken, tmp_path):
    function, x = COMPOSITIONS[name]
    if taken == "gradients":
        if name == "ctc impossible":
            return
        function = gradient_of(function)
    found = restored(function, [tf.TensorSpec(x.shape)], tmp_path)(tf.constant(x))
    np.testing.assert_allclose(found, function(tf.constant(x)), rtol=2e-4, atol=1e-5)


def test_seeds_that_are_constant_are_found_again(tmp_path):
    def draw(x):
        return (
            tf.random.stateless_categorical(x, 5, [1, -2]),
            tf.random.stateless_poisson([3], [3, 4], 2.0),
            tf.random.stateless_binomial([3], [5, 6], 10.0, 0.5),
        )

    x = tf.constant(MATRICES[0])
    found = restored(draw, [tf.TensorSpec([3, 3])], tmp_path)(x)
    for y, expected in zip(found, draw(x), strict=True):
        np.testing.assert_array_equal(y, expected)


IMAGE_FUNCTIONS = {
    **{method: (lambda x, m=method: tf.image.resize(x, [5, 7], m)) for method in ("bilinear", "nearest", "bicubic")},
    **{method: (lambda x, m=method: tf.image.resize(x, [5, 7], m)) for method in ("area", "lanczos3", "gaussian")},
    "antialias": lambda x: tf.image.resize(x, [5, 7], antialias=True),
    "ratio": lambda x: tf.image.resize(x, [5, 7], preserve_aspect_ratio=True),
    "twice": lambda x: tf.image.resize(x, tf.shape(x)[-3:-1] * 2),
    "pad": lambda x: tf.image.resize_with_pad(x, 6, 9),
    "crop or pad": lambda x: tf.image.resize_with_crop_or_pad(x, 6, 9),
    "crop": lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 4),
    "field": lambda x: tf.image.pad_to_bounding_box(x, 1, 2, 10, 11),
    "middle": lambda x: tf.image.central_crop(x, 0.5),
}


@pytest.mark.parametrize("name", IMAGE_FUNCTIONS)
def test_images_of_unknown_size(name, tmp_path):
    function, spec = IMAGE_FUNCTIONS[name], tf.TensorSpec([None, None, None, 3])
    found = restored(function, [spec], tmp_path)(tf.constant(IMAGES))
    expected = function(tf.constant(IMAGES))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    traced = tf.function(function, input_signature=[spec])(tf.constant(IMAGES))
    np.testing.assert_allclose(traced, expected, rtol=1e-4, atol=1e-5)


def test_a_crop_that_does_not_fit_is_an_error_when_the_graph_runs():
    crop = tf.function(IMAGE_FUNCTIONS["crop"], input_signature=[tf.TensorSpec([None, None, None, 3])])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"width must be >= target \+ offset"):
        crop(tf.ones([1, 3, 3, 3]))


def checked(x):
    tf.debugging.assert_equal(tf.shape(x)[1], 4, message="four columns")
    tf.debugging.assert_greater(x, -100.0)
    tf.debugging.assert_positive(x + 100.0)
    tf.debugging.assert_near(x, x)
    tf.debugging.assert_shapes([(x, ("n", 4)), (x[0], (4,))])
    tf.debugging.assert_rank(x, 2)
    tf.Assert(tf.reduce_all(x < 1000.0), [x])
    return x * 2.0


@pytest.mark.parametrize("shape", [[3, 4], [None, None], None])
def test_assertions_are_written(shape, tmp_path):
    f = restored(checked, [tf.TensorSpec(shape)], tmp_path)
    np.testing.assert_array_equal(f(tf.ones([3, 4])), np.full([3, 4], 2.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        f(tf.fill([3, 4], -200.0))
    if shape != [3, 4]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="four columns"):
            f(tf.ones([3, 5]))


def test_printing_is_written(tmp_path, capfd):
    def printing(x):
        tf.print("x", x, {"a": x[0]}, [1, x[1]], output_stream="stdout", end="!\n")
        return x + 1

    f = restored(printing, [tf.TensorSpec([2], tf.int32)], tmp_path)
    capfd.readouterr()
    f(tf.constant([3, 4]))
    assert capfd.readouterr().out == "x [3 4] {'a': 3} [1, 4]!\n"


def test_slices_of_variables_are_set(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(tf.zeros([4, 3]))

    @tf.function(input_signature=[tf.TensorSpec([2, 3]), tf.TensorSpec([], tf.int32)])
    def update(x, i):
        module.v[1:3].assign(x)
        module.v[i, 1].assign(5.0)
        return tf.identity(module.v)

    module.f = update
    tf.saved_model.save(module, tmp_path)
    found = tf.saved_model.load(tmp_path).f(tf.ones([2, 3]), 0)
    np.testing.assert_array_equal(found, [[0, 5, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]])


def test_rows_of_ragged_tensors_are_checked_in_files(tmp_path):
    def total(x, lengths):
        return tf.reduce_sum(tf.RaggedTensor.from_row_lengths(x, lengths), axis=1)

    f = restored(total, [tf.TensorSpec([None]), tf.TensorSpec([None], tf.int64)], tmp_path)
    np.testing.assert_array_equal(f(tf.ones([5]), tf.constant([3, 0, 2], tf.int64)), [3, 0, 2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.ones([5]), tf.constant([3, 0, 1], tf.int64))


def test_operations_with_seeds_give_their_numbers_again(tmp_path):
    tf.random.set_seed(7)

    def drawn():
        shuffled = tf.random.shuffle(tf.range(6), seed=3)
        return tf.random.normal([3], seed=4), tf.random.uniform([3], maxval=9, dtype=tf.int32, seed=5), shuffled

    module = tf.Module()
    module.f = tf.function(drawn, input_signature=[])
    tf.saved_model.save(module, tmp_path)
    expected = [[y.numpy() for y in module.f()] for _ in range(2)]
    loaded = tf.saved_model.load(tmp_path)
    for values in expected:
        for y, wanted in zip(loaded.f(), values):
            np.testing.assert_array_equal(y, wanted)
    nodes = {node.op for node in module.f.get_concrete_function().graph.as_graph_def().node}
    assert {"RandomStandardNormal", "RandomUniformInt", "RandomShuffle"} <= nodes
    tf.random.set_seed(None)


ACTIVATIONS = ("elu", "relu", "relu6", "selu", "sigmoid", "softplus", "softsign", "tanh")


def test_cotangents_of_jacobians_have_the_shape_that_tensorflow_wants():
    """TensorFlow's gradients of activations do not broadcast."""

    def jacobians(x):
        found = []
        for name in ACTIVATIONS:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = getattr(tf.nn, name)(x) if hasattr(tf.nn, name) else getattr(tf, name)(x)
            found.append(tape.jacobian(y, x))
        return found

    graph = tf.function(jacobians, input_signature=[tf.TensorSpec([2, 3])]).get_concrete_function().graph
    definition = graph.as_graph_def()
    wide = {node.name for node in definition.node if node.op == "BroadcastTo"}
    gradients = [node for node in definition.node if node.op.endswith("Grad")]
    assert len(gradients) == len(ACTIVATIONS)
    for node in gradients:
        assert all(name.split(":")[0] in wide for name in node.input), node.op


def test_products_of_many_tensors_are_written_in_pairs(tmp_path):
    """TensorFlow's `Einsum` takes one or two tensors."""
    equations = ["bij,jk,bk->bi", "...ij,...jk,kl,l", "ij,jk,kl,ln->in"]
    for place, equation in enumerate(equations):
        terms = equation.partition("->")[0].split(",")
        inputs = [RANDOM.normal(size=[2] * (len(t.replace("...", ".")))).astype(np.float32) for t in terms]
        specs = [tf.TensorSpec([None] * x.ndim) for x in inputs]
        folder = tmp_path / str(place)
        run = lambda *inputs, equation=equation: tf.einsum(equation, *inputs)  # noqa: E731
        np.testing.assert_allclose(restored(run, specs, folder)(*inputs), run(*inputs), rtol=1e-5)
        definition = parse_saved_model(folder).meta_graphs[0].graph_def
        nodes = [node for function in definition.library.function for node in function.node_def]
        assert all(len(node.input) <= 2 for node in nodes if node.op == "Einsum")


def test_ragged_rows_of_unknown_sizes(tmp_path):
    def run(rows, words):
        joined = tf.strings.reduce_join(tf.strings.unicode_split(words, "UTF-8"), axis=1, separator="_")
        return tf.ragged.stack([rows[0], rows[1]]), tf.ragged.stack([rows, rows + 1]), joined

    rows, words = tf.ragged.constant([[1, 2], [3]]), tf.constant(["añ", "b"])
    specs = [tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.string)]
    first, second, joined = restored(run, specs, tmp_path)(rows, words)
    assert first.to_list() == [[1, 2], [3]]
    assert second.to_list() == [[[1, 2], [3]], [[2, 3], [4]]]
    assert joined.numpy().tolist() == ["a_ñ".encode(), b"b"]


def test_tables_with_reserved_keys_stay_what_they_are(tmp_path):
    module = tf.Module()
    module.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, 0.5, empty_key=-1, deleted_key=-2)
    module.table.insert(tf.constant([3, 4], tf.int64), [0.3, 0.4])
    table = module.table
    module.find = tf.function(lambda k: (table.lookup(k), table.size()), [tf.TensorSpec([None], tf.int64)])
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    values, size = loaded.find(tf.constant([3, 9], tf.int64))
    np.testing.assert_allclose(values, [0.3, 0.5])
    assert int(size) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key"):
        loaded.find(tf.constant([-1], tf.int64))
