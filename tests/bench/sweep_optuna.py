"""The rival of `./dev bench sweep`: Optuna drives PyTorch over the same space, rows and rungs.

Everything that is known to make it fast is used: rows preloaded as tensors and indexed per batch, no DataLoader, the fastest
AdamW of this machine, gradients set to None, scalars read once an epoch, ask and tell in place of optimize. Imports, reading
the rows and choosing the AdamW are not in its time. Prints one JSON object.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time

START = time.perf_counter()
import numpy  # noqa: E402
import optuna  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

IMPORTS = time.perf_counter() - START

HIDDEN = [[64], [128], [128, 128]]
BATCHES = [32, 64, 128, 256]
EPOCHS = 27
ADAMW = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def read_rows(folder):
    def array(name):
        return torch.from_numpy(numpy.load(os.path.join(folder, name + ".npy")))

    return {part: (array("x_" + part), array("y_" + part).long()) for part in ("train", "validation", "test")}


def make_model(hidden, dropout, inputs, classes=10):
    layers = []
    for width in hidden:
        layers += [torch.nn.Linear(inputs, width), torch.nn.ReLU()]
        if dropout > 0:
            layers.append(torch.nn.Dropout(dropout))
        inputs = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, classes))


def train_epoch(model, optimizer, x, y, batch):
    model.train()
    order = torch.randperm(len(x))
    total = torch.zeros(())
    for rows in order.split(batch):
        loss = functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(rows)
    return total.item() / len(x)


def score(model, x, y):
    model.eval()
    with torch.inference_mode():
        logits = model(x)
        loss = functional.cross_entropy(logits, y)
        correct = (logits.argmax(1) == y).float().mean()
    return loss.item(), correct.item()


class Training:
    def __init__(self, rows, point, adamw, seed):
        torch.manual_seed(seed)
        self.x, self.y = rows["train"]
        self.rows = rows
        self.batch = point["batch_size"]
        self.model = make_model(point["hidden"], point["dropout"], self.x.shape[1])
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=point["learning_rate"], weight_decay=0.01, **ADAMW[adamw]
        )

    def epoch(self):
        train_epoch(self.model, self.optimizer, self.x, self.y, self.batch)
        return score(self.model, *self.rows["validation"])[1]


def propose(trial):
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True),
        "batch_size": trial.suggest_categorical("batch_size", BATCHES),
        "hidden": HIDDEN[trial.suggest_categorical("hidden", list(range(len(HIDDEN))))],
        "dropout": trial.suggest_float("dropout", 0.0, 0.5),
    }


def run_trials(study, rows, adamw, claim):
    epochs = 0
    while claim():
        trial = study.ask()
        training = Training(rows, propose(trial), adamw, trial.number)
        pruned = False
        for epoch in range(1, EPOCHS + 1):
            accuracy = training.epoch()
            epochs += 1
            trial.report(accuracy, epoch)
            if epoch < EPOCHS and trial.should_prune():
                pruned = True
                break
        if pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, accuracy)
    return epochs


def make_study(seed, storage, name):
    return optuna.create_study(
        study_name=name,
        storage=storage,
        load_if_exists=storage is not None,
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3, min_early_stopping_rate=0),
    )


def sweep_alone(rows, arguments):
    begin = time.perf_counter()
    study = make_study(arguments.seed, None, "sweep")
    left = iter(range(arguments.trials))
    epochs = run_trials(study, rows, arguments.adamw, lambda: next(left, None) is not None)
    seconds = time.perf_counter() - begin
    return winner(study), epochs, seconds


def journal(path):
    backend = optuna.storages.journal.JournalFileBackend(path)
    return optuna.storages.JournalStorage(backend)


def worker(index, path, rows, arguments, left, answers):
    torch.set_num_threads(1)
    study = make_study(arguments.seed * 1000 + index, journal(path), "sweep")

    def claim():
        with left.get_lock():
            left.value -= 1
            return left.value >= 0

    answers.put(run_trials(study, rows, arguments.adamw, claim))


def sweep_together(rows, arguments):
    context = multiprocessing.get_context("fork")  # imports and rows are there already
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "journal")
        begin = time.perf_counter()
        make_study(arguments.seed, journal(path), "sweep")
        left, answers = context.Value("q", arguments.trials), context.Queue()
        processes = [
            context.Process(target=worker, args=(i, path, rows, arguments, left, answers)) for i in range(arguments.processes)
        ]
        for process in processes:
            process.start()
        epochs = sum(answers.get() for _ in processes)
        for process in processes:
            process.join()
        seconds = time.perf_counter() - begin
        return winner(make_study(arguments.seed, journal(path), "sweep")), epochs, seconds


def winner(study):
    done = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    best = max(done, key=lambda t: t.value)
    return {**best.params, "hidden": HIDDEN[best.params["hidden"]]}, best.value


def test_scores(rows, point, adamw, seeds):
    """The winner trained again as rung's `final` does it: training rows, all epochs, once a seed."""
    scores = []
    for seed in range(seeds):
        training = Training(rows, point, adamw, 1000 + seed)
        for _ in range(EPOCHS):
            train_epoch(training.model, training.optimizer, training.x, training.y, training.batch)
        scores.append(score(training.model, *rows["test"])[1])
    return scores


def calibrate(rows):
    """Microseconds a step of each AdamW, the least of five epochs."""
    found = {}
    for name in ADAMW:
        training = Training(rows, {"learning_rate": 1e-3, "batch_size": 64, "hidden": [128], "dropout": 0.2}, name, 0)
        times = []
        for _ in range(6):
            begin = time.perf_counter()
            train_epoch(training.model, training.optimizer, training.x, training.y, training.batch)
            times.append(time.perf_counter() - begin)
        found[name] = round(min(times[1:]) / -(-len(training.x) // 64) * 1e6, 1)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", help="folder that dump_split filled")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--adamw", choices=list(ADAMW), default="default")
    parser.add_argument("--calibrate", action="store_true", help="only time the steps")
    parser.add_argument("--test-seeds", type=int, default=0)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1 if arguments.processes > 1 else arguments.threads)
    rows = read_rows(arguments.rows)
    versions = {"torch": torch.__version__, "optuna": optuna.__version__}
    if arguments.calibrate:
        print(json.dumps({**versions, "threads": torch.get_num_threads(), "microseconds": calibrate(rows)}))
        return
    sweep = sweep_together if arguments.processes > 1 else sweep_alone
    (point, value), epochs, seconds = sweep(rows, arguments)
    print(
        json.dumps(
            {
                **versions,
                "imports": round(IMPORTS, 3),
                "seconds": seconds,
                "epochs": epochs,
                "trials": arguments.trials,
                "validation_accuracy": value,
                "parameters": point,
                "test_accuracy": test_scores(rows, point, arguments.adamw, arguments.test_seeds),
            }
        )
    )


if __name__ == "__main__":
    main()
