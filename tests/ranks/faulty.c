/*
 * A training on several ranks, in one of which something goes wrong that no user can ask for. Usage: faulty WHAT RANK N
 *
 *   memory   the N-th allocation from the start of the training on fails
 *   leave    in the middle of the training it ends with exit code N, without a word to the others
 *   return   in the middle of the training it leaves MPI, as a program does that returns early; rank 0 alone
 *   count    nothing; it prints how many allocations there were
 *
 * It ends as the program does: one line and the exit code.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pulse.h"
#include "comm/comm.h"
#include "convoy/train.h"

enum { MIDDLE = 20 }; /* iterations */

static cvy_comm *comm;
static int code;

static void abandon(void *context, const char *line, int exit_code)
{
    (void)context;
    if (line) {
        dprintf(STDERR_FILENO, "error: %s\n", line);
    }
    _exit(exit_code);
}

/* Beside the training, as a library does that ends the process. */
static void *leave(void *context)
{
    cvy_pulse_state now = {.exchange = -1};
    (void)context;
    while (now.exchange < MIDDLE) {
        usleep(1000);
        now.exchange = atomic_load(&cvy_pulse_now.exchange);
    }
    _exit(code);
}

static void leave_mpi(void *context, const cvy_train_progress *progress)
{
    (void)context;
    if (progress->step == MIDDLE) {
        cvy_comm_close(&comm);
        exit(code);
    }
}

static cvy_status train(const char *what, bool mine, long number)
{
    cvy_model *model = NULL;
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    bool memory = strcmp(what, "memory") == 0, ends = memory || strcmp(what, "count") == 0, returns = *what == 'r';
    pthread_t thread;
    CVY_TRY(cvy_model_open("lenet5:size=20", &model));
    options.data = "digits";
    options.train_samples = options.test_samples = 40;
    options.batch = 8;
    options.epochs = ends ? 1 : 100000;
    options.threads = options.data_threads = 1;
    options.layout = "rule";
    options.strategy = getenv("STRATEGY");
    options.timeout_s = returns ? 4.0 : 30.0; /* nobody is late where a process ends, however slow the disk is */
    options.out = "run";
    options.checkpoint_every = 3;
    options.comm = comm;
    options.abandon = abandon;
    const cvy_train_observer observer = {.progress = mine && returns ? leave_mpi : NULL};
    cvy_train_result result;
    if (mine && *what == 'l') {
        pthread_create(&thread, NULL, leave, NULL);
    }
    cvy_memory_fail_after(mine && memory ? number : -1);
    int64_t before = cvy_memory_allocations();
    cvy_status status = cvy_train(model, &options, &observer, &result);
    if (mine && *what == 'c') {
        printf("%lld\n", (long long)(cvy_memory_allocations() - before));
    }
    cvy_memory_fail_after(-1);
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4 || cvy_comm_open("mpi", &comm) != CVY_OK) {
        fprintf(stderr, "usage: mpiexec -n 2 faulty memory|leave|return|count RANK N\n");
        return 2;
    }
    long number = strtol(argv[3], NULL, 10);
    code = (int)number;
    cvy_status status = train(argv[1], cvy_comm_rank(comm) == (int)strtol(argv[2], NULL, 10), number);
    if (status != CVY_OK && cvy_comm_rank(comm) == 0) {
        fprintf(stderr, "error: %s\n", cvy_error_message());
    }
    cvy_comm_close(&comm);
    return cvy_status_exit_code(status);
}
