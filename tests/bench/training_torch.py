#!/usr/bin/env python3
"""Steps per second of the trainer beside PyTorch's, same models and batches, one thread each.

    python3 tests/bench/training_torch.py BUILD/tests/bench/bench_training [--compile]

PyTorch runs eagerly with its fastest AdamW (the fastest of plain, foreach and fused), data and parameters ready in
memory, batches by index from a shuffled order as the trainer takes them. Both are timed in
processor time, so that a busy machine does not matter. --compile adds torch.compile."""

import json
import subprocess
import sys
import time

import torch

CLASSES, STEPS = 10, 34


def build(name, dropout):
    widths = [int(w) for w in name.split("-")]
    layers = []
    for i in range(len(widths) - 1):
        layers.append(torch.nn.Linear(widths[i], widths[i + 1]))
        if i + 2 < len(widths):
            layers.append(torch.nn.ReLU())
            if dropout:
                layers.append(torch.nn.Dropout(dropout))
    return torch.nn.Sequential(*layers)


def epoch_seconds(model, optimizer, x, y, batch):
    loss_of = torch.nn.functional.cross_entropy
    order = torch.randperm(len(x))
    start = time.process_time()
    for first in range(0, len(x), batch):
        index = order[first:first + batch]
        loss = loss_of(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - start


def torch_microseconds(name, batch, dropout, compiled):
    best = float("inf")
    for kind in ({}, {"foreach": True}, {"fused": True}):
        torch.manual_seed(1)
        model = build(name, dropout)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **kind)
        run = torch.compile(model) if compiled else model
        x = torch.randn(STEPS * batch, int(name.split("-")[0]))
        y = torch.randint(CLASSES, (STEPS * batch,))
        epoch_seconds(run, optimizer, x, y, batch)
        end = time.process_time() + 0.4
        while time.process_time() < end:
            best = min(best, epoch_seconds(run, optimizer, x, y, batch))
    return best / STEPS * 1e6


def main():
    torch.set_num_threads(1)
    compiled = "--compile" in sys.argv[2:]
    lines = subprocess.run([sys.argv[1], "--json"], check=True, capture_output=True, text=True).stdout
    print(f"{'model':16} {'batch':>6} {'dropout':>8} {'rung us':>9} {'torch us':>9} {'times':>6}   "
          f"torch {torch.__version__}{' compiled' if compiled else ''}, one thread")
    for line in lines.splitlines():
        row = json.loads(line)
        other = torch_microseconds(row["model"], row["batch"], row["dropout"], compiled)
        print(f"{row['model']:16} {row['batch']:6} {row['dropout']:8.1f} {row['microseconds']:9.1f} {other:9.1f} "
              f"{other / row['microseconds']:6.1f}", flush=True)


if __name__ == "__main__":
    main()
