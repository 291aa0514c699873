"""How the property tests run: 200 examples each, the same in every run; `make fuzz` asks for more, and for others."""

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, configuration, settings

EXAMPLES = os.environ.get("TAPEFLOW_EXAMPLES")

configuration.set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "tapeflow-hypothesis")
settings.register_profile(
    "tapeflow",
    max_examples=int(EXAMPLES or 200),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("tapeflow")
