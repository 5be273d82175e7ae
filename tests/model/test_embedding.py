"""Words and their spellings."""

import pytest
import torch
from torch import Tensor

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.text.vocabulary import spell
from tests.model.networks import RAGGED, SIZES, UNKNOWN, embedded, packed, random_network, randomise
from tests.model.oracle import char_cnn, token


def spelled(*words: str, max_chars: int = 32) -> Tensor:
    return torch.from_numpy(spell(words, max_chars=max_chars).copy())


def unknown_tokens(network: DepthAdaptiveNetwork, *words: str, max_chars: int = 32) -> Tensor:
    """Embed unknown words, all in one text."""
    ids = [-1 - k for k in range(len(words))]
    batch = WordBatch.from_ids([ids], unknown=spelled(*words, max_chars=max_chars))
    return embedded(network, batch).detach()


@pytest.mark.parametrize("word", ["a", "no", "été", "\N{GRINNING FACE}", "x" * 40])
def test_the_character_cnn_agrees_with_the_oracle(word):
    network = random_network()
    wanted = char_cnn(network.embedding.char, list(word.encode()))
    torch.testing.assert_close(network.embedding.char(spelled(word, max_chars=40))[0], wanted)


def test_a_word_without_characters_has_zeros():
    char = random_network().embedding.char
    found = char(spelled("", "ab", ""))
    assert found.any(1).tolist() == [False, True, False]
    assert not char(spelled("", "")).any()
    assert char(torch.zeros(0, 5, dtype=torch.uint8)).shape == (0, 4)


@pytest.mark.parametrize("company", ["q", "qqqq", "q" * 30])
def test_the_spelling_of_other_words_does_not_matter(company):
    char = random_network().embedding.char
    alone, together = char(spelled("word"))[0], char(spelled("word", company))[0]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_padding_does_not_matter_even_where_every_response_is_negative():
    """A padded place would answer with the bias, or with half a window: more than any letter."""
    char = random_network().embedding.char
    with torch.no_grad():
        char.convolution.weight.abs_()
        char.bytes.weight[1:] = -char.bytes.weight[1:].abs()
        char.convolution.bias.fill_(-1)
    wide = torch.nn.functional.pad(spelled("word"), (0, 9))
    torch.testing.assert_close(char(wide)[0], char_cnn(char, list(b"word")))


def test_a_zero_byte_inside_a_word_does_not_let_company_matter():
    """The tokenizer does yield one: inside a URL."""
    char = random_network().embedding.char
    word = "www.a\0\0\0z%~Q"
    alone, together = char(spelled(word))[0], char(spelled(word, "q" * 30))[0]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_letters_beyond_max_chars_say_nothing():
    network = random_network()
    long, longer, other = unknown_tokens(network, "abcdef", "abcdefgh", "abcdXf", max_chars=6)
    assert torch.equal(long, longer)
    assert not torch.equal(long, other)


def test_the_order_of_letters_matters():
    one, other = unknown_tokens(random_network(), "abc", "cab")
    assert not torch.equal(one, other)


def test_a_word_is_embedded_alike_wherever_it_stands():
    """Once per distinct word is the same as once per place."""
    network = random_network()
    found = embedded(network, packed(RAGGED))
    words = [word for text in RAGGED for word in text]
    wanted = torch.stack([token(network, word, UNKNOWN) for word in words])
    torch.testing.assert_close(found, wanted)


def test_unknown_words_with_different_spellings_differ_only_in_their_characters():
    network = random_network()
    one, other = unknown_tokens(network, "fathom", "phantom")
    assert torch.equal(one[:5], network.embedding.word.weight[0])
    assert torch.equal(other[:5], one[:5])
    assert not torch.isclose(one[5:], other[5:]).all()


def test_unknown_words_with_the_same_spelling_agree():
    one, company, other = unknown_tokens(random_network(), "fathom", "unfathomable", "fathom")
    assert torch.equal(one, other)
    assert not torch.equal(one, company)


def test_an_unknown_word_spelled_like_a_known_one_has_its_characters():
    network = random_network()
    unknown = unknown_tokens(network, "17")[0]
    known = embedded(network, WordBatch.from_ids([[17]]))[0]
    torch.testing.assert_close(unknown[5:], known[5:])
    assert not torch.isclose(unknown[:5], known[:5]).all()


def test_a_batch_of_known_words_only_and_one_of_unknown_words_only_agree_with_a_mixed_one():
    network = random_network()
    known = network(WordBatch.from_ids([[4, 5]])).logits
    unknown = network(packed([[-1, -3]])).logits
    both = network(packed([[4, 5], [-1, -3]])).logits
    torch.testing.assert_close(torch.cat([known, unknown]), both, rtol=0, atol=1e-5)


def test_the_spellings_of_the_vocabulary_are_the_ones_given():
    names = spelled("<unk>", "good", "bad")
    network = DepthAdaptiveNetwork(random_network(vocab_size=3).config, spellings=names)
    randomise(network, seed=0)
    found = embedded(network, WordBatch.from_ids([[1]]))[0, SIZES["word_size"] :]
    torch.testing.assert_close(found, char_cnn(network.embedding.char, list(b"good")))
    assert torch.equal(network.state_dict()["embedding.spellings"], names)


def test_a_fresh_network_s_padding_byte_is_zero():
    network = DepthAdaptiveNetwork(random_network().config)
    assert not network.embedding.char.bytes.weight[0].any()
    assert network.embedding.char.bytes.weight[1:].any(1).all()
