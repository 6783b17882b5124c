#!/usr/bin/env bash
# shellcheck disable=SC2153 # what is in capitals comes from the settings
# planted.sh SETTINGS: puts each bug of planted/*.patch into a copy of the CUDA backend's sources, builds the plugin for the
# emulated GPU with it, and fails unless the conformance test on that plugin finds it, and finds nothing without it. SETTINGS,
# made by cmake, says how to build: CXX, FLAGS, SOURCE_DIR, OBJECTS, LIBRARIES, CONFORMANCE, PLUGINS.
set -uo pipefail
# shellcheck source=/dev/null
source "$1"

seeds=${PLANTED_SEEDS:-8} # orders of threads and blocks; most bugs show in the first
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

sources_of() { # file...: those that are compiled, and for a header those that include it
    local file
    for file; do
        case $file in
        *.cu) echo "$file" ;;
        *) (cd "$SOURCE_DIR" && grep -lF "#include \"$file\"" kernels/cuda/*.cu) ;;
        esac
    done | sort -u
}

plant() { # patch: leaves $copy/librung_emulated.so
    copy=$work/$(basename "$1" .patch)
    mkdir -p "$copy/kernels/cuda"
    cp "$SOURCE_DIR"/kernels/cuda/*.cu "$SOURCE_DIR"/kernels/cuda/*.cuh "$SOURCE_DIR"/kernels/cuda/*.h \
        "$copy/kernels/cuda/" || return 1
    patch --quiet --forward --strip=1 --directory="$copy" --input="$1" || return 1
    local changed source object replaced
    # shellcheck disable=SC2046 # one word a file
    changed=$(sources_of $(sed -n 's|^+++ b/||p' "$1"))
    [ -n "$changed" ] || return 1
    link=("${objects[@]}")
    for source in $changed; do
        object=$copy/$(basename "$source").o
        "$CXX" "${flags[@]}" -I"$copy" -I"$SOURCE_DIR" -x c++ -c "$copy/$source" -o "$object" || return 1
        for replaced in "${!link[@]}"; do
            case ${link[replaced]} in */"$(basename "$source")".*) link[replaced]=$object ;; esac
        done
    done
    "$CXX" "${flags[@]}" -shared "${link[@]}" "${libraries[@]}" -o "$copy/librung_emulated.so"
}

conforms() { # folder of the plugin, seed
    RUNG_PLUGINS=$1 RUNG_TEST_DEVICE=emulated:0 RUNG_TEST_SEED=$2 RUNG_EMULATED_SEED=$2 timeout 120 "$CONFORMANCE" >"$work/log" 2>&1
}

shopt -s nullglob
patches=("$SOURCE_DIR"/tests/emulated_gpu/planted/*.patch)
for patch in "${patches[@]}"; do
    bug=$(basename "$patch" .patch)
    if ! plant "$patch" >"$work/log" 2>&1; then
        tail -n 5 "$work/log"
        miss "$bug" "it cannot be planted"
        continue
    fi
    caught=
    for ((seed = 1; seed <= seeds; seed++)); do
        conforms "$copy" "$seed"
        status=$?
        [ $status -eq 124 ] && break
        if [ $status -ne 0 ]; then
            caught=$seed
            break
        fi
    done
    if [ -n "$caught" ]; then
        found=$(grep -m 1 ERROR "$work/log")
        if conforms "$PLUGINS" "$caught"; then
            echo "caught $bug with seed $caught: $found"
        else
            miss "$bug" "the test fails without it too: $(grep -m 1 ERROR "$work/log")"
        fi
    else
        miss "$bug" "conformance passed, $((seed - 1)) seeds, status $status"
    fi
done
[ ${#patches[@]} -ge 2 ] || miss "planted" "only ${#patches[@]} patches"
exit $((missed > 0))
