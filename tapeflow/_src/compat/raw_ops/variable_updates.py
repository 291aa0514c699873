"""Raw operations that change variables: one step of an optimizer, and rows that are set or added to.

A rule takes the values of the variables, the gradient and the hyperparameters, and gives the new values. The dense
operation applies it to whole variables, the sparse one to the rows `indices`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import group
from tapeflow._src.types.indexed_slices import IndexedSlices

Values = tuple[Any, ...]


def _descent(var: Any, delta: Any, alpha: Any) -> Values:
    return (var - alpha * delta,)


def _momentum(var: Any, accum: Any, grad: Any, lr: Any, momentum: Any, use_nesterov: bool) -> Values:
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if use_nesterov else accum * lr
    return var - step, accum


def _keras_momentum(var: Any, accum: Any, grad: Any, lr: Any, momentum: Any, use_nesterov: bool) -> Values:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


def _adam(
    var: Any, m: Any, v: Any, grad: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, use_nesterov: bool,
) -> Values:  # fmt: skip
    rate = lr * primitives.Sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    m = m + (grad - m) * (1.0 - beta1)
    v = v + (grad * grad - v) * (1.0 - beta2)
    direction = m * beta1 + (1.0 - beta1) * grad if use_nesterov else m
    return var - direction * rate / (primitives.Sqrt(v) + epsilon), m, v


def _amsgrad(
    var: Any, m: Any, v: Any, vhat: Any, grad: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any,
) -> Values:  # fmt: skip
    rate = lr * primitives.Sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    m = m + (grad - m) * (1.0 - beta1)
    v = v + (grad * grad - v) * (1.0 - beta2)
    vhat = primitives.Maximum(vhat, v)
    return var - m * rate / (primitives.Sqrt(vhat) + epsilon), m, v, vhat


def _adamax(
    var: Any, m: Any, v: Any, grad: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any
) -> Values:
    m = m + (grad - m) * (1.0 - beta1)
    v = primitives.Maximum(beta2 * v, primitives.Abs(grad))
    return var - lr / (1.0 - beta1_power) * (m / (v + epsilon)), m, v


def _adagrad(var: Any, accum: Any, grad: Any, lr: Any, update_slots: bool) -> Values:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr * primitives.Rsqrt(accum), accum


def _adagrad_v2(var: Any, accum: Any, grad: Any, lr: Any, epsilon: Any, update_slots: bool) -> Values:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (primitives.Sqrt(accum) + epsilon), accum


def _adadelta(var: Any, accum: Any, accum_update: Any, grad: Any, lr: Any, rho: Any, epsilon: Any) -> Values:
    accum = accum * rho + grad * grad * (1.0 - rho)
    update = primitives.Sqrt(accum_update + epsilon) * primitives.Rsqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1.0 - rho)


def _rmsprop(var: Any, ms: Any, mom: Any, grad: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any) -> Values:
    ms = ms + (grad * grad - ms) * (1.0 - rho)
    mom = mom * momentum + grad * lr * primitives.Rsqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rmsprop(
    var: Any, mg: Any, ms: Any, mom: Any, grad: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any
) -> Values:
    ms = ms + (grad * grad - ms) * (1.0 - rho)
    mg = mg + (grad - mg) * (1.0 - rho)
    mom = mom * momentum + grad * lr * primitives.Rsqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _ftrl_v2(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any, lr_power: Any,
    multiply_linear_by_lr: bool,
) -> Values:  # fmt: skip
    factor = lr if multiply_linear_by_lr else lr / lr
    with_shrinkage = grad + 2.0 * l2_shrinkage * var
    new = accum + grad * grad
    sigma = primitives.Pow(new, -lr_power) - primitives.Pow(accum, -lr_power)
    linear = linear + factor * with_shrinkage - sigma * factor / lr * var
    quadratic = primitives.Pow(new, -lr_power) * factor / lr + 2.0 * l2 * factor
    bound = l1 * factor
    clipped = primitives.Maximum(primitives.Minimum(linear, bound), -bound)
    return (clipped - linear) / quadratic, new, linear


def _ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any, multiply: bool
) -> Values:
    return _ftrl_v2(var, accum, linear, grad, lr, l1, l2, l2 - l2, lr_power, multiply)


def _proximal(value: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """The nearest point in the sense of the penalties l1 |x| and l2 x^2 / 2."""
    return primitives.Sign(value) * primitives.Maximum(primitives.Abs(value) - rate * l1, 0.0) / (1.0 + rate * l2)


def _proximal_descent(var: Any, delta: Any, alpha: Any, l1: Any, l2: Any) -> Values:
    return (_proximal(var - alpha * delta, alpha, l1, l2),)


def _proximal_adagrad(var: Any, accum: Any, grad: Any, lr: Any, l1: Any, l2: Any) -> Values:
    accum = accum + grad * grad
    rate = lr * primitives.Rsqrt(accum)
    return _proximal(var - grad * rate, rate, l1, l2), accum


def _adagrad_da(var: Any, total: Any, squares: Any, grad: Any, lr: Any, l1: Any, l2: Any, step: Any) -> Values:
    total, squares = total + grad, squares + grad * grad
    kept = primitives.Sign(total) * primitives.Maximum(primitives.Abs(total) - l1 * step, 0.0)
    return -lr * kept / (l2 * step * lr + primitives.Sqrt(squares)), total, squares


def _add_sign(var: Any, m: Any, grad: Any, lr: Any, alpha: Any, decay: Any, beta: Any) -> Values:
    m = m * beta + grad * (1.0 - beta)
    return var - lr * (alpha + decay * primitives.Sign(grad) * primitives.Sign(m)) * grad, m


def _power_sign(var: Any, m: Any, grad: Any, lr: Any, logbase: Any, decay: Any, beta: Any) -> Values:
    m = m * beta + grad * (1.0 - beta)
    return var - lr * primitives.Exp(logbase * decay * primitives.Sign(grad) * primitives.Sign(m)) * grad, m


def _dense(rule: Callable[..., Values], slots: int, order: list[int]) -> Callable[..., Any]:
    """The operation on whole variables: its arguments are variables, then others, which the rule gets in `order`."""

    def update(*arguments: Any) -> Any:
        variables, others = arguments[:slots], arguments[slots:]
        numbers = _numbers(others, variables[0].dtype)
        new = rule(*(v.read_value() for v in variables), *(numbers[i] for i in order))
        return group(*[variable.assign(value, read_value=False) for variable, value in zip(variables, new)])

    return update


def _sparse(rule: Callable[..., Values], slots: int, order: list[int], indices_at: int) -> Callable[..., Any]:
    """The operation on rows: as the dense one, with the indices of the rows among the other arguments."""

    def update(*arguments: Any) -> Any:
        variables, others = arguments[:slots], list(arguments[slots:])
        indices = convert_to_tensor(others.pop(indices_at))
        numbers = _numbers(others, variables[0].dtype)
        rows = (primitives.GatherV2(v.read_value(), indices, 0, 0) for v in variables)
        new = rule(*rows, *(numbers[i] for i in order))
        return group(*[v.scatter_update(IndexedSlices(value, indices)) for v, value in zip(variables, new)])

    return update


def _numbers(values: Any, dtype: Any) -> list[Any]:
    return [value if isinstance(value, bool) else cast(convert_to_tensor(value), dtype) for value in values]


def _scatter(method: str) -> Callable[..., Any]:
    def update(resource: Any, indices: Any, updates: Any) -> Any:
        updates = convert_to_tensor(updates, dtype=resource.dtype)
        return group(getattr(resource, method)(IndexedSlices(updates, convert_to_tensor(indices))))

    return update


def _rows() -> list[tuple[str, str, Any]]:
    """Of each optimizer: its name, its variables, its other arguments in TensorFlow's order, and its rule."""
    last, totals = "use_locking=False", "var gradient_accumulator gradient_squared_accumulator"
    kinds: list[tuple[str, str, str, Callable[..., Values], str]] = [
        ("GradientDescent", "var", "alpha delta", _descent, ""),
        ("Momentum", "var accum", "lr grad momentum", _momentum, "use_nesterov"),
        ("KerasMomentum", "var accum", "lr grad momentum", _keras_momentum, "use_nesterov"),
        ("Adam", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", _adam, "use_nesterov"),
        ("AdamWithAmsgrad", "var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", _amsgrad, ""),
        ("AdaMax", "var m v", "beta1_power lr beta1 beta2 epsilon grad", _adamax, ""),
        ("Adagrad", "var accum", "lr grad", _adagrad, "update_slots"),
        ("AdagradV2", "var accum", "lr epsilon grad", _adagrad_v2, "update_slots"),
        ("Adadelta", "var accum accum_update", "lr rho epsilon grad", _adadelta, ""),
        ("RMSProp", "var ms mom", "lr rho momentum epsilon grad", _rmsprop, ""),
        ("CenteredRMSProp", "var mg ms mom", "lr rho momentum epsilon grad", _centered_rmsprop, ""),
        ("Ftrl", "var accum linear", "grad lr l1 l2 lr_power", _ftrl, "multiply_linear_by_lr"),
        ("ProximalGradientDescent", "var", "alpha l1 l2 delta", _proximal_descent, ""),
        ("ProximalAdagrad", "var accum", "lr l1 l2 grad", _proximal_adagrad, ""),
        ("AdagradDA", totals, "grad lr l1 l2 global_step", _adagrad_da, ""),
        ("AddSign", "var m", "lr alpha sign_decay beta grad", _add_sign, ""),
        ("PowerSign", "var m", "lr logbase sign_decay beta grad", _power_sign, ""),
        ("FtrlV2", "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power", _ftrl_v2, "multiply_linear_by_lr"),
    ]  # fmt: skip
    without_sparse = {"GradientDescent", "Adam", "AdamWithAmsgrad", "AdaMax", "AddSign", "PowerSign"}
    rows: list[tuple[str, str, Any]] = []
    for name, variables, others, rule, flag in kinds:
        own, given = variables.split(), others.split()
        gradient = "delta" if "delta" in given else "grad"
        wanted = [gradient, *(word for word in given if word != gradient), *([flag] if flag else [])]
        for sparse in (False, True):
            if sparse and name in without_sparse:
                continue
            words = list(given)
            if sparse:
                words.insert(words.index(gradient) + 1, "indices")
            default = f"{flag}={flag == 'update_slots'}" if flag else ""
            arguments = ", ".join(filter(None, [*own, *words, last, default]))
            known = [word for word in (*words, "use_locking", *([flag] if flag else [])) if word != "indices"]
            order = [known.index(word) for word in wanted]
            if sparse:
                arguments = arguments.replace("delta", "grad")
                target: Any = _sparse(rule, len(own), order, words.index("indices"))
            else:
                target = _dense(rule, len(own), order)
            rows.append((f"Resource{'Sparse' if sparse else ''}Apply{name}", arguments, target))
    scatters = ["add", "sub", "mul", "div", "min", "max", "update"]
    rows += [
        (f"ResourceScatter{name.title()}", "resource, indices, updates", _scatter(f"scatter_{name}"))
        for name in scatters
    ]
    return rows


ROWS = _rows()
