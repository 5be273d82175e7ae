"""Convolutions over characters."""

import torch

from fathomer.baselines.char_cnn import WIDTHS, characters
from fathomer.nn.graph import WordBatch
from fathomer.nn.interface import trainable_parameters

from ..nn.networks import packed
from .expectations import (
    LONG,
    accuracy_on_seen_texts,
    assert_company_does_not_matter,
    assert_empty_texts_are_ordinary,
    assert_gradients_reach_everything,
    random_model,
)


def texts_in(batch, network):
    rows = characters(batch, network.spellings).numpy()
    return [row.tobytes().rstrip(b"\0").decode() for row in rows]


def test_words_are_written_out_and_joined_by_spaces():
    network = random_model("char-cnn")  # whose known words are spelled by their ids
    batch = packed([[4, -1, 19], [], [-3], [-2, -2, 0]])
    assert texts_in(batch, network) == ["4 abc 19", "", "cabab", "z z 0"]


def test_an_unknown_word_is_read_like_a_known_one_of_the_same_spelling():
    network = random_model("char-cnn")
    unknown = torch.tensor([list(b"17")], dtype=torch.uint8)
    strange = network(WordBatch.from_ids([[3, -1]], unknown=unknown)).logits
    assert torch.equal(strange, network(WordBatch.from_ids([[3, 17]])).logits)


def oracle(network, text):
    """Convolve and pool the characters of one text by hand."""
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


def test_it_convolves_and_pools_as_its_paper_says():
    network = random_model("char-cnn")
    for text in (text for text in LONG if text):
        batch = packed([text])
        wanted = oracle(network, texts_in(batch, network)[0])
        torch.testing.assert_close(network(batch).logits[0], wanted, rtol=1e-5, atol=1e-5)


def test_company_and_emptiness_change_nothing():
    assert_company_does_not_matter(random_model("char-cnn"))
    assert_empty_texts_are_ordinary(random_model("char-cnn"))


def test_gradients_reach_every_parameter():
    assert_gradients_reach_everything(random_model("char-cnn", hidden_size=12))


def test_it_has_no_word_vectors_and_the_parameters_of_nine_layers():
    network = random_model("char-cnn")
    assert network.word_vectors is None
    convolutions = 7 * 3 * 6 + 7 * 6 * 6 + 4 * 3 * 6 * 6 + 6 * 6
    hidden = 2 * (6 * 6 + 6) + 6 * 3 + 3
    assert trainable_parameters(network) == 256 * 3 + convolutions + hidden


def test_it_learns_what_it_has_seen():
    assert accuracy_on_seen_texts("char-cnn", epochs=50) >= 0.99
