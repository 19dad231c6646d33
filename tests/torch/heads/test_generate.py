"""Networks of transformers generate with a head, greedily and by sampling."""

from __future__ import annotations

import copy

import pytest
import torch

from thinleaf.torch import TreeHead, collect_states, replace_head


@pytest.fixture(params=["llama", "gpt2"])
def network(request):
    transformers = pytest.importorskip("transformers", reason="needs the extra heads")
    torch.manual_seed(0)
    words = {"vocab_size": 200, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    if request.param == "gpt2":
        config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=64, **words)
        return transformers.GPT2LMHeadModel(config).eval()
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, tie_word_embeddings=True, **words,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def test_generate_works_greedily_and_by_sampling(network):
    ids = torch.tensor([[1, 5, 9], [1, 7, 3]])
    options = {"max_new_tokens": 8, "attention_mask": torch.ones_like(ids), "eos_token_id": 199}
    expected = network.generate(ids, do_sample=False, **options)
    batches = [torch.randint(200, (4, 16)) for _ in range(20)]
    head = replace_head(network, batches, size=40, exact=True)
    assert network.get_output_embeddings() is head
    assert head.weight is network.get_input_embeddings().weight
    assert torch.equal(network.generate(ids, do_sample=False, **options), expected)
    head.exact = False
    torch.manual_seed(0)
    sampled = network.generate(ids, do_sample=True, **options)
    assert sampled.shape == expected.shape
    kept = set(head.set_classes.tolist()) | set(head.common.tolist())
    assert set(sampled[:, 3:].ravel().tolist()) <= kept
    assert isinstance(head, TreeHead)


def test_padded_batches_and_beams_and_a_drafter(network):
    ids = torch.tensor([[0, 0, 5, 9], [1, 7, 3, 4]])
    options = {"max_new_tokens": 6, "attention_mask": (ids != 0).long()}
    full = copy.deepcopy(network)
    expected = full.generate(ids, do_sample=False, **options)
    batches = [{"input_ids": torch.randint(3, 200, (4, 16))} for _ in range(20)]
    head = replace_head(network, batches, size=40, exact=True)
    assert torch.equal(network.generate(ids, do_sample=False, **options), expected)
    head.exact = False
    for more in ({"num_beams": 3}, {"do_sample": True, "top_p": 0.5, "num_return_sequences": 2}):
        assert network.generate(ids, **options, **more).shape[1] <= 10
    one = {"do_sample": False, "max_new_tokens": 6, "attention_mask": torch.ones(1, 4).long()}
    drafted = full.generate(ids[1:], assistant_model=network, **one)
    assert torch.equal(drafted, full.generate(ids[1:], **one))


def test_a_network_is_saved_copied_and_converted_with_its_head(network):
    ids = torch.tensor([[1, 5, 9], [1, 7, 3]])
    options = {"max_new_tokens": 5, "attention_mask": torch.ones_like(ids), "do_sample": False}
    batches = [torch.randint(3, 200, (4, 16)) for _ in range(20)]
    other = copy.deepcopy(network)
    replace_head(network, batches, size=40)
    expected = network.generate(ids, **options)
    twin = copy.deepcopy(network)
    assert twin.lm_head.weight is twin.get_input_embeddings().weight
    assert torch.equal(twin.generate(ids, **options), expected)
    replace_head(other, batches[:3], size=10)
    other.load_state_dict(network.state_dict())
    assert torch.equal(other.generate(ids, **options), expected)
    network.to(torch.bfloat16)
    assert network(ids).logits.dtype == torch.bfloat16
    network.generate(ids, **options)


def test_encoder_decoder_networks_are_given_labels():
    transformers = pytest.importorskip("transformers", reason="needs the extra heads")
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=90, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    network = transformers.T5ForConditionalGeneration(config).eval()
    ids, labels = torch.randint(3, 90, (4, 12)), torch.randint(3, 90, (4, 12))
    mask = torch.ones_like(ids)
    mask[:, 5:], labels[:, 9:] = 0, -100  # the input's padding says nothing of the output
    batch = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    assert collect_states(network, [batch]).shape == (4 * 9, 16)
    given = {"decoder_attention_mask": (labels != 3).long()}
    assert len(collect_states(network, [batch | given])) == int((labels != 3).sum())
    options = {"input_ids": ids, "attention_mask": mask, "max_new_tokens": 6, "do_sample": False}
    expected = network.generate(**options)
    head = replace_head(network, [batch] * 20, size=20, exact=True)
    assert network.lm_head is head
    assert torch.equal(network.generate(**options), expected)
