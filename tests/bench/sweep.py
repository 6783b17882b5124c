#!/usr/bin/env python3
"""./dev bench sweep: one search, by rung and by Optuna driving PyTorch, on this machine.

64 trials, random search with successive halving (1..27 epochs, eta 3), MLPs on the UCI digits; the same space, the same rows
for training, validation and test. rung is timed from the start of `rung run` to its end: processes, sockets, database and
all; once with synchronous halving (it waits for a rung to fill, keeps a checkpoint of every trial, promotes the best third) and
once with the rival's own rule (a trial stops or goes on at once, by those that came before it). The rival (sweep_optuna.py) is timed without its imports, in the faster of two forms: one process that holds its study in
memory, and two processes on journal storage. Both then train their winner again and score it on the test rows.

The rival's Python is RUNG_RIVAL_PYTHON, or a virtual environment made in BUILD/rival-venv with the newest torch and optuna.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "configs", "digits.csv.gz")
SPEC = """\
name: bench
method: random
metric: {{name: validation_accuracy, goal: maximize}}
run_cap: 64
seed: {seed}
parameters:
  learning_rate: {{distribution: log_uniform_values, min: 1e-4, max: 1e-1}}
  batch_size:    {{values: [32, 64, 128, 256]}}
  hidden:        {{values: [[64], [128], [128, 128]]}}
  dropout:       {{min: 0.0, max: 0.5}}
early_terminate: {{{rule}, min_iter: 1, max_iter: 27, eta: 3}}
train:
  data: {{path: {data}, target: label, validation: 0.2, test: 0.2}}
  model: mlp
  optimizer: adamw
  weight_decay: 0.01
  epochs: 27
{final}"""


RULES = {"rung, halving": "type: successive_halving", "rung, stopping": "type: asha, mode: stopping"}
FORMS = ("one process", "two processes")


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def find(build, name):
    for folder, _, files in os.walk(build):
        if name in files and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    sys.exit(f"{build} has no {name}; build it first")


def rival_python(build):
    given = os.environ.get("RUNG_RIVAL_PYTHON")
    if given:
        return given
    folder = os.path.join(build, "rival-venv")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "ready")):
        say(f"installing the newest torch and optuna into {folder}")
        run([sys.executable, "-m", "venv", folder])
        run([python, "-m", "pip", "install", "--quiet", "--upgrade", "torch", "optuna", "numpy"])
        open(os.path.join(folder, "ready"), "w").close()
    return python


class Rung:
    def __init__(self, build, devices):
        self.program = find(build, "rung")
        self.devices = devices

    def sweep(self, seed, rule, test_seeds=0):
        final = f"  final: {{refit: train, seeds: {test_seeds}, epochs: 27}}\n" if test_seeds else ""
        with tempfile.TemporaryDirectory() as folder:
            spec, db = os.path.join(folder, "bench.yaml"), os.path.join(folder, "bench.db")
            with open(spec, "w") as file:
                file.write(SPEC.format(seed=seed, rule=RULES[rule], data=os.path.realpath(DATA), final=final))
            begin = time.perf_counter()
            run([self.program, "run", spec, "--db", db, "--quiet", "--devices", self.devices])
            seconds = time.perf_counter() - begin
            rows = json.loads(run([self.program, "leaderboard", "--db", db, "--format", "json", "--top", "1000"]))
            sweeps = json.loads(run([self.program, "list", "--db", db, "--format", "json"]))
        scores = (sweeps[0].get("final") or {}).get("test_accuracy") or {}
        return {
            "seconds": seconds,
            "epochs": sum(row["resource"] for row in rows),
            "trials": len(rows),
            "training_seconds": sum(row["seconds"] for row in rows),
            "validation_accuracy": rows[0]["objective"],
            "parameters": rows[0]["parameters"],
            "test_accuracy": scores.get("mean"),
        }


class Rival:
    def __init__(self, python, dump_split, folder):
        self.python, self.dump_split, self.folder = python, dump_split, folder

    def rows(self, seed):
        folder = os.path.join(self.folder, f"rows-{seed}")
        if not os.path.isdir(folder):
            os.mkdir(folder)
            run([self.dump_split, os.path.realpath(DATA), "label", str(seed), folder])
        return folder

    def call(self, seed, *options):
        script = os.path.join(HERE, "sweep_optuna.py")
        return json.loads(run([self.python, script, self.rows(seed), "--seed", str(seed), *options]))

    def calibrate(self):
        """The fastest AdamW for one thread, and for the better of one and two threads."""
        found = {}
        for threads in (1, 2):
            answer = self.call(1, "--calibrate", "--threads", str(threads))
            for name, microseconds in answer["microseconds"].items():
                found[(threads, name)] = microseconds
        say(f"rival: torch {answer['torch']}, optuna {answer['optuna']}; us a step by (threads, adamw): {found}")
        self.versions = f"torch {answer['torch']}, optuna {answer['optuna']}"
        self.alone = min(found, key=found.get)
        self.together = min((key for key in found if key[0] == 1), key=found.get)

    def sweep(self, seed, form, test_seeds=0):
        threads, adamw = self.alone if form == "one process" else self.together
        processes = "1" if form == "one process" else "2"
        return self.call(
            seed,
            *["--processes", processes, "--threads", str(threads), "--adamw", adamw, "--test-seeds", str(test_seeds)],
        )


def median(results, key):
    return statistics.median(result[key] for result in results)


def per_epoch(results):
    return statistics.median(result["seconds"] / result["epochs"] for result in results)


# Student's t, 95 % one-sided, by degrees of freedom.
STUDENT = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 14: 1.761, 19: 1.729}


def lower_bound(differences):
    n = len(differences)
    t = STUDENT.get(n - 1, 1.645)
    return statistics.mean(differences) - t * statistics.stdev(differences) / math.sqrt(n)


def measure_time(rung, rival, seeds):
    results = {name: [] for name in (*RULES, *FORMS)}
    for seed in seeds:  # in turn, so that a slow minute of the machine hits all of them
        for rule in RULES:
            results[rule].append(rung.sweep(seed, rule))
        for form in FORMS:
            results[form].append(rival.sweep(seed, form))
        line = ", ".join(f"{name} {found[-1]['seconds']:.3f} s / {found[-1]['epochs']} epochs" for name, found in results.items())
        say(f"seed {seed}: {line}")
    return results


def measure_accuracy(rung, rival, seeds, test_seeds, form):
    pairs = []
    for seed in seeds:
        ours = rung.sweep(seed, "rung, halving", test_seeds)["test_accuracy"]
        theirs = statistics.mean(rival.sweep(seed, form, test_seeds)["test_accuracy"])
        pairs.append((100 * ours, 100 * theirs))
        say(f"seed {seed}: test accuracy rung {100 * ours:.2f}, rival {100 * theirs:.2f}")
    return pairs


def report_time(results):
    print("\n| | seconds (median) | epochs trained | ms per epoch | imports, not counted |")
    print("|---|---|---|---|---|")
    for name, found in results.items():
        imports = "" if name in RULES else f"{median(found, 'imports'):.2f} s"
        print(f"| {name} | {median(found, 'seconds'):.3f} | {median(found, 'epochs'):.0f} | {1e3 * per_epoch(found):.2f} | {imports} |")
    print()
    least = []
    for rule in RULES:
        wall = min(median(results[form], "seconds") for form in FORMS) / median(results[rule], "seconds")
        epoch = min(per_epoch(results[form]) for form in FORMS) / per_epoch(results[rule])
        print(f"{rule}: {wall:.1f} times faster in wall-clock, {epoch:.1f} times in seconds per trained epoch.")
        least += [wall, epoch]
    return min(least[:2])


def report_accuracy(pairs):
    differences = [ours - theirs for ours, theirs in pairs]
    bound = lower_bound(differences)
    print(
        f"Test accuracy of the winner, mean of {len(pairs)} seeds: rung {statistics.mean(p[0] for p in pairs):.2f} %, rival "
        f"{statistics.mean(p[1] for p in pairs):.2f} %; difference {statistics.mean(differences):+.2f}, its lower 95 % bound "
        f"{bound:+.2f} points."
    )
    return bound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--seeds", type=int, default=5, help="timed sweeps; 0: none")
    parser.add_argument("--accuracy-seeds", type=int, default=10, help="sweeps whose winners are compared; 0: none")
    parser.add_argument("--test-seeds", type=int, default=3, help="trainings of each winner")
    parser.add_argument("--check", action="store_true", help="fail below 10 times and -1.0 point")
    arguments = parser.parse_args()
    python = rival_python(arguments.build)
    with tempfile.TemporaryDirectory() as folder:
        rung = Rung(arguments.build, arguments.devices)
        rival = Rival(python, find(arguments.build, "dump_split"), folder)
        rival.calibrate()
        print(f"{platform.platform()}, {os.cpu_count()} processors; {rival.versions}; AdamW {rival.alone} and {rival.together}")
        form, times, bound = "two processes", 10.0, 0.0
        if arguments.seeds > 0:
            results = measure_time(rung, rival, range(1, arguments.seeds + 1))
            times = report_time(results)
            form = min(FORMS, key=lambda name: median(results[name], "seconds"))
        if arguments.accuracy_seeds > 1:
            seeds = range(1, arguments.accuracy_seeds + 1)
            bound = report_accuracy(measure_accuracy(rung, rival, seeds, arguments.test_seeds, form))
    if arguments.check and (times < 10 or bound < -1.0):
        sys.exit(1)


if __name__ == "__main__":
    main()
