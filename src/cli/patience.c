/*
 * A thread that ends the process, unless it is told in time that it need not. One line is enough: the first rank
 * speaks, or else the first of its node that is there, a little later; the others wait for the launcher to end them.
 */
#include "cli/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/patience_roll.h"
#include "cli/ranks.h"
#include "convoy/status.h"

static const double default_s = 300, more_s = 1, later_s = 2, turn_s = 0.5;

static pthread_t thread;
static bool waiting;
static atomic_bool done;
static int wake = -1, rank;
static double limit_s;
static const char *where;
static cli_roll roll;

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

/* A number of seconds that an option may have; else the one that was found before. */
static double take_seconds(const char *text, double before_s)
{
    double value = text ? strtod(text, NULL) : 0.0;
    return value > 0.0 && value < 1e9 ? value : before_s;
}

static double find_timeout(int argc, char *const *argv)
{
    static const char option[] = "--timeout";
    double found_s = take_seconds(getenv("CONVOY_TIMEOUT"), default_s);
    for (int i = 1; i < argc; i++) {
        size_t length = sizeof option - 1;
        bool here = strncmp(argv[i], option, length) == 0;
        const char *text = here && argv[i][length] == '='                  ? argv[i] + length + 1
                           : here && argv[i][length] == '\0' && argv[i + 1] ? argv[i + 1]
                                                                            : NULL;
        found_s = take_seconds(text, found_s);
    }
    return found_s;
}

/* Sleep, but for answers to who calls; a turn that took much longer was a stop of this process. */
static void sleep_for(double seconds)
{
    for (double slept_s = 0; slept_s < seconds && !atomic_load(&done); slept_s += turn_s) {
        double left_s = seconds - slept_s;
        cli_roll_hear(&roll, wake, left_s < turn_s ? left_s : turn_s);
    }
}

static void word(char *line, size_t bytes)
{
    char missing[256];
    int count = cli_roll_word_missing(&roll, sizeof missing, missing);
    if (count > 0) {
        snprintf(line, bytes, "%s did not come to the %s within %g s: %s ended, or %s stopped", missing, where, limit_s,
                 count > 1 ? "they have" : "it has", count > 1 ? "are" : "is");
    } else {
        snprintf(line, bytes, "rank %d: other ranks did not come to the %s within %g s: one has ended, or is stopped",
                 rank, where, limit_s);
    }
}

static void *wait_for_end(void *context)
{
    char line[512];
    (void)context;
    sleep_for(limit_s + more_s);
    if (!atomic_load(&done)) {
        cli_roll_call(&roll, wake);
        word(line, sizeof line);
        bool speaks = cli_roll_is_first(&roll);
        sleep_for(rank == 0 ? 0 : speaks ? later_s / 2 : later_s);
        if (!atomic_load(&done)) {
            cli_ranks_abandon(NULL, speaks ? line : NULL, cvy_status_exit_code(CVY_ERR_RANK));
        }
    }
    return NULL;
}

static void release(void)
{
    cli_roll_close(&roll);
    close(wake);
}

/* All signals are blocked in the thread: they are the main thread's to handle. */
static void begin(const char *what)
{
    sigset_t all, before;
    where = what;
    atomic_store(&done, false);
    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cli_roll_open(&roll);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    waiting = pthread_create(&thread, NULL, wait_for_end, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!waiting) {
        release();
    }
}

void cli_patience_begin(int argc, char *const *argv)
{
    rank = find_rank();
    limit_s = find_timeout(argc, argv);
    if (rank >= 0) {
        begin("start");
    }
}

void cli_patience_resume(void)
{
    if (rank >= 0 && !waiting) {
        begin("end");
    }
}

void cli_patience_end(void)
{
    const uint64_t one = 1;
    if (!waiting) {
        return;
    }
    atomic_store(&done, true);
    ssize_t written = write(wake, &one, sizeof one);
    (void)written; /* it looks by itself, a turn later */
    pthread_join(thread, NULL);
    release();
    waiting = false;
}

double cli_patience_get_limit_s(void) { return limit_s; }
