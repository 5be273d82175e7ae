import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

import fathomer
from fathomer.errors import ArtifactError, ConfigError, DataError
from fathomer.recipes import find_recipe
from fathomer.train.fit import Fitted
from tests.tiny import TINY, tiny_artifact, tiny_examples

SETTINGS = {
    f"{section}.{name}": value
    for section, values in TINY.to_dict().items()
    for name, value in values.items()
}
TEXTS = [example.text for example in tiny_examples()]
LABELS = [example.label for example in tiny_examples()]
MORE_TEXTS, MORE_LABELS = TEXTS * 3, LABELS * 3


def classifier(**parameters):
    defaults = {"max_depth": 3, "hidden_size": 12, "epochs": 8, "settings": small_settings()}
    return fathomer.TextClassifier(**{**defaults, **parameters})


def small_settings():
    named = (
        "model.max_depth",
        "model.hidden_size",
        "train.epochs",
        "train.seed",
        "train.class_weight",
    )
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


def test_a_grid_search_finds_the_better_setting():
    grid = GridSearchCV(classifier(), {"epochs": [1, 12]}, cv=2)
    assert grid.fit(MORE_TEXTS, MORE_LABELS).best_params_ == {"epochs": 12}
    assert grid.best_score_ >= 0.9
    assert grid.score(TEXTS, LABELS) >= 0.9


def test_cross_validation_scores_every_fold():
    scores = cross_val_score(classifier(epochs=12), MORE_TEXTS, MORE_LABELS, cv=2)
    assert len(scores) == 2
    assert scores.mean() >= 0.9


def test_it_stands_at_the_end_of_a_pipeline():
    shout = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", shout), ("classify", classifier())]).fit(TEXTS, LABELS)
    assert pipeline.predict(["THE FILM WAS LOVELY."]).tolist() == ["positive"]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_scikit_learn_can_calibrate_it(method):
    calibrated = CalibratedClassifierCV(classifier(), method=method, cv=2).fit(TEXTS, LABELS)
    assert calibrated.score(TEXTS, LABELS) >= 0.9
    assert calibrated.predict_proba(TEXTS).sum(1) == pytest.approx(1)


def test_weights_reach_training_through_a_search():
    texts, labels = ["a fine film"] * 40, ["no", "yes"] * 20
    weights = np.asarray([1.0, 9.0] * 20)
    grid = GridSearchCV(classifier(), {"epochs": [12]}, cv=2)
    grid.fit(texts, labels, sample_weight=weights)
    assert grid.predict(texts[:1]).tolist() == ["yes"]
    assert grid.score(texts, labels) == 0.5


def test_weights_that_are_all_ones_change_nothing_bit_for_bit(fitted):
    weighted = classifier().fit(TEXTS, LABELS, sample_weight=np.ones(len(TEXTS)))
    assert weights_of(weighted) == weights_of(fitted)
    one_each = classifier(class_weight={"positive": 1, "negative": 1}).fit(TEXTS, LABELS)
    assert weights_of(one_each) == weights_of(fitted)


def weights_of(fitted):
    return fitted.predictor_.artifact.to_files()["model.safetensors"]


def test_labels_can_be_weighted():
    texts, even, rare = ["a fine film"] * 40, [0, 1] * 20, [0, 1, 1, 1] * 10
    settings = {**small_settings(), "train.held_out": 0.0}

    def probability_of_one(labels, class_weight):
        fitted = classifier(epochs=12, class_weight=class_weight, settings=settings)
        return fitted.fit(texts, labels).predict_proba(texts[:1])[0, 1]

    assert probability_of_one(even, {0: 1, 1: 9}) > 0.7
    assert probability_of_one(rare, None) > 0.6
    assert probability_of_one(rare, "balanced") == pytest.approx(0.5, abs=0.07)


def test_a_warm_start_goes_on_where_the_first_fit_stopped(fitted):
    warm = clone(fitted).set_params(warm_start=True).fit(TEXTS, LABELS)
    first, answers = warm.predictor_, warm.predictor_.predict(TEXTS)
    warm.set_params(epochs=2).fit(["A quaint film was lovely.", *TEXTS], ["positive", *LABELS])
    assert first.predict(TEXTS) == answers, "the first model has changed"
    assert warm.predictor_.artifact.tokenizer is first.artifact.tokenizer
    before, after = (p.artifact.metrics["history"] for p in (first, warm.predictor_))
    assert len(after) == 2
    assert after[0]["loss"] < 0.8 * before[0]["loss"]
    assert warm.score(TEXTS, LABELS) >= 0.9


def test_without_warm_start_a_second_fit_starts_anew(fitted):
    again = classifier().fit(TEXTS[:20], LABELS[:20]).fit(TEXTS, LABELS)
    assert weights_of(again) == weights_of(fitted)


def test_a_warm_start_keeps_labels_and_sizes():
    warm = classifier(warm_start=True, epochs=1).fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="label 'neutral' does not occur in the training data"):
        warm.fit(["so so"] * 20, ["neutral", "positive"] * 10)
    with pytest.raises(
        ConfigError, match=r"continue with model.hidden_size = 16: the model has 12"
    ):
        warm.set_params(hidden_size=16).fit(TEXTS, LABELS)
    warm.set_params(hidden_size=12, settings={**small_settings(), "text.max_chars": 9})
    with pytest.raises(ConfigError, match=r"continue with text.max_chars = 9: the model has 32"):
        warm.fit(TEXTS, LABELS)
    assert warm.classes_.tolist() == ["negative", "positive"]


def test_a_model_that_learns_at_once_cannot_go_on():
    settings = {**small_settings(), "model.name": "tfidf"}
    warm = classifier(warm_start=True, settings=settings).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="the model tfidf is fitted in one go and cannot be"):
        warm.fit(TEXTS, LABELS)


def test_a_pickled_estimator_answers_alike_and_holds_no_network(fitted):
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


def test_a_folder_of_a_command_is_an_estimator_too(tmp_path):
    tiny_artifact().save(tmp_path)
    loaded = fathomer.TextClassifier.load(tmp_path)
    assert loaded.classes_.tolist() == ["negative", "positive"]
    assert loaded.score(TEXTS, LABELS) >= 0.9
    path = tmp_path / "metrics.json"
    path.write_text('{"classes": ["a", "b"]}', encoding="utf-8")
    with pytest.raises(ArtifactError, match="its classes are not its labels"):
        fathomer.TextClassifier.load(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["good", "bad"], ["a"]), "2 texts, but 1 labels"),
        ((["good", "fine"], ["a", "a"]), r"only one label \('a'\)"),
        ((["good", "fine"], None), "requires y to be passed, but the target y is None"),
        ((["good", "bad"], ["a", "b"], [1.0]), r"2 texts, but weights of shape \(1,\)"),
        ((["good", "bad"], ["a", "b"], [0, 0]), "all weights are zero"),
        ((["good", "bad"], ["a", "b"], [1, -1]), "weight 1 is -1.0"),
    ],
)
def test_a_mistake_is_one_clear_line(arguments, message):
    with pytest.raises(DataError, match=message):
        classifier().fit(*arguments)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="y should be a 1d array"):
        classifier().fit(TEXTS, [[0, 1]] * 60)
    with pytest.raises(ValueError, match="contains NaN"):
        classifier().fit(TEXTS, np.array([np.nan, 1.0] * 30))
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(TEXTS, np.linspace(0, 1, 60))
    with pytest.raises(ValueError, match="not in class_weight"):
        classifier(class_weight={"other": 2}).fit(TEXTS, LABELS)
    with pytest.raises(
        ConfigError, match="class_weight must be one of none, balanced, not 'equal'"
    ):
        classifier(class_weight="equal").fit(TEXTS, LABELS)


def test_what_is_no_list_of_texts_is_refused():
    with pytest.raises(TypeError, match=r"a list of texts is needed; for a single one"):
        classifier().fit("good", ["a"])
    with pytest.raises(TypeError, match="text 1 is of type NoneType, not a string"):
        classifier().fit(["good", None], ["a", "b"])


def test_a_table_is_not_taken_for_the_names_of_its_columns(fitted):
    for table in ({"text": TEXTS}, np.array([TEXTS]), np.array("good")):
        with pytest.raises(TypeError, match="a list or one column of texts is needed, not a "):
            fitted.predict(table)


def test_numbers_of_numpy_are_settings_too():
    settings = {**small_settings(), "train.learning_rate": np.float64(0.02)}
    found = classifier(hidden_size=np.int64(12), settings=settings)._recipe()
    assert (found.model.hidden_size, found.train.learning_rate) == (12, 0.02)
    assert type(found.model.hidden_size) is int
    with pytest.raises(ConfigError, match="epochs must be of type int"):
        classifier(epochs=np.float64(2))._recipe()


def test_many_texts_are_answered_a_part_at_a_time(fitted, monkeypatch):
    whole = fitted.predict_proba(TEXTS)
    monkeypatch.setattr("fathomer.estimator.AT_A_TIME", 7)
    np.testing.assert_allclose(fitted.predict_proba(TEXTS), whole, atol=1e-6)
    assert fitted.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("config", [None, '{"model_type": "bert"}'])
def test_somebody_else_s_files_are_not_written_over(fitted, tmp_path, config):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    if config:
        (tmp_path / "config.json").write_text(config, encoding="utf-8")
    with pytest.raises(ArtifactError, match="holds other files; choose an empty or a new folder"):
        fitted.save(tmp_path)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine"
    fitted.save(tmp_path / "new")
    fitted.save(tmp_path / "new")


def test_ctrl_c_ends_a_search(monkeypatch):
    monkeypatch.setattr("fathomer.estimator.fit", lambda *a, **k: Fitted(None, interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(TEXTS, LABELS)


def test_an_unknown_setting_is_refused():
    with pytest.raises(ConfigError, match=r"unknown setting 'epoch'; did you mean 'epochs'\?"):
        classifier(settings={"train.epoch": 3}).fit(TEXTS, LABELS)


def test_scikit_learn_is_told_that_texts_are_wanted():
    tags = get_tags(classifier())
    assert tags.estimator_type == "classifier"
    assert (tags.input_tags.string, tags.input_tags.one_d_array) == (True, True)
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


@pytest.mark.parametrize("missing", [None, float("nan"), "", " "])
@pytest.mark.parametrize("column", [list, lambda values: np.array(values, dtype=object)])
def test_a_label_that_is_missing_is_named(missing, column):
    labels = column([*LABELS[:-1], missing])
    with pytest.raises(DataError, match=rf"^label {len(LABELS) - 1} is missing \({missing!r}\)$"):
        classifier().fit(TEXTS, labels)


def test_the_page_says_how_the_small_recipe_is_trained():
    page = Path(__file__).parents[1] / "docs" / "howto" / "scikit-learn.md"
    [code] = re.findall(
        r"`(fathomer\.TextClassifier\(\s.*?\))`", page.read_text("utf-8"), re.DOTALL
    )
    assert eval(code, {"fathomer": fathomer})._recipe() == find_recipe("small")
