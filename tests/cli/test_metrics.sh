#!/bin/bash
# metrics.jsonl of runs alike: the same bytes where rates are left out, and where they are not, nothing but rates
# differs. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"

"$convoy" train --help >/dev/null 2>&1 || exit 0 # a plan-only build does not train

same="--data digits --train-samples 200 --test-samples 50 --batch 32 --threads 2 --epochs 2 --checkpoint-every 3"
same="$same --hflip 0.5 --crop-padding 2 --quiet"

# without rates: one, two and three threads that read, in folders of different names
for threads in 1 2 3; do
    expect 0 "$convoy" train lenet5 $same --no-metrics-rates --data-threads $threads --out bare/run$threads
done
for threads in 2 3; do
    cmp bare/run1/metrics.jsonl bare/run$threads/metrics.jsonl || fail "metrics depend on the count of data threads"
done
grep -q images_per_s bare/run1/metrics.jsonl && fail "--no-metrics-rates leaves rates in"
# 200 = 6 * 32 + 8: seven steps an epoch; checkpoints after 3, 6, 9, 12 and 14, and after 7 where it is the best so far
for event in start:1 step:14 epoch:2 end:1; do
    [ "$(grep -c "\"event\":\"${event%:*}\"" bare/run1/metrics.jsonl)" -eq "${event#*:}" ] || fail "events: $event"
done
has bare/run1/metrics.jsonl '"checkpoint":"checkpoints/step-00000014"'
has bare/run1/config.yaml 'no-metrics-rates: yes'

# with rates: those of steps, epochs and the end, and nothing else, are what the other file lacks
expect 0 "$convoy" train lenet5 $same --out rates
[ "$(grep -c '"images_per_s":' rates/metrics.jsonl)" -eq 17 ] || fail "not every step, epoch and end has its rate"
sed 's/"images_per_s":[0-9.e+-]*,//' rates/metrics.jsonl >without
cmp without bare/run1/metrics.jsonl || fail "more than rates differs"

finish
