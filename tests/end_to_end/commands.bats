# What the binary says about itself, and wrong usage.
load support

@test "help lists every command, and every command has a help of its own" {
    expect 0 "$RUNG" --help
    local command
    for command in run coordinator worker leaderboard show logs list check status pause resume stop keygen; do
        says "$command"
        "$RUNG" "$command" --help | grep -q "usage: rung $command"
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
    expect 2 "$RUNG" run a.yaml b.yaml
    says "one SPEC at a time"
    expect 2 "$RUNG" worker
}
