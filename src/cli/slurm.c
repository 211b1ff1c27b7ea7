/*
 * convoy slurm: the job script that starts a command on a cluster under Slurm, with what such scripts get wrong: ranks
 * that find each other, cores that are bound, a signal before the time is up, and a job that goes on where it stopped.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "cli/options_common.h"

enum { JOB_TEXT = 64 };

/* What the script is made of. */
typedef struct job {
    const cli_options *options;
    int words;
    const char *const *word; /* the command behind --, without `convoy` */
    const char *run;         /* folder that its training writes; NULL: nothing to go on with */
    bool matrix;             /* it starts ranks itself, row by row */
} job;

/* ---- reading ---- */

/* Whether neither the shell nor Slurm sees anything in a word but the word. */
static bool is_plain(const char *word)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:+=@%/-";
    return *word && !word[strspn(word, plain)];
}

/* Values stand in lines that the shell takes for comments: nothing that ends such a line, or begins another word. */
static cvy_status check_word(const char *option, const char *text)
{
    char word[CVY_WORD_TEXT];
    CVY_REQUIRE(!text || is_plain(text), CVY_ERR_INPUT, "--%s: found '%s', expected letters, digits and _.,:+=@%%/-",
                option, cvy_print_word(text, word));
    return CVY_OK;
}

/* The value of an option among the words, in either form: --out RUN, -o RUN or --out=RUN; NULL: not there. */
static const char *find_value(const job *j, const char *name, const char *letter)
{
    size_t length = strlen(name);
    const char *value = NULL;
    for (int i = 1; i < j->words; i++) {
        const char *word = j->word[i];
        bool here = strcmp(word, name) == 0 || strcmp(word, letter) == 0;
        if (here && i + 1 < j->words) {
            value = j->word[i + 1];
        } else if (strncmp(word, name, length) == 0 && word[length] == '=') {
            value = word + length + 1;
        }
    }
    return value;
}

static cvy_status check_job(const job *j)
{
    const cli_slurm_options *s = &j->options->slurm;
    CVY_REQUIRE(j->words > 0, CVY_ERR_INPUT,
                "convoy slurm needs a command behind --: convoy slurm --ranks 8 --threads 4 -- train lenet5 --data DIR "
                "--out RUN");
    CVY_REQUIRE(j->options->threads > 0, CVY_ERR_INPUT,
                "convoy slurm needs --threads: as many cores as each rank is to have");
    CVY_REQUIRE(s->ranks >= s->nodes, CVY_ERR_INPUT, "--ranks: found %" PRId64 ", expected one for each of %" PRId64
                " nodes at least", s->ranks, s->nodes);
    CVY_TRY(check_word("time", s->time));
    CVY_TRY(check_word("partition", s->partition));
    CVY_TRY(check_word("account", s->account));
    return check_word("job-name", s->name);
}

/* ---- writing ---- */

/* A word as the shell reads it back, whatever is in it. */
static void print_quoted(const char *word)
{
    if (is_plain(word)) {
        printf("%s", word);
        return;
    }
    putchar('\'');
    for (; *word; word++) {
        if (*word == '\'') {
            printf("'\\''");
        } else {
            putchar(*word);
        }
    }
    putchar('\'');
}

static void print_directive(const char *name, const char *value)
{
    if (value) {
        printf("#SBATCH --%s=%s\n", name, value);
    }
}

static void print_directives(const job *j)
{
    const cli_slurm_options *s = &j->options->slurm;
    char name[JOB_TEXT];
    snprintf(name, sizeof name, "convoy-%s", is_plain(j->word[0]) ? j->word[0] : "run");
    printf("#!/bin/bash\n");
    print_directive("job-name", s->name ? s->name : name);
    printf("#SBATCH --nodes=%" PRId64 "\n", s->nodes);
    printf("#SBATCH --ntasks=%" PRId64 "\n", s->ranks);
    printf("#SBATCH --ntasks-per-node=%" PRId64 "\n", cvy_ceil_div(s->ranks, s->nodes));
    printf("#SBATCH --cpus-per-task=%" PRId64 "\n", j->options->threads);
    printf("#SBATCH --hint=nomultithread\n");
    print_directive("time", s->time);
    print_directive("partition", s->partition);
    print_directive("account", s->account);
    printf("#SBATCH --output=%%x-%%j.log\n#SBATCH --open-mode=append\n");
    if (j->run) {
        printf("# Before the end a training gets time to finish its iteration and save a checkpoint.\n");
        printf("#SBATCH --requeue\n#SBATCH --signal=USR1@%" PRId64 "\n", s->grace);
    }
}

static void print_words(const job *j, const char *program)
{
    printf("%s", program);
    for (int i = 0; i < j->words; i++) {
        putchar(' ');
        print_quoted(j->word[i]);
    }
}

static void print_command(const job *j)
{
    print_words(j, "launch");
    printf("\n");
}

/* compare --matrix is one process, on the job's first node; each of its rows is a step of the job. */
static void print_matrix(const job *j)
{
    printf("\n# Each row of the matrix is a step of this job; --mpi: ranks find each other; 'srun --mpi=list' shows\n"
           "# what there is. With --out FILE a job that was stopped goes on when it is submitted again.\n");
    print_words(j, "convoy");
    if (!find_value(j, "--launcher", "--launcher")) {
        printf(" \\\n    --launcher 'srun --mpi=pmix --cpu-bind=cores --kill-on-bad-exit=0 "
               "--nodes={nodes} --ntasks={ranks} --cpus-per-task={threads}'");
    }
    printf("\n");
}

/* A training that has begun goes on; one that was asked to stop (code 75) is put into the queue again. */
static void print_training(const job *j)
{
    printf("run=");
    print_quoted(j->run);
    printf("\nif compgen -G \"$run/checkpoints/step-*\" >/dev/null; then # this job, or one before it, has begun\n"
           "    launch train --resume \"$run\"\nelse\n    ");
    print_command(j);
    printf("fi\ncode=$?\n"
           "if [ \"$code\" -eq 75 ]; then # stopped with a checkpoint, before its end\n"
           "    scontrol requeue \"$SLURM_JOB_ID\"\nfi\nexit \"$code\"\n");
}

static void print_script(const job *j)
{
    print_directives(j);
    if (j->matrix) {
        print_matrix(j);
        return;
    }
    printf("\n# --mpi: ranks find each other; 'srun --mpi=list' shows what there is. --kill-on-bad-exit=0: where a\n"
           "# rank is lost, Convoy's own watch names it and ends the others.\n"
           "launch() {\n"
           "    srun --mpi=pmix --cpu-bind=cores --cpus-per-task=\"$SLURM_CPUS_PER_TASK\" --kill-on-bad-exit=0 \\\n"
           "        convoy \"$@\"\n}\n\n");
    if (j->run) {
        print_training(j);
    } else {
        print_command(j);
    }
}

static cvy_status run_slurm(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && !parsed.help) {
        job j = {.options = &options, .words = parsed.operands, .word = parsed.operand};
        bool named = j.words > 0 && strcmp(j.word[0], "convoy") == 0;
        j.words -= named;
        j.word += named;
        bool trains = j.words > 0 && strcmp(j.word[0], "train") == 0;
        j.run = trains ? find_value(&j, "--out", "-o") : NULL;
        j.run = trains && !j.run ? find_value(&j, "--resume", "--resume") : j.run;
        bool compares = j.words > 0 && strcmp(j.word[0], "compare") == 0;
        j.matrix = compares && find_value(&j, "--matrix", "--matrix");
        status = check_job(&j);
        if (status == CVY_OK) {
            print_script(&j);
        }
    }
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_slurm = {
    .name = "slurm",
    .operands = "COMMAND",
    .usage = "--threads N -- COMMAND [ARGUMENT ...]",
    .max_operands = CVY_MOST_OPERANDS,
    .rows = CLI_SLURM,
    .summary = "Print the job script of a command for Slurm",
    .examples = "  convoy slurm --nodes 4 --ranks 16 --threads 8 -- train vgg16 --data images/ --out run >job.sh\n"
                "  sbatch job.sh\n",
    .run = run_slurm,
};
