"""`tf.einsum` against NumPy: values and gradients of every kind of equation, errors."""

import numpy as np
import pytest

import tapeflow as tf

EQUATIONS = [
    *["ij,jk->ik", "ij,kj->ik", "ji,jk->ki", "bij,bjk->bik", "bij,bkj->bki", "aecd,abcd->acbe", "acbe,aecd->abcd"],
    *["abc,cde->abde", "abcd,cde->abe", "nchw,co->nohw", "i,j->ij", "i,j->ji", "i,i", "i,i->i", "ij,ij->", "ij,ij->i"],
    *["ij,ji->", "ii,ii->i", "iij,jk->ik", "iji->j", "iii->i", "iii->", "ab,cd->acbd", "ab,cd->dbca", "aab,bcc->ac"],
    *["ij,jk,kl->il", "ij,jk,kl,lm->im", "i,i,i->", "abc,abd,ace->bde", "a,b,c,d,e,f->fedcba", "ij->", "ij->ji"],
    *["abcd,bd->ac", "abcd,dcba->", "abc,c->ab", "ab,b->a", "ab,a->b", "abc->b", ",->", ",ij->ij", "ij,->ij"],
    *["abcde,ce->abd", "ba,ca->bc", "bac,dac->bd", "abc,bcd->ad", "ij,jk", "ba", "i j, j k -> i k"],
]


def operands(equation, seed, dtype="float64"):
    random = np.random.default_rng(seed)
    sizes = {label: int(random.integers(1, 5)) for label in "abcdefghijklmnow"}
    terms = equation.replace(" ", "").split("->")[0].split(",")
    shapes = [[sizes[label] for label in term] for term in terms]
    arrays = [random.normal(size=shape) for shape in shapes]
    if dtype.startswith("complex"):
        arrays = [x + 1j * random.normal(size=x.shape) for x in arrays]
    return [np.asarray(x, dtype) for x in arrays]


def check(equation, arrays):
    """Values, and a directional derivative of a weighted sum, against NumPy."""
    random = np.random.default_rng(5)
    expected = np.einsum(equation, *arrays)
    tensors = [tf.constant(x) for x in arrays]
    weight = random.normal(size=expected.shape)
    with tf.GradientTape() as tape:
        for x in tensors:
            tape.watch(x)
        result = tf.einsum(equation, *tensors)
        total = tf.reduce_sum(tf.math.real(result) * weight)
    assert result.shape.as_list() == list(expected.shape)
    np.testing.assert_allclose(result, expected, atol=1e-12)
    gradients = tape.gradient(total, tensors)
    directions = [np.asarray(random.normal(size=x.shape), x.dtype) for x in arrays]

    def loss(sign):
        moved = [x + sign * 1e-5 * d for x, d in zip(arrays, directions)]
        return np.sum(np.real(np.einsum(equation, *moved)) * weight)

    got = sum(np.sum(np.real(np.conj(np.asarray(g)) * d)) for g, d in zip(gradients, directions))
    assert got == pytest.approx((loss(1) - loss(-1)) / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equals_numpy(equation):
    check(equation, operands(equation, 1))
    check(equation, operands(equation, 2))
    check(equation, operands(equation, 3, "complex128"))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 3, 4, 5), (5, 2)]),
        ("...ij,...jk->...ik", [(2, 1, 4, 5), (3, 5, 2)]),
        ("...ij,...jk", [(2, 4, 5), (2, 5, 2)]),
        ("...i,...i->...", [(4, 1, 3), (2, 3)]),
        ("i...,j...->ij...", [(2, 5), (3, 1, 5)]),
        ("b...d,dk->b...k", [(2, 3, 4, 5), (5, 2)]),
        ("a...b,b...->a...", [(2, 3, 4), (4, 3)]),
        ("...->...", [(2, 3)]),
        ("...i->...", [(2, 3, 4)]),
        ("b...a", [(2, 3, 4)]),
        ("...,...->...", [(2, 1), (1, 3)]),
    ],
)
def test_ellipsis_equals_numpy(equation, shapes):
    random = np.random.default_rng(1)
    check(equation, [random.normal(size=shape) for shape in shapes])


def test_empty_dimensions():
    assert tf.einsum("ij,jk->ik", tf.zeros([2, 0]), tf.zeros([0, 3])).numpy().tolist() == [[0.0] * 3] * 2
    assert tf.einsum("ij,jk->ik", tf.zeros([0, 2]), tf.zeros([2, 3])).shape.as_list() == [0, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "int64", "complex64"])
def test_keeps_the_dtype(dtype):
    x = tf.cast(tf.constant([[1.0, 2.0], [3.0, 4.0]]), dtype)
    result = tf.einsum("ij,jk->ik", x, x)
    assert result.dtype.name == dtype
    assert tf.cast(result, tf.float64).numpy().tolist() == [[7.0, 10.0], [15.0, 22.0]]


def test_a_long_chain_is_contracted_from_its_cheap_end():
    """From the left this would take a matrix of 2000 x 2000 at each step."""
    wide, vector = tf.ones([2000, 2000]), tf.ones([2000])
    result = tf.einsum("ij,jk,kl,l->i", wide, wide, wide, vector)
    assert float(result[0]) == pytest.approx(2000.0**3)


@pytest.mark.parametrize(
    ("equation", "shapes", "kind", "words"),
    [
        ("ij,jk->ik", [(2, 3), (2, 2)], tf.errors.InvalidArgumentError, "Expected dimension 3 at axis 0"),
        ("ij,jk->ik", [(2, 1), (3, 2)], tf.errors.InvalidArgumentError, "Expected dimension 1"),
        ("ij,jk->ik", [(2, 3), (2,)], tf.errors.InvalidArgumentError, "Expected input 1 to have rank 2 but got: 1"),
        ("ii->i", [(2, 3)], tf.errors.InvalidArgumentError, "Expected dimension 2 at axis 1"),
        ("...i->i", [(2, 3)], tf.errors.InvalidArgumentError, "no ellipsis"),
        ("ij,jk->ik", [(2, 3)], ValueError, "Got 1 inputs"),
        ("ij,jk->ikz", [(2, 3), (3, 2)], ValueError, "label z not present"),
        ("ij->ii", [(2, 2)], ValueError, "more than once"),
        ("i1->i", [(2, 3)], ValueError, "incorrect format"),
        ("i.j->i", [(2, 3)], ValueError, "incorrect format"),
    ],
)
def test_errors(equation, shapes, kind, words):
    with pytest.raises(kind, match=words):
        tf.einsum(equation, *[tf.zeros(shape) for shape in shapes])


def test_arguments():
    assert tf.einsum("ij->ji", tf.zeros([2, 1]), optimize="optimal", name="x").shape.as_list() == [1, 2]
    with pytest.raises(TypeError, match="Invalid keyword arguments for einsum: foo"):
        tf.einsum("ij->ji", tf.zeros([2, 1]), foo=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a float32 tensor"):
        tf.einsum("i,i->", tf.zeros([2]), tf.zeros([2], tf.float64))
