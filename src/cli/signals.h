/* Signals that ask a training to save and stop. */
#ifndef CVY_CLI_SIGNALS_H
#define CVY_CLI_SIGNALS_H

/**
 * Let SIGINT, SIGTERM and SIGUSR1 (what batch systems send before the time is up) raise a flag; a second SIGINT ends
 * the process at once.
 *
 * @return the flag, for cvy_train_options.stop
 */
const volatile int *cli_catch_signals(void);

/** Raise the flag from within. */
void cli_request_stop(void);

#endif
