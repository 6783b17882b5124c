# Bad input: a clear message, the exit code of the manual, nothing half-written.
load support

spec() { # [sed expression]...: a small sweep on the digits in spec.yaml, edited
    cp "$RUNG_CONFIGS/digits.csv.gz" .
    cat >spec.yaml <<'YAML'
name: small
method: random
metric: {name: validation_accuracy, goal: maximize}
run_cap: 2
seed: 1
parameters:
  learning_rate: {min: 0.001, max: 0.01}
train:
  data: {path: digits.csv.gz, target: label}
  epochs: 2
YAML
    local edit
    for edit in "$@"; do sed -i "$edit" spec.yaml; done
}

refused() { # text...: run says so, exits 2 and leaves no database
    expect 2 "$RUNG" run spec.yaml --db "$db"
    says "$@"
    [ ! -e "$db" ]
}

@test "the small sweep itself is fine" {
    spec
    expect 0 "$RUNG" run spec.yaml --db "$db"
}

@test "missing files" {
    expect 2 "$RUNG" run nothing.yaml --db "$db"
    says "nothing.yaml"
    spec 's/digits.csv.gz/nothing.csv/'
    refused "nothing.csv" "spec.yaml:9"
}

@test "wrong target, metric misspelt, unknown keys: all errors at once" {
    spec 's/target: label/target: labl/'
    refused "labl" "label"
    spec 's/validation_accuracy/validation_acuracy/' 's/method: random/method: randon/' 's/epochs:/epoch:/'
    refused "validation_acuracy" "randon" "random" "epoch" "spec.yaml:2" "spec.yaml:3" "spec.yaml:10"
}

@test "data faults: text in a number column, NaN labels, one class, empty" {
    python3 - <<'PY'
rows = [[str(i % 7), str(i % 5 * 0.5), str(i % 3)] for i in range(120)]
def write(name, rows, header="a,b,label"):
    open(name, "w").write(header + "\n" + "".join(",".join(row) + "\n" for row in rows))
text = [list(row) for row in rows]; text[99][0] = "oops"
write("text.csv", text)
nan = [list(row) for row in rows]; nan[50][2] = "nan"
write("nan.csv", nan)
write("one.csv", [row[:2] + ["1"] for row in rows])
write("empty.csv", [])
open("zero.csv", "w").close()
PY
    spec 's/digits.csv.gz/text.csv/'
    refused "text.csv" "101" "oops"
    spec 's/digits.csv.gz/nan.csv/'
    refused "nan.csv" "52"
    spec 's/digits.csv.gz/one.csv/'
    refused "one.csv" "one class"
    spec 's/digits.csv.gz/empty.csv/'
    refused "empty.csv"
    spec 's/digits.csv.gz/zero.csv/'
    refused "zero.csv" "empty"
}

@test "port in use" {
    spec 's/run_cap: 2/run_cap: 1000/'
    coordinator spec.yaml
    expect 4 "$RUNG" coordinator spec.yaml --db other.db --bind "$endpoint"
    says "in use"
    [ ! -e other.db ] || [ "$(sqlite3 other.db 'SELECT count(*) FROM trial')" = 0 ]
}

@test "database in use" {
    spec 's/run_cap: 2/run_cap: 1000/'
    coordinator spec.yaml
    expect 4 "$RUNG" coordinator spec.yaml --db "$db" --bind tcp://127.0.0.1:0 --name another
    says "$coordinator_pid"
}

@test "wrong endpoint, nobody there" {
    expect 2 "$RUNG" worker nonsense
    expect 3 "$RUNG" worker tcp://127.0.0.1:9 --wait 1s
    says "tcp://127.0.0.1:9"
    expect 3 "$RUNG" status tcp://127.0.0.1:9
}

@test "a stranger's key is refused; an authorized one is not" {
    spec 's/run_cap: 2/run_cap: 1000/'
    coordinator spec.yaml
    local key
    key=$(sed -n 's/^public *= *//p' "$XDG_CONFIG_HOME/rung/coordinator.key")
    XDG_CONFIG_HOME=$home/stranger expect 3 "$RUNG" worker "$endpoint" --server-key "$key" --wait 5s --devices cpu:1
    says "refused"
    XDG_CONFIG_HOME=$home/stranger expect 3 "$RUNG" status "$endpoint" --server-key "$key"
    expect 0 "$RUNG" keygen --for friend --out "$home/friend"
    expect 2 "$RUNG" keygen --for friend --out "$home/again"
    says "friend has a key: line 2 of" "authorized" "--force"
    expect 0 "$RUNG" keygen --for friend --out "$home/again" --force
    start friend env XDG_CONFIG_HOME="$home/none" "$RUNG" worker "$endpoint" --config "$home/friend" --devices cpu:1
    until_true 20 eval '[ "$(count "SELECT count(*) FROM trial WHERE state = '"'completed'"'")" -ge 1 ]'
}

@test "not a database, another program's, a newer version's" {
    spec
    echo "not a database at all, just text that is long enough to be one" >"$db"
    expect 4 "$RUNG" run spec.yaml --db "$db"
    says "$db"
    rm "$db"
    sqlite3 "$db" "CREATE TABLE x(y)"
    expect 4 "$RUNG" run spec.yaml --db "$db"
    rm "$db"
    expect 0 "$RUNG" run spec.yaml --db "$db"
    sqlite3 "$db" "PRAGMA user_version = 99"
    expect 4 "$RUNG" leaderboard --db "$db"
    says "newer"
    expect 4 "$RUNG" run spec.yaml --db "$db" --name again
    says "newer"
}

@test "a full disk: said clearly, waits, and goes on when there is room" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount a small file system"
    mkdir full
    mount -t tmpfs -o size=400k tmpfs full || skip "cannot mount a tmpfs here"
    spec 's/run_cap: 2/run_cap: 3000/' 's/epochs: 2/epochs: 1/'
    db=$home/full/test.db
    coordinator spec.yaml
    worker node --devices cpu:2
    local fine=0
    until_true 60 grep -qi "disk is full\|no space" coordinator.out && fine=1
    kill -0 "$coordinator_pid" || fine=0
    mount -o remount,size=64m full
    if [ $fine = 1 ]; then
        wait "$coordinator_pid" || fine=0
        [ "$(count "SELECT count(*) FROM trial WHERE state = 'completed' AND number > 0")" = 3000 ] || fine=0
    fi
    local said
    said=$(cat coordinator.out)
    kill -9 "${pids[@]}" 2>/dev/null || true
    umount -l full
    [ $fine = 1 ] || fail "$said"
}

@test "an empty or missing database, an unknown sweep or trial" {
    expect 4 "$RUNG" leaderboard --db nothing.db
    says "nothing.db"
    spec
    expect 0 "$RUNG" run spec.yaml --db "$db"
    expect 2 "$RUNG" leaderboard smal --db "$db"
    says "smal"
    expect 2 "$RUNG" show small 99 --db "$db"
    says "99"
    expect 2 "$RUNG" leaderboard --db "$db" --where 'learning_rat > 1'
    says "learning_rate"
}
