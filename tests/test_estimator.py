import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

import fathomer
from fathomer.errors import ConfigError, DataError
from fathomer.fit import Fitted

from .tiny import TINY, tiny_examples

SETTINGS = {
    f"{section}.{name}": value
    for section, values in TINY.to_dict().items()
    for name, value in values.items()
}
TEXTS = [example.text for example in tiny_examples()]
LABELS = [example.label for example in tiny_examples()]


def classifier(**parameters):
    defaults = {"max_depth": 3, "hidden_size": 12, "epochs": 8, "settings": small_settings()}
    return fathomer.TextClassifier(**{**defaults, **parameters})


def small_settings():
    named = ("model.max_depth", "model.hidden_size", "train.epochs", "train.seed")
    return {name: value for name, value in SETTINGS.items() if name not in named}


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(TEXTS, LABELS)


def test_it_learns_and_answers(fitted):
    assert fitted.score(TEXTS, LABELS) >= 0.9
    assert fitted.classes_.tolist() == ["negative", "positive"]
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.shape == (60, 2)
    assert probabilities.sum(1) == pytest.approx(1)
    assert (fitted.predict(TEXTS) == fitted.classes_[probabilities.argmax(1)]).all()


def test_the_answers_are_the_predictor_s(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = fathomer.load(tmp_path / "model").predict(TEXTS)
    assert [p.label for p in loaded] == fitted.predict(TEXTS).tolist()
    assert loaded == fitted.explain(TEXTS)


@pytest.mark.parametrize("values", [(2, 10), (True, False), ("b", "a")])
def test_labels_come_back_as_they_were(values):
    labels = np.asarray([values[label == "positive"] for label in LABELS])
    fitted = classifier().fit(np.asarray(TEXTS), labels)
    assert fitted.classes_.tolist() == sorted(values)
    assert fitted.predict(TEXTS).dtype == labels.dtype
    assert fitted.score(TEXTS, labels) >= 0.9


def test_the_same_seed_gives_the_same_answers(fitted):
    again, other = classifier().fit(TEXTS, LABELS), classifier(seed=1).fit(TEXTS, LABELS)
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert (other.predict_proba(TEXTS) != fitted.predict_proba(TEXTS)).any()


def test_parameters_can_be_read_set_and_cloned(fitted):
    parameters = fitted.get_params()
    assert parameters["max_depth"] == 3
    copy = clone(fitted)
    assert copy.get_params() == parameters
    with pytest.raises(NotFittedError):
        copy.predict(TEXTS)
    assert copy.set_params(epochs=2).epochs == 2


def test_it_works_inside_scikit_learn():
    grid = GridSearchCV(classifier(epochs=1), {"max_depth": [1, 2]}, cv=2)
    assert grid.fit(TEXTS, LABELS).best_params_["max_depth"] in (1, 2)
    assert len(cross_val_score(classifier(epochs=1), TEXTS, LABELS, cv=2)) == 2
    pipeline = Pipeline([("classify", classifier(epochs=1))]).fit(TEXTS, LABELS)
    assert len(pipeline.predict(["good"])) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["good", "bad"], ["a"]), "2 texts, but 1 labels"),
        ((["good", "fine"], ["a", "a"]), r"only one label \('a'\)"),
    ],
)
def test_a_mistake_is_one_clear_line(arguments, message):
    with pytest.raises(DataError, match=message):
        classifier().fit(*arguments)


def test_what_is_no_list_of_texts_is_refused():
    with pytest.raises(TypeError, match=r"a list of texts is needed; for a single one"):
        classifier().fit("good", ["a"])
    with pytest.raises(TypeError, match="text 1 is of type NoneType, not a string"):
        classifier().fit(["good", None], ["a", "b"])


def test_ctrl_c_ends_a_search(monkeypatch):
    monkeypatch.setattr("fathomer.estimator.fit", lambda *a, **k: Fitted(None, interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(TEXTS, LABELS)


def test_an_unknown_setting_is_refused():
    with pytest.raises(ConfigError, match=r"unknown setting 'epoch'; did you mean 'epochs'\?"):
        classifier(settings={"train.epoch": 3}).fit(TEXTS, LABELS)
