/*
 * The roll of a node: ranks that MPI has not joined yet, or has let go of, still hear each other, over datagrams
 * between the processes of one job on one node. So somebody can say who is missing. A process that ended has no socket,
 * one that was stopped does not answer.
 */
#ifndef CVY_CLI_PATIENCE_ROLL_H
#define CVY_CLI_PATIENCE_ROLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_ROLL_RANKS = 512 };

typedef struct cli_roll {
    int descriptor; /**< -1: this process calls nobody, and nobody it */
    int own, ranks; /**< among the ranks of the node */
    bool whole;     /**< the job has no other nodes: numbers are those of the ranks */
    uint64_t job;
    bool there[CLI_ROLL_RANKS]; /**< who has answered */
} cli_roll;

/** Be there to be called, as the launcher's environment says. A descriptor of -1 where it does not say enough. */
void cli_roll_open(cli_roll *roll_out);

/** Answer calls, and note answers, until @p wake can be read from or the time is over. */
void cli_roll_hear(cli_roll *roll, int wake, double seconds);

/** Call all, and wait a moment for their answers. */
void cli_roll_call(cli_roll *roll, int wake);

/** Word who is missing: "rank 1", "ranks 1, 2"; elsewhere "local rank 1 of HOST". @return how many; 0: empty */
int cli_roll_word_missing(const cli_roll *roll, size_t bytes, char *text_out);

/** Whether this process is the first of those that are there. */
bool cli_roll_is_first(const cli_roll *roll);

void cli_roll_close(cli_roll *roll);

#endif
