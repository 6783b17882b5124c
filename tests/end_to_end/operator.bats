# People at the controls: stop, Ctrl-C and its return, more trials for a finished sweep, logs.
load support

# Ctrl-C of the coordinator; 130 is its word for "interrupted, resumable".
interrupt_coordinator() {
    local code=0
    kill -INT "$coordinator_pid"
    wait "$coordinator_pid" || code=$?
    [ "$code" = 130 ] || fail "exit code $code: $(cat coordinator.out)"
}

@test "stop: what runs comes to its rung, the rest ends, the winner is refitted, and it is for good" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=5000
    worker node --devices cpu:2
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial WHERE state = '\''paused'\''")" -ge 3 ]'
    expect 0 "$RUNG" stop "$endpoint"
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    [ "$(count "SELECT state FROM sweep")" = stopped ]
    [ "$(count "SELECT count(*) FROM trial WHERE state IN ('waiting', 'running', 'paused')")" = 0 ]
    [ "$(count "SELECT count(*) FROM trial WHERE state = 'stopped' AND reason = 'user'")" -ge 3 ]
    [ "$(count "SELECT count(*) FROM trial WHERE number > 0")" -lt 5000 ]
    [ "$(count "SELECT state FROM trial WHERE number = 0")" = completed ]
    [ "$(count "SELECT final LIKE '%test_accuracy%' FROM sweep")" = 1 ]
    expect 2 "$RUNG" coordinator --resume digits-asha --db "$db"
    says "was stopped by an operator" "--name"
}

@test "stop --now: everything is handed back, no refit" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=5000
    worker node --devices cpu:2
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial")" -ge 3 ]'
    expect 0 "$RUNG" stop "$endpoint" --now
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    [ "$(count "SELECT state FROM sweep")" = stopped ]
    [ "$(count "SELECT count(*) FROM trial WHERE state IN ('waiting', 'running', 'paused')")" = 0 ]
    [ "$(count "SELECT count(*) FROM trial WHERE number = 0")" = 0 ]
    # Of all checkpoints only the best trial's is kept, beside the data.
    local blobs=("$db".files/blobs/*)
    [ "${#blobs[@]}" -le 2 ] || fail "$(ls "$db.files/blobs")"
}

@test "Ctrl-C of the coordinator: its worker waits, and goes on with the next" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=300
    local address=$endpoint
    start node "$RUNG" worker "$address" --name node --dir "$home/node" --devices cpu:2 --verbose
    local node=$pid
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial")" -ge 10 ]'
    interrupt_coordinator
    [ "$(count "SELECT count(*) FROM trial WHERE state = 'running'")" = 0 ]
    kill -0 "$node"
    start coordinator "$RUNG" coordinator --resume digits-asha --db "$db" --bind "$address"
    wait "$pid" || fail "$(cat coordinator.out)"
    wait "$node" || fail "$(cat node.out)"
    grep -q reconnected node.out || fail "$(cat node.out)"
    [ "$(count "SELECT state FROM sweep")" = finished ]
    [ "$(count "SELECT count(DISTINCT session) FROM attempt")" = 1 ]
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'lost'")" = 0 ]
}

@test "a finished sweep goes on with a larger run_cap, and is refitted again" {
    local asha=$RUNG_CONFIGS/digits-asha.yaml
    expect 0 "$RUNG" run "$asha" --db "$db" --set run_cap=12 --devices cpu:2
    expect 2 "$RUNG" run --resume digits-asha --db "$db"
    says "has finished, and nothing is left to resume" "--set run_cap=N"
    count "SELECT number, parameters FROM trial WHERE number > 0 ORDER BY number" >before
    expect 0 "$RUNG" run --resume digits-asha --db "$db" --set run_cap=30 --devices cpu:2
    [ "$(count "SELECT count(*) FROM trial WHERE number > 0")" = 30 ]
    [ "$(count "SELECT count(*) FROM attempt WHERE trial = 0")" = 2 ]
    [ "$(count "SELECT state FROM sweep")" = finished ]
    count "SELECT number, parameters FROM trial WHERE number BETWEEN 1 AND 12 ORDER BY number" | diff before -
    # The data, the winner's model, and at most the best trial's checkpoint.
    local blobs=("$db".files/blobs/*)
    [ "${#blobs[@]}" -le 3 ] || fail "$(ls "$db.files/blobs")"
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits-halving.yaml" --db halving.db
    expect 2 "$RUNG" run --resume digits-halving --db halving.db --set run_cap=1000
    says "compares all trials of the sweep at once"
}

@test "logs: what attempts printed is kept" {
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --set run_cap=2 --quiet
    expect 0 "$RUNG" logs digits 2 --db "$db"
    says "trial 2 attempt 1: on cpu/" "training and" "trial 2 attempt 1: finished after 27 epochs"
}

@test "a database in use is no advice to stop somebody's sweep" {
    coordinator "$RUNG_CONFIGS/digits.yaml"
    expect 4 "$RUNG" run "$RUNG_CONFIGS/digits-asha.yaml" --db "$db"
    says "in use" "choose another --db"
    case "$output" in *"rung stop"*) fail "$output" ;; esac
}

@test "halving in brackets: a sweep that was extended equals one that was never stopped" {
    local halving=$RUNG_CONFIGS/digits-halving.yaml
    expect 0 "$RUNG" run "$halving" --db whole.db --set early_terminate.bracket_size=9 --set run_cap=27
    expect 0 "$RUNG" run "$halving" --db "$db" --set early_terminate.bracket_size=9 --set run_cap=9
    expect 0 "$RUNG" run --resume digits-halving --db "$db" --set run_cap=27
    board whole.db >whole
    board "$db" >extended
    diff whole extended
}
