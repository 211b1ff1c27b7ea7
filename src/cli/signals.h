/* Signals that ask a training to save and stop. */
#ifndef CVY_CLI_SIGNALS_H
#define CVY_CLI_SIGNALS_H

/**
 * Let SIGINT, SIGTERM, SIGUSR1 (what batch systems send before the time is up) and SIGHUP (unless it was ignored, as
 * under nohup) raise a flag; a second SIGINT ends the process at once. Writing to a pipe that nobody reads fails from
 * here on, in place of ending the process.
 *
 * @return the flag, for cvy_train_options.stop
 */
const volatile int *cli_catch_signals(void);

/** Raise the flag from within. */
void cli_request_stop(void);

#endif
