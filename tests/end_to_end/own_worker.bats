# The worker that `rung run` starts itself: it may die, and so may `rung run`; and how `rung run` is interrupted.
load support

# long TRIALS...: starts a `rung run` of many short trials; sets $pid
long() {
    start run "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --devices cpu:2 --set run_cap=5000 "$@"
}

trials_ended() {
    [ "$(count "SELECT count(*) FROM trial WHERE state = 'completed'")" -ge "$1" ]
}

own_worker() {
    pgrep -P "$pid" -f 'rung worker'
}

is_gone() {
    ! kill -0 "$1"
}

@test "a killed local worker is started again, and nothing waits for its lease" {
    long
    until_true 30 trials_ended 2
    local first
    first=$(own_worker)
    kill -9 "$first"
    until_true 5 grep -q "killed by signal 9; starting it again" run.out
    local before
    before=$(count "SELECT count(*) FROM trial WHERE state = 'completed'")
    until_true 10 trials_ended $((before + 3)) || fail "$(cat run.out)"
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'lost'")" -ge 1 ]
    ! grep -q "has this name" run.out
}

@test "a local worker that always dies ends the run, which can be resumed" {
    long
    local code=0 i
    for i in $(seq 100); do
        kill -9 $(own_worker) 2>/dev/null || true
        sleep 0.1
        kill -0 "$pid" 2>/dev/null || break
    done
    wait "$pid" || code=$?
    [ "$code" = 4 ] || fail "$code: $(cat run.out)"
    [ "$(grep -c "starting it again" run.out)" = 3 ]
    grep -q "this machine's worker ended" run.out
    grep -q -- "--resume digits" run.out
}

@test "a killed run is resumed at once" {
    local i
    for i in 1 2; do
        long ${resume:+--resume}
        until_true 12 trials_ended $((i * 3)) || fail "$(cat run.out)"
        kill -9 "$pid"
        wait "$pid" || true
        resume=yes
    done
    ! grep -q "has this name" run.out
    # Nobody is waited for who cannot come any more.
    start again "$RUNG" coordinator --resume digits --db "$db" --bind tcp://127.0.0.1:0 --endpoint-file ready
    until_true 10 test -s ready
    local begun=$SECONDS code=0
    kill -INT "$pid"
    wait "$pid" || code=$?
    [ "$code" = 130 ]
    [ $((SECONDS - begun)) -lt 10 ] || fail "waited for workers that are gone"
}

@test "private folders of killed runs are removed by the next" {
    export TMPDIR=$home/tmp XDG_RUNTIME_DIR=
    mkdir "$TMPDIR"
    mkdir "$TMPDIR/rung-Others"
    long
    until_true 10 own_worker || fail "$(cat run.out; ls -la $TMPDIR)"
    [ "$(ls "$TMPDIR" | wc -l)" = 2 ]
    kill -9 "$pid"
    wait "$pid" || true
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db other.db --devices cpu:1 --set run_cap=1 --set train.epochs=1
    [ "$(ls "$TMPDIR")" = rung-Others ] || fail "$(ls "$TMPDIR")"
}

@test "another worker cannot take the name of the own one" {
    long
    until_true 10 grep -q "rung worker tcp" run.out
    local address
    address=$(grep -o 'tcp://[0-9.:]*' run.out | head -1)
    expect 3 "$RUNG" worker "$address" --name local --wait 1s --devices cpu:1
    says "own worker"
}

@test "a signal at any moment of a start ends it with 130, or 0 when it came too late" {
    local i code
    for i in 0.03 0.04 0.05 0.06 0.08 0.1 0.13 0.16 0.2 0.3 0.5; do
        rm -rf "$db"*
        start run "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --devices cpu:1
        until_true 5 grep -q rung "/proc/$pid/cmdline"
        sleep "$i"
        kill -TERM "$pid" 2>/dev/null || true
        code=0
        wait "$pid" || code=$?
        [ "$code" = 130 ] || [ "$code" = 0 ] || fail "after $i s: $code: $(cat run.out)"
    done
}

@test "twice is at once" {
    local i code
    for i in 0.1 0.15 0.2 0.25 0.3 0.4 0.6 1; do
        rm -rf "$db"*
        long --set train.epochs=20000
        sleep "$i"
        kill -INT "$pid"
        sleep 0.02
        kill -TERM "$pid" 2>/dev/null || true
        until_true 5 is_gone "$pid" || fail "after $i s: $(cat run.out)"
        code=0
        wait "$pid" || code=$?
        [ "$code" = 130 ] || fail "after $i s: $code: $(cat run.out)"
    done
    ! pgrep -f "$home" >/dev/null
}

@test "wrong devices and addresses: said before anything is written" {
    local address
    expect 2 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --devices gpu:9
    [ ! -e "$db" ]
    for address in tcp://127.0.0.1:65536 tcp://127.0.0.1:72691 tcp://127.0.0.1 tcp://::1:0 nonsense; do
        expect 2 "$RUNG" run "$RUNG_CONFIGS/digits.yaml" --db "$db" --bind "$address"
        expect 2 "$RUNG" coordinator "$RUNG_CONFIGS/digits.yaml" --db "$db" --bind "$address"
        expect 2 "$RUNG" worker "$address"
        expect 2 "$RUNG" status "$address"
        expect 2 "$RUNG" leaderboard --endpoint "$address"
    done
    expect 2 "$RUNG" worker tcp://127.0.0.1:0
    expect 2 "$RUNG" status tcp://127.0.0.1:0
    [ ! -e "$db" ]
    [ -z "$(ls -A "$home" | grep -v -e config -e cache)" ]
}
