#!/usr/bin/env bash
# Run all checks and measurements on a machine with a GPU, in at most 8 minutes: correctness of fits, memory accesses
# and barriers, calibration, and speed. Every step writes a file to FOLDER, even if other steps fail.
#
#   benchmarks/first_gpu.sh [FOLDER] [option of gpu.py ...]
#
# FOLDER is first_gpu by default. PYTHON names an interpreter with ranksvm[cuda] and matplotlib (default: .venv/bin/python);
# compute-sanitizer, of the CUDA toolkit, is used if it is on the PATH.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=${1:-first_gpu}
shift || true
python=${PYTHON:-.venv/bin/python}
limit=${SECONDS_IN_ALL:-480}
mkdir -p "$folder"
: > "$folder/summary.txt"
failed=0

# step NAME SECONDS COMMAND ...: run a command, write its output to NAME.log, and add a line to the summary
step() {
    local name=$1 most=$2 started=$SECONDS left=$((limit - SECONDS)) status=0
    shift 2
    timeout "$((left < most ? (left > 1 ? left : 1) : most))" "$@" > "$folder/$name.log" 2>&1 || status=$?
    ((status == 0)) || failed=1
    local said="ok"
    ((status == 124)) && said="STOPPED, for lack of time"
    ((status != 0 && status != 124)) && said="FAILED, status $status"
    echo "$name: $said ($((SECONDS - started)) s)" | tee -a "$folder/summary.txt"
}

nvidia-smi > "$folder/nvidia-smi.log" 2>&1 || true
step checks 60 "$python" benchmarks/gpu.py --checks
if command -v compute-sanitizer > /dev/null; then
    step memcheck 120 compute-sanitizer --tool memcheck --error-exitcode 1 "$python" benchmarks/gpu.py --checks
    # only some fits, because racecheck of all fits takes some minutes
    races=(compute-sanitizer --tool racecheck --error-exitcode 1 "$python" benchmarks/gpu.py --checks --only)
    step racecheck 40 "${races[@]}" "hinge, float32"
    step racecheck_lists 40 "${races[@]}" "hinge, some lists larger"
else
    echo "memcheck, racecheck: left out, compute-sanitizer is not installed" | tee -a "$folder/summary.txt"
fi
step calibration 30 "$python" -c 'from ranksvm.device import calibrate_device; print(calibrate_device())'
# parts that begin after this many seconds are left out; the page is written after every part
begin=$((limit - SECONDS - 60))
step page "$limit" "$python" benchmarks/gpu.py -o "$folder/gpu.md" --seconds "$((begin > 1 ? begin : 1))" "$@"
exit "$failed"
