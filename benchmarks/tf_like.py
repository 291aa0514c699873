"""Workloads for any module with TensorFlow 2's API (tensorflow, tapeflow).

Each builder returns a zero-argument function which does one step of work and
returns something whose value forces the work to be done.
"""
import numpy as np


def build(tf, name, compiled):
    rng = np.random.default_rng(0)
    f32 = lambda *s, scale=0.1: (rng.standard_normal(s) * scale).astype("float32")
    wrap = tf.function if compiled else (lambda f: f)

    if name == "scalar_poly":          # a handful of scalar ops
        x, y = tf.Variable(3.0), tf.Variable(2.0)
        def step():
            with tf.GradientTape() as tape:
                z = x ** 2 + y * x - 3.0 * y
            return tape.gradient(z, [x, y])
        step = wrap(step)
        return lambda: step()[0].numpy()

    if name == "linreg":               # linear regression with an update
        w, b = tf.Variable(2.0), tf.Variable(1.0)
        X, Y = tf.constant(f32(100, scale=1)), tf.constant(f32(100, scale=1))
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(w * X + b - Y))
            gw, gb = tape.gradient(loss, [w, b])
            w.assign_sub(0.01 * gw)
            b.assign_sub(0.01 * gb)
            return loss
        step = wrap(step)
        return lambda: step().numpy()

    if name in ("chain_100", "chain_1m"):
        n = 100 if name == "chain_100" else 1_000_000
        reps = 20 if name == "chain_100" else 4
        x, w, b = tf.Variable(f32(n)), tf.Variable(f32(n)), tf.Variable(f32(n))
        def step():
            with tf.GradientTape() as tape:
                y = x
                for _ in range(reps):
                    y = tf.tanh(y * w + b)
                loss = tf.reduce_sum(y)
            return tape.gradient(loss, [x, w, b])
        step = wrap(step)
        return lambda: step()[0].numpy()

    if name in ("mlp_tiny", "mlp_mnist"):
        sizes, batch = ((5, 10, 2), 32) if name == "mlp_tiny" else ((784, 512, 512, 10), 128)
        ws = [tf.Variable(f32(i, o)) for i, o in zip(sizes, sizes[1:])]
        bs = [tf.Variable(f32(o)) for o in sizes[1:]]
        params = ws + bs
        ms = [tf.Variable(tf.zeros_like(p)) for p in params]
        vs = [tf.Variable(tf.zeros_like(p)) for p in params]
        X = tf.constant(f32(batch, sizes[0], scale=1))
        L = tf.constant(rng.integers(0, sizes[-1], batch).astype("int32"))
        def step():
            with tf.GradientTape() as tape:
                h = X
                for w, b in zip(ws[:-1], bs[:-1]):
                    h = tf.nn.relu(tf.matmul(h, w) + b)
                logits = tf.matmul(h, ws[-1]) + bs[-1]
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=L, logits=logits))
            grads = tape.gradient(loss, params)
            for p, m, v, g in zip(params, ms, vs, grads):      # Adam, by hand, in every framework
                m.assign(0.9 * m + 0.1 * g)
                v.assign(0.999 * v + 0.001 * tf.square(g))
                p.assign_sub(0.001 * m / (tf.sqrt(v) + 1e-7))
            return loss
        step = wrap(step)
        return lambda: step().numpy()

    if name == "cnn":
        X = tf.constant(f32(32, 28, 28, 1, scale=1))
        L = tf.constant(rng.integers(0, 10, 32).astype("int32"))
        k1, k2 = tf.Variable(f32(3, 3, 1, 32)), tf.Variable(f32(3, 3, 32, 64))
        b1, b2 = tf.Variable(f32(32)), tf.Variable(f32(64))
        w, b = tf.Variable(f32(7 * 7 * 64, 10)), tf.Variable(f32(10))
        params = [k1, b1, k2, b2, w, b]
        def step():
            with tf.GradientTape() as tape:
                h = tf.nn.relu(tf.nn.conv2d(X, k1, strides=1, padding="SAME") + b1)
                h = tf.nn.max_pool2d(h, 2, 2, "VALID")
                h = tf.nn.relu(tf.nn.conv2d(h, k2, strides=1, padding="SAME") + b2)
                h = tf.nn.max_pool2d(h, 2, 2, "VALID")
                logits = tf.matmul(tf.reshape(h, [32, -1]), w) + b
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=L, logits=logits))
            for p, g in zip(params, tape.gradient(loss, params)):
                p.assign_sub(0.01 * g)
            return loss
        step = wrap(step)
        return lambda: step().numpy()

    if name == "lstm":
        T, B, I, H = 50, 32, 16, 64
        X = tf.constant(f32(T, B, I, scale=1))
        Y = tf.constant(f32(B, 1, scale=1))
        W, U, bias = tf.Variable(f32(I, 4 * H)), tf.Variable(f32(H, 4 * H)), tf.Variable(f32(4 * H))
        V = tf.Variable(f32(H, 1))
        params = [W, U, bias, V]
        def step():
            with tf.GradientTape() as tape:
                h, c = tf.zeros([B, H]), tf.zeros([B, H])
                for t in range(T):
                    z = tf.matmul(X[t], W) + tf.matmul(h, U) + bias
                    i, f, g, o = tf.split(z, 4, axis=1)
                    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
                    h = tf.sigmoid(o) * tf.tanh(c)
                loss = tf.reduce_mean(tf.square(tf.matmul(h, V) - Y))
            for p, g in zip(params, tape.gradient(loss, params)):
                p.assign_sub(0.01 * g)
            return loss
        step = wrap(step)
        return lambda: step().numpy()

    if name == "attention":
        B, T, D, heads = 8, 64, 128, 4
        X = tf.constant(f32(B, T, D, scale=1))
        Y = tf.constant(f32(B, T, D, scale=1))
        wq, wk, wv, wo = (tf.Variable(f32(D, D)) for _ in range(4))
        w1, w2 = tf.Variable(f32(D, 4 * D)), tf.Variable(f32(4 * D, D))
        params = [wq, wk, wv, wo, w1, w2]
        def split(t):
            return tf.transpose(tf.reshape(t, [B, T, heads, D // heads]), [0, 2, 1, 3])
        def norm(t):
            mean = tf.reduce_mean(t, -1, keepdims=True)
            var = tf.reduce_mean(tf.square(t - mean), -1, keepdims=True)
            return (t - mean) * tf.math.rsqrt(var + 1e-5)
        def step():
            with tf.GradientTape() as tape:
                n = norm(X)
                q, k, v = split(n @ wq), split(n @ wk), split(n @ wv)
                a = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (D // heads) ** -0.5)
                o = tf.reshape(tf.transpose(tf.matmul(a, v), [0, 2, 1, 3]), [B, T, D]) @ wo
                h = X + o
                h = h + tf.nn.gelu(norm(h) @ w1, approximate=True) @ w2
                loss = tf.reduce_mean(tf.square(h - Y))
            for p, g in zip(params, tape.gradient(loss, params)):
                p.assign_sub(0.01 * g)
            return loss
        step = wrap(step)
        return lambda: step().numpy()

    if name == "hvp":                  # nested tapes: Hessian-vector product of a small MLP
        W1, W2 = tf.Variable(f32(20, 50)), tf.Variable(f32(50, 1))
        X, V = tf.constant(f32(64, 20, scale=1)), tf.constant(f32(20, 50))
        def step():
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(X, W1)), W2)))
                g = inner.gradient(loss, W1)
                gv = tf.reduce_sum(g * V)
            return outer.gradient(gv, W1)
        step = wrap(step)
        return lambda: step().numpy()

    if name == "jacobian":
        W1, W2 = tf.Variable(f32(64, 64)), tf.Variable(f32(64, 64))
        X = tf.Variable(f32(64, scale=1))
        def step():
            with tf.GradientTape() as tape:
                y = tf.tanh(tf.linalg.matvec(W2, tf.tanh(tf.linalg.matvec(W1, X))))
            return tape.jacobian(y, X)
        step = wrap(step)
        return lambda: step().numpy()

    raise KeyError(name)
