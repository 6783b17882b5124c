# How commands end when something is not as it should be: said in one place, with the reason.
load support

@test "all trials diverged: said, with what the first one said" {
    expect 1 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --devices cpu:1 --set run_cap=3 \
        --set train.optimizer=sgd --set parameters.learning_rate='{values: [1e6]}' --set train.schedule=constant
    says "no trial has a finite validation_accuracy: 3 of 3 failed (diverged)" "rung show "
}

@test "all trials crashed: said, with what the first one said" {
    start run "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --devices cpu:1 --set run_cap=1 --set train.epochs=20000
    local worker code=0
    until_true 10 eval 'worker=$(pgrep -P "$pid" -f "rung worker")'
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.3
        pkill -9 -P "$worker" || true
    done
    wait "$pid" || code=$?
    output=$(cat run.out)
    [ "$code" = 1 ] || fail "$code: $output"
    says "no trial has a finite validation_accuracy: 1 of 1 failed (crashed); trial 1 said: "
}

@test "standard output that cannot be written: the reason of that" {
    expect 4 bash -c '"$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db x.db --devices cpu:1 --set run_cap=1 >/dev/full'
    says "No space left on device"
    expect 4 bash -c '"$RUNG" leaderboard --db x.db >/dev/full'
    says "No space left on device"
}

@test "too few descriptors: the remedy is named" {
    local n seen=
    for n in 12 16 20 24 32 48 63 64 80; do
        run bash -c "ulimit -n $n; '$RUNG' run '$RUNG_CONFIGS/digits.yaml' --db few-$n.db --devices cpu:1 --set run_cap=1"
        [ "$status" = 0 ] || [ "$status" = 4 ] || fail "$n: $status: $output"
        case "$output" in *"ulimit -n"*) seen=yes ;; esac
    done
    [ "$seen" ]
}

@test "times that are longer than for ever, names that are none" {
    expect 3 timeout -s INT 20 "$RUNG" worker tcp://127.0.0.1:1 --wait 0.2s --reconnect 1e99d --devices cpu:1
    expect 2 "$RUNG" worker tcp://127.0.0.1:1 --wait -1s
    expect 2 "$RUNG" worker tcp://127.0.0.1:1 --name $'a\nb'
    expect 2 "$RUNG" worker tcp://127.0.0.1:1 --name ''
    start patient "$RUNG" worker tcp://127.0.0.1:1 --wait 1e99d --devices cpu:1
    sleep 1
    kill -0 "$pid" || fail "$(cat patient.out)"
    local name
    for name in . .. -v; do
        expect 2 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --name="$name"
        says "1 to 64 of letters"
    done
}
