#!/usr/bin/env python3
"""Samples per second of rung's trainer beside PyTorch's on the same device, models, batches and precisions.

    python3 compare.py GPU_THROUGHPUT DEVICE [--seconds 1] [--budget 300] [MODEL/BATCH/PRECISION...]

PyTorch trains the same model with AdamW (fused where there is a GPU), batches gathered by index from data on the device, in
three forms: eager, torch.compile, and (on a GPU) the whole step captured as a CUDA graph. The best of them counts. Forms are
measured in the order eager, graph, compiled, until the budget of seconds is spent; what was left out is said. Ends with the
least ratio and the geometric mean of rung / best."""

import argparse
import json
import math
import subprocess
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("compare.py: this needs PyTorch")

STEPS = 64


class Block(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))


def build(name):
    """The model of a row and (features, classes)."""
    if name.startswith("resnet-"):
        width, blocks = (int(n) for n in name.split("-")[1].split("x"))
        layers = [nn.Linear(128, width)] + [Block(width, 2 * width) for _ in range(blocks)]
        return nn.Sequential(*layers, nn.LayerNorm(width), nn.Linear(width, 10)), 128, 10
    widths = [int(n) for n in name.split("-")]
    layers = []
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(inputs, outputs))
        if i + 2 < len(widths):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers), widths[0], widths[-1]


class Training:
    """One row's model, data and step on a device."""

    def __init__(self, name, batch, precision, device, graph):
        torch.manual_seed(1)
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        model, features, classes = build(name)
        self.model = model.to(device)
        fused = {"fused": True, "capturable": True} if device == "cuda" else {"fused": True}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, **fused)
        self.x = torch.randn(STEPS * batch, features, device=device)
        self.y = torch.randint(classes, (STEPS * batch,), device=device)
        self.batch, self.device, self.half = batch, device, precision == "bf16"
        self.index = torch.zeros(batch, dtype=torch.long, device=device)
        self.run = self.step
        if graph:
            self.run = self.captured()

    def compile(self):
        self.model = torch.compile(self.model)

    def step(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.half):
            loss = nn.functional.cross_entropy(self.model(self.x[self.index]), self.y[self.index])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def captured(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def epoch(self):
        order = torch.randperm(len(self.x), device=self.device)
        for first in range(0, len(self.x), self.batch):
            self.index.copy_(order[first:first + self.batch])
            self.run()
        if self.device == "cuda":
            torch.cuda.synchronize()

    def samples_per_second(self, seconds):
        self.epoch()
        best, end = math.inf, time.perf_counter() + seconds
        while True:
            begin = time.perf_counter()
            self.epoch()
            best = min(best, time.perf_counter() - begin)
            if time.perf_counter() > end:
                return len(self.x) / best


def torch_figures(row, device, seconds, deadline):
    figures = {}
    forms = ["eager", "graph", "compiled"] if device == "cuda" else ["eager", "compiled"]
    for form in forms:
        if time.monotonic() > deadline:
            break
        try:
            training = Training(row["model"], row["batch"], row["precision"], device, form == "graph")
            if form == "compiled":
                training.compile()
            figures[form] = training.samples_per_second(seconds)
        except Exception as error:  # a form PyTorch cannot do here says so and is left out
            print(f"torch {form} {row['model']}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("device")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("rows", nargs="*", help="MODEL/BATCH/PRECISION; default: all")
    options = parser.parse_intermixed_args()
    other = "cuda" if options.device.startswith("cuda") else "cpu"
    torch.set_num_threads(1)
    deadline = time.monotonic() + options.budget
    # Ours first and alone: the two must not share the device while they are timed.
    output = subprocess.run([options.program, options.device, str(options.seconds), *options.rows], capture_output=True,
                            text=True, check=False)
    sys.stderr.write(output.stderr)
    rows = [json.loads(line) for line in output.stdout.splitlines()]
    print(f"{'model':18} {'batch':>5} {'type':>5} {'rung':>12} {'eager':>12} {'graph':>12} {'compiled':>12} {'ratio':>6}"
          f"   samples/s on {rows[0]['device'] if rows else '?'}, torch {torch.__version__}")
    ratios, left_out = [], 0
    for row in rows:
        head = f"{row['model']:18} {row['batch']:5} {row['precision']:>5}"
        if "error" in row:
            print(f"{head} failed: {row['error']}")
            ratios.append(0)
            continue
        figures = torch_figures(row, other, options.seconds, deadline)
        left_out += (3 if other == "cuda" else 2) - len(figures)
        cells = " ".join(f"{figures[form]:12.0f}" if form in figures else f"{'-':>12}"
                         for form in ("eager", "graph", "compiled"))
        ours = row["samples_per_second"]
        ratio = ours / max(figures.values()) if figures else math.nan
        if figures:
            ratios.append(ratio)
        print(f"{head} {ours:12.0f} {cells} {ratio:6.2f}", flush=True)
    if left_out:
        print(f"{left_out} of PyTorch's figures were left out: the budget was spent, or see above")
    if ratios and all(ratios):
        mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
        print(f"least ratio {min(ratios):.2f}, geometric mean {mean:.2f}, {len(ratios)} rows")
    return 0 if rows and all(ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
