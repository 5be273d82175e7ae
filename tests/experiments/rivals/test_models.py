"""The rivals pass the tests of all models."""

import pytest

from tests.experiments.rivals import RIVALS
from tests.model.baselines.contract import ModelContract, StepwiseContract, models


class TestRivals(ModelContract):
    name = models(RIVALS)

    @pytest.fixture
    def train_command(self, run_experiments):
        return run_experiments


class TestRivalsTrainedInSteps(StepwiseContract):
    name = models(RIVALS)
