"""Fuzz the OpenAPI schema: valid requests are answered, invalid ones are rejected."""

import pytest

from fathomer.predictor import Predictor
from fathomer.serve.limits import Limits
from fathomer.serve.routes import create_app
from fathomer.train.fit import fit
from tests.tiny import TINY, tiny_examples

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from hypothesis import HealthCheck, settings  # noqa: E402
from schemathesis.checks import load_all_checks  # noqa: E402
from schemathesis.pytest.lazy import get_all_tests  # noqa: E402

# Small limits, so that requests beyond them still fit into a body. The schema cannot express how many
# words are read for contributions: at most 50 times 50 in each of the 20 texts. Nor can it express that
# only a model with supervised depth accepts depth budgets.
LIMITS = Limits(texts_per_request=20, characters_per_text=200, words_per_request=50_000)
RECIPE = TINY.updated({"model": {"depth": "supervised"}, "train": {"epochs": 1, "held_out": 0.3}})


def conforms(case):
    case.call_and_validate()


def test_the_service_conforms_to_its_schema():
    """The tests of the operations are made here: while tests are collected, every worker would do it."""
    predictor = Predictor(fit(tiny_examples(), RECIPE).artifact)
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(predictor, limits=LIMITS))
    few = settings(max_examples=40, suppress_health_check=list(HealthCheck))
    load_all_checks()
    made = get_all_tests(schema=schema, test_func=conforms, settings=few, given_kwargs=None)
    tests = [each.ok() for each in made]
    assert {operation.path for operation, _ in tests} == set(schema.raw_schema["paths"])
    for _, test in tests:
        test()
