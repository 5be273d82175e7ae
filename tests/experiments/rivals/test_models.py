"""The rivals pass the tests of all models."""

import pytest

from experiments.pretrain_qt import pretrain_encoders
from experiments.rivals import cnn_mcfa, multi_qt
from fathomer.data.demo import demo_corpus
from fathomer.model.interface import DirectNetwork
from fathomer.model.registry import MODELS
from tests.experiments.rivals import RIVALS
from tests.model.baselines.contract import ModelContract, StepwiseContract, models

STEPWISE = [name for name in RIVALS if not issubclass(MODELS[name].network, DirectNetwork)]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Pretrain small sentence encoders on the demo corpus; return their file."""
    path = tmp_path_factory.mktemp("encoders") / "qt.safetensors"
    texts = demo_corpus(train=150, test=2)[0].texts
    pretrain_encoders(texts, path, names=["demo"], size=64, epochs=1, seed=0, log=print)
    return path


class TestRivals(ModelContract):
    name = models(RIVALS)

    @pytest.fixture
    def train_command(self, run_experiments):
        return run_experiments

    @pytest.fixture(autouse=True)
    def inputs(self, name, request, monkeypatch):
        """Give a model what it needs besides labelled texts: these are too short for multi-qt."""
        if name == "multi-qt":
            monkeypatch.setenv(multi_qt.FILE, str(request.getfixturevalue("encoders")))


class TestRivalsTrainedInSteps(StepwiseContract):
    name = models(STEPWISE)

    @pytest.fixture(autouse=True)
    def translations(self, monkeypatch):
        """Let one of the unknown words separate texts from their translations."""
        monkeypatch.setattr(cnn_mcfa, "SEPARATOR", "z")
