"""The OpenAPI description, fuzzed: whatever it allows is answered, whatever it forbids refused."""

import pytest

from fathomer.predictor import Predictor
from fathomer.serve.app import create_app
from fathomer.serve.limits import Limits
from tests.tiny import tiny_artifact

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from hypothesis import HealthCheck, settings  # noqa: E402

# Small ones, so that what exceeds them still fits into a body.
LIMITS = Limits(texts_per_request=20, characters_per_text=200)
app = create_app(Predictor(tiny_artifact()), limits=LIMITS)
schema = schemathesis.openapi.from_asgi("/openapi.json", app)


@schema.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_the_service_does_what_its_description_says(case):
    case.call_and_validate()
