/* Parameters of studies: one table. A factor of a latency is one of seconds, so more of it is slower. */
#include "oracle/sweep_parameter.h"

const char *const cvy_varied_names[] = {
    [CVY_VARIED_BATCH] = "batch",
    [CVY_VARIED_ARITHMETIC] = "arithmetic",
    [CVY_VARIED_MEMORY_BANDWIDTH] = "memory-bandwidth",
    [CVY_VARIED_LINK_BANDWIDTH] = "link-bandwidth",
    [CVY_VARIED_LINK_LATENCY] = "link-latency",
    [CVY_VARIED_MEMORY] = "memory",
    [CVY_VARIED_PRECISION] = "precision",
    [CVY_VARIED_COUNT] = NULL,
};

/* The innermost level between nodes; of a machine of one node its innermost. */
static int find_border(const cvy_machine *machine)
{
    for (int i = 0; i < machine->levels; i++) {
        if (machine->level[i].devices > machine->devices_per_node) {
            return i;
        }
    }
    return 0;
}

/* ---- figures ---- */

static double get_peak(const cvy_machine *machine, cvy_precision precision)
{
    return machine->device.peak_flop_per_s[precision];
}

static double get_memory_bandwidth(const cvy_machine *machine, cvy_precision precision)
{
    (void)precision;
    return machine->device.memory_Bps;
}

static double get_bandwidth(const cvy_machine *machine, cvy_precision precision)
{
    (void)precision;
    return machine->levels > 0 ? machine->level[find_border(machine)].bandwidth_Bps : 0.0;
}

static double get_latency(const cvy_machine *machine, cvy_precision precision)
{
    (void)precision;
    return machine->levels > 0 ? machine->level[find_border(machine)].latency_s : 0.0;
}

static double get_memory(const cvy_machine *machine, cvy_precision precision)
{
    (void)precision;
    return (double)machine->device.memory_bytes;
}

/* ---- more or less of them; of links from a level on, with rules that hold there ---- */

static void scale_peak(cvy_machine *machine, double factor, int from)
{
    (void)from;
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        machine->device.peak_flop_per_s[i] *= factor;
    }
}

static void scale_memory_bandwidth(cvy_machine *machine, double factor, int from)
{
    (void)from;
    machine->device.memory_Bps *= factor;
}

static bool rule_holds(const cvy_collective_rule *rule, int from)
{
    return rule->level == CVY_ANY || rule->level >= from;
}

static void scale_bandwidth(cvy_machine *machine, double factor, int from)
{
    for (int i = from; i < machine->levels; i++) {
        machine->level[i].bandwidth_Bps *= factor;
        machine->level[i].staged_Bps *= factor;
    }
    for (int i = 0; i < machine->collectives; i++) {
        machine->collective[i].bandwidth_Bps *= rule_holds(&machine->collective[i], from) ? factor : 1.0;
    }
}

static void scale_latency(cvy_machine *machine, double factor, int from)
{
    for (int i = from; i < machine->levels; i++) {
        machine->level[i].latency_s *= factor;
        machine->level[i].staged_latency_s *= factor;
    }
    for (int i = 0; i < machine->collectives; i++) {
        cvy_collective_rule *rule = &machine->collective[i];
        rule->latency_s *= rule_holds(rule, from) ? factor : 1.0;
        rule->call_s *= rule_holds(rule, from) ? factor : 1.0;
    }
}

static void scale_memory(cvy_machine *machine, double factor, int from)
{
    (void)from;
    machine->device.memory_bytes = (int64_t)((double)machine->device.memory_bytes * factor);
}

static const struct {
    const char *words;
    cvy_quantity quantity;
    double (*get)(const cvy_machine *machine, cvy_precision precision);
    void (*scale)(cvy_machine *machine, double factor, int from);
} parameters[CVY_VARIED_COUNT] = {
    [CVY_VARIED_BATCH] = {"batch", CVY_QUANTITY_COUNT, NULL, NULL},
    [CVY_VARIED_ARITHMETIC] = {"device arithmetic", CVY_QUANTITY_RATE, get_peak, scale_peak},
    [CVY_VARIED_MEMORY_BANDWIDTH] = {"memory bandwidth", CVY_QUANTITY_BANDWIDTH, get_memory_bandwidth,
                                        scale_memory_bandwidth},
    [CVY_VARIED_LINK_BANDWIDTH] = {"link bandwidth", CVY_QUANTITY_BANDWIDTH, get_bandwidth, scale_bandwidth},
    [CVY_VARIED_LINK_LATENCY] = {"link latency", CVY_QUANTITY_TIME, get_latency, scale_latency},
    [CVY_VARIED_MEMORY] = {"memory size", CVY_QUANTITY_SIZE, get_memory, scale_memory},
    [CVY_VARIED_PRECISION] = {"precision", CVY_QUANTITY_COUNT, NULL, NULL},
};

const char *cvy_varied_words(cvy_varied parameter) { return parameters[parameter].words; }

cvy_quantity cvy_varied_quantity(cvy_varied parameter) { return parameters[parameter].quantity; }

double cvy_varied_get(cvy_varied parameter, const cvy_machine *machine, cvy_precision precision)
{
    return parameters[parameter].get ? parameters[parameter].get(machine, precision) : 0.0;
}

void cvy_varied_scale(cvy_varied parameter, double factor, cvy_machine *machine)
{
    if (parameters[parameter].scale) {
        parameters[parameter].scale(machine, factor, 0);
    }
}

void cvy_varied_set(cvy_varied parameter, double value, cvy_precision precision, cvy_machine *machine)
{
    double now = cvy_varied_get(parameter, machine, precision);
    if (parameters[parameter].scale && now > 0.0) {
        parameters[parameter].scale(machine, value / now, find_border(machine));
    }
}
