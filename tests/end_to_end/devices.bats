# GPUs that fail, in a build with the emulated one: the right reason, the node goes on, the trial is tried elsewhere.
load support

spec() { # [sed expression]...: a small sweep on the digits in spec.yaml, edited
    cp "$RUNG_CONFIGS/digits.csv.gz" .
    cat >spec.yaml <<'YAML'
name: small
method: random
metric: {name: validation_accuracy, goal: maximize}
run_cap: 8
seed: 1
parameters:
  learning_rate: {min: 0.001, max: 0.01}
train:
  data: {path: digits.csv.gz, target: label}
  hidden: [16]
  batch_size: 128
  epochs: 2
YAML
    local edit
    for edit in "$@"; do
        sed -i "$edit" spec.yaml
    done
}

completed() {
    count "SELECT count(*) FROM trial WHERE state = 'completed' AND number > 0"
}

@test "a sweep on four devices: its results are marked, its precision is theirs, and is kept" {
    spec
    expect 0 "$RUNG" run spec.yaml --db "$db" --devices emulated:4
    says "baseline"
    [ "$(count "SELECT count(*) FROM attempt WHERE trial > 0 AND device = 'emulated'")" = 8 ]
    [ "$(count "SELECT precision FROM sweep")" = bf16 ]
    [ "$(count "SELECT count(*) FROM attempt WHERE trial > 0 AND json_extract(details, '$.precision') = 'bf16'")" = 8 ]
    [ "$(count "SELECT count(*) FROM worker, json_each(devices) WHERE json_extract(value, '$.kind') = 'emulated'")" = 4 ]
    expect 0 "$RUNG" show small 1 --db "$db"
    says "precision" "bf16" "memory micro_batch"
    # More trials on CPUs: of the same precision.
    expect 0 "$RUNG" run spec.yaml --db "$db" --devices cpu:1 --resume --set run_cap=9
    [ "$(count "SELECT json_extract(details, '$.precision') FROM attempt WHERE trial = 9")" = bf16 ]
}

@test "wrong numbers of devices, and a driver that is too old, are said before anything is begun" {
    spec
    expect 2 "$RUNG" run spec.yaml --db "$db" --devices emulated:0
    says "emulated:N takes N"
    RUNG_EMULATED_DEVICES=2 expect 2 "$RUNG" run spec.yaml --db "$db" --devices emulated:3
    says "gives 2"
    RUNG_EMULATED_FAULTS=old_driver expect 4 "$RUNG" run spec.yaml --db "$db" --devices emulated:1
    says "driver"
    [ ! -e "$db" ]
}

@test "without an NVIDIA GPU, what is missing for one is said" {
    [ ! -e /dev/nvidia0 ] || skip "there is one"
    spec
    expect 4 "$RUNG" run spec.yaml --db "$db" --devices cuda:0
    if [ -e "$(dirname "$RUNG")/librung_cuda.so" ]; then
        says "driver"
    else
        says "no plugin for cuda"
    fi
    [ ! -e "$db" ]
}

@test "an error that spoils one device: its trials are tried elsewhere, and it gets no more" {
    spec 's/run_cap: 8/run_cap: 80/' 's/batch_size: 128/batch_size: 32/'
    export RUNG_EMULATED_FAULTS=sticky:launch=150:device=1
    expect 0 "$RUNG" run spec.yaml --db "$db" --devices emulated:4 --verbose
    says "cudaErrorIllegalAddress" "emulated:1 takes no more work after 3 failures in a row"
    [ "$(completed)" = 80 ]
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'crashed'")" = 3 ]
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'crashed' AND error LIKE '%cudaErrorIllegalAddress%'")" = 3 ]
    [ "$(count "SELECT count(DISTINCT trial) FROM attempt WHERE outcome = 'crashed'")" = 3 ]
    [ "$(count "SELECT count(*) FROM worker, json_each(devices) WHERE json_extract(value, '$.fault') IS NOT NULL")" = 1 ]
}

@test "a device that is lost for good" {
    spec 's/run_cap: 8/run_cap: 300/'
    export RUNG_EMULATED_FAULTS=lost:launch=60:device=0
    expect 0 "$RUNG" run spec.yaml --db "$db" --devices emulated:2 --verbose
    says "emulated:0 takes no more work"
    [ "$(completed)" = 300 ]
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'crashed' AND error LIKE '%cudaErrorDevicesUnavailable%'")" -ge 1 ]
}

@test "devices that all fail use up no retries: the sweep can be resumed, and nothing of it has failed" {
    spec 's/run_cap: 8/run_cap: 24/'
    coordinator spec.yaml
    RUNG_EMULATED_FAULTS=sticky:launch=60 start bad "$RUNG" worker "$endpoint" --name bad --dir "$home/bad" --devices emulated:2
    until_true 60 eval '! kill -0 "$pid"'
    grep -q "cudaErrorIllegalAddress" "$home/bad.out"
    [ "$(count "SELECT count(*) FROM trial WHERE state = 'failed'")" = 0 ]
    worker good --devices emulated:2
    until_true 60 eval '[ "$(completed)" = 24 ]'
}

@test "the device fails while the baseline is trained: that is tried again" {
    spec 's/run_cap: 8/run_cap: 1/'
    echo sticky:launch=400 >faults
    coordinator spec.yaml
    RUNG_EMULATED_STATE=$home/faults worker node --devices emulated:1
    until_true 60 eval '[ "$(count "SELECT count(*) FROM attempt WHERE trial = 0 AND outcome = '"'crashed'"'")" -ge 1 ]'
    : >faults
    until_true 60 eval '! kill -0 "$coordinator_pid"'
    [ "$(count "SELECT json_extract(baseline, '$.metrics.validation_accuracy') > 0.9 FROM sweep")" = 1 ]
}

@test "the only device is lost: the worker leaves and says why, the sweep can be resumed" {
    spec
    export RUNG_EMULATED_FAULTS=lost:launch=60
    expect 4 "$RUNG" run spec.yaml --db "$db" --devices emulated:1
    says "cudaErrorDevicesUnavailable"
    unset RUNG_EMULATED_FAULTS
    expect 0 "$RUNG" run spec.yaml --db "$db" --devices emulated:1 --resume
    [ "$(count "SELECT count(*) FROM trial WHERE number > 0 AND state IN ('completed', 'failed')")" = 8 ]
}

@test "a runner that is killed on a device: the trial is tried again, the device stays" {
    spec 's/epochs: 2/epochs: 40/' 's/run_cap: 8/run_cap: 2/'
    coordinator spec.yaml
    worker node --devices emulated:2
    until_true 60 eval '[ "$(count "SELECT count(*) FROM report")" -ge 2 ]'
    pkill -KILL -P "$pid" -o -f "runner emulated:"
    until_true 120 eval '[ "$(completed)" = 2 ]'
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'crashed' AND error LIKE '%signal 9%'")" = 1 ]
    [ "$(count "SELECT count(*) FROM worker, json_each(devices) WHERE json_extract(value, '$.fault') IS NOT NULL")" = 0 ]
}

@test "memory that is not there: out_of_memory, tried once" {
    spec 's/hidden: \[16\]/hidden: [4096, 4096]/' 's/run_cap: 8/run_cap: 2/'
    export RUNG_EMULATED_MEMORY=64M
    expect 0 "$RUNG" check spec.yaml --devices emulated:1
    says "do not fit"
    expect 1 "$RUNG" run spec.yaml --db "$db" --devices emulated:2
    [ "$(count "SELECT count(*) FROM trial WHERE reason = 'out_of_memory'")" = 2 ]
    [ "$(count "SELECT count(*) FROM attempt")" = 2 ]
}

@test "a batch that does not fit is accumulated to the same effective batch" {
    spec 's/hidden: \[16\]/hidden: [8192]/' 's/batch_size: 128/batch_size: 1024/' 's/run_cap: 8/run_cap: 1/' 's/epochs: 2/epochs: 1/'
    export RUNG_EMULATED_MEMORY=64M
    RUNG_EMULATED_MEMORY=32M expect 0 "$RUNG" check spec.yaml --devices emulated:1 --format json
    [ "$(jq '.plan.largest.micro_batch < 1024 and .plan.fits' <<<"$output")" = true ]
    expect 0 "$RUNG" run spec.yaml --db "$db" --devices emulated:1
    [ "$(count "SELECT json_extract(details, '$.memory.micro_batch') < 1024 FROM attempt WHERE trial = 1")" = 1 ]
    [ "$(count "SELECT json_extract(details, '$.derived.batch_size') FROM attempt WHERE trial = 1")" = 1024 ]
}
