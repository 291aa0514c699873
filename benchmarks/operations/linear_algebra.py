"""Products of many forms, batches of small matrices, factorisations."""


def einsum(equation, *arguments):
    return (
        list(arguments),
        lambda tf, *a: tf.einsum(equation, *a),
        lambda torch, *a: torch.einsum(equation, *a),
        lambda np, *a: np.einsum(equation, *a),
    )


def linalg(name, *arguments, torch_name=None):
    return (
        list(arguments),
        lambda tf, *a: getattr(tf.linalg, name)(*a),
        lambda torch, *a: getattr(torch.linalg, torch_name or name)(*a),
        lambda np, *a: getattr(np.linalg, torch_name or name)(*a),
    )


ROWS = {
    "einsum ij,jk": einsum("ij,kj->ik", "x", "y"),
    "einsum ij,j": einsum("ij,j->i", "x", "row"),
    "einsum trace": einsum("ii->", "spd"),
    "einsum diagonal": einsum("ii->i", "spd"),
    "einsum sum": einsum("ij->j", "x"),
    "einsum transpose": einsum("ij->ji", "x"),
    "einsum dot rows": einsum("ij,ij->i", "x", "y"),
    "einsum dot": einsum("ij,ij->", "x", "y"),
    "einsum outer": einsum("i,j->ij", "row", "row"),
    "einsum bij,bjk": einsum("bij,bjk->bik", "small", "small"),
    "einsum bij,bj": einsum("bij,bj->bi", "small", "small_vector"),
    "einsum bij,bkj": einsum("bij,bkj->bik", "small", "small"),
    "einsum quadratic": einsum("bi,bij,bj->b", "small_vector", "small", "small_vector"),
    "einsum outer rows": einsum("bi,bj->bij", "small_vector", "small_vector"),
    "einsum btd,de": einsum("btd,de->bte", "cube", "weights"),
    "einsum btd,d": einsum("btd,d->bt", "cube", "width"),
    "einsum btd,btd to bt": einsum("btd,btd->bt", "cube", "keys"),
    "einsum btd,bsd to bts": einsum("btd,bsd->bts", "cube", "keys"),
    "einsum btd,bte to bde": einsum("btd,bte->bde", "cube", "keys"),
    "matmul batch": (
        ["cube", "keys"],
        lambda tf, a, b: tf.matmul(a, b, transpose_a=True),
        lambda torch, a, b: a.transpose(1, 2) @ b,
        lambda np, a, b: np.swapaxes(a, 1, 2) @ b,
    ),
    "matmul shared": (["cube", "weights"], lambda tf, a, b: a @ b, lambda torch, a, b: a @ b, lambda np, a, b: a @ b),
    "matmul vector": (
        ["x", "row"],
        lambda tf, a, b: tf.linalg.matvec(a, b),
        lambda torch, a, b: a @ b,
        lambda np, a, b: a @ b,
    ),
    "matmul thin": (
        ["short", "short"],
        lambda tf, a, b: tf.matmul(a, b, transpose_a=True),
        lambda torch, a, b: a.T @ b,
        lambda np, a, b: a.T @ b,
    ),
    "matmul columns": (
        ["short", "small"],
        lambda tf, a, b: tf.matmul(a[:, :4], b[0]),
        lambda torch, a, b: a[:, :4] @ b[0],
        lambda np, a, b: a[:, :4] @ b[0],
    ),
    "matmul small": (["small", "small"], lambda tf, a, b: a @ b, lambda torch, a, b: a @ b, lambda np, a, b: a @ b),
    "matvec small": (
        ["small", "small_vector"],
        lambda tf, a, b: tf.linalg.matvec(a, b),
        lambda torch, a, b: (a @ b[..., None])[..., 0],
        lambda np, a, b: (a @ b[..., None])[..., 0],
    ),
    "tensordot two axes": (
        ["cube", "keys"],
        lambda tf, a, b: tf.tensordot(a, b, [[0, 1], [0, 1]]),
        lambda torch, a, b: torch.tensordot(a, b, ([0, 1], [0, 1])),
        lambda np, a, b: np.tensordot(a, b, ([0, 1], [0, 1])),
    ),
    "dot": (
        ["v", "w"],
        lambda tf, a, b: tf.tensordot(a, b, 1),
        lambda torch, a, b: torch.dot(a, b),
        lambda np, a, b: np.dot(a, b),
    ),
    "cross": (
        ["triples", "triples"],
        lambda tf, a, b: tf.linalg.cross(a, b),
        lambda torch, a, b: torch.linalg.cross(a, b),
        lambda np, a, b: np.cross(a, b),
    ),
    "inv small": linalg("inv", "small_spd"),
    "det small": linalg("det", "small_spd"),
    "slogdet": (
        ["spd"],
        lambda tf, a: tf.linalg.slogdet(a)[1],
        lambda torch, a: torch.linalg.slogdet(a)[1],
        lambda np, a: np.linalg.slogdet(a)[1],
    ),
    "logdet small": (
        ["small_spd"],
        lambda tf, a: tf.linalg.logdet(a),
        lambda torch, a: torch.logdet(a),
        lambda np, a: np.linalg.slogdet(a)[1],
    ),
    "solve small": linalg("solve", "small_spd", "small_side"),
    "cholesky small": linalg("cholesky", "small_spd"),
    "triangular_solve": (
        ["spd", "side"],
        lambda tf, a, b: tf.linalg.triangular_solve(a, b),
        lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False),
    ),
    "triangular_solve small": (
        ["small_spd", "small_side"],
        lambda tf, a, b: tf.linalg.triangular_solve(a, b),
        lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False),
    ),
    "cholesky_solve": (
        ["spd", "side"],
        lambda tf, a, b: tf.linalg.cholesky_solve(tf.linalg.cholesky(a), b),
        lambda torch, a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a)),
    ),
    "qr": (
        ["spd"],
        lambda tf, a: tf.linalg.qr(a)[1],
        lambda torch, a: torch.linalg.qr(a)[1],
        lambda np, a: np.linalg.qr(a)[1],
    ),
    "qr thin": (
        ["short"],
        lambda tf, a: tf.linalg.qr(a)[1],
        lambda torch, a: torch.linalg.qr(a)[1],
        lambda np, a: np.linalg.qr(a)[1],
    ),
    "eigh": (
        ["spd"],
        lambda tf, a: tf.linalg.eigh(a)[0],
        lambda torch, a: torch.linalg.eigh(a)[0],
        lambda np, a: np.linalg.eigh(a)[0],
    ),
    "eigvalsh": linalg("eigvalsh", "spd"),
    "eigh small": (
        ["small_spd"],
        lambda tf, a: tf.linalg.eigh(a)[1],
        lambda torch, a: torch.linalg.eigh(a)[1],
        lambda np, a: np.linalg.eigh(a)[1],
    ),
    "svd values": (
        ["spd"],
        lambda tf, a: tf.linalg.svd(a, compute_uv=False),
        lambda torch, a: torch.linalg.svdvals(a),
        lambda np, a: np.linalg.svd(a, compute_uv=False),
    ),
    "svd": (
        ["spd"],
        lambda tf, a: tf.linalg.svd(a)[0],
        lambda torch, a: torch.linalg.svd(a)[1],
        lambda np, a: np.linalg.svd(a)[1],
    ),
    "expm": (["spd"], lambda tf, a: tf.linalg.expm(a), lambda torch, a: torch.linalg.matrix_exp(a)),
    "pinv": linalg("pinv", "spd"),
    "lstsq": (
        ["short", "column"],
        lambda tf, a, b: tf.linalg.lstsq(a[: b.shape[0]], b[: a.shape[0]]),
        lambda torch, a, b: torch.linalg.lstsq(a[: b.shape[0]], b[: a.shape[0]])[0],
    ),
}
