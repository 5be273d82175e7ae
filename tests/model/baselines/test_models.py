"""What is asked of every model by name: it learns, answers alone as in company, and is kept."""

import json
from functools import cache

import pytest
import torch

import fathomer
from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Examples
from fathomer.errors import ConfigError, DepthError
from fathomer.model import WordBatch
from fathomer.model.interface import DirectNetwork
from fathomer.model.registry import MODELS, build_model
from fathomer.predictor import Predictor
from fathomer.train.checkpoint import EpochDone
from fathomer.train.fit import fit
from tests.model.baselines.small import LONG, WORDY, small_config, small_model
from tests.model.networks import packed

SMALL = Recipe().updated(
    {
        "model": {
            "word_size": 16,
            "char_size": 4,
            "char_input_size": 4,
            "depth_size": 16,
            "hidden_size": 32,
            "max_depth": 3,
            "word_dropout": 0.0,
            "hidden_dropout": 0.0,
        },
        "text": {"min_count": 1},
        "train": {"epochs": 60, "batch_words": 250, "learning_rate": 0.01},
    }
)


def needs(name):
    """Skip where the package behind a model is not installed."""
    if name == "fasttext":
        pytest.importorskip("fasttext", reason="the package fasttext is not installed")


every_model = pytest.mark.parametrize("name", MODELS)
trained_in_steps = pytest.mark.parametrize(
    "name", [name for name in MODELS if not issubclass(MODELS[name].network, DirectNetwork)]
)


def examples_of(count):
    """Give the shortest texts of the demo corpus's training part, as many of each label."""
    texts = sorted(demo_corpus(train=400, test=2)[0], key=lambda e: len(e.text.split()))
    chosen = {
        label: [e for e in texts if e.label == label][: count // 2]
        for label in ("positive", "negative")
    }
    return Examples([e for pair in zip(*chosen.values(), strict=True) for e in pair])


def recipe_of(name, **train):
    if name == "char-cnn":  # many small layers, without normalisation between them
        train = {"learning_rate": 0.003, **train}
    return SMALL.updated({"model": {"name": name}, "train": train})


@cache
def learned(name) -> Artifact:
    """Train a model on 64 examples until it knows them."""

    def until_known(events):
        for event in events:
            yield event
            if isinstance(event, EpochDone) and event.held_out["accuracy"] == 1:
                return

    examples = examples_of(64)
    return fit(examples, recipe_of(name), held_out=examples, watch=until_known).artifact


@every_model
def test_a_model_learns_64_examples(name):
    needs(name)
    found = Predictor(learned(name)).evaluate(examples_of(64))
    assert found.examples == 64
    assert found.accuracy >= 0.99


@every_model
def test_a_model_that_cannot_find_two_labels_probable_refuses_several(name):
    """Several labels are told apart by sigmoids: a model whose logits are never above 0 finds none."""
    if name in ("adasent", "capsule-b", "fasttext"):
        with pytest.raises(ConfigError, match=f"the model {name} gives one label per text"):
            build_model(small_config(name, multi_label=True))
    elif name != "tfidf":  # which asks one logistic regression for each label
        logits = small_model(name, multi_label=True)(packed(WORDY)).logits
        assert logits.min() < 0 < logits.max()


@every_model
def test_an_answer_is_the_same_alone_and_in_company(name):
    needs(name)
    predictor = Predictor(learned(name))
    texts = [e.text for e in examples_of(24)]
    texts += ["", "film", "unheard-of wörds", " ".join(texts[:9])]
    for text, company in zip(texts, predictor.predict(texts), strict=True):
        [alone] = predictor.predict([text])
        assert alone.probabilities == pytest.approx(company.probabilities, abs=1e-5)


@trained_in_steps
def test_every_model_can_be_trained_in_bfloat16(name):
    model = small_model(name).float()
    batch = WordBatch.from_ids([[4, 8, 15], [], [16, 1, 2, 3, 9]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(batch).logits.float().square().sum()
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@trained_in_steps
@pytest.mark.parametrize("grad", [True, False])
def test_any_batch_has_the_answers_of_its_texts(name, grad):
    network = small_model(name)
    with torch.set_grad_enabled(grad):
        company = network(packed(LONG)).logits
        reversed_ = network(packed(LONG[::-1])).logits
        alone = torch.cat([network(packed([text])).logits for text in LONG])
    assert company.std(0).min() > 1e-3, "the answers do not tell the texts apart"
    torch.testing.assert_close(company, alone, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(reversed_.flip(0), alone, rtol=1e-9, atol=1e-9)


@every_model
@pytest.mark.parametrize("texts", [[], [[]], [[], []], [[5]]], ids=str)
def test_batches_without_texts_or_words_are_answered(name, texts):
    network = small_model(name)
    output = network(WordBatch.from_ids(texts))
    assert output.logits.shape == (len(texts), 3)
    assert output.logits.isfinite().all()
    assert output.depths.shape == (sum(map(len, texts)),)


@trained_in_steps
def test_gradients_reach_every_parameter(name):
    network = small_model(name).train()
    logits = network(packed(LONG)).logits
    torch.nn.functional.cross_entropy(logits, torch.arange(len(LONG)) % 3).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.any(), parameter_name


@trained_in_steps
def test_an_empty_text_alone_breaks_no_gradient(name):
    network = small_model(name).train()
    logits = network(WordBatch.from_ids([[]])).logits
    torch.nn.functional.cross_entropy(logits, torch.tensor([1])).backward()
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


@every_model
def test_a_saved_model_answers_as_before(name, tmp_path):
    needs(name)
    learned(name).save(tmp_path / "model")
    texts = [*(e.text for e in examples_of(8)), "", "wörd"]
    saved = Predictor(learned(name)).predict(texts)
    assert fathomer.load(tmp_path / "model").predict(texts) == saved
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert ("depth-adaptive" in card) == (name == "fathomer")
    assert name == "fathomer" or f"The model `{name}` ({MODELS[name].paper})" in card


@every_model
def test_the_same_seed_gives_the_same_model_and_another_one_another(name):
    needs(name)
    examples = examples_of(16)
    first, again, other = (
        fit(examples, recipe_of(name, epochs=1, held_out=0.0, seed=seed)).artifact.network
        for seed in (3, 3, 4)
    )
    mine, same, theirs = (network.state_dict() for network in (first, again, other))
    assert all(torch.equal(mine[key], same[key]) for key in mine)
    if not isinstance(first, DirectNetwork):
        assert any(not torch.equal(mine[key], theirs[key]) for key in mine)


@every_model
def test_depths_are_forced_only_on_ours(name):
    network, batch = small_model(name), WordBatch.from_ids([[1, 2]])
    if name == "fathomer":
        assert network(batch, max_depth=1).depths.tolist() == [1, 1]
        return
    with pytest.raises(DepthError, match=f"the model {name} has no depth that could be"):
        network(batch, max_depth=1)
    assert network(batch).depths.tolist() == [0, 0]


@every_model
def test_the_demo_is_trained_by_name(name, run, monkeypatch, tmp_path):
    needs(name)
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    (tmp_path / "tiny.toml").write_text(SMALL.to_toml(), encoding="utf-8")
    arguments = ["--recipe", "tiny.toml", "--set", "train.epochs=1", "--json"]
    code, out, err = run("train", "demo", "--out", "m", "--model", name, *arguments)
    assert code == 0, err
    assert json.loads(out)["test"]["examples"] == 20
    code, out, err = run("explain", "m", "not bad at all")
    if name == "fathomer":
        assert code == 0, err
        return
    assert code == 2
    assert out == ""
    assert err == (
        f"fathomer: m: words have no depth in the model {name}; "
        "fathomer predict shows its answers\n"
    )


def test_training_and_scores_show_no_depth_where_there_is_none(run, monkeypatch, tmp_path):
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    (tmp_path / "tiny.toml").write_text(SMALL.to_toml(), encoding="utf-8")
    arguments = ["--recipe", "tiny.toml", "--set", "train.epochs=1", "--model", "rcrn"]
    code, out, err = run("train", "demo", "--out", "m", *arguments)
    assert code == 0, err
    assert "depth -  " in err
    assert [line.split()[-1] for line in out.splitlines()[1:3]] == ["-", "-"]
    assert "| - |" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    code, out, err = run("evaluate", "m", "demo", "--html", "page.html")
    assert code == 0, err
    lengths = out.partition("mean depth\n")[2].partition("mean depth\n")[2].partition("\n\n")[0]
    assert {line.split()[-1] for line in lengths.splitlines()} == {"-"}
    assert "0.00<" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "texts.txt").write_text("not bad at all", encoding="utf-8")
    assert run("predict", "m", "texts.txt", "--depths") == (
        2, "", "fathomer: m: words have no depth in the model rcrn; leave --depths out\n"
    )  # fmt: skip
