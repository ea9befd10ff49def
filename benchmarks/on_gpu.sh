#!/usr/bin/env bash
# Tests that need a GPU, then the benchmarks on it. Results go to ${OUT:-benchmarks/results}.
#
#   PYTHON      interpreter                     (python3)
#   TESTS       arguments for pytest            (-m gpu)
#   BENCHMARKS  names without .py, separated by blanks  (all)
#   LIMIT       seconds that one step may take  (300); a hung kernel ends only with its process
#
# The exit status is that of the tests, or 1 if a benchmark failed.
set -u
cd "$(dirname "$0")/.."
export OUT=${OUT:-benchmarks/results}
PYTHON=${PYTHON:-python3}
LIMIT=${LIMIT:-300}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$OUT"

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv | tee "$OUT/gpu.txt"

echo "== tests"
timeout "$LIMIT" "$PYTHON" -m pytest ${TESTS:--m gpu} -p no:cacheprovider -rs 2>&1 | tee "$OUT/gpu_tests.txt" | tail -40
status=${PIPESTATUS[0]}

if [ -z "${BENCHMARKS+set}" ]; then
    BENCHMARKS=$(cd benchmarks && ls ./*.py | sed -e 's|^\./||' -e 's|\.py$||' | grep -v -e '^harness$' -e '^rows$' -e '^peers$' -e '^plot$')
fi
for benchmark in $BENCHMARKS; do
    echo "== $benchmark"
    timeout "$LIMIT" "$PYTHON" "benchmarks/$benchmark.py" --device cuda:0 2>&1 | tee "$OUT/$benchmark.txt"
    if [ "${PIPESTATUS[0]}" -ne 0 ]; then
        echo "$benchmark failed"
        [ "$status" -ne 0 ] || status=1
    fi
done
exit "$status"
