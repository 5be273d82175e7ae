"""Fuzz the OpenAPI schema: valid requests are answered, invalid ones are rejected."""

import pytest

from fathomer.predictor import Predictor
from fathomer.serve.limits import Limits
from fathomer.serve.routes import create_app
from fathomer.train.fit import fit
from tests.tiny import TINY, tiny_examples

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from hypothesis import HealthCheck, settings  # noqa: E402

# Small limits, so that requests beyond them still fit into a body. The schema cannot express how many
# words are read for contributions: at most 50 times 50 in each of the 20 texts. Nor can it express that
# only a model with supervised depth accepts depth budgets.
LIMITS = Limits(texts_per_request=20, characters_per_text=200, words_per_request=50_000)
RECIPE = TINY.updated({"model": {"depth": "supervised"}, "train": {"epochs": 1, "held_out": 0.3}})
app = create_app(Predictor(fit(tiny_examples(), RECIPE).artifact), limits=LIMITS)
schema = schemathesis.openapi.from_asgi("/openapi.json", app)


@schema.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_the_service_conforms_to_its_schema(case):
    case.call_and_validate()
