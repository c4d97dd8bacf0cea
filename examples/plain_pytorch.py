"""The network, the rank loss and soft ranks in a plain PyTorch loop, on data made up here."""

import torch

import harmonrank as hr

torch.manual_seed(0)
scores = torch.rand(2_048, 2) ** 3  # what two upstream models predict, (rows, objectives)
context = torch.randint(0, 24, (2_048, 1))  # say, the hour, (rows, features)
labels = (torch.rand(2_048, 2) < scores).float()  # what users did, (rows, objectives)
config = hr.NetworkConfig(objectives=2, context_slots=(24,), buckets=8, scale="logit")
network = hr.Network(config, scores=scores)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(100):
    fused = network(scores, context)
    loss = hr.rank_auc_loss(fused, labels, strength=1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("AUC", hr.auc(fused.detach().numpy(), labels.numpy()).round(3))
print("soft ranks of five rows", hr.soft_rank(fused.detach()[:5], strength=0.1).numpy().round(2))
