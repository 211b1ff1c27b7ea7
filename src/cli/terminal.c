/* Colour is for errors and warnings alone, and only where a person looks. */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return !term || !*term || strcmp(term, "dumb") == 0;
}

bool cli_is_terminal(FILE *stream) { return isatty(fileno(stream)) && !is_dumb(); }

bool cli_has_colour(FILE *stream)
{
    const char *no = getenv("NO_COLOR");
    return cli_is_terminal(stream) && !(no && *no);
}

int cli_columns(FILE *stream)
{
    struct winsize size;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

static bool silent;

void cli_silence(void) { silent = true; }

static void print_labelled(const char *colour, const char *label, const char *words)
{
    if (silent) {
        return;
    }
    bool coloured = cli_has_colour(stderr);
    fprintf(stderr, "%s%s:%s %s\n", coloured ? colour : "", label, coloured ? "\033[0m" : "", words);
}

void cli_print_error(const char *words) { print_labelled("\033[1;31m", "error", words); }

void cli_print_warning(const char *words) { print_labelled("\033[33m", "warning", words); }
