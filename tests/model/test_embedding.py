"""The embedding of words: their vectors and their characters."""

import pytest
import torch
from torch import Tensor

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.text.encode import spell
from tests.model.networks import RAGGED, SIZES, UNKNOWN, embedded, packed, random_network, randomise
from tests.model.oracle import char_cnn, token


def spelled(*words: str, max_chars: int = 32) -> Tensor:
    return torch.from_numpy(spell(words, max_chars=max_chars).copy())


def unknown_tokens(network: DepthAdaptiveNetwork, *words: str, max_chars: int = 32) -> Tensor:
    """Return the tokens of unknown words, all in one text."""
    ids = [-1 - k for k in range(len(words))]
    batch = WordBatch.from_ids([ids], unknown=spelled(*words, max_chars=max_chars))
    return embedded(network, batch).detach()


@pytest.mark.parametrize("word", ["a", "no", "été", "\N{GRINNING FACE}", "x" * 40])
def test_the_character_cnn_agrees_with_the_oracle(word):
    network = random_network()
    expected = char_cnn(network.embedding.char, list(word.encode()))
    torch.testing.assert_close(network.embedding.char(spelled(word, max_chars=40))[0], expected)


def test_a_word_without_characters_gets_zeros():
    char = random_network().embedding.char
    found = char(spelled("", "ab", ""))
    assert found.any(1).tolist() == [False, True, False]
    assert not char(spelled("", "")).any()
    assert char(torch.zeros(0, 5, dtype=torch.uint8)).shape == (0, 4)


@pytest.mark.parametrize("other", ["q", "qqqq", "q" * 30])
def test_the_spelling_of_other_words_does_not_matter(other):
    char = random_network().embedding.char
    alone, together = char(spelled("word"))[0], char(spelled("word", other))[0]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_padding_does_not_matter_even_where_every_response_is_negative():
    """At padding, the response would be the bias or that of half a window: larger than any other."""
    char = random_network().embedding.char
    with torch.no_grad():
        char.convolution.weight.abs_()
        char.bytes.weight[1:] = -char.bytes.weight[1:].abs()
        char.convolution.bias.fill_(-1)
    wide = torch.nn.functional.pad(spelled("word"), (0, 9))
    torch.testing.assert_close(char(wide)[0], char_cnn(char, list(b"word")))


def test_other_words_do_not_matter_to_a_word_with_a_zero_byte():
    """The tokenizer can return such a word: a URL."""
    char = random_network().embedding.char
    word = "www.a\0\0\0z%~Q"
    alone, together = char(spelled(word))[0], char(spelled(word, "q" * 30))[0]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_characters_beyond_max_chars_are_ignored():
    network = random_network()
    long, longer, other = unknown_tokens(network, "abcdef", "abcdefgh", "abcdXf", max_chars=6)
    assert torch.equal(long, longer)
    assert not torch.equal(long, other)


def test_the_order_of_characters_matters():
    one, other = unknown_tokens(random_network(), "abc", "cab")
    assert not torch.equal(one, other)


def test_a_word_has_the_same_token_at_every_position():
    """Distinct words are embedded once."""
    network = random_network()
    found = embedded(network, packed(RAGGED))
    words = [word for text in RAGGED for word in text]
    expected = torch.stack([token(network, word, UNKNOWN) for word in words])
    torch.testing.assert_close(found, expected)


def test_unknown_words_with_different_spellings_differ_only_in_their_characters():
    network = random_network()
    one, other = unknown_tokens(network, "fathom", "phantom")
    assert torch.equal(one[:5], network.embedding.word.weight[0])
    assert torch.equal(other[:5], one[:5])
    assert not torch.isclose(one[5:], other[5:]).all()


def test_unknown_words_with_the_same_spelling_have_the_same_token():
    one, different, other = unknown_tokens(random_network(), "fathom", "unfathomable", "fathom")
    assert torch.equal(one, other)
    assert not torch.equal(one, different)


def test_an_unknown_word_shares_the_characters_of_a_known_one():
    network = random_network()
    unknown = unknown_tokens(network, "17")[0]
    known = embedded(network, WordBatch.from_ids([[17]]))[0]
    torch.testing.assert_close(unknown[5:], known[5:])
    assert not torch.isclose(unknown[:5], known[:5]).all()


def test_known_and_unknown_words_can_be_in_separate_batches_or_in_one():
    network = random_network()
    known = network(WordBatch.from_ids([[4, 5]])).logits
    unknown = network(packed([[-1, -3]])).logits
    both = network(packed([[4, 5], [-1, -3]])).logits
    torch.testing.assert_close(torch.cat([known, unknown]), both, rtol=0, atol=1e-5)


def test_the_network_uses_the_given_spellings():
    names = spelled("<unk>", "good", "bad")
    network = DepthAdaptiveNetwork(random_network(vocab_size=3).config, spellings=names)
    randomise(network, seed=0).eval()
    found = embedded(network, WordBatch.from_ids([[1]]))[0, SIZES["word_size"] :]
    torch.testing.assert_close(found, char_cnn(network.embedding.char, list(b"good")))
    assert torch.equal(network.state_dict()["embedding.spellings"], names)


def test_the_padding_byte_of_a_new_network_is_zero():
    network = DepthAdaptiveNetwork(random_network().config)
    assert not network.embedding.char.bytes.weight[0].any()
    assert network.embedding.char.bytes.weight[1:].any(1).all()
