/* Strategies as text: what cvy_strategy_parse() reads back to the same strategy, and the family for tables. */
#include "plan/strategy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const cut_families[CVY_CHANNEL_CUT_COUNT] = {"alternating", "filter", "channel"};

__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, CVY_STRATEGY_TEXT - length, format, arguments);
    va_end(arguments);
}

/* The name of a strategy that has all ranks on one axis, where one says exactly that: `spatial` asks the model. */
static const char *find_name(const cvy_strategy *strategy)
{
    const cvy_mesh *mesh = &strategy->mesh;
    if (mesh->size[CVY_AXIS_SAMPLE] == mesh->ranks) {
        return mesh->ranks == 1 ? "serial" : "data";
    }
    if (mesh->size[CVY_AXIS_STAGE] == mesh->ranks) {
        return "pipeline";
    }
    return mesh->size[CVY_AXIS_CHANNEL] == mesh->ranks ? cut_families[strategy->channel_cut] : NULL;
}

const char *cvy_strategy_print(const cvy_strategy *strategy, char *text)
{
    text[0] = '\0';
    if (strategy->automatic) {
        append(text, "auto");
        return text;
    }
    char mesh[CVY_MESH_TEXT];
    const char *name = find_name(strategy);
    append(text, "%s", name ? name : cvy_mesh_print(&strategy->mesh, mesh));
    if (!name && strategy->channel_cut != CVY_CHANNEL_CUT_ALTERNATE) {
        append(text, ",channel-cut=%s", cvy_channel_cut_names[strategy->channel_cut]);
    }
    if (strategy->micro_batches > 1 || (strategy->micro_batches == 1 && strategy->mesh.size[CVY_AXIS_STAGE] > 1)) {
        append(text, ",micro-batches=%" PRId64, strategy->micro_batches);
    }
    if (strategy->pipeline != CVY_PIPELINE_1F1B) {
        append(text, ",pipeline=%s", cvy_pipeline_order_names[strategy->pipeline]);
    }
    return text;
}

const char *cvy_strategy_family(const cvy_strategy *strategy, char *text)
{
    const int64_t *size = strategy->mesh.size;
    const struct {
        bool used;
        const char *family;
    } parts[] = {
        {size[CVY_AXIS_SAMPLE] > 1, "data"},
        {size[CVY_AXIS_DEPTH] * size[CVY_AXIS_HEIGHT] * size[CVY_AXIS_WIDTH] > 1, "spatial"},
        {size[CVY_AXIS_CHANNEL] > 1, cut_families[strategy->channel_cut]},
        {size[CVY_AXIS_STAGE] > 1, "pipeline"},
    };
    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !strategy->automatic; i++) {
        if (parts[i].used) {
            append(text, "%s%s", text[0] ? "+" : "", parts[i].family);
        }
    }
    if (!text[0]) {
        append(text, "%s", strategy->automatic ? "auto" : "serial");
    }
    return text;
}
