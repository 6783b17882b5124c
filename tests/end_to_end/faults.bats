# Workers and coordinators that die, at any moment: nothing lost, nothing counted twice.
load support

# Every trial ended once; no report of one (trial, resource) counts twice; the curves have no holes.
nothing_lost() { # trials
    [ "$(count "SELECT count(*) FROM trial WHERE number > 0")" = "$1" ]
    [ "$(count "SELECT count(*) FROM trial WHERE state NOT IN ('completed', 'stopped')")" = 0 ] ||
        fail "$(count "SELECT number, state, reason FROM trial WHERE state NOT IN ('completed', 'stopped')")"
    local holes
    holes=$(count "SELECT count(*) FROM trial t WHERE number > 0 AND resource !=
        (SELECT count(DISTINCT resource) FROM report r WHERE r.trial = t.number AND r.sweep = t.sweep AND r.resource <= t.resource)")
    [ "$holes" = 0 ] || fail "$holes curves with holes"
    [ "$(count "SELECT count(*) - count(DISTINCT trial || '-' || rung) FROM rung_entry")" = 0 ]
}

@test "digits-asha.yaml: workers attached at different times all take part" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=120
    worker first --devices cpu:1
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial")" -ge 5 ]'
    worker second --devices cpu:1
    worker third --devices cpu:1
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    nothing_lost 120
    [ "$(count "SELECT count(DISTINCT worker) FROM attempt")" = 3 ]
    [ "$(count "SELECT count(*) FROM trial WHERE state = 'completed' AND resource = 81 AND number > 0")" -ge 1 ]
}

@test "kill -9 of workers: their trials go on elsewhere" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=80
    worker doomed --devices cpu:2
    local doomed=$pid
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial")" -ge 8 ]'
    kill -9 "$doomed"
    worker heir --devices cpu:2
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    nothing_lost 80
    [ "$(count "SELECT count(*) FROM attempt WHERE outcome = 'lost'")" -ge 1 ]
    # no runner of the dead agent survived
    ! pgrep -f "$home/doomed" >/dev/null
}

@test "kill -9 of the coordinator, five times, each restarted with --resume" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=150
    local address=$endpoint i before=0 now
    start node "$RUNG" worker "$address" --name node --dir "$home/node" --devices cpu:2
    for i in 1 2 3 4 5; do
        until_true 30 eval '[ "$(count "SELECT count(*) FROM report")" -gt $((before + 40)) ]'
        kill -9 "$coordinator_pid"
        wait "$coordinator_pid" || true
        count "SELECT trial, attempt, resource, metrics FROM report ORDER BY 1, 2, 3" >"stored-$i"
        before=$(wc -l <"stored-$i")
        start coordinator "$RUNG" coordinator --resume digits-asha --db "$db" --bind "$address"
        coordinator_pid=$pid
    done
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    nothing_lost 150
    # what was stored before each kill is still there, unchanged
    count "SELECT trial, attempt, resource, metrics FROM report ORDER BY 1, 2, 3" >stored-end
    for i in 1 2 3 4 5; do
        [ -z "$(sort "stored-$i" | comm -23 - <(sort stored-end))" ] || fail "reports of kill $i are gone"
    done
}

@test "deterministic halving: worker and coordinator killed, the leaderboard equals the calm run's" {
    expect 0 "$RUNG" run "$RUNG_CONFIGS/digits-halving.yaml" --db calm.db
    board calm.db >calm
    coordinator "$RUNG_CONFIGS/digits-halving.yaml"
    local address=$endpoint
    worker one --devices cpu:1
    local one=$pid
    worker two --devices cpu:1
    until_true 30 eval '[ "$(count "SELECT count(*) FROM report")" -gt 30 ]'
    kill -9 "$one"
    until_true 30 eval '[ "$(count "SELECT count(*) FROM report")" -gt 60 ]'
    kill -9 "$coordinator_pid"
    wait "$coordinator_pid" || true
    start coordinator "$RUNG" coordinator --resume digits-halving --db "$db" --bind "$address"
    wait "$pid" || fail "$(cat coordinator.out)"
    board "$db" >faulty
    diff calm faulty
}

@test "stop --now checkpoints and ends; pause and resume" {
    coordinator "$RUNG_CONFIGS/digits-asha.yaml" --set run_cap=2000
    worker node --devices cpu:1
    until_true 30 eval '[ "$(count "SELECT count(*) FROM trial")" -ge 3 ]'
    expect 0 "$RUNG" pause "$endpoint"
    expect 0 "$RUNG" status "$endpoint"
    says "paused"
    expect 0 "$RUNG" resume "$endpoint"
    expect 0 "$RUNG" stop "$endpoint" --now
    wait "$coordinator_pid" || fail "$(cat coordinator.out)"
    [ "$(count "SELECT state FROM sweep")" = stopped ]
}
