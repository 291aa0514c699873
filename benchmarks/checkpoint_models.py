"""Deep models whose activations dominate their memory, as blocks that can be recomputed: for `tf`-like and PyTorch."""

import numpy as np

MODELS = ["mlp", "cnn", "lstm"]
BATCH, WIDTH, LAYERS = 2048, 512, 20  # mlp
IMAGES, SIDE, CHANNELS, CONVOLUTIONS = 16, 64, 32, 8  # cnn
EXAMPLES, TIME, HIDDEN = 64, 200, 128  # lstm
PER_BLOCK = {"mlp": 4, "cnn": 2, "lstm": 20}


def arrays(*shapes):
    random = np.random.default_rng(0)
    return [(random.standard_normal(s) / np.prod(s[:-1]) ** 0.5).astype("float32") for s in shapes]


def shapes_of(model: str) -> list[tuple[int, ...]]:
    if model == "mlp":
        return [(WIDTH, WIDTH)] * LAYERS
    if model == "cnn":
        return [(3, 3, CHANNELS, CHANNELS)] * CONVOLUTIONS
    return [(HIDDEN, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN)]


def input_shape(model: str) -> tuple[int, ...]:
    return {"mlp": (BATCH, WIDTH), "cnn": (IMAGES, SIDE, SIDE, CHANNELS), "lstm": (TIME, EXAMPLES, HIDDEN)}[model]


def blocks_of(model: str) -> list[slice]:
    count = {"mlp": LAYERS, "cnn": CONVOLUTIONS, "lstm": TIME}[model]
    return [slice(i, i + PER_BLOCK[model]) for i in range(0, count, PER_BLOCK[model])]


def tensorflow_step(tf, model: str, recompute: bool):
    """One step of gradient descent, eagerly, for TensorFlow or Tapeflow."""
    variables = [tf.Variable(a) for a in arrays(*shapes_of(model))]
    (data,) = (tf.constant(a) for a in arrays(input_shape(model)))

    def block(part):
        if model == "lstm":

            def run(h, c):
                for t in range(part.start, part.stop):
                    i, f, g, o = tf.split(data[t] @ variables[0] + h @ variables[1], 4, axis=1)
                    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
                    h = tf.sigmoid(o) * tf.tanh(c)
                return h, c

        else:

            def run(h):
                for w in variables[part]:
                    h = tf.nn.relu(h @ w if model == "mlp" else tf.nn.conv2d(h, w, 1, "SAME"))
                return (h,)

        return tf.recompute_grad(run) if recompute else run

    blocks = [block(part) for part in blocks_of(model)]

    def step():
        with tf.GradientTape() as tape:
            state = (tf.zeros([EXAMPLES, HIDDEN]),) * 2 if model == "lstm" else (data,)
            for run in blocks:
                state = run(*state)
            loss = tf.reduce_mean(state[0] ** 2)
        for v, g in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(0.01 * g)

    return step


def import_checkpoint():
    """Lets PyTorch import what its first checkpoint imports, so that it counts as import."""
    import torch
    from torch.utils.checkpoint import checkpoint

    checkpoint(torch.sin, torch.ones(1, requires_grad=True), use_reentrant=False).backward()


def torch_step(model: str, recompute: bool):
    import torch
    from torch.utils.checkpoint import checkpoint

    torch.set_num_threads(2)
    order = {"cnn": (3, 2, 0, 1)}.get(model, (0, 1))
    weights = [torch.from_numpy(np.transpose(a, order).copy()).requires_grad_() for a in arrays(*shapes_of(model))]
    (data,) = (torch.from_numpy(a) for a in arrays(input_shape(model)))
    data = data.permute(0, 3, 1, 2).contiguous() if model == "cnn" else data

    def block(part):
        if model == "lstm":

            def run(h, c):
                for t in range(part.start, part.stop):
                    i, f, g, o = (data[t] @ weights[0] + h @ weights[1]).chunk(4, 1)
                    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                    h = torch.sigmoid(o) * torch.tanh(c)
                return h, c

        else:

            def run(h):
                for w in weights[part]:
                    h = torch.relu(h @ w if model == "mlp" else torch.nn.functional.conv2d(h, w, padding=1))
                return (h,)

        return (lambda *state: checkpoint(run, *state, use_reentrant=False)) if recompute else run

    blocks = [block(part) for part in blocks_of(model)]

    def step():
        state = (torch.zeros(EXAMPLES, HIDDEN),) * 2 if model == "lstm" else (data,)
        for run in blocks:
            state = run(*state)
        gradients = torch.autograd.grad((state[0] ** 2).mean(), weights)
        with torch.no_grad():
            for w, g in zip(weights, gradients):
                w.sub_(0.01 * g)

    return step


def build(framework: str, library, model: str, recompute: bool):
    if framework == "torch":
        return torch_step(model, recompute)
    return tensorflow_step(library, model, recompute)
