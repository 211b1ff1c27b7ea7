#!/bin/bash
# convoy verify as far as one rank can tell: the serial run agrees with itself; the keys of its JSON; what is refused.
. "$(dirname "$0")/setup.sh"
export OMP_NUM_THREADS=1
"$convoy" verify --help >/dev/null 2>&1 || exit 0

expect 0 "$convoy" verify lenet5 --batch 4 --steps 2
has out "lenet5: serial on 1 rank against the serial run, batch 4, 2 steps, fp32"
has out "verdict         passes"
expect 0 "$convoy" verify lenet5 --batch 4 --steps 1 --strategy data --optimizer adam --double --json
python3 - <<'PY' || fail "the JSON of convoy verify is not as promised"
import json
answer = json.loads(open("out").read())
keys = ["strategy", "ranks", "steps", "loss_relative", "gradient_relative", "weight_relative", "noise",
        "replicas_identical", "pass"]
assert list(answer)[:len(keys)] == keys, list(answer)
assert answer["strategy"] == "data" and answer["ranks"] == 1 and answer["steps"] == 1 and answer["pass"] is True
assert answer["precision"] == "fp64" and answer["noise"] == 0
assert [row["layer"] for row in answer["layers"]] == ["conv1", "conv2", "ip1", "ip2"]
PY
says 2 "convoy verify needs a model" "$convoy" verify
says 2 "sample=2 is 2 ranks, expected 1" "$convoy" verify lenet5 --strategy sample=2
says 2 "--steps: expected a whole number from 1 to" "$convoy" verify lenet5 --steps 0
finish
