/*
 * A limit on how long the ranks wait to be joined. Before that no watch is there: a rank that ended, or was stopped, on
 * its way to the start would keep the others in the library that joins them for ever.
 */
#ifndef CVY_CLI_PATIENCE_H
#define CVY_CLI_PATIENCE_H

/**
 * Start to wait, where a launcher has started this process as one of several: unless cli_patience_end() comes in time,
 * the process says that the others did not come, and ends with the exit code of a lost rank.
 *
 * @param[in] argv  of the command line, which is not parsed yet: its --timeout holds; else 300 seconds
 */
void cli_patience_begin(int argc, char *const *argv);

/** They have come. Fine where nobody waits. */
void cli_patience_end(void);

#endif
