# Verbs for the end-to-end tests. Every test has a folder, keys and a cache of its own; whatever it started ends with it.
# RUNG is the binary, RUNG_CONFIGS the folder of the example sweeps (both set by CMake).

setup() {
    home=$(mktemp -d)
    export XDG_CONFIG_HOME=$home/config XDG_CACHE_HOME=$home/cache
    db=$home/test.db
    pids=()
    cd "$home" || exit
}

teardown() {
    local pid
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    cd /
    rm -rf "$home"
}

fail() {
    echo "$*" >&2
    return 1
}

# start NAME COMMAND...: in the background; its output in NAME.out, its pid in $pid
start() {
    local name=$1
    shift
    "$@" >"$home/$name.out" 2>&1 3>&- &
    pid=$!
    pids+=("$pid")
}

# until_true SECONDS COMMAND...
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || fail "not within the time: $*" || return 1
        sleep 0.1
    done
}

# expect EXIT-CODE COMMAND...: runs it, keeps stdout and stderr together in $output
expect() {
    local code=$1 got=0
    shift
    output=$("$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "exit code $got instead of $code: $*"$'\n'"$output"
}

# says TEXT...: every text stands in $output
says() {
    local text
    for text in "$@"; do
        case "$output" in
        *"$text"*) ;;
        *) fail "does not say '$text': $output" || return 1 ;;
        esac
    done
}

# coordinator SPEC OPTION...: starts one on a free port; sets $pid and $endpoint
coordinator() {
    rm -f "$home/endpoint"
    start coordinator "$RUNG" coordinator "$@" --db "$db" --bind tcp://127.0.0.1:0 --endpoint-file "$home/endpoint"
    coordinator_pid=$pid
    until_true 20 test -s "$home/endpoint" || fail "$(cat "$home/coordinator.out")"
    endpoint=$(cat "$home/endpoint")
}

# worker NAME OPTION...: attaches one; sets $pid
worker() {
    local name=$1
    shift
    start "$name" "$RUNG" worker "$endpoint" --name "$name" --dir "$home/$name" "$@"
}

# The leaderboard without what may differ between equal runs: timings and places.
board() { # database [sweep]
    "$RUNG" leaderboard ${2:+"$2"} --db "$1" --format json |
        python3 -c '
import json, sys
for row in json.load(sys.stdin):
    for key in ("seconds", "worker", "attempts", "sweep"):
        row.pop(key, None)
    print(json.dumps(row, sort_keys=True))'
}

count() { # SQL
    sqlite3 -readonly "$db" "$1"
}
