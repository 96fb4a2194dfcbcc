import torch
import torch.nn.functional as F

from simul.common.nets.layers.entities import dot_products, embedding_sum, mean_and_max


def gradients(result, inputs):
    return torch.autograd.grad(sum(part.sin().sum() for part in result), inputs)


def test_embedding_sum_is_the_stock_one():
    torch.manual_seed(0)
    table, ids = torch.randn(9, 4, requires_grad=True), torch.randint(0, 9, (50, 3))
    ours, stock = embedding_sum(table, ids), F.embedding(ids, table).sum(1)
    torch.testing.assert_close(ours, stock)
    torch.testing.assert_close(gradients([ours], table), gradients([stock], table))


def test_mean_and_max_are_the_stock_ones():
    torch.manual_seed(0)
    x = torch.randn(5, 2, 6, 4)
    x[:, :, 2:5] = x[:, :, 1:2] + 1  # as foes that were not met
    x.requires_grad_()
    ours, stock = mean_and_max(x), (x.mean(2), x.amax(2))
    torch.testing.assert_close(ours, stock)
    torch.testing.assert_close(gradients(ours, x), gradients(stock, x))


def test_dot_products_are_the_stock_ones():
    torch.manual_seed(0)
    inputs = torch.randn(5, 3, 8, requires_grad=True), torch.randn(5, 4, 8, requires_grad=True)
    ours, stock = dot_products(*inputs), torch.einsum("nke,nue->nku", *inputs)
    torch.testing.assert_close(ours, stock)
    torch.testing.assert_close(gradients([ours], inputs), gradients([stock], inputs))
