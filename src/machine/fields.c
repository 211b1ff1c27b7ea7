/* The tables of the format. docs/machines.md says the same in words; bounds keep every product of figures finite. */
#include "machine/fields.h"

#include <stddef.h>

static const char *name_device_kind(int kind)
{
    static const char *const name[] = {[CVY_DEVICE_CPU] = "cpu", [CVY_DEVICE_GPU] = "gpu"};
    return name[kind];
}

static const char *name_precision(int precision)
{
    static const char *const name[] = {"fp64", "fp32", "tf32", "fp16", "bf16"};
    return name[precision];
}

const char *cvy_precision_name(cvy_precision precision) { return name_precision((int)precision); }

static const char *name_kernel(int kernel)
{
    static const char *const name[] = {"winograd-convolution", "grouped-convolution", "depthwise-convolution",
                                       "5x5-convolution", "1x1-convolution", "volume-convolution"};
    return kernel < CVY_OP_KIND_COUNT ? cvy_op_kind_name((cvy_op_kind)kernel) : name[kernel - CVY_OP_KIND_COUNT];
}

const char *cvy_kernel_name(int kernel) { return kernel == CVY_ANY ? "any" : name_kernel(kernel); }

static const char *name_fusing(int fusing)
{
    static const char *const name[] = {[CVY_FUSING_RELU] = "relu", [CVY_FUSING_NONE] = "none"};
    return name[fusing];
}

static const char *name_pass(int pass) { return cvy_op_pass_name((cvy_op_pass)pass); }

static const char *name_collective(int collective) { return cvy_collective_name((cvy_collective)collective); }

static const char *name_algorithm(int algorithm) { return cvy_algorithm_name((cvy_algorithm)algorithm); }

static const char *name_traffic(int traffic)
{
    static const char *const name[] = {"layers", "space", "gradients"};
    return name[traffic];
}

static const char *name_staging(int staging)
{
    static const char *const name[] = {"hidden", "each", "leader"};
    return name[staging];
}

static const char *name_strategy(int strategy)
{
    static const char *const name[] = {"data",         "spatial",     "filter",      "channel",
                                       "alternating",  "pipeline",    "data+filter", "data+channel",
                                       "data+spatial", "data+pipeline"};
    return name[strategy];
}

static const cvy_machine_names_of device_kinds = {name_device_kind, CVY_DEVICE_KIND_COUNT, false};
static const cvy_machine_names_of precisions = {name_precision, CVY_PRECISION_COUNT, true};
static const cvy_machine_names_of kernels = {name_kernel, CVY_KERNEL_COUNT, true};
static const cvy_machine_names_of passes = {name_pass, CVY_PASS_COUNT, true};
static const cvy_machine_names_of collectives = {name_collective, CVY_COLLECTIVE_COUNT, false};
static const cvy_machine_names_of algorithms = {name_algorithm, CVY_ALGORITHM_COUNT, true};
static const cvy_machine_names_of traffics = {name_traffic, CVY_TRAFFIC_COUNT, true};
static const cvy_machine_names_of stagings = {name_staging, CVY_STAGING_COUNT, false};
static const cvy_machine_names_of fusings = {name_fusing, CVY_FUSING_COUNT, false};
static const cvy_machine_names_of strategies = {name_strategy, CVY_STRATEGY_NAME_COUNT, false};

const char *cvy_machine_name_of(const cvy_machine_names_of *names, int value)
{
    return value == CVY_ANY ? "any" : names->name(value);
}

/* Bounds. Whatever is outside is a typing error: no clock resolves a picosecond, no link is of a byte an hour. */
#define TIME_FIELD CVY_MACHINE_QUANTITY, .quantity = CVY_QUANTITY_TIME, .minimum = 0, .maximum = 3600
#define BANDWIDTH_FIELD CVY_MACHINE_QUANTITY, .quantity = CVY_QUANTITY_BANDWIDTH, .minimum = 1e3, .maximum = 1e16
#define RATE_FIELD CVY_MACHINE_QUANTITY, .quantity = CVY_QUANTITY_RATE, .minimum = 1e6, .maximum = 1e18
#define COUNT_FIELD CVY_MACHINE_COUNT, .minimum = 1, .maximum = 1e6
#define PEAK(name, precision) \
    {.key = name, .type = RATE_FIELD, .offset = (precision) * sizeof(double), .help = "the dense peak rate"}

static const cvy_machine_field peak_fields[] = {
    PEAK("fp64", CVY_PRECISION_FP64), PEAK("fp32", CVY_PRECISION_FP32), PEAK("tf32", CVY_PRECISION_TF32),
    PEAK("fp16", CVY_PRECISION_FP16), PEAK("bf16", CVY_PRECISION_BF16), {0},
};

static const cvy_machine_field efficiency_fields[] = {
    {.key = "release", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_efficiency, release),
     .help = "the release of the software that they are of"},
    {.key = "kernel", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_efficiency, kernel), .value = CVY_ANY,
     .names = &kernels, .help = "a kind of op"},
    {.key = "pass", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_efficiency, pass), .value = CVY_ANY,
     .names = &passes, .help = "a pass of it"},
    {.key = "precision", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_efficiency, precision), .value = CVY_ANY,
     .names = &precisions, .help = "what its numbers are"},
    {.key = "peak", .type = CVY_MACHINE_REAL, .minimum = 1e-6, .maximum = 4, .value = 1, /* Winograd's F(4x4, 3x3): 4 */
     .offset = offsetof(cvy_efficiency, peak), .help = "the share of the peak rate that is reached"},
    {.key = "bandwidth", .type = CVY_MACHINE_REAL, .minimum = 1e-6, .maximum = 1, .value = 1,
     .offset = offsetof(cvy_efficiency, bandwidth), .help = "the share of the memory bandwidth that is reached"},
    {.key = "error", .type = CVY_MACHINE_REAL, .maximum = 10, .value = CVY_UNFITTED_ERROR,
     .offset = offsetof(cvy_efficiency, error), .help = "the relative error of times by these shares"},
    {0},
};

static const cvy_machine_field device_fields[] = {
    {.key = "name", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_device, name), .required = true,
     .help = "what the device is called"},
    {.key = "kind", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_device, kind), .names = &device_kinds,
     .help = "cpu or gpu"},
    {.key = "cores", .type = COUNT_FIELD, .offset = offsetof(cvy_device, cores), .required = true,
     .help = "the count of cores, or of multiprocessors"},
    {.key = "vector-bits", .type = CVY_MACHINE_COUNT, .offset = offsetof(cvy_device, vector_bits), .minimum = 64,
     .maximum = 4096, .help = "the width of the widest vector of floats"},
    {.key = "memory", .type = CVY_MACHINE_SIZE, .offset = offsetof(cvy_device, memory_bytes), .required = true,
     .minimum = 1, .maximum = 1e15, .help = "its memory, as 16 GiB"},
    {.key = "memory-bandwidth", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_device, memory_Bps), .required = true,
     .help = "that of its memory, as 900 GB/s"},
    {.key = "first-touch", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_device, first_touch_Bps),
     .help = "how fast new memory becomes usable"},
    {.key = "launch", .type = TIME_FIELD, .offset = offsetof(cvy_device, launch_s),
     .help = "the least time of a kernel"},
    {.key = "slice-floor", .type = CVY_MACHINE_REAL, .maximum = 1, .offset = offsetof(cvy_device, slice_floor),
     .help = "the share of a whole kernel's time that a thin slice still takes"},
    {.key = "spread", .type = CVY_MACHINE_REAL, .maximum = 10, .offset = offsetof(cvy_device, spread),
     .help = "the standard deviation of a step's time by its mean"},
    {.key = "interruptions", .type = CVY_MACHINE_REAL, .maximum = 10, .offset = offsetof(cvy_device, interruptions),
     .help = "what interrupts kernels adds to their undisturbed time, as a share of it"},
    {.key = "probe", .type = TIME_FIELD, .offset = offsetof(cvy_device, probe_s),
     .help = "the time of a small product at the pace that kernels are told at"},
    {.key = "price", .type = CVY_MACHINE_QUANTITY, .quantity = CVY_QUANTITY_PRICE, .maximum = 1e6,
     .offset = offsetof(cvy_device, price_usd_per_h), .help = "its price, as 2.48 USD/h"},
    {.key = "kernel-tables", .type = CVY_MACHINE_FILES, .offset = offsetof(cvy_device, kernel_table),
     .help = "a list of files of measured kernels"},
    {.key = "predictors", .type = CVY_MACHINE_FILES, .offset = offsetof(cvy_device, predictor),
     .help = "a list of files of fitted predictors"},
    {0},
};

static const cvy_machine_section device_sections[] = {
    {.key = "peak", .fields = peak_fields, .offset = offsetof(cvy_device, peak_flop_per_s), .required = true,
     .help = "a mapping of peak rates by precision"},
    {.key = "efficiency", .fields = efficiency_fields, .offset = offsetof(cvy_device, efficiency),
     .most = CVY_MAX_EFFICIENCIES, .bytes = sizeof(cvy_efficiency),
     .count_offset = offsetof(cvy_device, efficiencies), .help = "a list of measured shares of the peaks"},
    {0},
};

static const cvy_machine_field level_fields[] = {
    {.key = "name", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_level, name), .required = true,
     .help = "what the level is called"},
    {.key = "endpoints", .type = CVY_MACHINE_COUNT, .offset = offsetof(cvy_level, endpoints), .required = true,
     .minimum = 2, .maximum = 1e6, .help = "how many devices, or domains of the level before, it connects"},
    {.key = "latency", .type = TIME_FIELD, .offset = offsetof(cvy_level, latency_s), .required = true,
     .help = "the time of a small message, as 1.5 us"},
    {.key = "bandwidth", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_level, bandwidth_Bps), .required = true,
     .help = "that of one link, a direction, as 12.5 GB/s"},
    {.key = "ports", .type = COUNT_FIELD, .offset = offsetof(cvy_level, ports), .value = 1,
     .help = "the links of one endpoint"},
    {.key = "rails", .type = COUNT_FIELD, .offset = offsetof(cvy_level, rails), .value = 1,
     .help = "the links that one message is spread over"},
    {.key = "oversubscription", .type = CVY_MACHINE_REAL, .minimum = 1, .maximum = 1000, .value = 1,
     .offset = offsetof(cvy_level, oversubscription), .help = "what endpoints may send by what passes"},
    {.key = "burst", .type = CVY_MACHINE_SIZE, .offset = offsetof(cvy_level, burst_bytes), .minimum = 1,
     .maximum = 1e15, .help = "what a device sends at once behind a pause, as 512 kB"},
    {.key = "staged-latency", .type = TIME_FIELD, .offset = offsetof(cvy_level, staged_latency_s),
     .help = "the latency through the memory of the host"},
    {.key = "staged-bandwidth", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_level, staged_Bps),
     .help = "the bandwidth through the memory of the host"},
    {0},
};

static const cvy_machine_field collective_fields[] = {
    {.key = "release", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_collective_rule, release),
     .help = "the release of the software that calls it, or how releases begin"},
    {.key = "collective", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_collective_rule, collective),
     .names = &collectives, .required = true, .help = "all-reduce, all-gather and so on"},
    {.key = "algorithm", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_collective_rule, algorithm),
     .value = CVY_ANY, .names = &algorithms, .help = "ring, tree and so on"},
    {.key = "for", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_collective_rule, traffic), .value = CVY_ANY,
     .names = &traffics, .help = "layers, space, gradients"},
    {.key = "level", .type = CVY_MACHINE_LEVEL, .offset = offsetof(cvy_collective_rule, level), .value = CVY_ANY,
     .help = "the innermost level of links that holds the group"},
    {.key = "up-to", .type = CVY_MACHINE_SIZE, .offset = offsetof(cvy_collective_rule, up_to_bytes), .minimum = 1,
     .maximum = 1e15, .help = "the largest message, as 4 MB"},
    {.key = "up-to-ranks", .type = COUNT_FIELD, .offset = offsetof(cvy_collective_rule, up_to_ranks),
     .help = "the largest group"},
    {.key = "call", .type = TIME_FIELD, .offset = offsetof(cvy_collective_rule, call_s), .help = "the time of a call"},
    {.key = "latency", .type = TIME_FIELD, .offset = offsetof(cvy_collective_rule, latency_s),
     .help = "the time of a step, in place of the level's"},
    {.key = "bandwidth", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_collective_rule, bandwidth_Bps),
     .help = "that of one ring or message alone"},
    {.key = "rails", .type = COUNT_FIELD, .offset = offsetof(cvy_collective_rule, rails),
     .help = "the links that one message is spread over"},
    {0},
};

static const cvy_machine_field storage_fields[] = {
    {.key = "read", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_storage, read_Bps),
     .help = "what one node reads"},
    {.key = "total", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_storage, total_Bps),
     .help = "what all nodes together read"},
    {.key = "decode", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_storage, decode_Bps),
     .help = "the bytes of samples that one thread makes"},
    {0},
};

static const cvy_machine_field nccl_fields[] = {
    {.key = "pcie", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_nccl, pcie),
     .help = "whether devices of a node are joined by PCIe, not NVLink"},
    {.key = "ampere", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_nccl, ampere),
     .help = "whether devices have compute capability 8.0"},
    {.key = "amd", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_nccl, amd),
     .help = "whether AMD made the host's processor"},
    {.key = "channels", .type = COUNT_FIELD, .offset = offsetof(cvy_nccl, channels),
     .help = "the count of its rings"},
    {0},
};

static const cvy_machine_field execution_fields[] = {
    {.key = "framework", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_execution, framework),
     .help = "name and version of the framework"},
    {.key = "release", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_execution, release),
     .help = "the release of the software that runs, as efficiencies name it"},
    {.key = "model-options", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_execution, model_options),
     .help = "options of the zoo's models that make them those which the set-up was measured with"},
    {.key = "fuse", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_execution, fuse), .names = &fusings,
     .help = "what the framework makes one kernel of: relu or none"},
    {.key = "overlap", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, overlap),
     .help = "whether gradients are exchanged while backward runs"},
    {.key = "bucket", .type = CVY_MACHINE_SIZE, .offset = offsetof(cvy_execution, bucket_bytes), .minimum = 1,
     .maximum = 1e15, .help = "the gradients of one exchange, as 25 MiB"},
    {.key = "pack", .type = TIME_FIELD, .offset = offsetof(cvy_execution, pack_s),
     .help = "the time to copy a tensor into or out of a bucket"},
    {.key = "exchange-slowdown", .type = CVY_MACHINE_REAL, .minimum = 1, .maximum = 1000, .value = 1,
     .offset = offsetof(cvy_execution, exchange_slowdown), .help = "how much longer exchanges take beside computing"},
    {.key = "compute-slowdown", .type = CVY_MACHINE_REAL, .minimum = 1, .maximum = 1000, .value = 1,
     .offset = offsetof(cvy_execution, compute_slowdown), .help = "how much longer computing takes beside exchanges"},
    {.key = "startup", .type = TIME_FIELD, .offset = offsetof(cvy_execution, startup_s),
     .help = "the time from the start of a process to its first plan"},
    {.key = "lockstep", .type = CVY_MACHINE_REAL, .minimum = 1, .maximum = 1000, .value = 1,
     .offset = offsetof(cvy_execution, lockstep), .help = "how much longer kernels take while all devices compute"},
    {.key = "host-halos", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, host_halos),
     .help = "whether halos go through the host"},
    {.key = "serial-halos", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, serial_halos),
     .help = "whether halos go hop by hop along an axis and back"},
    {.key = "leader-exchange", .type = CVY_MACHINE_SET, .offset = offsetof(cvy_execution, leader_exchange),
     .names = &strategies, .help = "a list of strategies whose gradients are reduced by leaders"},
    {.key = "leader-broadcast", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, leader_broadcast),
     .value = true, .help = "whether the leaders tell their nodes"},
    {.key = "staging", .type = CVY_MACHINE_CHOICE, .offset = offsetof(cvy_execution, staging), .names = &stagings,
     .help = "how input comes to the ranks"},
    {.key = "layer-host", .type = TIME_FIELD, .offset = offsetof(cvy_execution, layer_host_s),
     .help = "the host's time of a layer function"},
    {.key = "slice-host", .type = TIME_FIELD, .offset = offsetof(cvy_execution, slice_host_s),
     .help = "the host's time of a piece that is joined or cut"},
    {.key = "whole-channels", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, whole_channels),
     .help = "whether outputs that are cut by channels are made whole at once"},
    {.key = "whole-dense", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, whole_dense),
     .help = "whether dense layers are never cut"},
    {.key = "shard-sums", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, shard_sums),
     .help = "whether only a rank's share of filters' input gradients is summed"},
    {.key = "recompute", .type = CVY_MACHINE_SET, .offset = offsetof(cvy_execution, recompute), .names = &strategies,
     .help = "a list of strategies that make activations again"},
    {.key = "local-norms", .type = CVY_MACHINE_FLAG, .offset = offsetof(cvy_execution, local_norms),
     .help = "whether batch norms look at a rank's share alone"},
    {.key = "leader-input", .type = CVY_MACHINE_SET, .offset = offsetof(cvy_execution, leader_input),
     .names = &strategies, .help = "a list of strategies where one rank of a group loads its input"},
    {.key = "leader-skew", .type = CVY_MACHINE_REAL, .offset = offsetof(cvy_execution, leader_skew), .maximum = 10,
     .help = "how far apart two groups start by that, of the time of computing"},
    {.key = "reserved", .type = CVY_MACHINE_SIZE, .offset = offsetof(cvy_execution, reserved_bytes), .minimum = 1,
     .maximum = 1e15, .help = "the memory of a device that libraries take, as 500 MB"},
    {.key = "managed-memory", .type = CVY_MACHINE_SET, .offset = offsetof(cvy_execution, managed_memory),
     .names = &strategies, .help = "a list of strategies that ran on managed memory"},
    {.key = "managed-over", .type = CVY_MACHINE_SIZE, .offset = offsetof(cvy_execution, managed_over_bytes),
     .minimum = 1, .maximum = 1e15, .help = "the tensors that are paged there, as 200 MB"},
    {.key = "managed-bandwidth", .type = BANDWIDTH_FIELD, .offset = offsetof(cvy_execution, managed_Bps),
     .help = "how fast they are paged"},
    {0},
};

static const cvy_machine_field machine_fields[] = {
    {.key = "name", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_machine, name), .required = true,
     .help = "what the machine is called"},
    {.key = "summary", .type = CVY_MACHINE_TEXT, .offset = offsetof(cvy_machine, summary), .required = true,
     .help = "one line for the list of machines"},
    {.key = "nodes", .type = COUNT_FIELD, .offset = offsetof(cvy_machine, nodes), .value = 1,
     .help = "the count of nodes"},
    {.key = "devices-per-node", .type = CVY_MACHINE_COUNT, .offset = offsetof(cvy_machine, devices_per_node),
     .minimum = 1, .maximum = 1024, .value = 1, .help = "the count of devices in a node"},
    {0},
};

static const char *const level_also[] = {"connects", NULL};

/* Links stand before collectives, which name them. */
static const cvy_machine_section machine_sections[] = {
    {.key = "device", .fields = device_fields, .sections = device_sections, .offset = offsetof(cvy_machine, device),
     .required = true, .help = "a mapping that describes one device"},
    {.key = "links", .fields = level_fields, .offset = offsetof(cvy_machine, level), .most = CVY_MAX_LEVELS,
     .bytes = sizeof(cvy_level), .count_offset = offsetof(cvy_machine, levels), .also = level_also,
     .help = "a list of levels of links, from devices outwards"},
    {.key = "collectives", .fields = collective_fields, .offset = offsetof(cvy_machine, collective),
     .most = CVY_MAX_COLLECTIVES, .bytes = sizeof(cvy_collective_rule),
     .count_offset = offsetof(cvy_machine, collectives), .help = "a list of rules"},
    {.key = "nccl", .fields = nccl_fields, .offset = offsetof(cvy_machine, nccl),
     .help = "a mapping of what NCCL's cost model asks"},
    {.key = "storage", .fields = storage_fields, .offset = offsetof(cvy_machine, storage),
     .help = "a mapping of rates"},
    {.key = "execution", .fields = execution_fields, .offset = offsetof(cvy_machine, execution),
     .help = "a mapping of facts about the framework"},
    {0},
};

const cvy_machine_section cvy_machine_sections = {.fields = machine_fields, .sections = machine_sections};
