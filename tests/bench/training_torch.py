#!/usr/bin/env python3
"""Steps per second of the trainer beside PyTorch's, same models and batches, one thread each.

    python3 tests/bench/training_torch.py BUILD/tests/bench/bench_training [--rows TEXT]

PyTorch has data and parameters ready in memory and takes batches by index from a shuffled order, as the trainer does.
It runs four ways: eager with its default AdamW, with foreach, with fused, and with forward pass and loss through
torch.compile beside the fused AdamW. Both are timed in processor time, so that a busy machine does not matter; still, quiet is
better. Then comes a verdict: the targets below, each reached or not, and how much faster bf16 is than fp32.
--rows takes only the rows whose model contains TEXT."""

import argparse
import json
import subprocess
import sys
import time

import torch

STEPS, SECONDS = 34, 0.5
WAYS = {"eager": {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "compile": {"fused": True}}
# model, batch: at least so many times as fast as eager, and as the best of all ways
TARGETS = {
    ("784-512-512-10", 128): (1.3, 1.0),
    ("32-64-64-2", 32): (8, 2),
    ("32-64-64-2", 128): (8, 2),
}


def build(widths, dropout):
    layers = []
    for i in range(len(widths) - 1):
        layers.append(torch.nn.Linear(widths[i], widths[i + 1]))
        if i + 2 < len(widths):
            layers.append(torch.nn.ReLU())
            if dropout:
                layers.append(torch.nn.Dropout(dropout))
    return torch.nn.Sequential(*layers)


def epoch_seconds(loss_of, optimizer, x, y, batch):
    order = torch.randperm(len(x))
    start = time.process_time()
    for first in range(0, len(x), batch):
        index = order[first:first + batch]
        loss = loss_of(x[index], y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - start


def torch_microseconds(row, way):
    """The fastest of the epochs that fit the time."""
    torch.manual_seed(1)
    widths = [int(width) for width in row["model"].split("-")]
    model = build(widths, row["dropout"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **WAYS[way])

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x), y)

    if way == "compile":
        torch._dynamo.reset()  # else it counts the rows before as recompilations, and gives up
        loss_of = torch.compile(loss_of)
    steps = STEPS if row["batch"] * widths[1] < 1000000 else 4
    x = torch.randn(steps * row["batch"], widths[0])
    y = torch.randint(widths[-1], (steps * row["batch"],))
    epoch_seconds(loss_of, optimizer, x, y, row["batch"])
    best, end, epochs = float("inf"), time.process_time() + SECONDS, 0
    while time.process_time() < end or epochs < 3:
        best = min(best, epoch_seconds(loss_of, optimizer, x, y, row["batch"]))
        epochs += 1
    return best / steps * 1e6


def print_verdict(rows):
    reached = True
    for row in rows:
        wanted = TARGETS.get((row["model"], row["batch"]))
        if not wanted or row["dropout"] or "torch" not in row:
            continue
        found = (row["torch"]["eager"] / row["microseconds"], min(row["torch"].values()) / row["microseconds"])
        for name, target, times in zip(("eager", "the best"), wanted, found):
            reached = reached and times >= target
            print(f"{'reached' if times >= target else 'MISSED '}  {row['model']} batch {row['batch']}: "
                  f"{times:.2f} times as fast as {name}, target {target}")
    for row in rows:
        for other in rows:
            same = all(row[key] == other[key] for key in ("model", "batch", "dropout"))
            if same and row["precision"] == "bf16" and other["precision"] == "fp32":
                print(f"         {row['model']} batch {row['batch']}: bf16 is "
                      f"{other['microseconds'] / row['microseconds']:.2f} times as fast as fp32")
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", help="the program bench_training")
    parser.add_argument("--rows", default="", help="only rows whose model contains this")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = subprocess.run([arguments.bench, "--json"], check=True, capture_output=True, text=True).stdout
    rows = [row for row in map(json.loads, lines.splitlines()) if arguments.rows in row["model"]]
    print(f"microseconds a step, one thread; torch {torch.__version__}")
    print(f"{'model':17} {'batch':>6} {'dropout':>8} {'precision':>10} {'rung':>9} " +
          " ".join(f"{way:>9}" for way in WAYS) + f" {'x eager':>8} {'x best':>8}")
    for row in rows:
        line = f"{row['model']:17} {row['batch']:6} {row['dropout']:8.1f} {row['precision']:>10} " \
               f"{row['microseconds']:9.1f}"
        if row["precision"] == "fp32":
            row["torch"] = {way: torch_microseconds(row, way) for way in WAYS}
            line += "".join(f" {row['torch'][way]:9.1f}" for way in WAYS)
            line += f" {row['torch']['eager'] / row['microseconds']:8.2f}"
            line += f" {min(row['torch'].values()) / row['microseconds']:8.2f}"
        print(line, flush=True)
    return 0 if print_verdict(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
