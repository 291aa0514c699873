"""Small states over many steps; of long loops the body is compiled."""

import torch
from in_torch.train import loss, loss_of_parts, mlp, part


@part
def lorenz_step(x, p):
    def slope(x):
        a, b, c = x.unbind(1)
        return torch.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c], 1)

    k1 = slope(x)
    return x + 0.01 * slope(x + 0.005 * k1)


@loss_of_parts
def lorenz(params, data):
    (x,) = data
    for _ in range(40):
        x = lorenz_step(x, params[0])
    return x.square().mean()


@part
def epidemic_step(state, rates, observed):
    s, i, _ = state.unbind()
    infected, recovered = rates[0] * s * i, rates[1] * i
    state = state + 0.1 * torch.stack([-infected, infected - recovered, recovered])
    return state, (state - observed).square().sum()


@loss_of_parts
def epidemic(params, data):
    state, value = torch.tensor([0.99, 0.01, 0.0]), 0.0
    for observed in data[0]:
        state, more = epidemic_step(state, params[0], observed)
        value = value + more
    return value


MOTION = torch.tensor([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
SENSOR = torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])


@part
def kalman_step(x, p, process, noise, seen):
    x, p = MOTION @ x, MOTION @ p @ MOTION.T + process
    surprise = seen[:, None] - SENSOR @ x
    s = SENSOR @ p @ SENSOR.T + noise
    gain = torch.linalg.solve(s, SENSOR @ p).T
    value = (surprise * torch.linalg.solve(s, surprise)).sum() + torch.linalg.slogdet(s)[1]
    return x + gain @ surprise, p - gain @ SENSOR @ p, value


@loss_of_parts
def kalman_tracking(params, data):
    process, noise = torch.diag(params[0].exp()), torch.diag(params[1].exp())
    x, p, value = torch.zeros(4, 1), torch.eye(4), 0.0
    for seen in data[0]:
        x, p, more = kalman_step(x, p, process, noise, seen)
        value = value + more
    return value


@part
def markov_step(alpha, move, emit, seen):
    return torch.logsumexp(alpha[:, None] + move[:, :, None], 0) + emit[:, seen]


@loss_of_parts
def hidden_markov(params, data):
    move, emit = params[0].log_softmax(-1), params[1].log_softmax(-1)
    (observed,) = data
    alpha = emit[:, observed[0]] - torch.log(torch.tensor(8.0))
    for seen in observed[1:]:
        alpha = markov_step(alpha, move, emit, seen)
    return -torch.logsumexp(alpha, 0).mean()


@part
def bicycle_step(x, y, angle, speed, control, t):
    x, y = x + 0.1 * speed * torch.cos(angle), y + 0.1 * speed * torch.sin(angle)
    angle, speed = angle + 0.1 * speed * torch.tan(control[0]) / 2.0, speed + 0.1 * control[1]
    cost = (x - 0.1 * t).square() + (y - 0.5).square() + 0.1 * control.square().sum()
    return x, y, angle, speed, cost


@loss_of_parts
def bicycle(params, data):
    state, cost = data[0].unbind(), 0.0
    for control, t in zip(params[0], torch.arange(50.0)):
        *state, more = bicycle_step(*state, control, t)
        cost = cost + more
    return cost


@part
def spring_step(q, v, stiffness):
    d = q[1:] - q[:-1]
    length = torch.sqrt((d * d).sum(1) + 1e-6)
    pull = (stiffness * (length - 1.0) / length)[:, None] * d
    force = torch.nn.functional.pad(pull, (0, 0, 0, 1)) - torch.nn.functional.pad(pull, (0, 0, 1, 0))
    v = 0.99 * v + 0.02 * force
    return q + 0.02 * v, v


@loss_of_parts
def spring_chain(params, data):
    q, v = data
    for _ in range(50):
        q, v = spring_step(q, v, params[0])
    return q.square().mean()


@loss
def robot_arm(params, data):
    angles = params[0].cumsum(1)
    hand = 0.3 * torch.stack([angles.cos().sum(1), angles.sin().sum(1)], 1)
    return (hand - data[0]).square().sum(1).mean() + 0.01 * params[0].square().mean()


@part
def gru_step(h, x, w, u, b):
    a, c = (x @ w + b).split(8, 1), (h @ u).split(8, 1)
    z, r = torch.sigmoid(a[0] + c[0]), torch.sigmoid(a[1] + c[1])
    return z * h + (1.0 - z) * torch.tanh(a[2] + r * c[2])


@loss_of_parts
def small_gru(params, data):
    w, u, b, out = params
    xs, target = data
    h = torch.zeros(4, 8)
    for x in xs:
        h = gru_step(h, x, w, u, b)
    return (h @ out - target).square().mean()


@part
def attitude_step(q, rate):
    w, x, y, z = q.unbind(1)
    a, b, c = rate.unbind(1)
    dq = torch.stack([-x * a - y * b - z * c, w * a + y * c - z * b, w * b - x * c + z * a, w * c + x * b - y * a], 1)
    q = q + 0.05 * dq
    return q / torch.linalg.norm(q, dim=1, keepdim=True)


@loss_of_parts
def attitude(params, data):
    q, target = data
    for rate in params[0]:
        q = attitude_step(q, rate)
    return (1.0 - (q * target).sum(1).square()).mean()


@part
def cart_pole_step(state, *params):
    push = 10.0 * torch.tanh(mlp(state, params, torch.tanh))[:, 0]
    _, v, angle, spin = state.unbind(1)
    sine, cosine = torch.sin(angle), torch.cos(angle)
    drive = (push + 0.05 * spin * spin * sine) / 1.1
    twist = (9.8 * sine - cosine * drive) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
    state = state + 0.02 * torch.stack([v, drive - 0.05 * twist * cosine / 1.1, spin, twist], 1)
    return state, state.square().sum(1).mean() + 1e-3 * push.square().mean()


@loss_of_parts
def cart_pole(params, data):
    (state,), cost = data, 0.0
    for _ in range(40):
        state, more = cart_pole_step(state, *params)
        cost = cost + more
    return cost / 40
