/*
 * The bar is drawn ten times a second, a plain line is printed every ten seconds: often enough to see that it moves,
 * too seldom to cost time. A bar never takes the last column, where some terminals wrap.
 */
#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/terminal.h"

static const double BAR_INTERVAL_S = 0.1, LINE_INTERVAL_S = 10;
enum { BAR_CELLS = 20, BAR_TEXT = 192 };

void cli_progress_init(bool quiet, cli_progress *progress_out)
{
    bool terminal = cli_is_terminal(stderr);
    *progress_out = (cli_progress){.quiet = quiet, .terminal = terminal,
                                   .next_s = terminal ? 0 : cvy_clock_s() + LINE_INTERVAL_S};
}

void cli_progress_clear(cli_progress *progress)
{
    if (progress->drawn) {
        fputs("\r\033[K", stderr);
        progress->drawn = false;
    }
}

void cli_progress_log(cli_progress *progress, const char *format, ...)
{
    if (progress->quiet) {
        return;
    }
    va_list arguments;
    cli_progress_clear(progress);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* "epoch 3/10" or "step 120/1000", with how much of it is done. */
static double print_place(const cvy_train_progress *state, char *text, size_t bytes)
{
    if (state->epochs > 0 && state->samples > 0) {
        int64_t epoch = state->epoch < state->epochs ? state->epoch + 1 : state->epochs;
        snprintf(text, bytes, "epoch %" PRId64 "/%" PRId64, epoch, state->epochs);
        return (double)state->sample / (double)state->samples;
    }
    snprintf(text, bytes, "step %" PRId64 "/%" PRId64, state->step, state->steps_total);
    return state->steps_total > 0 ? (double)state->step / (double)state->steps_total : 0;
}

/* Loss, accuracy, rate, time left: what is not known is left out. */
static void print_figures(const cvy_train_progress *state, char *text, size_t bytes)
{
    char accuracy[32] = "", left[CVY_UNIT_TEXT + 16] = "", unit[CVY_UNIT_TEXT];
    char rate[CVY_UNIT_TEXT];
    if (isfinite(state->accuracy)) {
        snprintf(accuracy, sizeof accuracy, "  accuracy %.1f %%", 100 * state->accuracy);
    }
    if (isfinite(state->left_s) && state->left_s > 0) {
        snprintf(left, sizeof left, "  %s left", cvy_print_seconds(state->left_s, unit));
    }
    snprintf(text, bytes, "loss %.4g%s  %s images/s%s", state->loss, accuracy,
             cvy_print_rate(state->images_per_s, rate), left);
}

static void draw_bar(cli_progress *progress, const char *place, double done, const char *figures)
{
    static const char cells[BAR_CELLS + 1] = "====================";
    int full = (int)(fmin(fmax(done, 0), 1) * BAR_CELLS);
    int columns = cli_columns(stderr) - 1;
    char line[2 * BAR_TEXT];
    snprintf(line, sizeof line, "%s [%-*.*s] %s", place, BAR_CELLS, full, cells, figures);
    if ((int)strlen(line) > columns) { /* a narrow terminal: the figures say more than the bar */
        snprintf(line, sizeof line, "%s %.0f %%  %s", place, 100 * done, figures);
    }
    fprintf(stderr, "\r%.*s\033[K", columns, line);
    fflush(stderr);
    progress->drawn = true;
}

void cli_progress_show(cli_progress *progress, const cvy_train_progress *state)
{
    double now = cvy_clock_s();
    if (progress->quiet || now < progress->next_s) {
        return;
    }
    char place[64], figures[BAR_TEXT];
    double done = print_place(state, place, sizeof place);
    print_figures(state, figures, sizeof figures);
    if (progress->terminal) {
        draw_bar(progress, place, done, figures);
    } else {
        cli_progress_log(progress, "%s  %.0f %%  %s", place, 100 * done, figures);
    }
    progress->next_s = now + (progress->terminal ? BAR_INTERVAL_S : LINE_INTERVAL_S);
}

void cli_progress_count(cli_progress *progress, const char *what, int64_t done, int64_t count)
{
    double now = cvy_clock_s();
    if (progress->quiet || now < progress->next_s) {
        return;
    }
    char figures[2 * CVY_UNIT_TEXT + 8], unit[2][CVY_UNIT_TEXT];
    double share = count > 0 ? (double)done / (double)count : 0;
    snprintf(figures, sizeof figures, "%s of %s", cvy_print_count(done, unit[0]), cvy_print_count(count, unit[1]));
    if (progress->terminal) {
        draw_bar(progress, what, share, figures);
    } else {
        cli_progress_log(progress, "%s  %.0f %%  %s", what, 100 * share, figures);
    }
    progress->next_s = now + (progress->terminal ? BAR_INTERVAL_S : LINE_INTERVAL_S);
}

void cli_progress_time(cli_progress *progress, const char *what, int64_t count, double share, double left_s)
{
    double now = cvy_clock_s();
    if (progress->quiet || now < progress->next_s) {
        return;
    }
    char place[64], figures[2 * CVY_UNIT_TEXT], unit[CVY_UNIT_TEXT];
    snprintf(place, sizeof place, "%" PRId64 " %.40s", count, what);
    snprintf(figures, sizeof figures, "%s left", cvy_print_seconds(left_s, unit));
    if (progress->terminal) {
        draw_bar(progress, place, share, figures);
    } else {
        cli_progress_log(progress, "%s  %.0f %%  %s", place, 100 * share, figures);
    }
    progress->next_s = now + (progress->terminal ? BAR_INTERVAL_S : LINE_INTERVAL_S);
}

void cli_progress_epoch(cli_progress *progress, const cvy_epoch_result *result, int64_t epochs)
{
    char seconds[CVY_UNIT_TEXT], rate[CVY_UNIT_TEXT], of[32] = "", train[48] = "", test[80] = "";
    if (epochs > 0) {
        snprintf(of, sizeof of, "/%" PRId64, epochs);
    }
    if (isfinite(result->train_accuracy)) {
        snprintf(train, sizeof train, "  accuracy %.2f %%", 100 * result->train_accuracy);
    }
    if (isfinite(result->validation_accuracy)) {
        snprintf(test, sizeof test, "  test accuracy %.2f %%%s", 100 * result->validation_accuracy,
                 result->best ? " (best)" : "");
    } else if (isfinite(result->validation_loss)) {
        snprintf(test, sizeof test, "  test loss %.4g%s", result->validation_loss, result->best ? " (best)" : "");
    }
    cli_progress_log(progress, "epoch %" PRId64 "%s %s  loss %.4g%s%s  %s images/s  %s", result->epoch, of,
                     result->whole ? "done" : "in part", result->loss, train, test,
                     cvy_print_rate(result->images_per_s, rate), cvy_print_seconds(result->seconds, seconds));
    if (!progress->terminal) {
        progress->next_s = cvy_clock_s() + LINE_INTERVAL_S;
    }
}

void cli_progress_checkpoint(cli_progress *progress, const char *path, int64_t step)
{
    cli_progress_log(progress, "checkpoint of step %" PRId64 ": %s", step, path);
}

void cli_progress_warn(cli_progress *progress, const char *line)
{
    cli_progress_clear(progress);
    cli_print_warning(line);
}
