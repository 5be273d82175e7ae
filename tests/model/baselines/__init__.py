import pytest

pytest.register_assert_rewrite("tests.model.baselines.contract", "tests.model.baselines.sizes")
