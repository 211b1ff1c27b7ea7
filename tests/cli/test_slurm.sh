#!/bin/bash
# convoy slurm: a script that bash reads, with the command in it word for word, and that goes on where it stopped.
# srun and scontrol are stood in for: they note how they were called. Argument 1 is the program.
. "$(dirname "$0")/setup.sh"
mkdir bin
cat >bin/srun <<'END'
#!/bin/bash
printf '<%s>' "$@" >>"$NOTES"
echo >>"$NOTES"
exit "$CODE"
END
printf '#!/bin/bash\necho "scontrol $*" >>"$NOTES"\n' >bin/scontrol
chmod +x bin/srun bin/scontrol
export NOTES=$folder/notes SLURM_CPUS_PER_TASK=8 SLURM_JOB_ID=42

# run_job CODE: run the job where srun ends with CODE; what it did is in notes
run_job() {
    : >notes
    CODE=$1 PATH=$folder/bin:$PATH bash job.sh >/dev/null 2>err
    [ $? -eq "$1" ] || fail "the job did not end with $1: $(cat err)"
}

expect 0 "$convoy" slurm --nodes 4 --ranks 10 --threads 8 --time 02:00:00 --partition cpu --account lab-1 -- \
    train "net's file.yaml" --data 'my "images"' --out 'a run' --epochs 3
cp out job.sh
for line in "#!/bin/bash" "#SBATCH --job-name=convoy-train" "#SBATCH --nodes=4" "#SBATCH --ntasks=10" \
    "#SBATCH --ntasks-per-node=3" "#SBATCH --cpus-per-task=8" "#SBATCH --time=02:00:00" "#SBATCH --partition=cpu" \
    "#SBATCH --account=lab-1" "#SBATCH --requeue" "#SBATCH --signal=USR1@120" "#SBATCH --open-mode=append"; do
    has job.sh "$line"
done
start="<--mpi=pmix><--cpu-bind=cores><--cpus-per-task=8><--kill-on-bad-exit=0><convoy>"
run_job 0
[ "$(cat notes)" = "$start<train><net's file.yaml><--data><my \"images\"><--out><a run><--epochs><3>" ] ||
    fail "not as it was asked for: $(cat notes)"
run_job 6
grep -q scontrol notes && fail "a job that failed went into the queue again"

# One that was stopped with a checkpoint is queued again, and goes on.
run_job 75
has notes "scontrol requeue 42"
mkdir -p "a run/checkpoints/step-00000005"
run_job 0
[ "$(cat notes)" = "$start<train><--resume><a run>" ] || fail "did not go on: $(cat notes)"

# Other commands have nothing to go on with.
expect 0 "$convoy" slurm --ranks 2 --threads 4 -- convoy bench resnet50 --json
cp out job.sh
grep -qE "requeue|signal" job.sh && fail "a bench asks for what a training needs"
run_job 0
[ "$(cat notes)" = "$start<bench><resnet50><--json>" ] || fail "not as it was asked for: $(cat notes)"
# A matrix starts its own ranks: one process, whose launcher is srun with the figures of each row.
expect 0 "$convoy" slurm --nodes 2 --ranks 4 --threads 2 -- compare --matrix m.txt --machine here.yaml --out runs.jsonl
cp out job.sh
printf '#!/bin/bash\nprintf "<%%s>" "$@" >>"$NOTES"\n' >bin/convoy
chmod +x bin/convoy
run_job 0
asked="<compare><--matrix><m.txt><--machine><here.yaml><--out><runs.jsonl>"
by="<--launcher><srun --mpi=pmix --cpu-bind=cores --kill-on-bad-exit=0 --nodes={nodes} --ntasks={ranks}"
[ "$(cat notes)" = "$asked$by --cpus-per-task={threads}>" ] || fail "not as it was asked for: $(cat notes)"
expect 0 "$convoy" slurm --ranks 2 --threads 1 -- compare --matrix m.txt --machine m --launcher "mine -n {ranks}"
grep -q "launcher .srun" out && fail "another launcher than the one that was asked for"
for form in "--out=r" "-o r" "--resume r"; do
    expect 0 "$convoy" slurm --threads 1 -- train lenet5 $form
    has out "run=r"
done

says 2 "convoy slurm needs a command behind --" "$convoy" slurm --threads 1
says 2 "--threads" "$convoy" slurm -- bench lenet5
says 2 "--ranks: found 1, expected one for each of 2 nodes at least" \
    "$convoy" slurm --nodes 2 --threads 1 -- bench lenet5
says 2 "--time: found '1 h', expected letters" "$convoy" slurm --threads 1 --time "1 h" -- bench lenet5
says 2 "--job-name: found" "$convoy" slurm --threads 1 --job-name "$(printf 'a\nb')" -- bench lenet5
finish
