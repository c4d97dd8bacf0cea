"""A plain server to compare with: FastAPI, Pydantic, and a network in PyTorch's eager mode."""

import sys
from typing import Any

import numpy as np
import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from harmonrank.fusion import load
from harmonrank_lab.bench._peers import TorchHeads


class Body(BaseModel):
    """A request, as for /v1/rank."""

    scores: dict[str, list[float]]
    context: dict[str, Any]
    k: int = 10


def main(folder: str, port: int) -> None:
    """Serve the linear heads of a saved default."""
    model: Any = load(folder)
    effective = np.array([*model.effective_weights.values()])
    network = TorchHeads(model.state.heads, effective).eval()
    columns, encoder = model.schema.score_columns, model.fitted.encoder
    application = FastAPI()

    @application.post("/v1/rank")
    def rank(body: Body) -> dict[str, Any]:
        scores = torch.tensor([body.scores[name] for name in columns]).T.contiguous()
        codes = torch.from_numpy(encoder.encode_values(body.context)).expand(len(scores), -1)
        with torch.no_grad():
            fused = network(scores, codes)
        best = torch.topk(fused, min(body.k, len(fused)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return {"ranked": [{"index": index, "fused": value} for index, value in pairs]}

    uvicorn.run(application, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], int(sys.argv[2]))
