# What README and docs show is run here, as it stands there.
load support

# The n-th fenced block of a kind: block FILE KIND N
block() {
    awk -v kind="$2" -v want="$3" '
        $0 == "```" kind { inside = ++count == want; next }
        /^```/ { inside = 0 }
        inside' "$1"
}

@test "README: the first sweep is valid, runs, and the leaderboard commands work on it" {
    local root=$RUNG_CONFIGS/.. commands line
    PATH=$(dirname "$RUNG"):$PATH
    cp "$RUNG_CONFIGS/digits.csv.gz" .
    block "$root/README.md" yaml 1 >digits.yaml
    [ -s digits.yaml ]
    commands=$(block "$root/README.md" sh 2)
    [ "$(wc -l <<<"$commands")" = 2 ]
    while read -r line; do
        eval "expect 0 ${line%%#*}"
    done <<<"$commands"
    says "test_accuracy" "model of the first seed"
    local model
    model=$(tail -1 <<<"$output")
    [ -s "${model#  }" ]
    commands=$(block "$root/README.md" sh 4 | grep -v status)
    [ "$(wc -l <<<"$commands")" = 3 ]
    while read -r line; do
        eval "expect 0 ${line%%#*}"
    done <<<"$commands"
}

@test "every whole sweep in docs/ passes rung check" {
    local root=$RUNG_CONFIGS/.. file index checked=0
    cp "$RUNG_CONFIGS/digits.csv.gz" .
    for file in "$root"/docs/*.md; do
        for index in $(seq 1 40); do
            block "$file" yaml "$index" >spec.yaml
            [ -s spec.yaml ] || break
            # fragments show one key; a whole sweep has method and train
            if grep -q '^method:' spec.yaml && grep -q '^train:' spec.yaml; then
                expect 0 "$RUNG" check spec.yaml
                checked=$((checked + 1))
            fi
        done
    done
    [ "$checked" -ge 1 ]
}

@test "every example in configs/ passes rung check" {
    local file
    for file in "$RUNG_CONFIGS"/*.yaml; do
        expect 0 "$RUNG" check "$file" --sample 3
    done
}
