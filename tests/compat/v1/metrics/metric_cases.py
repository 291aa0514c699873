"""Calls of the metrics of TensorFlow 1, whose results TensorFlow 2.21 gave for `metric_values.json`.

`python tests/compat/v1/metrics/metric_cases.py tensorflow.compat.v1` prints the values of a library.
"""

import importlib
import json
import sys

import numpy as np

LABELS = [[1.0, 0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
SCORES = [[0.9, 0.8, 0.3, 0.6, 0.1, 0.35], [0.5, 0.2, 0.75]]
WEIGHTS = [[1.0, 0.5, 2.0, 1.0, 0.0, 3.0], [1.0, 2.0, 0.5]]
CLASSES = [[0, 2, 1, 1, 2, 0], [3, 2, 1]]
GUESSES = [[0, 1, 1, 1, 2, 3], [3, 0, 1]]
RANKED_LABELS = [[[0, 2], [1, 3]], [[3, 1]]]
RANKED_SCORES = [[[0.1, 0.4, 0.3, 0.2], [0.5, 0.2, 0.1, 0.7]], [[0.3, 0.9, 0.2, 0.6]]]
RANKED = [[[1, 2, 3], [3, 0, 1]], [[1, 3, 0]]]
ROWS = [[[1.0, 2.0], [3.0, -1.0]], [[0.5, 0.25]]]
OTHER_ROWS = [[[0.5, 2.5], [2.0, 1.0]], [[1.0, 1.0]]]
THRESHOLDS = [-0.1, 0.25, 0.5, 0.8, 1.1]

# name of the case: (metric, what is fed, options that are not fed); weights come last if they are given.
CASES = {
    "mean": ("mean", [SCORES], {}),
    "mean_weighted": ("mean", [SCORES, WEIGHTS], {}),
    "mean_tensor": ("mean_tensor", [[[1.0, 2.0], [3.0, 5.0]], [[1.0, 0.0], [2.0, 2.0]]], {}),
    "accuracy": ("accuracy", [LABELS, LABELS[::-1][1:] + LABELS[1:]], {}),
    "accuracy_weighted": ("accuracy", [CLASSES, GUESSES, WEIGHTS], {}),
    "mean_squared_error": ("mean_squared_error", [LABELS, SCORES, WEIGHTS], {}),
    "root_mean_squared_error": ("root_mean_squared_error", [LABELS, SCORES, WEIGHTS], {}),
    "mean_absolute_error": ("mean_absolute_error", [LABELS, SCORES], {}),
    "mean_relative_error": ("mean_relative_error", [LABELS, SCORES, SCORES, WEIGHTS], {}),
    "mean_cosine_distance": ("mean_cosine_distance", [ROWS, OTHER_ROWS], {"dim": 1}),
    "percentage_below": ("percentage_below", [SCORES, WEIGHTS], {"threshold": 0.5}),
    "mean_iou": ("mean_iou", [CLASSES, GUESSES, WEIGHTS], {"num_classes": 5}),
    "mean_iou_unweighted": ("mean_iou", [CLASSES, GUESSES], {"num_classes": 4}),
    "mean_per_class_accuracy": ("mean_per_class_accuracy", [CLASSES, GUESSES, WEIGHTS], {"num_classes": 5}),
    "auc": ("auc", [LABELS, SCORES], {}),
    "auc_weighted_few": ("auc", [LABELS, SCORES, WEIGHTS], {"num_thresholds": 7}),
    "auc_careful": ("auc", [LABELS, SCORES], {"curve": "PR", "summation_method": "careful_interpolation"}),
    "auc_precision": ("auc", [LABELS, SCORES], {"curve": "PR"}),
    "auc_minoring": ("auc", [LABELS, SCORES], {"summation_method": "minoring", "num_thresholds": 5}),
    "auc_majoring": ("auc", [LABELS, SCORES], {"summation_method": "majoring", "num_thresholds": 5}),
    "auc_thresholds": ("auc", [LABELS, SCORES], {"thresholds": [0.2, 0.5, 0.7]}),
    "sensitivity_at_specificity": ("sensitivity_at_specificity", [LABELS, SCORES, WEIGHTS], {"specificity": 0.6}),
    "specificity_at_sensitivity": ("specificity_at_sensitivity", [LABELS, SCORES], {"sensitivity": 0.7}),
    "precision_at_thresholds": ("precision_at_thresholds", [LABELS, SCORES, WEIGHTS], {"thresholds": THRESHOLDS}),
    "recall_at_thresholds": ("recall_at_thresholds", [LABELS, SCORES, WEIGHTS], {"thresholds": THRESHOLDS}),
    "precision_at_k": ("precision_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 2}),
    "precision_at_k_class": ("precision_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 2, "class_id": 3}),
    "precision_at_k_weighted": ("precision_at_k", [RANKED_LABELS, RANKED_SCORES, [[1.0, 3.0], [2.0]]], {"k": 2}),
    "recall_at_k": ("recall_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 2}),
    "recall_at_k_class": ("recall_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 2, "class_id": 1}),
    "precision_at_top_k": ("precision_at_top_k", [RANKED_LABELS, RANKED], {"k": 3}),
    "recall_at_top_k": ("recall_at_top_k", [RANKED_LABELS, RANKED], {"k": 2}),
    "average_precision_at_k": ("average_precision_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 3}),
    "average_precision_at_k_weighted": (
        "average_precision_at_k", [RANKED_LABELS, RANKED_SCORES, [[1.0, 3.0], [2.0]]], {"k": 3},
    ),
    "sparse_average_precision_at_k": ("sparse_average_precision_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 2}),
    "sparse_precision_at_k": ("sparse_precision_at_k", [RANKED_LABELS, RANKED_SCORES], {"k": 1}),
}  # fmt: skip
for _name in ("true_positives", "false_positives", "true_negatives", "false_negatives"):
    CASES[_name] = (_name, [LABELS, [[round(x) for x in row] for row in SCORES], WEIGHTS], {})
    CASES[f"{_name}_at_thresholds"] = (f"{_name}_at_thresholds", [LABELS, SCORES, WEIGHTS], {"thresholds": THRESHOLDS})
for _name in ("precision", "recall"):
    CASES[_name] = (_name, [LABELS, [[round(x) for x in row] for row in SCORES], WEIGHTS], {})
ARGUMENTS = {"mean": 1, "mean_tensor": 1, "percentage_below": 1, "mean_relative_error": 3}


def dtype_of(rows):
    found = np.asarray(rows).dtype
    return "int64" if found.kind == "i" else "float32"


def measured(tf, case):
    """The local variables of a metric, the results of its updates, and its last value."""
    metric, fed, options = CASES[case]
    with tf.Graph().as_default():
        shapes = [[None, *np.shape(part[0])[1:]] if metric != "mean_tensor" else np.shape(part[0]) for part in fed]
        places = [tf.placeholder(dtype_of(part[0]), shape) for part, shape in zip(fed, shapes, strict=True)]
        count = ARGUMENTS.get(metric, 2)
        given = dict(zip(("weights",), places[count:], strict=False))
        value, update = getattr(tf.metrics, metric)(*places[:count], **options, **given)
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            updates = []
            for batch in range(len(fed[0])):
                result = session.run(update, {p: part[batch] for p, part in zip(places, fed, strict=True)})
                updates.append(np.asarray(result).tolist())
            names = [[v.name, v.dtype.base_dtype.name, v.shape.as_list()] for v in tf.local_variables()]
            return {"variables": names, "updates": updates, "value": np.asarray(session.run(value)).tolist()}


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    library.disable_v2_behavior()
    print(json.dumps({case: measured(library, case) for case in CASES}))
