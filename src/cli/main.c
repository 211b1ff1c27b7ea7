/* The program. Results go to standard output, all else to standard error. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/patience.h"
#include "cli/ranks.h"
#include "cli/terminal.h"
#include "convoy/version.h"

enum { PROGRAM_TEXT = 64 };

static void print_usage(void)
{
    const cli_command *command;
    printf("Convoy %s plans and trains convolutional neural networks.\n\nusage: convoy COMMAND [option ...]\n\n",
           CVY_VERSION);
    for (int i = 0; (command = cli_command_get(i)); i++) {
        printf("  %-10s %s\n", command->name, command->summary);
    }
    printf("  %-10s %s\n", "help", "Explain a command: convoy help COMMAND");
    printf("\nconvoy --version prints the version; man convoy-COMMAND says more than help.\nTry first:\n\n"
           "  convoy doctor\n  convoy train lenet5 --data digits --epochs 2 --out first-run\n");
}

static cvy_status fail_unknown(const char *name)
{
    enum { MOST = 60 };
    const char *names[MOST + 2] = {"help"};
    const cli_command *command;
    for (int i = 0; i < MOST && (command = cli_command_get(i)); i++) {
        names[i + 1] = command->name;
    }
    const char *nearest = cvy_nearest(name, names);
    return nearest ? cvy_fail(CVY_ERR_INPUT, "no command '%.60s'; did you mean '%s'?", name, nearest)
                   : cvy_fail(CVY_ERR_INPUT, "no command '%.60s'; see convoy help", name);
}

/* Ranks that have nothing to do wait for the first, as long as it likes; those that have are watched as they agree. */
static cvy_status run_on_ranks(const cli_command *command, int argc, char **argv)
{
    cvy_status status = CVY_OK;
    if (command->on_all_ranks) {
        status = cli_ranks_watch(cli_patience_get_limit_s());
    }
    cli_patience_end();
    if (status == CVY_OK && (command->on_all_ranks || cli_ranks_speak())) {
        status = command->run(command, argc, argv);
    }
    if (command->on_all_ranks) {
        status = cli_ranks_unwatch(status);
        cli_patience_resume();
    }
    return status;
}

/* A command sees a line of its own: "convoy train" in place of the program's name. */
static cvy_status run_command(const char *name, int argc, char **argv)
{
    char program[PROGRAM_TEXT];
    const cli_command *command = cli_command_find(name);
    if (!command) {
        return fail_unknown(name);
    }
    snprintf(program, sizeof program, "convoy %s", command->name);
    argv[0] = program;
    return run_on_ranks(command, argc, argv);
}

static cvy_status run(int argc, char **argv)
{
    static char help_flag[] = "--help";
    cvy_option all[CLI_MAX_OPTIONS];
    const char *word = argc > 1 ? argv[1] : NULL;
    CVY_REQUIRE(word, CVY_ERR_INPUT, "no command given; see convoy help");
    if (strcmp(word, "--version") == 0) {
        printf("convoy %s\n", CVY_VERSION);
        return CVY_OK;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        char *line[] = {argv[0], help_flag, NULL};
        if (argc > 2 && strcmp(argv[2], word) != 0) {
            return run_command(argv[2], 2, line);
        }
        print_usage();
        return CVY_OK;
    }
    CVY_REQUIRE(word[0] != '-', CVY_ERR_INPUT, "the command comes first, found '%.60s'; see convoy help", word);
    cli_select_options(CLI_ALL, all);
    CVY_TRY(cli_ranks_agree(cvy_options_check_environment(all)));
    return run_command(word, argc - 1, argv + 1);
}

/* Where a standard stream is closed, the next file that is opened would take its number, and be printed into. */
static void fill_closed_streams(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != number) {
            return; /* not to be helped; writing to what is open for reading fails, as it should */
        }
    }
}

int main(int argc, char **argv)
{
    fill_closed_streams();
    cli_patience_begin(argc, argv);
    cvy_status status = cli_ranks_join();
    status = status == CVY_OK ? run(argc, argv) : status;
    if (status == CVY_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status = cvy_fail(CVY_ERR_IO, "standard output: the result could not be written");
    }
    status = status == CVY_ERR_RANK ? status : cli_ranks_agree(status); /* a rank that is lost agrees to nothing */
    if (status != CVY_OK && status != CVY_PREEMPTED) {
        fflush(stdout);
        cli_print_error(cvy_error_message());
    }
    cli_ranks_leave();
    cli_patience_end();
    return cvy_status_exit_code(status);
}
