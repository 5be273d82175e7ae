import experiments.rivals  # noqa: F401 (registers the models)
from fathomer.model.registry import MODELS
from tests.model.baselines.small import SHIPPED

RIVALS = [name for name in MODELS if name not in SHIPPED]
