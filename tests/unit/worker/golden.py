#!/usr/bin/env python3
"""Makes golden/*.json: what PyTorch computes, in float64, for small models trained a few steps.

    python3 golden.py        (needs torch; any recent version: only documented behaviour is used)

Each file holds a data set, the initial weights, the settings and, after every optimizer step, the learning rate used, the
batch's loss before the step and, at the end, all weights. Everything put in is exact in float32, so the same file checks
the float32 build (to rounding) and the float64 build (to 1e-10)."""

import json
import math
import pathlib

import torch

FOLDER = pathlib.Path(__file__).parent / "golden"
ROWS, BATCH, EPOCHS = 22, 8, 4  # three steps an epoch, the last of 6 rows

CASES = [
    dict(name="linear-sgd", features=5, hidden=[], outputs=3, optimizer="sgd", learning_rate=0.1),
    dict(name="linear-regression-momentum-decay", features=4, hidden=[], outputs=0, optimizer="sgd",
         learning_rate=0.05, momentum=0.9, weight_decay=0.03),
    dict(name="mlp-relu-nesterov-decay", features=6, hidden=[7, 5], outputs=3, activation="relu", optimizer="sgd",
         learning_rate=0.08, momentum=0.85, nesterov=True, weight_decay=0.02),
    dict(name="mlp-gelu-momentum-cosine", features=5, hidden=[6], outputs=4, activation="gelu", optimizer="sgd",
         learning_rate=0.2, momentum=0.7, schedule="cosine"),
    dict(name="mlp-relu-adamw-decay", features=6, hidden=[8], outputs=3, activation="relu", optimizer="adamw",
         learning_rate=0.02, weight_decay=0.1),
    dict(name="mlp-gelu-adamw-cosine-warmup", features=5, hidden=[20, 17], outputs=18, activation="gelu",
         optimizer="adamw", learning_rate=0.03, weight_decay=0.05, schedule="cosine", warmup_steps=5),
    dict(name="mlp-regression-adamw-warmup", features=3, hidden=[6, 4], outputs=0, activation="gelu",
         optimizer="adamw", learning_rate=0.05, beta1=0.8, beta2=0.97, epsilon=1e-6, warmup_steps=4),
]
DEFAULTS = dict(activation="relu", momentum=0.0, nesterov=False, weight_decay=0.0, beta1=0.9, beta2=0.999,
                epsilon=1e-8, schedule="constant", warmup_steps=0)


def build(case):
    widths = [case["features"], *case["hidden"], max(case["outputs"], 1)]
    activation = torch.nn.ReLU if case["activation"] == "relu" else lambda: torch.nn.GELU(approximate="tanh")
    layers = []
    for i in range(len(widths) - 1):
        layers.append(torch.nn.Linear(widths[i], widths[i + 1]))
        if i + 2 < len(widths):
            layers.append(activation())
    return torch.nn.Sequential(*layers).double()


def make_optimizer(case, model):
    weights = [p for p in model.parameters() if p.dim() == 2]
    biases = [p for p in model.parameters() if p.dim() == 1]
    groups = [dict(params=weights, weight_decay=case["weight_decay"]), dict(params=biases, weight_decay=0.0)]
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=case["learning_rate"], momentum=case["momentum"], nesterov=case["nesterov"])
    return torch.optim.AdamW(groups, lr=case["learning_rate"], betas=(case["beta1"], case["beta2"]),
                             eps=case["epsilon"])


def make_schedule(case, optimizer, total):
    warmup = case["warmup_steps"]
    if case["schedule"] == "cosine":
        after = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total - warmup)
    else:
        after = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    if warmup == 0:
        return after
    before = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [before, after], milestones=[warmup])


def values(tensor):
    return [float(v) for v in tensor.detach().flatten()]


def run(case, seed):
    torch.manual_seed(seed)
    model = build(case)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.float())
    x = torch.randn(ROWS, case["features"]).float().double()
    if case["outputs"]:
        y = torch.randint(case["outputs"], (ROWS,))
        loss_of = torch.nn.functional.cross_entropy
    else:
        y = torch.randn(ROWS, 1).float().double()
        loss_of = torch.nn.functional.mse_loss
    result = dict(case, rows=ROWS, batch_size=BATCH, epochs=EPOCHS, torch=torch.__version__, x=values(x),
                  y=values(y) if not case["outputs"] else [int(v) for v in y],
                  initial=[values(p) for p in model.parameters()], learning_rates=[], losses=[])
    optimizer = make_optimizer(case, model)
    schedule = make_schedule(case, optimizer, EPOCHS * math.ceil(ROWS / BATCH))
    for _ in range(EPOCHS):
        for first in range(0, ROWS, BATCH):
            loss = loss_of(model(x[first:first + BATCH]), y[first:first + BATCH])
            optimizer.zero_grad()
            loss.backward()
            result["learning_rates"].append(optimizer.param_groups[0]["lr"])
            result["losses"].append(float(loss.detach()))
            optimizer.step()
            schedule.step()
    result["final"] = [values(p) for p in model.parameters()]
    return result


def main():
    FOLDER.mkdir(exist_ok=True)
    for seed, case in enumerate(CASES):
        text = json.dumps(run({**DEFAULTS, **case}, seed))
        (FOLDER / f"{case['name']}.json").write_text(text.replace('], "', '],\n"') + "\n")


if __name__ == "__main__":
    main()
