#!/usr/bin/env python3
"""Makes golden/*.json: what PyTorch computes, in float64, for small models trained a few steps.

    python3 golden.py        (needs torch; any recent version: only documented behaviour is used)

Each file holds a data set, the initial values, the settings and, after every optimizer step, the learning rate used, the
batch's loss before the step, at the end all weights and running statistics, and the outputs in evaluation mode. Everything
put in is exact in float32, so the same file checks the float32 build (to rounding) and the float64 build (to 1e-10). LAMB and
LARS, which PyTorch lacks, follow their papers' formulas below."""

import json
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional

FOLDER = pathlib.Path(__file__).parent / "golden"
ROWS, BATCH, EPOCHS = 22, 8, 4  # three steps an epoch, the last of 6 rows
STEPS = math.ceil(ROWS / BATCH)

DEFAULTS = dict(model="mlp", features=5, hidden=[6], outputs=3, width=5, expansion=2, blocks=2, cardinality=[],
                activation="relu", norm="none", norm_batch=BATCH, loss="auto", huber_delta=1.0, label_smoothing=0.0,
                balanced=False, optimizer="adamw", learning_rate=0.02, momentum=0.0, nesterov=False, weight_decay=0.0,
                beta1=0.9, beta2=0.999, epsilon=1e-8, clip_norm=0.0, schedule="constant", warmup_steps=0, step_epochs=1.0,
                step_factor=0.5, rows=ROWS)
CASES = [
    dict(name="linear-sgd", model="linear", hidden=[], optimizer="sgd", learning_rate=0.1),
    dict(name="linear-regression-momentum-decay", model="linear", features=4, hidden=[], outputs=0, optimizer="sgd",
         learning_rate=0.05, momentum=0.9, weight_decay=0.03),
    dict(name="mlp-relu-nesterov-decay", features=6, hidden=[7, 5], optimizer="sgd", learning_rate=0.08, momentum=0.85,
         nesterov=True, weight_decay=0.02),
    dict(name="mlp-gelu-momentum-cosine", outputs=4, activation="gelu", optimizer="sgd", learning_rate=0.2, momentum=0.7,
         schedule="cosine"),
    dict(name="mlp-relu-adamw-decay", features=6, hidden=[8], weight_decay=0.1),
    dict(name="mlp-gelu-adamw-cosine-warmup", hidden=[20, 17], outputs=18, activation="gelu", learning_rate=0.03,
         weight_decay=0.05, schedule="cosine", warmup_steps=5),
    dict(name="mlp-regression-adamw-warmup", features=3, hidden=[6, 4], outputs=0, activation="gelu", learning_rate=0.05,
         beta1=0.8, beta2=0.97, epsilon=1e-6, warmup_steps=4),
    dict(name="mlp-silu-adam-decay-step", activation="silu", optimizer="adam", weight_decay=0.05, schedule="step",
         step_epochs=1.0),
    dict(name="mlp-tanh-adam-step-warmup", activation="tanh", optimizer="adam", schedule="step", step_epochs=4 / 3,
         step_factor=0.1, warmup_steps=2),
    dict(name="mlp-sgd-clip-linear", optimizer="sgd", learning_rate=0.5, momentum=0.9, clip_norm=0.3, schedule="linear"),
    dict(name="mlp-adamw-clip-one-cycle", learning_rate=0.1, clip_norm=0.2, schedule="one_cycle"),
    dict(name="mlp-silu-wsd-warmup", activation="silu", schedule="wsd", warmup_steps=2),
    dict(name="mlp-lamb-decay", optimizer="lamb", learning_rate=0.05, weight_decay=0.1, epsilon=1e-6, hidden=[7, 6]),
    dict(name="mlp-lamb-clip-cosine", optimizer="lamb", learning_rate=0.05, clip_norm=0.5, schedule="cosine"),
    dict(name="mlp-lars-momentum-decay", optimizer="lars", learning_rate=5.0, momentum=0.9, weight_decay=0.01),
    dict(name="mlp-lars-nesterov", optimizer="lars", learning_rate=3.0, momentum=0.8, nesterov=True, weight_decay=0.001,
         outputs=0),
    dict(name="mlp-huber", outputs=0, loss="huber", huber_delta=0.6, learning_rate=0.05),
    dict(name="mlp-smoothing-balanced", label_smoothing=0.15, balanced=True, outputs=4),
    dict(name="mlp-binary", loss="binary_cross_entropy", outputs=2, learning_rate=0.05),
    dict(name="mlp-binary-smoothing-balanced", loss="binary_cross_entropy", outputs=2, label_smoothing=0.1,
         balanced=True),
    dict(name="mlp-layer-norm", norm="layer", hidden=[7, 6], activation="gelu", learning_rate=0.05),
    dict(name="mlp-batch-norm", norm="batch", hidden=[6, 5], optimizer="sgd", learning_rate=0.1, momentum=0.9),
    # With batch norms sgd only: a bias before one has gradient 0, of whose rounding Adam would make steps of full length.
    dict(name="mlp-ghost-norm", norm="batch", norm_batch=3, activation="tanh", optimizer="sgd", learning_rate=0.1),
    dict(name="mlp-ghost-norm-tail", norm="batch", norm_batch=3, rows=23, optimizer="sgd", learning_rate=0.1,
         momentum=0.5),  # 7 rows: groups of 3 and 4
    dict(name="mlp-embeddings", features=3, cardinality=[4, 9], hidden=[6], weight_decay=0.1),
    dict(name="resnet-batch-norm", model="resnet", norm="batch", norm_batch=4, activation="gelu", optimizer="sgd",
         learning_rate=0.1, momentum=0.9, weight_decay=0.05, schedule="cosine", warmup_steps=3, clip_norm=1.0),
    dict(name="resnet-layer-norm-embeddings", model="resnet", norm="layer", cardinality=[7, 3], outputs=0,
         optimizer="sgd", learning_rate=0.05, momentum=0.9),
    dict(name="resnet-no-norm", model="resnet", blocks=3, activation="silu", expansion=1),
]
ACTIVATIONS = dict(relu=nn.ReLU, gelu=lambda: nn.GELU(approximate="tanh"), silu=nn.SiLU, tanh=nn.Tanh)


def groups(rows, size):
    """Where the groups of a ghost batch norm begin and end; a tail of one joins the group before it."""
    ends = list(range(size, rows, size)) + [rows]
    if len(ends) > 1 and ends[-1] - ends[-2] == 1:
        del ends[-2]
    return list(zip([0] + ends, ends))


class GhostBatchNorm(nn.BatchNorm1d):
    def __init__(self, width, size):
        super().__init__(width)
        self.size = size

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        return torch.cat([super(GhostBatchNorm, self).forward(x[a:b]) for a, b in groups(len(x), self.size)])


def norm_of(case, width):
    return {"none": nn.Identity, "layer": lambda: nn.LayerNorm(width),
            "batch": lambda: GhostBatchNorm(width, case["norm_batch"])}[case["norm"]]()


class Block(nn.Module):
    def __init__(self, case):
        super().__init__()
        width, inner = case["width"], case["width"] * case["expansion"]
        self.norm, self.first, self.second = norm_of(case, width), nn.Linear(width, inner), nn.Linear(inner, width)
        self.activation = ACTIVATIONS[case["activation"]]()

    def forward(self, x):
        return x + self.second(self.activation(self.first(self.norm(x))))


class Model(nn.Module):
    """Names of its state are those of our checkpoints."""

    def __init__(self, case, outputs):
        super().__init__()
        sizes = [min(50, round(1.6 * n ** 0.56)) for n in case["cardinality"]]
        self.embeddings = nn.ModuleList(nn.Embedding(n, size) for n, size in zip(case["cardinality"], sizes))
        self.inputs = case["features"] + sum(sizes)
        self.resnet = case["model"] == "resnet"
        if self.resnet:
            self.first = nn.Linear(self.inputs, case["width"])
            self.blocks = nn.ModuleList(Block(case) for _ in range(case["blocks"]))
            self.norm, self.head = norm_of(case, case["width"]), nn.Linear(case["width"], outputs)
        else:
            widths = [self.inputs, *case["hidden"], outputs]
            self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
            self.norms = nn.ModuleList(norm_of(case, width) for width in case["hidden"])
            self.activation = ACTIVATIONS[case["activation"]]()

    def forward(self, x, categories):
        x = torch.cat([x] + [table(categories[:, i]) for i, table in enumerate(self.embeddings)], 1)
        if self.resnet:
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))
        for layer, norm in zip(self.layers, self.norms):
            x = self.activation(norm(layer(x)))
        return self.layers[-1](x)


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with bias correction; the ratio for decayed groups only."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                state = self.state[w]
                if not state:
                    state.update(t=0, m=torch.zeros_like(w), v=torch.zeros_like(w))
                b1, b2 = group["betas"]
                state["t"] += 1
                state["m"] = b1 * state["m"] + (1 - b1) * w.grad
                state["v"] = b2 * state["v"] + (1 - b2) * w.grad ** 2
                m, v = state["m"] / (1 - b1 ** state["t"]), state["v"] / (1 - b2 ** state["t"])
                u = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * w
                ratio = 1.0
                if group["adapts"] and w.norm() > 0 and u.norm() > 0:
                    ratio = w.norm() / u.norm()
                w -= group["lr"] * ratio * u


class Lars(torch.optim.Optimizer):
    """You et al. 2017 with eta 0.001; the ratio for decayed groups only."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                decay, g = group["weight_decay"], w.grad
                if group["adapts"] and w.norm() > 0:
                    g = (g + decay * w) * 0.001 * w.norm() / (g.norm() + decay * w.norm() + 1e-8)
                momentum = group["momentum"]
                velocity = self.state[w].get("velocity", torch.zeros_like(w)) * momentum + g
                self.state[w]["velocity"] = velocity
                w -= group["lr"] * (g + momentum * velocity if group["nesterov"] else velocity)


def make_optimizer(case, model):
    linear = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    decayed = [p for p in model.parameters() if id(p) in linear]
    others = [p for p in model.parameters() if id(p) not in linear]
    sets = [dict(params=decayed, weight_decay=case["weight_decay"]), dict(params=others, weight_decay=0.0)]
    rate, betas = case["learning_rate"], (case["beta1"], case["beta2"])
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(sets, lr=rate, momentum=case["momentum"], nesterov=case["nesterov"])
    if case["optimizer"] in ("adam", "adamw"):
        kind = torch.optim.Adam if case["optimizer"] == "adam" else torch.optim.AdamW
        return kind(sets, lr=rate, betas=betas, eps=case["epsilon"])
    sets[0]["adapts"], sets[1]["adapts"] = True, False
    if case["optimizer"] == "lamb":
        return Lamb(sets, dict(lr=rate, betas=betas, eps=case["epsilon"]))
    return Lars(sets, dict(lr=rate, momentum=case["momentum"], nesterov=case["nesterov"]))


def make_schedule(case, optimizer):
    schedules, total, warmup = torch.optim.lr_scheduler, EPOCHS * STEPS, case["warmup_steps"]
    left = total - warmup
    if case["schedule"] == "one_cycle":
        return schedules.OneCycleLR(optimizer, case["learning_rate"], total_steps=total, cycle_momentum=False)
    after = {"constant": lambda: schedules.ConstantLR(optimizer, factor=1.0),
             "step": lambda: schedules.StepLR(optimizer, round(case["step_epochs"] * STEPS), case["step_factor"]),
             "cosine": lambda: schedules.CosineAnnealingLR(optimizer, T_max=left),
             "linear": lambda: schedules.LinearLR(optimizer, 1.0, 0.0, left),
             "wsd": lambda: schedules.LambdaLR(optimizer, lambda t: min(1, (left - t) / (0.2 * left)))}[case["schedule"]]()
    if warmup == 0:
        return after
    before = schedules.LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
    return schedules.SequentialLR(optimizer, [before, after], milestones=[warmup])


def loss_of(case, y):
    """The mean over a batch's rows of what training minimises, and without smoothing and weights: what validation says."""
    smoothing, classes = case["label_smoothing"], case["outputs"]
    weights = torch.ones(max(classes, 1), dtype=torch.float64)
    if case["balanced"]:
        weights = torch.tensor([len(y) / (classes * float((y == c).sum())) for c in range(classes)], dtype=torch.float64)

    def loss(output, target, plain=False):
        s, w = (0.0, torch.ones_like(weights)) if plain else (smoothing, weights)
        if case["loss"] == "huber":
            return functional.huber_loss(output, target, delta=case["huber_delta"])
        if classes == 0:
            return functional.mse_loss(output, target)
        if case["loss"] == "binary_cross_entropy":
            soft = (target.double() * (1 - s) + s / 2).unsqueeze(1)
            return functional.binary_cross_entropy_with_logits(output, soft, weight=w[target].unsqueeze(1))
        total = functional.cross_entropy(output, target, weight=w, label_smoothing=s, reduction="sum")
        return total / len(target)

    return loss


def values(tensor):
    return [v if isinstance(v, int) else float(v) for v in tensor.detach().flatten().tolist()]


def state_of(model):
    return {name: values(tensor) for name, tensor in model.state_dict().items() if "num_batches" not in name}


def run(case, seed):
    torch.manual_seed(seed)
    rows = case["rows"]
    outputs = 1 if case["outputs"] == 0 or case["loss"] == "binary_cross_entropy" else case["outputs"]
    model = Model(case, outputs).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.float())
    x = torch.randn(rows, case["features"]).float().double()
    categories = torch.stack([torch.randint(n, (rows,)) for n in case["cardinality"]] or [torch.zeros(rows)], 1).long()
    y = torch.randint(case["outputs"], (rows,)) if case["outputs"] else torch.randn(rows, 1).float().double()
    loss_f = loss_of(case, y)
    result = dict(case, batch_size=BATCH, epochs=EPOCHS, torch=torch.__version__, x=values(x),
                  categories=values(categories) if case["cardinality"] else [], y=values(y), initial=state_of(model),
                  learning_rates=[], losses=[])
    optimizer = make_optimizer(case, model)
    schedule = make_schedule(case, optimizer)
    for _ in range(EPOCHS):
        for first in range(0, rows, BATCH):
            batch = slice(first, first + BATCH)
            loss = loss_f(model(x[batch], categories[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            if case["clip_norm"]:
                nn.utils.clip_grad_norm_(model.parameters(), case["clip_norm"])
            result["learning_rates"].append(optimizer.param_groups[0]["lr"])
            result["losses"].append(float(loss.detach()))
            optimizer.step()
            schedule.step()
    model.eval()
    result["final"] = state_of(model)
    result["outputs_after"] = values(model(x, categories))
    result["loss_after"] = float(loss_f(model(x, categories), y, plain=True).detach())
    return result


def main():
    FOLDER.mkdir(exist_ok=True)
    for seed, case in enumerate(CASES):
        text = json.dumps(run({**DEFAULTS, **case}, seed))
        (FOLDER / f"{case['name']}.json").write_text(text.replace('], "', '],\n"') + "\n")


if __name__ == "__main__":
    main()
