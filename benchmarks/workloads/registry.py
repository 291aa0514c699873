"""The training steps of the library that runs in this process, by name."""

STEPS = {}


def step(function):
    """`function(params, data, rate)` does one step; its library's `train.py` says what it returns."""
    STEPS[function.__name__] = function
    return function


def losses(step_of):
    """A decorator for losses `function(params, data)`: `step_of(function)` trains by gradient descent."""

    def register(function):
        STEPS[function.__name__] = step_of(function)
        return function

    return register
