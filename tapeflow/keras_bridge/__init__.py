"""What lets the Keras of PyPI run on Tapeflow, unchanged. Importing this names `tf.keras`; it imports no Keras."""

from tapeflow.namespace import package_later

for _path in ("keras", "losses", "metrics", "optimizers", "initializers"):
    package_later(_path, "tapeflow.keras_bridge.loading")
