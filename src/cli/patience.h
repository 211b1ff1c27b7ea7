/*
 * A limit on how long ranks wait for each other where no watch is: to be joined, and to leave. A rank that ended, or
 * was stopped, there would keep the others in the library that joins them for ever.
 */
#ifndef CVY_CLI_PATIENCE_H
#define CVY_CLI_PATIENCE_H

/**
 * Start to wait, where a launcher has started this process as one of several: unless cli_patience_end() comes in time,
 * one of the ranks says who did not come, as far as those of its node can tell, and all end with the exit code of a
 * lost rank. Time in which this process was itself stopped does not count.
 *
 * @param[in] argv  of the command line, which is not parsed yet: its --timeout holds, else CONVOY_TIMEOUT; else 300
 *                  seconds
 */
void cli_patience_begin(int argc, char *const *argv);

/** They have come. Fine where nobody waits. */
void cli_patience_end(void);

/** Wait again, for as long, for the end of all. */
void cli_patience_resume(void);

/** For how long, in seconds. */
double cli_patience_get_limit_s(void);

#endif
