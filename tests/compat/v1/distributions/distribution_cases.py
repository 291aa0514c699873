"""Distributions of TensorFlow 1, whose numbers TensorFlow 2.21 gave for `distribution_values.json`.

`python tests/compat/v1/distributions/distribution_cases.py tensorflow.compat.v1` prints the numbers of a library.
"""

import importlib
import json
import sys

import numpy as np

# name of the case: (class, arguments, values of the right kind, other arguments for the divergence or None)
CASES = {
    "Normal": ("Normal", {"loc": [0.0, 1.0], "scale": 2.0}, [[0.5, -1.0]], {"loc": 1.0, "scale": [1.0, 3.0]}),
    "Laplace": ("Laplace", {"loc": [0.0, 1.0], "scale": 2.0}, [0.5, -1.0], None),
    "Uniform": ("Uniform", {"low": [0.0, 1.0], "high": 3.0}, [0.5, 4.0], None),
    "Gamma": ("Gamma", {"concentration": [0.5, 2.0], "rate": 3.0}, [0.5, 1.5], {"concentration": 1.5, "rate": 2.0}),
    "Exponential": ("Exponential", {"rate": [0.5, 2.0]}, [0.5, 1.5], None),
    "Beta": (
        "Beta", {"concentration1": [1.5, 2.0], "concentration0": 3.0}, [0.25, 0.5],
        {"concentration1": 2.5, "concentration0": [1.0, 2.0]},
    ),
    "StudentT": ("StudentT", {"df": [1.5, 3.0], "loc": 1.0, "scale": 2.0}, [0.5, 1.5], None),
    "Dirichlet": (
        "Dirichlet", {"concentration": [1.5, 2.0, 3.0]}, [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]],
        {"concentration": [1.5, 1.0, 1.0]},
    ),
    "Bernoulli": ("Bernoulli", {"probs": [0.2, 0.75]}, [[0, 1], [1, 0]], {"logits": [0.5, -0.5]}),
    "BernoulliLogits": ("Bernoulli", {"logits": [0.2, -3.0]}, [0, 1], None),
    "Categorical": ("Categorical", {"probs": [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]}, [0, 2], {"logits": [0.5, -0.5, 0.0]}),
    "CategoricalLogits": ("Categorical", {"logits": [0.5, -1.0, 2.0]}, [0, 2, 1], None),
    "Multinomial": ("Multinomial", {"total_count": 4.0, "probs": [0.2, 0.3, 0.5]}, [[1.0, 1.0, 2.0]], None),
    "DirichletMultinomial": (
        "DirichletMultinomial", {"total_count": 4.0, "concentration": [1.0, 2.0, 3.0]}, [[1.0, 1.0, 2.0]], None,
    ),
}  # fmt: skip
OF_VALUES = ("log_prob", "prob", "cdf", "survival_function")
OF_NOTHING = ("mean", "variance", "stddev", "mode", "entropy")


def measured(tf, case):
    """What a distribution tells; a method that it has not is left out."""
    kind, arguments, values, others = CASES[case]
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        make = getattr(tf.distributions, kind)
        distribution = make(**arguments)
        for method in (*OF_VALUES, *OF_NOTHING, "kl"):
            try:
                if method == "kl":
                    result = None if others is None else distribution.kl_divergence(make(**others))
                else:
                    result = getattr(distribution, method)(*([tf.constant(values)] if method in OF_VALUES else []))
            except NotImplementedError:
                continue
            if result is not None:
                found[method] = np.asarray(session.run(result), dtype=np.float64).tolist()
        drawn = distribution.sample(5)
        found["shapes"] = [s.as_list() for s in (distribution.batch_shape, distribution.event_shape, drawn.shape)]
        found["names"] = [distribution.name, distribution.dtype.name, drawn.dtype.name]
    return found


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    library.disable_v2_behavior()
    print(json.dumps({case: measured(library, case) for case in CASES}))
