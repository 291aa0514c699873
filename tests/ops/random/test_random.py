"""Random numbers: TensorFlow's streams, number for number, and what is special about each distribution."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

import tapeflow as tf
from tapeflow._src import primitives

# The last six numbers of each draw, as TensorFlow 2.21 gives them on a CPU.
STATELESS = {
    "uniform float32": (
        lambda: tf.random.stateless_uniform([1003], [1, 2]),
        [0.65189004, 0.56722736, 0.8586004, 0.071153164, 0.046441913, 0.14731038],
    ),
    "uniform float64": (
        lambda: tf.random.stateless_uniform([1003], [1, 2], dtype=tf.float64),
        [0.8546307350118649, 0.13364823781675605, 0.6585470735134382, 0.7285713482503713, 0.09608439510106304,
         0.423644067746763],
    ),
    "uniform float16": (
        lambda: tf.random.stateless_uniform([1003], [1, 2], dtype=tf.float16),
        [0.2832, 0.7266, 0.6543, 0.8867, 0.4521, 0.7666],
    ),
    "uniform bfloat16": (
        lambda: tf.random.stateless_uniform([1003], [1, 2], dtype=tf.bfloat16),
        [0.265625, 0.8125, 0.234375, 0.09375, 0.6171875, 0.1328125],
    ),
    "uniform uint64": (
        lambda: tf.random.stateless_uniform([103], [1, 2], None, None, tf.uint64),
        [13669322854420783580, 5743495370977427682, 1688743665495034890, 4114606766922898792, 9502148712531218550,
         16628880894697316531],
    ),
    "uniform int64": (
        lambda: tf.random.stateless_uniform([103], [1, 2], -17, 1000003, tf.int64),
        [314943, 360325, 208933, 370115, 751393, 841914],
    ),
    "normal float32": (
        lambda: tf.random.stateless_normal([1003], tf.constant([-5, 10**12], tf.int64)),
        [-0.48944193, 1.1263405, -0.8451088, -0.011830839, 0.7329369, 0.51031584],
    ),
    "normal float64": (
        lambda: tf.random.stateless_normal([1003], [1, 2], dtype=tf.float64),
        [1.3622661349714449, -1.6840589940275597, -1.0904280571054534, 0.451794996886247, 0.6551493874894576,
         1.055002130332405],
    ),
    "truncated float64": (
        lambda: tf.random.stateless_truncated_normal([1003], [1, 2], dtype=tf.float64),
        [1.2261861539801477, 0.40995616659522327, 0.7836969745057202, 1.9190497726800202, -1.4513397776004986,
         -0.9827700117934003],
    ),
    "gamma": (
        lambda: tf.random.stateless_gamma([50, 7], [3, 4], [0.1, 0.5, 1.0, 1.5, 2.0, 10.0, 100.0]),
        [0.11545499, 1.1165386, 1.1258622, 1.7506807, 16.150345, 110.27303],
    ),
    "poisson": (
        lambda: tf.random.stateless_poisson([60, 6], [5, 6], [0.0, 0.3, 2.0, 9.99, 10.0, 500.0]),
        [0, 0, 0, 8, 11, 495],
    ),
    "binomial": (
        lambda: tf.random.stateless_binomial(
            [60, 6], [5, 6], [5.0, 10.0, 100.0, 1000.0, 7.0, 30.0], [0.5, 0.1, 0.3, 0.9, 0.99, 0.01]
        ),
        [3, 1, 24, 899, 7, 0],
    ),
    "categorical": (
        lambda: tf.random.stateless_categorical(tf.math.log([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]), 37, [1, 2]),
        [2, 2, 1, 2, 2, 2],
    ),
    "bounded normal": (
        lambda: tf.random.stateless_parameterized_truncated_normal([101], [1, 2], 0.0, 1.0, 3.0, np.inf),
        [3.25781, 3.2514133, 3.5624714, 3.0087695, 3.0690918, 3.1918628],
    ),
    "shuffle": (
        lambda: tf.random.experimental.stateless_shuffle(tf.range(50), [1, 2]),
        [49, 3, 28, 38, 18, 31],
    ),
    "index shuffle": (
        lambda: tf.random.experimental.index_shuffle(tf.range(20), [1, 2], 99),
        [75, 3, 92, 60, 68, 25],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATELESS)
def test_stateless_numbers(name):
    draw, expected = STATELESS[name]
    got = np.asarray(draw()).reshape(-1)[-6:]
    if got.dtype.name == "float16":
        np.testing.assert_allclose(got, expected, rtol=1e-3)
    elif got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, np.array(expected, got.dtype))
    else:
        np.testing.assert_allclose(got.astype(float), expected, rtol=1e-15 if got.dtype == np.float64 else 1e-7)


def test_global_seed_gives_the_sequence_of_tensorflow():
    tf.random.set_seed(1234)
    got = [
        tf.random.uniform([3]),
        tf.random.uniform([3]),
        tf.random.normal([5]),
        tf.random.truncated_normal([5]),
        tf.random.uniform([3], 0, 10, tf.int64),
        tf.random.shuffle(tf.range(20))[:6],
        tf.reshape(tf.random.shuffle(tf.reshape(tf.range(20), [10, 2])), [20])[:6],
        tf.reshape(tf.random.gamma([5], [0.5, 2.0]), [10])[:6],
    ]
    expected = [
        [0.5380393, 0.36461866, 0.5816301],
        [0.3253647, 0.1387006, 0.64804935],
        [0.95883226, -0.3325803, -0.06361825, 0.02438497, 0.19537185],
        [-0.37767014, -0.2148674, 1.5822934, -0.8493346, 1.4711004],
        [9, 7, 2],
        [6, 1, 16, 17, 9, 2],
        [18, 19, 2, 3, 6, 7],
        [0.10694858, 0.4243524, 0.20450388, 0.48685127, 0.5528496, 2.5265431],
    ]
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_operations_of_one_seed_share_a_stream():
    tf.random.set_seed(1234)
    np.testing.assert_allclose(tf.random.uniform([3], seed=1), [0.1689806, 0.9725481, 0.90036285], rtol=1e-6)
    np.testing.assert_allclose(tf.random.uniform([3], seed=1), [0.92531705, 0.29733074, 0.11319971], rtol=1e-6)
    np.testing.assert_allclose(tf.random.uniform([2], seed=1), [0.33758223, 0.24648452], rtol=1e-6)
    np.testing.assert_array_equal(tf.random.shuffle(tf.range(9), seed=3)[:3], [0, 6, 8])
    np.testing.assert_array_equal(tf.random.shuffle(tf.range(9), seed=3)[:3], [3, 1, 2])
    np.testing.assert_array_equal(tf.random.shuffle(tf.range(9, dtype=tf.int64), seed=3)[:3], [0, 6, 8])
    rows = [tf.random.categorical([[0.5, 1.0]], 9, seed=5)[0, :6].numpy().tolist() for _ in range(2)]
    assert rows == [[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1]]
    tf.random.set_seed(1234)
    np.testing.assert_allclose(tf.random.uniform([3], seed=1), [0.1689806, 0.9725481, 0.90036285], rtol=1e-6)


def test_without_a_seed_nothing_repeats():
    tf.random.set_seed(None)
    assert not np.array_equal(tf.random.uniform([4]), tf.random.uniform([4]))
    assert tf.compat.v1.get_seed(None) == (None, None)
    assert tf.compat.v1.get_seed(3) == (87654321, 3)
    tf.random.set_seed(0)
    assert tf.compat.v1.get_seed(0) == (0, 2**31 - 1)


def test_seeds_in_a_graph_are_those_of_the_graph():
    with tf.Graph().as_default():
        assert tf.compat.v1.get_seed(None) == (None, None)
        tf.compat.v1.set_random_seed(1)
        assert [tf.compat.v1.get_seed(None) for _ in range(2)] == [(1, 0), (1, 1)]
        assert tf.compat.v1.get_seed(5) == (1, 5)
        tf.compat.v1.set_random_seed(0)
        assert tf.compat.v1.get_seed(0) == (0, 2**31 - 1)


def test_generator_numbers_and_state():
    g = tf.random.Generator.from_seed(1234)
    np.testing.assert_array_equal(g.state, [1234, 0, 0])
    np.testing.assert_allclose(g.normal([5]), [0.9356609, 1.0854305, -0.93788373, -0.5061547, 1.3169702], rtol=1e-6)
    np.testing.assert_array_equal(g.state, [1234 + 5 * 256, 0, 0])
    np.testing.assert_allclose(g.uniform([3, 3])[0], [0.12601233, 0.91376996, 0.90830874], rtol=1e-6)
    np.testing.assert_allclose(g.truncated_normal([4])[0], -1.2584243, rtol=1e-6)
    np.testing.assert_array_equal(
        g.uniform_full_int([3]), np.array([16723574688787208133, 2721854723098062781, 13010217324407195266], np.uint64)
    )
    np.testing.assert_array_equal(g.uniform([3], 0, 10, tf.int32), [5, 2, 8])
    np.testing.assert_array_equal(g.uniform([3], None, None, tf.int32), [-54951750, 433358222, 1255475179])
    g.uniform_full_int([3], tf.uint32)
    np.testing.assert_array_equal(g.binomial([4], 10.0, 0.5), [6, 6, 4, 6])
    np.testing.assert_array_equal(g.binomial([2, 3], [10.0, 20.0, 30.0], [0.5, 0.1, 0.9])[0], [7, 2, 24])
    np.testing.assert_allclose(g.normal([], dtype=tf.float64), -1.15967513, rtol=1e-8)


def test_generator_ways_to_begin():
    g = tf.random.Generator.from_key_counter(7, [1, 2], "philox")
    np.testing.assert_array_equal(g.state, [1, 2, 7])
    np.testing.assert_array_equal(tf.random.Generator(g).state, g.state)
    np.testing.assert_array_equal(tf.random.create_rng_state(2**70 + 5, "philox"), [5, 64, 0])
    np.testing.assert_array_equal(tf.random.create_rng_state([5], 1), [0, 0, 5])
    assert int(g.key) == 7 and g.algorithm == 1
    before = g.skip(3)
    np.testing.assert_array_equal(before, [1, 2, 7])
    np.testing.assert_array_equal(g.state, [1 + 3 * 256, 2, 7])
    g.reset_from_seed(9)
    np.testing.assert_array_equal(g.state, [9, 0, 0])
    a, b = g.split(2)
    assert not np.array_equal(a.normal([3]), b.normal([3]))
    assert g.make_seeds(3).shape == [2, 3]
    with pytest.raises(ValueError, match="incompatible"):
        tf.random.Generator.from_state([1, 2], 1)
    with pytest.raises(tf.errors.UnimplementedError, match="ThreeFry"):
        tf.random.Generator.from_seed(1, "threefry").normal([2])


def test_counter_carries_into_the_high_half():
    g = tf.random.Generator.from_state([-1, -1, 3], 1)
    together = g.uniform([600]).numpy()
    np.testing.assert_array_equal(g.state, [600 * 256 - 1, 0, 3])
    edge = tf.random.Generator.from_state([2**32 - 3, 5, 3], 1).uniform([400]).numpy()
    parts = [tf.random.Generator.from_state([2**32 - 3 + i, 5, 3], 1).uniform([4]).numpy() for i in range(100)]
    np.testing.assert_array_equal(edge, np.concatenate(parts))
    assert len(np.unique(together)) > 590


@pytest.mark.parametrize("draw", [tf.random.stateless_uniform, tf.random.stateless_normal])
def test_a_prefix_does_not_depend_on_the_length(draw):
    for dtype in (tf.float16, tf.float32, tf.float64):
        long = draw([300001], [1, 2], dtype=dtype).numpy()
        for n in (1, 2, 3, 5, 1000, 1025, 70001):
            np.testing.assert_array_equal(draw([n], [1, 2], dtype=dtype), long[:n])


def test_threads_do_not_matter():
    def numbers():
        return [
            tf.random.stateless_uniform([200003], [1, 2]).numpy(),
            tf.random.stateless_truncated_normal([50003], [1, 2]).numpy(),
            tf.random.stateless_gamma([20003, 2], [1, 2], [0.5, 3.0]).numpy(),
            tf.random.stateless_categorical(np.zeros([501, 3], "f"), 7, [1, 2]).numpy(),
        ]

    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        one = numbers()
        tf.config.threading.set_intra_op_parallelism_threads(4)
        four = numbers()
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
    for a, b in zip(one, four):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (lambda n: tf.random.stateless_uniform([n], [1, 2]), scipy.stats.uniform()),
        (lambda n: tf.random.stateless_normal([n], [1, 2], 1.0, 2.0), scipy.stats.norm(1, 2)),
        (lambda n: tf.random.stateless_truncated_normal([n], [1, 2]), scipy.stats.truncnorm(-2, 2)),
        (lambda n: tf.random.stateless_gamma([n], [1, 2], 0.4), scipy.stats.gamma(0.4)),
        (lambda n: tf.random.stateless_gamma([n], [1, 2], 5.0, 2.0), scipy.stats.gamma(5, scale=0.5)),
        (
            lambda n: tf.random.stateless_parameterized_truncated_normal([n], [1, 2], 0.0, 1.0, 1.0, 4.0),
            scipy.stats.truncnorm(1, 4),
        ),
        (
            lambda n: tf.random.stateless_parameterized_truncated_normal([n], [1, 2], 1.0, 2.0, 0.0, 1.5),
            scipy.stats.truncnorm(-0.5, 0.25, 1, 2),
        ),
    ],
)
def test_distributions(draw, distribution):
    assert scipy.stats.kstest(draw(5000).numpy(), distribution.cdf).pvalue > 1e-3


def test_gamma_derivative_is_implicit():
    alpha = np.array([0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, 1000.0, 3e5])
    x = tf.random.stateless_gamma([20, 9], [1, 2], tf.constant(alpha), dtype=tf.float64)
    got = primitives.RandomGammaGrad(alpha=tf.constant(alpha), sample=x).numpy()
    step = alpha * 1e-4
    p = scipy.special.gammainc(alpha, x.numpy())
    ends = [scipy.special.gammaincinv(alpha + s, p) for s in (step, -step)]
    expected = (ends[0] - ends[1]) / (2 * step)
    usable = (p > 1e-6) & (p < 1 - 1e-6) & (x.numpy() > 1e-60)
    np.testing.assert_allclose(got[usable], expected[usable], rtol=2e-4)


def test_gamma_gradient_reaches_alpha_and_beta():
    alpha, beta = tf.constant([0.5, 2.0]), tf.constant([1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch([alpha, beta])
        y = tf.random.stateless_gamma([5, 2], [1, 2], alpha, beta)
    by_alpha, by_beta = tape.gradient(y, [alpha, beta])
    assert by_alpha.shape == [2] and np.all(by_alpha.numpy() > 0)
    np.testing.assert_allclose(by_beta, -np.sum(y.numpy(), 0) / beta.numpy(), rtol=1e-5)
    with tf.autodiff.ForwardAccumulator(alpha, tf.ones([2])) as forward:
        y = tf.random.stateless_gamma([5, 2], [1, 2], alpha, beta)
    np.testing.assert_allclose(np.sum(forward.jvp(y).numpy(), 0), by_alpha, rtol=1e-5)


def test_random_numbers_stop_gradients():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        mean = tf.random.stateless_normal([3], [1, 2], mean=x)
        uniform = tf.random.stateless_uniform([3], [1, 2], 0.0, x)
        counts = tf.random.stateless_poisson([3], [1, 2], x, dtype=tf.float32)
    assert float(tape.gradient(mean, x)) == 3.0
    assert float(tape.gradient(uniform, x)) == pytest.approx(float(tf.reduce_sum(uniform)) / 2)
    assert tape.gradient(counts, x) is None


def test_parameters_that_are_none():
    nan = float("nan")
    np.testing.assert_array_equal(tf.random.stateless_poisson([2], [1, 2], [-1.0, nan], tf.float32), [nan, nan])
    np.testing.assert_array_equal(tf.random.stateless_binomial([3], [1, 2], [3.0] * 3, [-0.5, 1.5, nan], tf.float32),
                                  [0, 3, nan])  # fmt: skip
    assert np.isnan(tf.random.stateless_gamma([1], [1, 2], nan).numpy()).all()


def test_categorical_ignores_what_is_not_finite():
    drawn = tf.random.stateless_categorical([[-np.inf, 1.0, np.nan, 1.0, np.inf]], 200, [1, 2]).numpy()
    assert set(drawn.ravel()) == {1, 3}


def test_empty_shapes():
    assert tf.random.normal([0]).shape == [0]
    assert tf.random.uniform([3, 0], maxval=2, dtype=tf.int32).shape == [3, 0]
    assert tf.random.gamma([0], [1.0, 2.0]).shape == [0, 2]
    assert tf.random.shuffle(tf.zeros([0, 2])).shape == [0, 2]
    assert tf.random.categorical(tf.zeros([0, 3]), 4).shape == [0, 4]
    assert tf.random.stateless_normal([], [1, 2]).shape == []


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (tf.errors.InvalidArgumentError, r"\[2\], not \[3\]", lambda: tf.random.stateless_uniform([2], [1, 2, 3])),
        (ValueError, "invalid value", lambda: tf.random.stateless_uniform([2], [1, 2], dtype=tf.string)),
        (ValueError, "Must specify maxval", lambda: tf.random.uniform([2], dtype=tf.int32)),
        (tf.errors.InvalidArgumentError, "must be >= 0", lambda: tf.random.uniform([-2])),
        (tf.errors.InvalidArgumentError, "minval < maxval, got 5 >= 5", lambda: tf.random.uniform([2], 5, 5, tf.int32)),
        (tf.errors.InvalidArgumentError, "should be a matrix", lambda: tf.random.categorical([0.5, 0.5], 2)),
        (tf.errors.InvalidArgumentError, "non-negative", lambda: tf.random.categorical([[0.5, 0.5]], -2)),
        (tf.errors.InvalidArgumentError, "num_classes", lambda: tf.random.categorical(np.zeros([2, 0], "f"), 2)),
        (tf.errors.InvalidArgumentError, "must end with", lambda: tf.random.stateless_gamma([3], [1, 2], [0.5, 2.0])),
        (tf.errors.InvalidArgumentError, "Invalid parameters",
         lambda: tf.random.stateless_parameterized_truncated_normal([3], [1, 2], 0.0, 1.0, 3.0, 2.0)),
        (ValueError, "unsupported value foo", lambda: tf.random.stateless_uniform([3], [1, 2], alg="foo")),
        (TypeError, "dtype", lambda: tf.random.normal([2], dtype=tf.int32)),
    ],
)  # fmt: skip
def test_errors(error, words, call):
    with pytest.raises(error, match=words):
        call()


def test_candidates():
    tf.random.set_seed(7)
    drawn, of_true, of_drawn = tf.random.uniform_candidate_sampler([[1, 2], [3, 4]], 2, 5, True, 20)
    np.testing.assert_array_equal(drawn, [14, 15, 16, 19, 0])
    np.testing.assert_allclose(of_true, np.full([2, 2], 0.2649081), rtol=1e-6)
    np.testing.assert_allclose(of_drawn, np.full([5], 0.2649081), rtol=1e-6)
    drawn, _, expected = tf.random.fixed_unigram_candidate_sampler(
        [[1]], 1, 1000, False, 4, num_reserved_ids=1, unigrams=[1.0, 2.0, 1.0]
    )
    assert 0 not in drawn.numpy()
    np.testing.assert_allclose(expected.numpy(), np.take([0, 250, 500, 250], drawn.numpy()))
    for _ in range(2):
        _, of_true, _ = tf.random.learned_unigram_candidate_sampler([[1]], 1, 2, False, 3, seed=11)
    np.testing.assert_allclose(of_true, [[2 * 2 / 4]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="range"):
        tf.random.uniform_candidate_sampler([[1]], 1, 5, True, 3)


def test_initializers_with_a_seed_repeat():
    make = tf.random_normal_initializer(stddev=2.0, seed=1)
    np.testing.assert_array_equal(make([3]), make([3]))
    np.testing.assert_array_equal(make([3]), tf.random.stateless_normal([3], [1, 0], 0.0, 2.0))
    assert tf.random_uniform_initializer(1, 10)([3], tf.int32).dtype == tf.int32
    assert make.get_config() == {"mean": 0.0, "stddev": 2.0, "seed": 1}
    with pytest.raises(ValueError, match="floating"):
        make([2], tf.int32)
    values = tf.compat.v1.glorot_uniform_initializer()([200, 100]).numpy()
    assert abs(values).max() <= np.sqrt(6 / 300) and values.std() == pytest.approx(np.sqrt(2 / 300), rel=0.05)


def test_determinism_asks_for_seeds(monkeypatch):
    from tapeflow._src.ops.random import seeds

    monkeypatch.setattr(seeds, "is_op_determinism_enabled", lambda: True)
    tf.random.set_seed(None)
    with pytest.raises(RuntimeError, match="require a seed"):
        tf.random.normal([2])
    tf.random.normal([2], seed=1)


def test_each_operation_of_a_function_has_its_own_stream():
    tf.random.set_seed(1234)

    @tf.function
    def first():
        return tf.random.uniform([1]), tf.random.uniform([1])

    @tf.function
    def second():
        return tf.random.uniform([1]), tf.random.uniform([1])

    before = [x.numpy() for x in first()]
    np.testing.assert_allclose(before, [[0.13047123], [0.1689806]], rtol=1e-6)
    np.testing.assert_array_equal(before, [x.numpy() for x in second()])
    assert all(x.numpy() != y for x, y in zip(first(), before))
    tf.random.set_seed(1234)
    np.testing.assert_array_equal(before, [x.numpy() for x in first()])


def test_one_seed_twice_in_a_function_gives_the_same_numbers():
    tf.random.set_seed(7)
    outside = tf.random.uniform([1], seed=1)
    function = tf.function(lambda: (tf.random.uniform([1], seed=1), tf.random.uniform([1], seed=1)))
    x, y = function()
    assert x.numpy() == y.numpy() == outside.numpy()
    later = function()
    assert later[0].numpy() == later[1].numpy() == tf.random.uniform([1], seed=1).numpy() != x.numpy()


@pytest.mark.parametrize("seed", [None, 3])
def test_numbers_differ_between_rounds_of_a_loop(seed):
    tf.random.set_seed(seed)

    @tf.function
    def by_loop():
        rows = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            rows = rows.write(i, tf.random.uniform([]))
        return rows.stack()

    by_map = tf.function(lambda: tf.map_fn(lambda x: x + tf.random.uniform([]), tf.zeros([3])))
    for numbers in (by_loop().numpy(), by_map().numpy()):
        assert len(set(numbers.tolist())) == 3


def test_tracing_does_not_move_streams_on():
    tf.random.set_seed(7)
    crop = tf.function(lambda x: tf.image.random_crop(x, [2], seed=1))
    expected = tf.image.random_crop(tf.range(9), [2], seed=1)
    np.testing.assert_array_equal(crop(tf.range(9)).numpy(), expected.numpy())


def test_operations_of_a_graph_are_numbered():
    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(3)
        x, y = tf.random.uniform([1]), tf.random.uniform([1])
        with tf.compat.v1.Session() as session:
            np.testing.assert_allclose(session.run([x, y]), [[0.12736404], [0.77806914]], rtol=1e-6)


def test_candidates_have_names():
    found = tf.random.log_uniform_candidate_sampler([[1]], 1, 2, True, 10, seed=1)
    assert found.sampled_candidates.shape == (2,) and found.true_expected_count.shape == (1, 1)
    assert found.sampled_expected_count is found[2]


def test_gradients_of_bounded_normal_numbers():
    """The mean shifts and the deviation stretches the numbers; a bound moves them as their quantile asks."""
    mean, deviation = tf.constant(1.0, tf.float64), tf.constant([2.0, 1.0], tf.float64)
    low, high = tf.constant([[-1.0], [0.0]], tf.float64), tf.constant(4.0, tf.float64)

    def draw(mean, deviation, low, high):
        return tf.random.stateless_parameterized_truncated_normal([5, 2, 2], [1, 2], mean, deviation, low, high)

    parameters = [mean, deviation, low, high]
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        y = draw(*parameters)
    found = tape.gradient(y, parameters)
    z = (y - mean) / deviation

    def cdf(x):
        return 0.5 * tf.math.erfc(-x / np.sqrt(2.0))

    a, b = (low - mean) / deviation, (high - mean) / deviation
    part = (cdf(z) - cdf(a)) / (cdf(b) - cdf(a))
    by_low, by_high = (1 - part) * tf.exp((z**2 - a**2) / 2), part * tf.exp((z**2 - b**2) / 2)
    np.testing.assert_allclose(found[0], 20.0)
    np.testing.assert_allclose(found[1], tf.reduce_sum(z, [0, 1]))
    np.testing.assert_allclose(found[2], tf.reduce_sum(by_low, [0, 2])[:, None])
    np.testing.assert_allclose(found[3], tf.reduce_sum(by_high))
    with tf.autodiff.ForwardAccumulator(parameters, [tf.ones_like(x) for x in parameters]) as forward:
        y = draw(*parameters)
    np.testing.assert_allclose(forward.jvp(y), 1 + z + by_low + by_high)


def test_gamma_parameters_whose_shape_is_not_known():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        alpha, beta = (tf.compat.v1.placeholder(tf.float32, shape) for shape in ([None, 16, 1], [None]))
        shape = tf.concat([[4], tf.shape(alpha * beta)], 0)
        drawn = tf.random.stateless_gamma(shape, [1, 2], alpha, beta)
        found = session.run(drawn, {alpha: np.ones([3, 16, 1]), beta: [1.0, 2.0]})
    want = tf.random.stateless_gamma([4, 3, 16, 2], [1, 2], tf.ones([3, 16, 1]), [1.0, 2.0])
    np.testing.assert_allclose(found, want, rtol=1e-6)
