"""Makes training steps of workloads written for PyTorch.

torch.compile takes the loss, or, where a loss is a long loop, the body of the loop (`part`); its gradient is compiled
with it. Images are NCHW here: `channels_first` converts the arrays of four axes.
"""

import functools

import torch
from registry import STEPS, losses

torch.set_num_threads(2)
CHANNELS_FIRST = set()
compiled_mode = False


@functools.cache
def _compile(function):
    return torch.compile(function, dynamic=False)


def compile_if_asked(function):
    return _compile(function) if compiled_mode else function


def part(function):
    """A function that is compiled on its own, in compiled mode."""

    @functools.wraps(function)
    def call(*arguments):
        return compile_if_asked(function)(*arguments)

    return call


def _descent(function, whole=True):
    """Updates the parameters and returns the loss."""

    def run(params, data, rate):
        value = (compile_if_asked(function) if whole else function)(params, data)
        gradients = torch.autograd.grad(value, params)
        with torch.no_grad():
            torch._foreach_add_(params, gradients, alpha=-rate)
        return value

    return run


loss = losses(_descent)
loss_of_parts = losses(functools.partial(_descent, whole=False))


def channels_first(function):
    CHANNELS_FIRST.add(function.__name__)
    return function


def build(name: str, values, compiled: bool):
    """A function without arguments that does one step and returns the loss as a float."""
    global compiled_mode
    compiled_mode = compiled
    torch._dynamo.reset()
    _compile.cache_clear()

    def convert(array, order):
        tensor = torch.tensor(array)
        if name in CHANNELS_FIRST and tensor.ndim == 4:
            tensor = tensor.permute(order).contiguous()
        return tensor.long() if tensor.dtype == torch.int32 else tensor

    params = [convert(p, (3, 2, 0, 1)).requires_grad_() for p in values.params]
    data = [convert(d, (0, 3, 1, 2)) for d in values.data]
    return lambda: STEPS[name](params, data, values.rate).item()


def mlp(x, params, activation):
    """The layers of `params`: weight and bias of each, one after the other."""
    for w, b in zip(params[:-2:2], params[1:-2:2]):
        x = activation(torch.addmm(b, x, w))
    return torch.addmm(params[-1], x, params[-2])
