"""The command that pretrains sentence encoders."""

import json

from fathomer.data.demo import demo_corpus


def test_encoders_are_pretrained_and_used_by_the_model(run_experiments, monkeypatch, tmp_path):
    texts = demo_corpus(train=60, test=2)[0].texts
    (tmp_path / "reviews.txt").write_text("\n".join(texts), encoding="utf-8")
    options = ["--size", "8", "--epochs", "2", "--json"]
    code, out, err = run_experiments("pretrain-qt", "reviews.txt", *options)
    assert code == 0, err
    found = json.loads(out)
    assert found["out"] == "qt.safetensors"
    assert found["sentences"] > 60
    assert set(found["loss"]) == {"trained"}
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    monkeypatch.setenv("FATHOMER_QT", "qt.safetensors")
    options = ["--set", "train.epochs=1", "--json"]
    code, out, err = run_experiments("train", "demo", "--model", "multi-qt", "--out", "m", *options)
    assert code == 0, err
    assert json.loads(out)["test"]["examples"] == 20


def test_given_vectors_make_a_second_pair_of_encoders(run_experiments, tmp_path):
    (tmp_path / "reviews.txt").write_text("we saw it . it was good .\n" * 6, encoding="utf-8")
    (tmp_path / "small.vec").write_text("good 1 0 2\nsaw 0 3 1\nit 1 1 1\n", encoding="utf-8")
    options = ["--vectors", "small.vec", "--size", "4", "--epochs", "1", "--json"]
    again = [
        run_experiments("pretrain-qt", "reviews.txt", "--out", f"{name}.safetensors", *options)
        for name in "ab"
    ]
    assert set(json.loads(again[0][1])["loss"]) == {"trained", "fixed"}
    first, second = ((tmp_path / f"{name}.safetensors").read_bytes() for name in "ab")
    assert first == second


def test_a_missing_file_is_one_line(run_experiments):
    code, out, err = run_experiments("pretrain-qt", "nothing.txt")
    assert (code, out) == (2, "")
    assert err == "fathomer: nothing.txt: no such file or corpus\n"
