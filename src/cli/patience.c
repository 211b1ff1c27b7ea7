/* A thread that ends the process, unless it is told in time that it need not. */
#include "cli/patience.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/ranks.h"
#include "convoy/status.h"

enum { DEFAULT_S = 300, LATER_S = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool waiting, done;
static double limit_s;

/* What launchers leave in the environment; -1: this process is none of several. */
static int find_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text && *text) {
            return (int)strtol(text, NULL, 10);
        }
    }
    return -1;
}

static double find_timeout(int argc, char *const *argv)
{
    static const char option[] = "--timeout";
    double found = DEFAULT_S;
    for (int i = 1; i < argc; i++) {
        size_t length = sizeof option - 1;
        bool here = strncmp(argv[i], option, length) == 0;
        const char *text = here && argv[i][length] == '='                  ? argv[i] + length + 1
                           : here && argv[i][length] == '\0' && argv[i + 1] ? argv[i + 1]
                                                                            : NULL;
        double value = text ? strtod(text, NULL) : 0.0;
        found = value > 0.0 && value < 1e9 ? value : found;
    }
    return found;
}

static void *wait_for_end(void *context)
{
    struct timespec until;
    int rank = *(const int *)context, got = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)limit_s + 1 + (rank > 0 ? LATER_S : 0); /* the first speaks for all, where it can */
    pthread_mutex_lock(&mutex);
    while (!done && got != ETIMEDOUT) {
        got = pthread_cond_timedwait(&ended, &mutex, &until);
    }
    if (!done) {
        char line[256];
        snprintf(line, sizeof line,
                 "rank %d: other ranks did not come to the start within %g s: one has ended, or is stopped", rank,
                 limit_s);
        cli_ranks_abandon(NULL, line, cvy_status_exit_code(CVY_ERR_RANK));
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

void cli_patience_begin(int argc, char *const *argv)
{
    static int rank;
    rank = find_rank();
    limit_s = find_timeout(argc, argv);
    waiting = rank >= 0 && pthread_create(&thread, NULL, wait_for_end, &rank) == 0;
}

void cli_patience_end(void)
{
    if (!waiting) {
        return;
    }
    pthread_mutex_lock(&mutex);
    done = true;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    waiting = false;
}
