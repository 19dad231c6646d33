"""Networks of transformers generate with a head, greedily and by sampling."""

from __future__ import annotations

import pytest
import torch

from thinleaf.torch import TreeHead, replace_head


@pytest.fixture(scope="module")
def network():
    transformers = pytest.importorskip("transformers", reason="needs the extra heads")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=200, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
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
