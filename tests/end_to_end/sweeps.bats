# Whole sweeps on real data, over real processes.
load support

@test "digits.yaml: a leaderboard and the winner's test accuracy" {
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --set run_cap=8 --set train.epochs=9
    says "test_accuracy"
    [ "$(board "$db" | wc -l)" = 8 ]
    "$RUNG" leaderboard --db "$db" --format json >board.json
    python3 - <<'PY'
import json
rows = json.load(open("board.json"))
assert [row["rank"] for row in rows] == list(range(1, 9)), rows
objectives = [row["objective"] for row in rows]
assert objectives == sorted(objectives, reverse=True) and objectives[0] > 0.93, objectives
assert all(row["resource"] == 9 and row["state"] == "completed" for row in rows)
PY
    expect 0 "$RUNG" show digits 1 --db "$db"
    says "learning_rate" "validation_accuracy"
    expect 0 "$RUNG" list --db "$db"
    says "digits" "finished"
}

@test "digits.yaml over five seeds: the winner's test accuracy is at least 0.955, and 0.970 on average" {
    local seed
    for seed in 1 2 3 4 5; do
        expect 0 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "seed-$seed.db" --set "seed=$seed" --quiet
        "$RUNG" list --db "seed-$seed.db" --format json >"seed-$seed.json"
    done
    python3 - <<'PY'
import json
scores = [json.load(open(f"seed-{seed}.json"))[0]["final"]["test_accuracy"]["mean"] for seed in range(1, 6)]
print(scores)
assert min(scores) >= 0.955 and sum(scores) / 5 >= 0.970, scores
PY
}

@test "digits-grid.yaml: 24 points are 24 trials, also when interrupted and resumed" {
    start run "$RUNG" run "$RUNG_CONFIGS/digits-grid.yaml" --db "$db" --set train.epochs=60
    local run=$pid
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial WHERE state = '"'completed'"'")" -ge 3 ]'
    kill -INT "$run"
    local code=0
    wait "$run" || code=$?
    [ "$code" = 130 ] || fail "exit code $code: $(cat run.out)"
    [ "$(count "SELECT count(*) FROM trial WHERE state = 'completed'")" -lt 24 ]
    expect 0 "$RUNG" run --resume digits-grid --db "$db"
    [ "$(count "SELECT count(*) FROM trial WHERE number > 0")" = 24 ]
    [ "$(count "SELECT count(DISTINCT parameters) FROM trial WHERE number > 0")" = 24 ]
    [ "$(count "SELECT count(*) FROM trial WHERE number > 0 AND state = 'completed' AND resource = 60")" = 24 ]
    board "$db" >resumed
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits-grid.yaml" --db calm.db --set train.epochs=60
    board calm.db >calm
    diff calm resumed
    expect 2 "$RUNG" run "$RUNG_CONFIGS/digits-grid.yaml" --db "$db" --set train.epochs=60
    says "finished"
}

# The same sweep with one worker and with four.
same_with_any_workers() { # spec option...
    local spec=$1 i
    shift
    expect 0 "$RUNG" run "$spec" --db one.db --devices cpu:1 "$@"
    coordinator "$spec" "$@"
    for i in 1 2 3 4; do worker "w$i" --devices cpu:1; done
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    board one.db >one
    board "$db" >four
    diff one four
    [ -s one ]
}

@test "random: the leaderboard is the same bit for bit with 1 and with 4 workers" {
    same_with_any_workers "$RUNG_CONFIGS/digits.yaml" --set run_cap=12 --set train.epochs=5
}

@test "grid: the leaderboard is the same bit for bit with 1 and with 4 workers" {
    same_with_any_workers "$RUNG_CONFIGS/digits-grid.yaml"
}

@test "digits-halving.yaml: the same bit for bit with 1 and with 4 workers, and the rungs are 81 27 9 3 1" {
    same_with_any_workers "$RUNG_CONFIGS/digits-halving.yaml"
    [ "$(count "SELECT group_concat(n) FROM (SELECT count(*) AS n FROM rung_entry GROUP BY rung ORDER BY rung)")" = 81,27,9,3,1 ]
}

@test "a promoted trial's curve equals that of a trial never paused, bitwise" {
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits-halving.yaml" --db "$db" --set run_cap=9 \
        --set train.epochs=9 --set early_terminate.max_iter=9
    sed '/^early_terminate/d' "$RUNG_CONFIGS/digits-halving.yaml" >plain.yaml
    cp "$RUNG_CONFIGS/digits.csv.gz" .
    expect 0 "$RUNG" run plain.yaml --db plain.db --set run_cap=9 --set train.epochs=9
    local best
    best=$("$RUNG" leaderboard --db "$db" --format json | python3 -c '
import json, sys
print(next(row["trial"] for row in json.load(sys.stdin) if row["resource"] == 9))')
    local curve='import json, sys
print([(point["resource"], point["metrics"]) for point in json.load(sys.stdin)["curve"]])'
    "$RUNG" show digits-halving "$best" --db "$db" --format json | python3 -c "$curve" >paused
    "$RUNG" show digits-halving "$best" --db plain.db --format json | python3 -c "$curve" >straight
    diff paused straight
    [ "$(count "SELECT count(*) FROM attempt WHERE trial = $best AND outcome = 'paused'")" -ge 1 ] ||
        [ "$(count "SELECT count(*) FROM attempt WHERE trial = $best")" = 1 ]
}
