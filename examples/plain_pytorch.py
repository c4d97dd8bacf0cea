"""The network and the rank loss in a plain PyTorch loop, on data that is made up here."""

import torch

import harmonrank as hr

torch.manual_seed(0)
scores = torch.rand(2_048, 2) ** 3  # what two upstream models predict, (rows, objectives)
context = torch.randint(0, 24, (2_048, 1))  # say, the hour, (rows, features)
labels = (torch.rand(2_048, 2) < scores).float()  # what users did, (rows, objectives)

config = hr.NetworkConfig(
    objectives=2, context_slots=(24,), buckets=8, scale="logit", interpolate=True
)
network = hr.Network(config, scores=scores)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(100):
    loss = hr.rank_auc_loss(network(scores, context), labels, strength=1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print("AUC", hr.auc(network(scores, context).numpy(), labels.numpy()).round(3))
