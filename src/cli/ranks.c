/* The ranks of this run, for the commands: found once, when the program begins, and left when it ends. */
#include "cli/ranks.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/terminal.h"

/* No stream: the main thread may hold its lock. */
void cli_ranks_abandon(void *context, const char *line, int exit_code)
{
    (void)context;
    if (line) {
        dprintf(STDERR_FILENO, "%serror: %s\n", cli_is_terminal(stderr) ? "\n" : "", line);
    }
    _exit(exit_code);
}

#if CVY_HAVE_TRAIN
#include "comm/comm.h"
#include "runtime/lookout.h"

static cvy_comm *comm;
static cvy_train_options watched = CVY_TRAIN_OPTIONS_INIT;
static cvy_lookout lookout;
static bool watching;

/* Standard output stays open, so that no other file takes its number. */
static cvy_status fall_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY);
    CVY_REQUIRE(nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0, CVY_ERR_IO, "/dev/null: cannot be written to");
    close(nowhere);
    cli_silence();
    return CVY_OK;
}

cvy_status cli_ranks_join(void)
{
    CVY_TRY(cvy_comm_open(NULL, &comm));
    return cli_ranks_speak() ? CVY_OK : fall_silent();
}

cvy_status cli_ranks_watch(double timeout_s)
{
    watched.comm = comm;
    watched.timeout_s = timeout_s;
    watched.abandon = cli_ranks_abandon;
    watching = cli_ranks_count() > 1;
    return watching ? cvy_lookout_begin(&watched, NULL, &lookout) : CVY_OK;
}

cvy_status cli_ranks_unwatch(cvy_status status)
{
    bool was = watching;
    watching = false;
    return was ? cvy_lookout_stop(&lookout, status) : status;
}

void cli_ranks_leave(void) { cvy_comm_close(&comm); }

cvy_comm *cli_ranks_comm(void) { return comm; }

cvy_status cli_ranks_agree(cvy_status mine)
{
    char words[1024];
    snprintf(words, sizeof words, "%s", cvy_error_message());
    cvy_status all = cli_ranks_count() > 1 ? cvy_comm_agree(comm, mine) : mine;
    bool own = all != CVY_OK && mine != CVY_OK && cli_ranks_speak();
    return own ? cvy_fail(all, "%s", words) : all;
}

cvy_status cli_ranks_broadcast(void *data, size_t bytes)
{
    return cli_ranks_count() > 1 ? cvy_comm_broadcast(comm, data, (int64_t)bytes, 0) : CVY_OK;
}

int cli_ranks_count(void) { return cvy_comm_ranks(comm); }

bool cli_ranks_speak(void) { return cvy_comm_rank(comm) == 0; }
#else
cvy_status cli_ranks_join(void) { return CVY_OK; }

cvy_status cli_ranks_watch(double timeout_s)
{
    (void)timeout_s;
    return CVY_OK;
}

cvy_status cli_ranks_unwatch(cvy_status status) { return status; }

void cli_ranks_leave(void) {}

cvy_comm *cli_ranks_comm(void) { return NULL; }

cvy_status cli_ranks_agree(cvy_status mine) { return mine; }

cvy_status cli_ranks_broadcast(void *data, size_t bytes)
{
    (void)data, (void)bytes;
    return CVY_OK;
}

int cli_ranks_count(void) { return 1; }

bool cli_ranks_speak(void) { return true; }
#endif
