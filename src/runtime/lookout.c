/* What the watch finds, and what the library that communicates says, ends the run in one way: the caller's. */
#include "runtime/lookout.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/pulse.h"
#include "runtime/alike.h"

enum { OTHERS_S = 1 };

/* May return where the caller's function does, and the library knows no way to end all ranks. */
static void abandon(const cvy_lookout *lookout, cvy_status status, const char *line)
{
    int exit_code = cvy_status_exit_code(status);
    if (lookout->options->abandon) {
        lookout->options->abandon(lookout->options->abandon_context, line, exit_code);
    }
    cvy_comm_abandon(lookout->options->comm, exit_code);
}

static void handle_end(void *context, const cvy_watch_end *end)
{
    abandon(context, end->status, end->speaks ? end->text : NULL);
}

static void handle_warning(void *context, const char *text)
{
    const cvy_lookout *lookout = context;
    if (lookout->observer && lookout->observer->warning) {
        lookout->observer->warning(lookout->observer->context, text);
    }
}

/* That a transfer fails is mostly because another rank was lost, which the watch is about to find, and name. */
static void handle_loss(void *context, cvy_status status, const char *words)
{
    const cvy_lookout *lookout = context;
    char line[1024];
    snprintf(line, sizeof line, "rank %d: %s", cvy_comm_rank(lookout->options->comm), words);
    if (status == CVY_ERR_RANK) {
        sleep(OTHERS_S);
    }
    if (lookout->watch) {
        cvy_watch_fail(lookout->watch, status, line);
    }
    abandon(lookout, status, line);
}

cvy_status cvy_lookout_begin(const cvy_train_options *options, const cvy_train_observer *observer,
                             cvy_lookout *lookout)
{
    cvy_comm *comm = options->comm;
    *lookout = (cvy_lookout){.options = options, .observer = observer};
    if (cvy_comm_ranks(comm) == 1) {
        return CVY_OK;
    }
    cvy_comm_on_loss(comm, handle_loss, lookout);
    cvy_watch_options wanted = CVY_WATCH_OPTIONS_INIT;
    wanted.timeout_s = options->timeout_s;
    wanted.abandon = handle_end;
    wanted.warn = handle_warning;
    wanted.context = lookout;
    cvy_status status = cvy_watch_start(comm, &wanted, &lookout->watch);
    if (status == CVY_ERR_RANK) {
        abandon(lookout, status, cvy_error_message());
    }
    CVY_TRY(status);
    (void)cvy_pulse_set(CVY_ACTIVITY_PLANNING);
    return CVY_OK;
}

cvy_status cvy_lookout_start(const cvy_model *model, const cvy_train_options *options,
                             const cvy_train_observer *observer, cvy_lookout *lookout)
{
    CVY_TRY(cvy_lookout_begin(options, observer, lookout));
    return cvy_comm_ranks(options->comm) > 1 ? cvy_alike_options(options->comm, model, options) : CVY_OK;
}

cvy_status cvy_lookout_stop(cvy_lookout *lookout, cvy_status status)
{
    char words[1024];
    snprintf(words, sizeof words, "%s", cvy_error_message());
    cvy_status stopped = cvy_watch_stop(&lookout->watch);
    if (lookout->options->comm) {
        cvy_comm_on_loss(lookout->options->comm, NULL, NULL);
    }
    return status == CVY_OK ? stopped : cvy_fail(status, "%s", words);
}
