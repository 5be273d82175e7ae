"""The scikit-learn estimator: saving, loading and pickling."""

import pickle

import pytest

import fathomer
from fathomer.errors import ArtifactError
from tests.small_classifier import LABELS, TEXTS, classifier, weights_of
from tests.tiny import tiny_artifact


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(TEXTS, LABELS)


def test_a_pickle_holds_files_and_no_network(fitted):
    content = pickle.dumps(fitted)
    for module in (b"torch", b"fathomer.model", b"tokenizers", b"fathomer.predictor"):
        assert b"c" + module not in content
        assert module + b"." not in content.replace(b"fathomer.estimator", b"")
    again = pickle.loads(content)
    assert again.get_params() == fitted.get_params()
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert weights_of(again) == weights_of(fitted)
    assert pickle.loads(pickle.dumps(classifier())).get_params() == classifier().get_params()


@pytest.mark.parametrize("values", [(2, 10), (True, False), ("b", "a")])
def test_labels_keep_their_type_when_saved_and_loaded(values, tmp_path):
    labels = [values[label == "positive"] for label in LABELS]
    saved = classifier(epochs=1, seed=3).fit(TEXTS, labels)
    saved.save(tmp_path)
    loaded = fathomer.TextClassifier.load(tmp_path)
    assert loaded.classes_.tolist() == saved.classes_.tolist() == sorted(values)
    assert loaded.classes_.dtype == saved.classes_.dtype
    assert loaded.predict(TEXTS).tolist() == saved.predict(TEXTS).tolist()
    assert loaded._recipe() == saved._recipe()
    assert fathomer.load(tmp_path).labels == tuple(sorted(map(str, values)))


def test_a_folder_written_by_the_command_can_be_loaded(tmp_path):
    tiny_artifact().save(tmp_path)
    loaded = fathomer.TextClassifier.load(tmp_path)
    assert loaded.classes_.tolist() == ["negative", "positive"]
    assert loaded.score(TEXTS, LABELS) >= 0.9
    path = tmp_path / "metrics.json"
    path.write_text('{"classes": ["a", "b"]}', encoding="utf-8")
    with pytest.raises(ArtifactError, match="do not match the labels"):
        fathomer.TextClassifier.load(tmp_path)


@pytest.mark.parametrize("config", [None, '{"model_type": "bert"}'])
def test_foreign_files_are_not_overwritten(fitted, tmp_path, config):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    if config:
        (tmp_path / "config.json").write_text(config, encoding="utf-8")
    with pytest.raises(ArtifactError, match="holds other files"):
        fitted.save(tmp_path)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine"
    fitted.save(tmp_path / "new")
    fitted.save(tmp_path / "new")


def test_a_saved_estimator_can_be_loaded_as_a_predictor(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = fathomer.load(tmp_path / "model").predict(TEXTS)
    assert [p.label for p in loaded] == fitted.predict(TEXTS).tolist()
    assert loaded == fitted.explain(TEXTS)
