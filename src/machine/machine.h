/*
 * Machines: what a plan must know of the hardware, and of how the framework uses it. A machine is a YAML file, or the
 * one that this program runs on. docs/machines.md has the format; the tables in fields.c have its keys, units, bounds
 * and defaults.
 *
 * Ranks are devices, numbered so that consecutive ones fill a node. A figure of 0 is one that the file does not give,
 * unless its comment says otherwise.
 */
#ifndef CVY_MACHINE_MACHINE_H
#define CVY_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "op/collective.h"
#include "op/op.h"

enum {
    CVY_MAX_LEVELS = 8,
    CVY_MAX_EFFICIENCIES = 128,
    CVY_MAX_COLLECTIVES = 48,
    CVY_MAX_FILES = 160,
    CVY_ANY = -1, /**< in rules: whatever the kernel, the pass, the precision, the level */
};

typedef enum cvy_device_kind { CVY_DEVICE_CPU, CVY_DEVICE_GPU, CVY_DEVICE_KIND_COUNT } cvy_device_kind;

/** What numbers products are made of; TF32 has the range of FP32 and the digits of FP16. */
typedef enum cvy_precision {
    CVY_PRECISION_FP64,
    CVY_PRECISION_FP32,
    CVY_PRECISION_TF32,
    CVY_PRECISION_FP16,
    CVY_PRECISION_BF16,
    CVY_PRECISION_COUNT
} cvy_precision;

/**
 * Kernels that rules of efficiency name: each cvy_op_kind, and convolutions that run unlike the others. A rule of all
 * convolutions holds for these, too.
 */
enum {
    CVY_KERNEL_WINOGRAD_CONVOLUTION = CVY_OP_KIND_COUNT, /**< 2-D, 3x3, stride 1, no groups: fewer products may do */
    CVY_KERNEL_GROUPED_CONVOLUTION,                      /**< several filters a group */
    CVY_KERNEL_DEPTHWISE_CONVOLUTION,
    CVY_KERNEL_5X5_CONVOLUTION,                          /**< as the first, with a larger window */
    CVY_KERNEL_1X1_CONVOLUTION,                          /**< windows of one place, 2-D and 3-D, no groups: a product */
    CVY_KERNEL_VOLUME_CONVOLUTION,                       /**< 3-D of larger windows, no groups */
    CVY_KERNEL_COUNT
};

/** Relative error of times by peaks of which nobody measured the shares: kernels reach a third of them to all. */
#define CVY_UNFITTED_ERROR 0.5

/** What sends input to the ranks that share a sample. */
typedef enum cvy_staging {
    CVY_STAGING_HIDDEN, /**< it is loaded while the step before runs */
    CVY_STAGING_EACH,   /**< each rank loads its own, between steps */
    CVY_STAGING_LEADER, /**< one rank loads all of it and broadcasts, between steps */
    CVY_STAGING_COUNT
} cvy_staging;

/** What the framework makes one kernel of. */
typedef enum cvy_fusing {
    CVY_FUSING_RELU, /**< a relu and the op before or behind it, where the plan can */
    CVY_FUSING_NONE, /**< nothing: each layer has kernels of its own */
    CVY_FUSING_COUNT
} cvy_fusing;

/** The named strategies, as bits of sets: 1u << CVY_STRATEGY_…. */
typedef enum cvy_strategy_name {
    CVY_STRATEGY_DATA,
    CVY_STRATEGY_SPATIAL,
    CVY_STRATEGY_FILTER,
    CVY_STRATEGY_CHANNEL,
    CVY_STRATEGY_ALTERNATING,
    CVY_STRATEGY_PIPELINE,
    CVY_STRATEGY_DATA_FILTER,
    CVY_STRATEGY_DATA_CHANNEL,
    CVY_STRATEGY_DATA_SPATIAL,
    CVY_STRATEGY_DATA_PIPELINE,
    CVY_STRATEGY_NAME_COUNT
} cvy_strategy_name;

/** Measured shares of a device's peaks; of several that apply, the first in the file holds. */
typedef struct cvy_efficiency {
    const char *release; /**< of the software under which they were reached; NULL: any */
    int kernel;       /**< cvy_op_kind, CVY_KERNEL_… or CVY_ANY */
    int pass;         /**< cvy_op_pass or CVY_ANY */
    int precision;    /**< cvy_precision or CVY_ANY */
    double peak;      /**< share of the peak rate that is reached, above 0; above 1 where products are saved */
    double bandwidth; /**< share of the memory bandwidth that is reached, above 0 to 1 */
    double error;     /**< relative, of sums of times by these shares */
} cvy_efficiency;

/** A device: what kernels run on. */
typedef struct cvy_device {
    const char *name;
    int kind;                                       /**< cvy_device_kind */
    int cores;                                      /**< of a GPU: multiprocessors */
    int vector_bits;                                /**< of the widest vector of floats; 0 of a GPU */
    double peak_flop_per_s[CVY_PRECISION_COUNT];    /**< dense, of a whole device; 0 where it has no such unit */
    int64_t memory_bytes;                           /**< 0 where unknown */
    double memory_Bps;
    double first_touch_Bps;                         /**< at which new memory becomes usable; 0: unknown */
    double launch_s;                                /**< least time of a kernel: its launch */
    double slice_floor;                             /**< share of a whole kernel's time that a thin slice still takes */
    double spread;                                  /**< standard deviation of a step's time by its mean */
    double interruptions;                           /**< what interrupts kernels adds to their time, a share of it */
    double probe_s;                                 /**< of a small product (backend/probe.h) at the pace that kernels
                                                         are told at; 0: unknown */
    double price_usd_per_h;
    cvy_efficiency efficiency[CVY_MAX_EFFICIENCIES];
    int efficiencies;
    const char *kernel_table[CVY_MAX_FILES + 1];    /**< files, as written; NULL-terminated */
    const char *predictor[CVY_MAX_FILES + 1];
} cvy_device;

/** A level of links. The innermost connects devices, each other one the domains of the level before. */
typedef struct cvy_level {
    const char *name;
    int endpoints;           /**< what one domain of this level connects: devices, or domains of the level before */
    int64_t devices;         /**< in a domain: the product of endpoints up to here */
    double latency_s;        /**< of a message from device to device over this level, small */
    double bandwidth_Bps;    /**< of one link, a direction */
    int ports;               /**< links of one endpoint; its devices share them */
    int rails;               /**< links that one ring, or one message, is spread over; at most `ports` count */
    double oversubscription; /**< what all endpoints may send at once, by what passes; 1: everything passes */
    int64_t burst_bytes;     /**< what a device sends at once behind a pause, beyond the bandwidth; 0: nothing */
    double staged_latency_s; /**< as latency_s, of transfers that go through the memory of the host */
    double staged_Bps;       /**< as bandwidth_Bps, likewise */
} cvy_level;

/** What is sent, where the same collective goes by other ways for other ends. */
typedef enum cvy_traffic {
    CVY_TRAFFIC_LAYERS,    /**< outputs of layers and their gradients, but for space */
    CVY_TRAFFIC_SPACE,     /**< halos, and redistributions along axes of space alone */
    CVY_TRAFFIC_GRADIENTS, /**< gradients of weights */
    CVY_TRAFFIC_COUNT
} cvy_traffic;

/** Which algorithm a collective takes, and what was measured of it; of several that apply, the first holds. */
typedef struct cvy_collective_rule {
    int collective;        /**< cvy_collective */
    int algorithm;         /**< cvy_algorithm; CVY_ANY: the fastest */
    int traffic;           /**< cvy_traffic or CVY_ANY */
    int level;             /**< the innermost that holds the whole group; index or CVY_ANY */
    int64_t up_to_bytes;   /**< of the message, inclusive; 0: any */
    int up_to_ranks;       /**< of the group, inclusive; 0: any */
    double call_s;         /**< once a call; once a message */
    double latency_s;      /**< a step; measured, in place of the level's; 0: the level's */
    double bandwidth_Bps;  /**< of one ring or message that nothing shares; measured; 0: the level's by its rails */
    int rails;             /**< of point-to-point: links that one message is spread over; 0: the level's */
    const char *release;   /**< of the software that calls it, or what releases begin with, before a '-'; NULL: any */
} cvy_collective_rule;

/** Where data sets lie. */
typedef struct cvy_storage {
    double read_Bps;  /**< what one node reads */
    double total_Bps; /**< what all nodes together read; 0: no limit */
    double decode_Bps; /**< bytes of samples that a thread of a rank makes; 0: no limit */
} cvy_storage;

/** What NCCL's cost model asks of a machine beside its links. */
typedef struct cvy_nccl {
    bool pcie;    /**< devices of a node are joined by PCIe, not NVLink */
    bool ampere;  /**< compute capability 8.0 */
    bool amd;     /**< maker of the host processor; else Intel */
    int channels; /**< of its rings and trees; 0: what a channel can take sets no bound */
} cvy_nccl;

/** How the framework executes a schedule: facts of a set-up, not of a model. */
typedef struct cvy_execution {
    const char *framework;          /**< name and version; NULL where none is given */
    const char *release;            /**< of the software: which efficiencies hold; NULL: those of any */
    const char *model_options;      /**< how the framework's own nets differ from the zoo's, as its options; NULL */
    int fuse;                       /**< cvy_fusing */
    bool overlap;                   /**< gradients are exchanged while backward runs */
    int64_t bucket_bytes;           /**< gradients of one exchange; 0: all in one */
    double pack_s;                  /**< to copy a tensor into or out of a bucket, beside its bytes */
    double exchange_slowdown;       /**< how many times as long an exchange takes beside computing; 0: 1 */
    double compute_slowdown;        /**< how many times as long computing takes beside an exchange; 0: 1 */
    double startup_s;               /**< from the start of a process to its first plan; 0: unknown */
    double lockstep;                /**< how many times as long kernels take while all devices compute; 0: 1 */
    bool host_halos;                /**< halos and redistributions of space go through the host: staged figures */
    bool serial_halos;              /**< halos go hop by hop along an axis and back, each after the one before */
    unsigned leader_exchange;       /**< strategies whose gradients are reduced inside the node, then by leaders */
    bool leader_broadcast;          /**< and the leaders tell their nodes */
    int staging;                    /**< cvy_staging */
    double layer_host_s;            /**< host time of a layer function: forward, backward and update */
    double slice_host_s;            /**< host time of a gathered layer for each piece that is joined or cut */
    bool whole_channels;            /**< outputs of layers cut by channels are made whole at once, on every rank */
    bool whole_dense;               /**< dense layers are never cut */
    bool shard_sums;                /**< of the gradients that filters' shares make of their input, only a rank's share
                                         is summed over the ranks */
    unsigned recompute;             /**< strategies in which activations are made again, whatever is asked */
    bool local_norms;               /**< batch norms take their statistics over a rank's share alone */
    unsigned leader_input;          /**< strategies in which one rank of a group loads its input, so that groups start
                                         apart */
    double leader_skew;             /**< by how much, of the time that computing takes: between two groups */
    int64_t reserved_bytes;         /**< memory of a device that libraries and the framework take */
    unsigned managed_memory;        /**< strategies that ran on managed memory, which pages */
    int64_t managed_over_bytes;     /**< tensors of more bytes are paged there */
    double managed_Bps;             /**< how fast */
} cvy_execution;

/** Where a figure comes from. */
typedef struct cvy_source {
    size_t offset;    /**< of the figure in cvy_machine */
    const char *text; /**< owned by the machine */
} cvy_source;

typedef struct cvy_machine {
    const char *name;
    const char *summary; /**< one line */
    const char *file;    /**< the path that it was read from, from where names of files in it count; NULL of `here` */
    int nodes;
    int devices_per_node;
    cvy_device device;
    cvy_level level[CVY_MAX_LEVELS];
    int levels; /**< 0 of a machine of one device */
    cvy_collective_rule collective[CVY_MAX_COLLECTIVES];
    int collectives;
    cvy_nccl nccl;
    cvy_storage storage;
    cvy_execution execution;
    cvy_source *source;
    int sources, sources_capacity;
    char **text; /**< what the texts above point to */
    int texts, texts_capacity;
} cvy_machine;

/** The name of the machine that the program runs on, for cvy_machine_open(). */
#define CVY_MACHINE_HERE "here"

/**
 * Fill in the machine that this program runs on: cores, vectors, memory, one device. Cannot fail; owns no memory.
 * What no look at a machine can tell (peaks, bandwidths) is 0: a machine file says it.
 */
void cvy_machine_get_local(cvy_machine *machine_out);

/**
 * Open a machine by name, or a machine file. Not collective.
 *
 * @param[in]  name         a path of a file, if there is one of that name; `here`; or a name without `.yaml` under
 *                          the folders of cvy_machine_list(). Behind either may stand `:RELEASE`, of software that the
 *                          file has efficiencies or collectives of, as dgx1-v100:pytorch-21.03
 * @param[out] machine_out  on success released with cvy_machine_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT    no such machine (with the nearest name), or the file is wrong: file, line, found, expected
 * @retval CVY_ERR_MEMORY   memory is exhausted
 */
cvy_status cvy_machine_open(const char *name, cvy_machine **machine_out);

/** Read a machine file; as cvy_machine_open(), of a path alone. */
cvy_status cvy_machine_load(const char *path, cvy_machine **machine_out);

/** Release a machine; NULL is fine. */
void cvy_machine_destroy(cvy_machine **machine);

/**
 * Write a machine as YAML that cvy_machine_load() reads back to the same figures and sources.
 *
 * @param[in,out] text  appended to; running out of memory is kept for cvy_text_take()
 */
void cvy_machine_print(const cvy_machine *machine, cvy_text *text);

/**
 * Say where a figure comes from, in place of what was said before.
 *
 * @param[in] figure  a member of @p machine
 * @param[in] source  one line, copied
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_machine_set_source(cvy_machine *machine, const void *figure, const char *source);

/** Keep a copy of a text as long as the machine, for its names. @retval CVY_ERR_MEMORY memory is exhausted */
cvy_status cvy_machine_keep(cvy_machine *machine, const char *text, const char **kept_out);

/** Where a figure comes from; NULL where the file does not say. @param[in] figure a member of @p machine */
const char *cvy_machine_find_source(const cvy_machine *machine, const void *figure);

/** A machine that cvy_machine_open() finds by name. */
typedef struct cvy_machine_entry {
    char *name;
    char *path;    /**< NULL of `here` */
    char *summary; /**< one line; of a file that cannot be read, the cause */
} cvy_machine_entry;

typedef struct cvy_machine_names {
    int count, capacity;
    cvy_machine_entry *entry;
} cvy_machine_names;

/**
 * List machines by name with one line each, sorted, `here` first. Looks into share/convoy/machines beside the folder of
 * the program, the `machines` of the source tree that the library was built from, and where it is installed; of two of
 * one name the first holds.
 *
 * @param[out] names_out    released with cvy_machine_names_clear(); untouched on failure
 * @retval CVY_ERR_MEMORY   memory is exhausted
 */
cvy_status cvy_machine_list(cvy_machine_names *names_out);

/** Release what a list owns and empty it. */
void cvy_machine_names_clear(cvy_machine_names *names);

/** "fp64", "fp32", … Cannot fail. */
const char *cvy_precision_name(cvy_precision precision);

/** The kernel of a rule: "convolution", "winograd-convolution", …; "any" of CVY_ANY. Cannot fail. */
const char *cvy_kernel_name(int kernel);

/** Channels in a block of the formats that suit the device: one vector of floats, 8 or 16. */
int cvy_device_block(const cvy_device *device);

/** Devices of the whole machine. */
int64_t cvy_machine_devices(const cvy_machine *machine);

#endif
