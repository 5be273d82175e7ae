"""The character-level CNN."""

import torch

from experiments.rivals.char_cnn import WIDTHS, characters
from fathomer.model.graph import WordBatch
from tests.model.baselines.small import WORDY, assert_close, small_model
from tests.model.networks import packed


def texts_in(batch, network):
    rows = characters(batch, network.spellings).numpy()
    return [row.tobytes().rstrip(b"\0").decode() for row in rows]


def test_words_are_spelled_and_joined_by_spaces():
    network = small_model("char-cnn", hidden_size=6)  # known words are spelled as their ids
    batch = packed([[4, -1, 19], [], [-3], [-2, -2, 0]])
    assert texts_in(batch, network) == ["4 abc 19", "", "cabab", "z z 0"]


def test_an_unknown_word_is_read_like_a_known_one_of_the_same_spelling():
    network = small_model("char-cnn", hidden_size=6)
    unknown = torch.tensor([list(b"17")], dtype=torch.uint8)
    by_spelling = network(WordBatch.from_ids([[3, -1]], unknown=unknown)).logits
    assert torch.equal(by_spelling, network(WordBatch.from_ids([[3, 17]])).logits)


def oracle(network, text):
    """Convolve and pool the characters of one text in plain loops."""
    places = [network.bytes.weight[byte] for byte in text.encode()]
    for number, (width, layer) in enumerate(zip(WIDTHS, network.convolutions, strict=True)):
        outputs = []
        for middle in range(len(places)):
            response = layer.bias.clone()
            for offset in range(width):
                place = middle + offset - width // 2
                if 0 <= place < len(places):
                    response = response + layer.weight[:, :, offset] @ places[place]
            outputs.append(response.relu())
        if number in (0, 1, 5):
            outputs = [torch.stack(outputs[i : i + 3]).amax(0) for i in range(0, len(outputs), 3)]
        places = outputs
    features = torch.stack(places).amax(0)
    for layer in network.hidden:
        features = layer(features).relu()
    return network.output(features)


def test_it_agrees_with_plain_loops():
    network = small_model("char-cnn", hidden_size=6)
    for text in WORDY:
        batch = packed([text])
        wanted = oracle(network, texts_in(batch, network)[0])
        assert_close(network(batch).logits[0], wanted)
