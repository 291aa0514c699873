"""The constants of SavedModels, by the name of the module that holds them in TensorFlow 1."""

DEFAULT_SIGNATURE = "serving_default"
METHOD = "tensorflow/serving"
MAIN_OPERATION, LEGACY_INITIALIZER = "saved_model_main_op", "legacy_init_op"  # collections of TensorFlow 1
INITIALIZER = "__saved_model_init_op"  # the signature of what runs first
TRAIN_OPERATION = "__saved_model_train_op"  # the signature of a step of training

VALUE_BY_NAME: dict[str, dict[str, str | int]] = {
    "signature_constants": {
        "DEFAULT_SERVING_SIGNATURE_DEF_KEY": DEFAULT_SIGNATURE,
        "CLASSIFY_INPUTS": "inputs", "CLASSIFY_METHOD_NAME": f"{METHOD}/classify",
        "CLASSIFY_OUTPUT_CLASSES": "classes", "CLASSIFY_OUTPUT_SCORES": "scores",
        "PREDICT_INPUTS": "inputs", "PREDICT_METHOD_NAME": f"{METHOD}/predict", "PREDICT_OUTPUTS": "outputs",
        "REGRESS_INPUTS": "inputs", "REGRESS_METHOD_NAME": f"{METHOD}/regress", "REGRESS_OUTPUTS": "outputs",
    },
    "tag_constants": {"GPU": "gpu", "SERVING": "serve", "TPU": "tpu", "TRAINING": "train"},
    "constants": {
        "ASSETS_DIRECTORY": "assets", "ASSETS_KEY": "saved_model_assets", "DEBUG_DIRECTORY": "debug",
        "DEBUG_INFO_FILENAME_PB": "saved_model_debug_info.pb", "LEGACY_INIT_OP_KEY": LEGACY_INITIALIZER,
        "MAIN_OP_KEY": MAIN_OPERATION, "SAVED_MODEL_FILENAME_PB": "saved_model.pb",
        "SAVED_MODEL_FILENAME_PBTXT": "saved_model.pbtxt", "SAVED_MODEL_SCHEMA_VERSION": 1,
        "VARIABLES_DIRECTORY": "variables", "VARIABLES_FILENAME": "variables",
    },
}  # fmt: skip

# Those of `tf.saved_model`.
PUBLIC = {
    name: value
    for value_by_name in VALUE_BY_NAME.values()
    for name, value in value_by_name.items()
    if value not in (MAIN_OPERATION, LEGACY_INITIALIZER)
}
