# What the binary says about itself, and wrong usage.
load support

@test "help lists every command, and every command has a help of its own" {
    expect 0 "$RUNG" --help
    local command
    for command in run coordinator worker leaderboard show logs list check status pause resume stop keygen; do
        says "$command"
        "$RUNG" "$command" --help | grep -q "usage: rung $command"
        [ "$("$RUNG" "$command" --help | awk 'length > 80' | wc -l)" = 0 ]
    done
}

@test "version" {
    expect 0 "$RUNG" --version
    says "rung "
}

@test "an unknown command names the nearest one" {
    expect 2 "$RUNG" leaderbord
    says "no command 'leaderbord'" "did you mean 'leaderboard'?"
}

@test "no command, unknown options, missing arguments" {
    expect 2 "$RUNG"
    expect 2 "$RUNG" run
    says "SPEC is missing"
    expect 2 "$RUNG" run --no-such-option
    says "rung run: unknown option '--no-such-option'" "try 'rung run --help'"
    local command
    for command in run coordinator worker leaderboard show logs list check status pause resume stop keygen; do
        expect 2 "$RUNG" "$command" --confg x
        says "rung $command: unknown option '--confg'"
        expect 2 "$RUNG" "$command" --helpp
        says "did you mean '--help'?"
    done
    expect 2 "$RUNG" run --top
    says "option '--top' takes a value"
    expect 2 "$RUNG" stop --now=1
    says "option '--now' takes no value"
    expect 2 "$RUNG" run a.yaml b.yaml
    says "one SPEC at a time"
    expect 2 "$RUNG" worker
}

# a small sweep: small METRIC-LINE > FILE
small() {
    cat <<TEXT
name: small
method: random
run_cap: 3
$1
parameters: {learning_rate: {min: 0.001, max: 0.01}}
train: {data: {path: $RUNG_CONFIGS/digits.csv.gz, target: label}, epochs: 2, hidden: [16]}
TEXT
}

@test "without a metric a sweep is done when trials are; the drawn seed is told" {
    small "" >plain.yaml
    expect 0 "$RUNG" run plain.yaml --db "$db"
    says "seed " "3/3 trials"
    expect 0 "$RUNG" check plain.yaml
    says "draws another one, unless --set seed="
}

@test "a coordinator says where it is reached, with which seed, and what to do when it has ended" {
    small "metric: {name: validation_loss, goal: minimize}" >small.yaml
    start coordinator "$RUNG" coordinator small.yaml --db "$db" --bind tcp://0.0.0.0:0 --endpoint-file endpoint
    until_true 20 test -s endpoint
    [ "$(wc -l <endpoint)" = 1 ]
    ! grep -q "0\.0\.0\.0" endpoint
    endpoint=$(cat endpoint)
    grep -q "attach workers with: rung worker $endpoint" coordinator.out
    worker first
    until_true 60 grep -q "rung leaderboard small --db $db" coordinator.out
    grep -q "seed [0-9]" coordinator.out
}

@test "list tells a sweep whose coordinator was killed" {
    small "metric: {name: validation_loss, goal: minimize}" >small.yaml
    coordinator small.yaml
    expect 0 "$RUNG" list --db "$db"
    says "running"
    kill -9 "$coordinator_pid"
    until_true 10 eval '! kill -0 $coordinator_pid'
    expect 0 "$RUNG" list --db "$db"
    says "interrupted"
    expect 0 "$RUNG" list --db "$db" --format json
    says '"state": "running"' '"live": false'
}

@test "the live line never wraps, and a table fits the terminal" {
    command -v tmux >/dev/null || skip "no tmux"
    local columns
    for columns in 40 80 200; do
        tmux -L "rung-$$" -f /dev/null new-session -d -x "$columns" -y 40 \
            "'$RUNG' run '$RUNG_CONFIGS/digits-halving.yaml' --db $columns.db; touch $columns.done; sleep 60"
        local screen wrapped=0
        while [ ! -e "$columns.done" ]; do
            screen=$(tmux -L "rung-$$" capture-pane -p)
            [ "$(grep -c ' trials' <<<"$screen")" -le 1 ] || wrapped=1
            sleep 0.1
        done
        screen=$(tmux -L "rung-$$" capture-pane -p)
        tmux -L "rung-$$" kill-server
        [ "$wrapped" = 0 ]
        grep -q "^rank" <<<"$screen"
        grep -Eq "^ +1 +[0-9]+ +0\.[0-9]+" <<<"$screen"
        grep -q "^test_accuracy" <<<"$screen"
    done
}

@test "check says first what costs the whole sweep, and counts replicates" {
    cp "$RUNG_CONFIGS/digits.csv.gz" .
    sed 's/goal: maximize/objective: last/' "$RUNG_CONFIGS/digits.yaml" >spec.yaml
    expect 0 "$RUNG" check spec.yaml --set train.replicates=5 --set train.precision=fp16 --set train.hidden=64 --devices cpu:1
    [[ $output == "  warning (line "*"metric.goal: goal is left out"* ]]
    says "27 epochs for each of 5 replicates, 3240 in all" "fp16 is emulated" "parameters.hidden has those of each trial"
    expect 0 "$RUNG" check "$RUNG_CONFIGS/digits.yaml" --devices cpu:1
    [[ $output != *"warning"* ]]
}
