/* Colours are places in the chart's list, from 1 on: blue, orange, green, vermilion, sky, purple, grey, brown, … */
#include "report/parts.h"

enum { BLUE = 1, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY, BROWN, INDIGO, LEAF };

cvy_chart_series cvy_part_series(int part)
{
    static const cvy_chart_series parts[CVY_TIME_PARTS] = {
        [CVY_PHASE_IO] = {.name = "input", .fill = CVY_FILL_HATCHED, .colour = BROWN},
        [CVY_PHASE_FORWARD] = {.name = "forward", .colour = BLUE},
        [CVY_PHASE_RECOMPUTE] = {.name = "recompute", .colour = INDIGO},
        [CVY_PHASE_BACKWARD] = {.name = "backward", .colour = ORANGE},
        [CVY_PHASE_HALO] = {.name = "halos", .fill = CVY_FILL_HATCHED, .colour = SKY},
        [CVY_PHASE_REDISTRIBUTE] = {.name = "between layers", .fill = CVY_FILL_HATCHED, .colour = PURPLE},
        [CVY_PHASE_GRADIENT_EXCHANGE] = {.name = "gradient exchange", .fill = CVY_FILL_HATCHED, .colour = VERMILION},
        [CVY_PHASE_UPDATE] = {.name = "update", .colour = GREEN},
        [CVY_TIME_BUBBLE] = {.name = "bubble", .fill = CVY_FILL_HOLLOW, .colour = GREY},
        [CVY_TIME_WAIT] = {.name = "waiting", .fill = CVY_FILL_HOLLOW, .colour = LEAF},
    };
    return parts[part];
}

cvy_chart_series cvy_memory_series(int part)
{
    static const cvy_chart_series parts[CVY_MEMORY_PARTS] = {
        [CVY_BUFFER_WEIGHTS] = {.colour = BLUE},
        [CVY_BUFFER_GRADIENTS] = {.colour = ORANGE},
        [CVY_BUFFER_OPTIMIZER] = {.colour = GREEN},
        [CVY_BUFFER_ACTIVATIONS] = {.colour = SKY},
        [CVY_BUFFER_WORKSPACE] = {.colour = PURPLE},
        [CVY_BUFFER_COMMUNICATION] = {.fill = CVY_FILL_HATCHED, .colour = VERMILION},
        [CVY_BUFFER_DATA] = {.fill = CVY_FILL_HATCHED, .colour = BROWN},
        [CVY_MEMORY_CHECKPOINT] = {.fill = CVY_FILL_HATCHED, .colour = INDIGO},
        [CVY_MEMORY_RUNTIME] = {.fill = CVY_FILL_HOLLOW, .colour = GREY},
    };
    cvy_chart_series series = parts[part];
    series.name = cvy_memory_part_name(part);
    return series;
}

cvy_scale cvy_scale_seconds(double most_s)
{
    if (most_s >= 1.0) {
        return (cvy_scale){1.0, "s"};
    }
    return most_s >= 1e-3 ? (cvy_scale){1e3, "ms"} : (cvy_scale){1e6, "us"};
}

cvy_scale cvy_scale_bytes(double most)
{
    if (most >= 1e9) {
        return (cvy_scale){1e-9, "GB"};
    }
    return most >= 1e6 ? (cvy_scale){1e-6, "MB"} : (cvy_scale){1e-3, "kB"};
}
