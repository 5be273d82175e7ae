"""The demo: the network solves it, and a bag of words does not."""


def test_the_network_solves_the_demo_and_tfidf_does_not(demo):
    assert demo.metrics["test"]["accuracy"] >= 0.95
    assert demo.metrics["baseline"]["accuracy"] <= 0.80
    assert demo.metrics["test"]["examples"] == demo.metrics["baseline"]["examples"] == 600


def test_words_have_different_depths(demo):
    assert 1.0 < demo.metrics["test"]["mean_depth"] < 6.0


def test_both_mean_depths_are_recorded(demo):
    for epoch in demo.metrics["history"]:
        assert 1 <= epoch["mean_depth"] <= 6
        assert 1 <= epoch["held_out"]["mean_depth"] <= 6
    assert demo.metrics["mean_depth_sampled"] == demo.metrics["history"][-1]["mean_depth"] or (
        demo.metrics["best_epoch"] < demo.metrics["epochs"]
    )


def test_training_prints_one_plain_line_per_epoch(demo):
    lines = demo.messages.splitlines()
    assert lines[0] == "demo: 4,000 examples read"
    assert [line.split()[1] for line in lines[1:]] == [f"{n}/10" for n in range(1, 11)]
    assert all(" held out " in line and line.endswith((" s", " s  best")) for line in lines[1:])
    assert "\x1b" not in demo.messages
