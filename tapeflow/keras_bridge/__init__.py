"""What lets the Keras of PyPI run on Tapeflow, unchanged. Importing this names `tf.keras`; it imports no Keras."""

from tapeflow.namespace import package_later
from tapeflow.tensorflow_alias import offer_inner_modules

for _path in ("keras", "losses", "metrics", "optimizers", "initializers"):
    package_later(_path, "tapeflow.keras_bridge.loading")
offer_inner_modules("tapeflow.keras_bridge.inner_modules")
