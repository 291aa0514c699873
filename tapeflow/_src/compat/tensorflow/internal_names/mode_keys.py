"""What a model is run for, by the names that Keras and estimators have for it."""

from __future__ import annotations


class KerasModeKeys:
    """Names of what a model is run for."""

    TRAIN, TEST, PREDICT = "train", "test", "predict"


class EstimatorModeKeys:
    """The same names, as estimators have them."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"
