#!/bin/sh
# Pin what setup.py asks for, for every supported Python at once: requirements.txt with markers. Called by `make lock`.
set -eu
cd "$(dirname "$0")/.."
lock=requirements/requirements.txt
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# Known packages keep their version (uv reads the output file); `make lock UPGRADE=--upgrade` moves them.
cp "$lock" "$new" 2>/dev/null || :
# Without the extra `kilted`, which stands for `ros`; and without `bench`: the engines that it names have no wheels for some of these Pythons. Wheels only, so that
# nobody needs a compiler; empy is pure Python and comes as source alone.
# shellcheck disable=SC2086
.venv/bin/python - <<'END' | .venv/bin/uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate \
    --only-binary :all: --no-binary empy ${UPGRADE:-} --output-file "$new" -
import setuptools  # brings distutils where Python has none
from distutils.core import run_setup

wishes = run_setup("setup.py", stop_after="init")
print(*wishes.install_requires, sep="\n")
print(*(one for extra, them in wishes.extras_require.items() if extra not in ("bench", "kilted") for one in them), sep="\n")
END

{
    echo "# Made by \`make lock\` from setup.py: Linux, Python 3.10 to 3.14. Do not edit."
    # Every line carries the limits of the whole file; tools/setup_venv.py checks those once.
    sed -E -e "/^--/d" -e "s/python_full_version < '3\.15' and //; s/(and )?sys_platform == 'linux'//; s/ +; *$//; s/ +$//" "$new"
} > "$lock"
