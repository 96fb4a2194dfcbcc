import sys

import pytest
import torch

from simul.learner.training.optimizers import Adam, AdamW


def _trained(kind, fused: bool) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(5, 7, generator=draw)), torch.nn.Parameter(torch.zeros(5))]
    optimizer = kind(weights, lr=1e-2, eps=1e-5, weight_decay=0.1, fused=fused)
    for _ in range(10):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.linear(torch.randn(4, 7, generator=draw), *weights).square().sum().backward()
        optimizer.step()
    return weights


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("own", "torchs"), [(Adam, torch.optim.Adam), (AdamW, torch.optim.AdamW)])
def test_the_numbers_are_those_of_torch_and_the_compiler_is_not_imported(own, torchs, fused, monkeypatch):
    expected = _trained(torchs, fused)
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # an import of it raises
    with pytest.raises(ImportError, match=r"torch\._dynamo"):
        _trained(torchs, fused)
    assert all(torch.equal(a, b) for a, b in zip(_trained(own, fused), expected, strict=True))
