/*
 * The handler does what a handler may: it sets a flag and writes one line. It has a stack of its own: kernels that a
 * library generates may use the stack pointer as one more register, and the system would put the handler's frame
 * wherever that points (seen with oneDNN 2.6 on AVX-512: a signal in a convolution wrote into the heap).
 */
#include "cli/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static volatile int stop;

static void handle(int number)
{
    static const char words[] = "\nstopping: the iteration under way is finished first; ^C again ends at once\n";
    stop = 1;
    if (number == SIGINT && isatty(STDERR_FILENO) && write(STDERR_FILENO, words, sizeof words - 1) < 0) {
        return; /* nobody to tell */
    }
}

/* Signals for the process go to its first thread, which calls this. */
static void give_stack(void)
{
    enum { STACK_BYTES = 1 << 17 }; /* registers of AVX-512 and AMX take 11 KiB of a frame */
    static unsigned char memory[STACK_BYTES];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
}

/* A reader that went away, or a limit on sizes of files, must not end the training: writing fails instead. */
static void ignore_failed_writes(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

/* Of nohup and its like, which must go on when the terminal closes. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

const volatile int *cli_catch_signals(void)
{
    static const int asking[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    ignore_failed_writes();
    give_stack();
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++) {
        if (asking[i] == SIGHUP && is_ignored(SIGHUP)) {
            continue;
        }
        struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        if (asking[i] == SIGINT) {
            action.sa_flags |= (int)SA_RESETHAND; /* the second one is the system's: it ends the process */
        }
        sigaction(asking[i], &action, NULL);
    }
    return &stop;
}

void cli_request_stop(void) { stop = 1; }
