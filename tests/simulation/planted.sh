#!/usr/bin/env bash
# shellcheck disable=SC2153 # what is in capitals comes from the settings
# planted.sh SETTINGS: puts each bug of planted/*.patch into a copy of the engine's sources, builds the simulation with it,
# and fails unless the simulation finds it. SETTINGS, made by cmake, says how to build: CC, FLAGS, SOURCE_DIR, OBJECTS,
# LIBRARIES.
set -uo pipefail
# shellcheck source=/dev/null
source "$1"

seeds=${PLANTED_SEEDS:-60} # most show in the first three
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -r -a flags <<<"$FLAGS"
read -r -a objects <<<"$OBJECTS"
read -r -a libraries <<<"$LIBRARIES"

missed=0
miss() { # bug why
    echo "MISSED $1: $2"
    missed=$((missed + 1))
}

plant() { # patch: leaves $copy/simulate
    copy=$work/$(basename "$1" .patch)
    mkdir -p "$copy/coordinator"
    cp "$SOURCE_DIR"/coordinator/engine*.[ch] "$copy/coordinator/" || return 1
    patch --quiet --forward --strip=1 --directory="$copy" --input="$1" || return 1
    local changed
    changed=$(sed -n 's|^+++ b/||p' "$1")
    # The rest of the engine comes from the library: a changed file takes the place of its member there.
    # shellcheck disable=SC2086 # one word a file
    (cd "$copy" && "$CC" "${flags[@]}" -std=c11 -I"$copy" -I"$SOURCE_DIR" $changed "${objects[@]}" "${libraries[@]}" \
        -o "$copy/simulate")
}

shopt -s nullglob
patches=("$SOURCE_DIR"/tests/simulation/planted/*.patch)
for patch in "${patches[@]}"; do
    bug=$(basename "$patch" .patch)
    if ! plant "$patch" >"$work/log" 2>&1; then
        tail -n 5 "$work/log"
        miss "$bug" "it cannot be planted"
        continue
    fi
    timeout 300 "$copy/simulate" --seeds "$seeds" >"$work/log" 2>&1
    status=$?
    if [ $status -eq 1 ]; then
        echo "caught $bug: $(head -n 1 "$work/log")"
    else
        miss "$bug" "the simulation ended with $status"
    fi
done
[ ${#patches[@]} -ge 5 ] || miss "planted" "only ${#patches[@]} patches"
exit $((missed > 0))
