#!/bin/sh
# Resolve requirements.in for every supported Python at once: one requirements.txt with markers. Called by `make lock`.
set -eu
cd "$(dirname "$0")/../requirements"
lock=requirements.txt
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# Known packages keep their version (uv reads the output file); `make lock UPGRADE=--upgrade` moves them.
cp "$lock" "$new" 2>/dev/null || :
# shellcheck disable=SC2086
uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate \
    --only-binary :all: --no-binary empy ${UPGRADE:-} requirements.in --output-file "$new"

{
    echo "# Made by \`make lock\` from requirements.in: Linux, Python 3.10 to 3.14. Do not edit."
    echo "# Wheels only, so that no compiler is needed; empy is pure Python and comes as source alone."
    echo "--only-binary :all:"
    echo "--no-binary empy"
    # Every line carries the limits of the whole file; tools/setup_venv.py checks those once.
    sed -E -e "/^--/d" -e "s/python_full_version < '3\.15' and //; s/(and )?sys_platform == 'linux'//; s/ +; *$//; s/ +$//" "$new"
} > "$lock"
