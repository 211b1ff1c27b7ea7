/*
 * The ranks that a launcher, such as mpiexec, has started this program as. All read the same line; the first speaks for
 * all: what others print goes nowhere.
 */
#ifndef CVY_CLI_RANKS_H
#define CVY_CLI_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include "convoy/comm.h"

/** Join them; those behind the first fall silent. Collective. @retval CVY_ERR_RANK as cvy_comm_open() says */
cvy_status cli_ranks_join(void);

/**
 * Watch them (comm/watch.h), while they read their options and agree on what to do. Collective.
 *
 * @param[in] timeout_s after which a rank that says nothing is lost
 */
cvy_status cli_ranks_watch(double timeout_s);

/**
 * Stop watching: the library does so from here on, or all is over. Fine where nobody watches. Collective.
 *
 * @return @p status with its words; where it is CVY_OK, what stopping says
 */
cvy_status cli_ranks_unwatch(cvy_status status);

/** Leave; also where they were not joined. Collective. */
void cli_ranks_leave(void);

/** What joins them; NULL before they are joined, and in a build that only plans. */
cvy_comm *cli_ranks_comm(void);

/** How many there are; 1 without a launcher. */
int cli_ranks_count(void);

/** Whether this is the first, which prints. */
bool cli_ranks_speak(void);

/**
 * Agree on how things went: CVY_OK only where every rank says so, else the status and the words of the first that
 * failed. What the first rank says of itself, it says without its number. Collective.
 */
cvy_status cli_ranks_agree(cvy_status mine);

/**
 * End this process, as cvy_train_options.abandon asks for: print the line, if there is one, then leave without
 * handlers, since what MPI has to do at an end may hang; the launcher ends what is left. From any thread.
 */
void cli_ranks_abandon(void *context, const char *line, int exit_code);

/** Copy bytes of the first rank to all. Collective. */
cvy_status cli_ranks_broadcast(void *data, size_t bytes);

#endif
