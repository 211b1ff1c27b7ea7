/*
 * Convoy: training, evaluation and throughput on one rank or many. The library never prints: it calls the observer, if
 * there is one, and writes the files of the run's folder. A plan-only build of the library has none of these functions.
 */
#ifndef CONVOY_TRAIN_H
#define CONVOY_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convoy/comm.h"
#include "convoy/model.h"
#include "convoy/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the learning rate goes over a training. All of it is a function of samples seen, never of steps. */
typedef enum cvy_rate_kind {
    CVY_RATE_CONSTANT,
    CVY_RATE_STEP,        /**< times `gamma` every `step_epochs` */
    CVY_RATE_COSINE,      /**< half a cosine from the base to 0 at the end of training */
    CVY_RATE_MULTISTEP,   /**< times `gamma` at each of `milestones` */
    CVY_RATE_EXPONENTIAL, /**< times `gamma` over `step_epochs`, smoothly */
    CVY_RATE_POLYNOMIAL,  /**< the share of training that is left, to the `power` */
} cvy_rate_kind;

/** Names of optimizers as users write them. */
typedef enum cvy_optimizer_name {
    CVY_OPTIMIZE_SGD,      /**< w -= lr (g + wd w) */
    CVY_OPTIMIZE_MOMENTUM, /**< SGD with velocity: v = mu v + g + wd w, w -= lr v */
    CVY_OPTIMIZE_NESTEROV, /**< the same, looking ahead: w -= lr (g + wd w + mu v) */
    CVY_OPTIMIZE_ADAMW,    /**< Loshchilov and Hutter, arXiv:1711.05101 */
    CVY_OPTIMIZE_ADAM,     /**< Kingma and Ba, arXiv:1412.6980; decay is part of the gradient, as PyTorch's */
    CVY_OPTIMIZE_LARS,     /**< You, Gitman and Ginsburg, arXiv:1708.03888; norms and biases are not adapted */
    CVY_OPTIMIZE_LAMB,     /**< You et al., arXiv:1904.00962; norms and biases are not adapted */
} cvy_optimizer_name;

/** What to train and how. Start from CVY_TRAIN_OPTIONS_INIT. Strings are borrowed for the call. */
typedef struct cvy_train_options {
    const char *data;             /**< a folder, or digits, random, cosmo */
    const char *data_kind;        /**< NULL: found by the files */
    int64_t train_samples;        /**< at most so many (synthetic sets: so many); 0: all, or the set's default */
    int64_t test_samples;         /**< as `train_samples` */
    const char *mean, *std;       /**< x becomes (x - mean) / std: a number for each channel with commas between, or one
                                       for all; NULL: as the kind of data set says */
    int64_t crop_padding;         /**< pad training samples by so much and crop them at random; 0: as they are */
    double hflip;                 /**< probability that a training sample is mirrored, left to right */
    int64_t batch;                /**< samples an iteration */
    int64_t epochs;               /**< used where `steps` is 0 */
    int64_t steps;                /**< stop after so many iterations; 0: by epochs */
    uint64_t seed;                /**< of all random numbers */
    int threads;                  /**< 0: one for each core that this process may use */
    int data_threads;             /**< that read samples ahead; 0 is 1 */
    bool pin;                     /**< with as many threads as cores, bind each to one until the call returns, unless
                                       OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY is set */
    const char *backend;          /**< NULL: the fastest in this build */
    const char *layout;           /**< of activations: auto, measure, rule, plain, channels-last, blocked; NULL is
                                       auto: the fastest that was measured for this model, batch, machine and number of
                                       threads; by rule where there is no `cache`; measure: as auto, measured anew;
                                       with either a resumed run keeps what it has */
    bool deterministic_kernels;   /**< kernels that sum directly, in a fixed order, alone: no convolution goes by
                                       Winograd's algorithm, which else may where the clock says that it is faster */
    const char *cache;            /**< folder that remembers what was measured; NULL: nothing is */
    const char *recompute;        /**< which activations backward makes again rather than finding them kept, with the
                                       same results bit for bit: none, cheap (norms, activations, sums, concats), all
                                       (everything between layers that the plan chooses); NULL is none */
    int micro_batches;            /**< parts that each batch goes through in, their gradients summed: less memory, the
                                       same update but for batch norms, which see a part at a time; 0 is 1 */
    bool double_precision;        /**< f64; backend ref alone has it */
    cvy_optimizer_name optimizer; /**< the rule that updates the weights */
    double learning_rate;         /**< base, after warm-up */
    int64_t rate_base_size;       /**< the base is for so many samples an update, and grows with them; 0: as it is */
    double momentum;              /**< momentum, nesterov and lars */
    double beta1, beta2, epsilon; /**< adam, adamw and lamb */
    double weight_decay;          /**< adamw's is decoupled from the gradient, the others' is part of it */
    double trust;                 /**< lars: a step's share of the weights' norm, before the learning rate */
    double clip_norm;             /**< largest norm of all gradients together: beyond it they shrink; 0: any */
    double clip_value;            /**< gradients are cut to it at both ends; 0: they are not */
    double ema;                   /**< weights and running statistics are averaged over updates, and keep this share
                                       each time; evaluation goes by the averages; 0: none */
    bool no_decay_norms;          /**< no weight decay of norms and biases: parameters of one dimension */
    cvy_rate_kind rate;
    double warmup_epochs;         /**< linear from 0; may be a fraction */
    double step_epochs, gamma;    /**< step and exponential; gamma also multistep */
    const char *milestones;       /**< multistep: epochs that rise, such as "30,60,80" */
    double power;                 /**< polynomial */
    const char *out;              /**< folder of the run; NULL: nothing is written */
    const char *resume;           /**< folder of a run to go on with, with its seed, batch, kind of data and number of
                                       training samples, and its micro-batches where there are batch norms; NULL: start
                                       anew */
    const char *weights;          /**< safetensors file to start from; NULL: initialise */
    int64_t checkpoint_every;     /**< iterations; 0: at the end of every epoch */
    int keep_checkpoints;         /**< last so many, besides the best */
    bool no_metrics_rates;        /**< metrics.jsonl leaves out images_per_s, which a clock measures: runs alike then
                                       write files alike, byte for byte */
    const char *timeline;         /**< Chrome trace file; NULL: none */
    int64_t timeline_steps;       /**< iterations that the timeline holds, from the first on */
    const volatile int *stop;     /**< a signal handler sets it to nonzero: the training saves and answers
                                       CVY_PREEMPTED, or CVY_STOPPED where there is nowhere to save; may be NULL. Give
                                       handlers a stack of their own (sigaltstack, SA_ONSTACK): a generated kernel may
                                       have the stack pointer point elsewhere */
    cvy_comm *comm;               /**< joins the ranks of the run, whose options are alike but for this; borrowed;
                                       NULL: one rank alone */
    const char *strategy;         /**< how the work is cut over the ranks: serial, data, spatial, filter, channel,
                                       alternating, pipeline, or axes of a mesh such as "sample=2,height=2"; NULL:
                                       serial on one rank, data on several */
    const char *plan;             /**< a plan file, as convoy plan --save writes it: its strategy, stages, cuts,
                                       formats, recomputation and all that stands below hold in place of what is said
                                       here; its model, batch, precision and optimizer must be those said here; NULL:
                                       none */
    const char *sync_norms;       /**< axes over which batch norms share their statistics, such as "height,width", or
                                       "none"; NULL: those that share a sample: depth, height, width */
    int64_t bucket_bytes;         /**< gradients that are exchanged at once, in the order backward makes them in; 0:
                                       all */
    bool overlap;                 /**< gradients are exchanged while backward goes on */
    bool shard_optimizer;         /**< each rank along the sample axis keeps and updates its share of the optimizer's
                                       state */
    double timeout_s;             /**< a rank that says nothing for so long is lost */
    /**
     * Called on several ranks where a rank was lost or late, or communication failed: the run ends. From any thread,
     * while the caller's may hang in MPI: print the line (NULL: another rank does) and end the process at once, without
     * handlers, with the code. Where it returns, or is NULL, MPI is asked to end all ranks.
     */
    void (*abandon)(void *context, const char *line, int exit_code);
    void *abandon_context;
} cvy_train_options;

#define CVY_TRAIN_OPTIONS_INIT                                                                              \
    {                                                                                                       \
        .batch = 64, .epochs = 1, .seed = 1, .optimizer = CVY_OPTIMIZE_MOMENTUM, .learning_rate = 0.01,     \
        .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .trust = 0.001, .step_epochs = 30,  \
        .gamma = 0.1, .power = 1.0, .keep_checkpoints = 2, .timeline_steps = 10, .bucket_bytes = 25000000,  \
        .overlap = true, .timeout_s = 300.0                                                                 \
    }

/** What is known once everything is set up. Valid during the call. */
typedef struct cvy_train_start {
    const char *model, *data, *backend;
    int64_t parameters;              /**< trainable numbers */
    int64_t batch, train_samples, test_samples;
    double learning_rate;            /**< base in force: scaled by the batch, where that was asked for */
    int64_t epochs;                  /**< asked for; 0 where `steps` rules */
    int64_t steps_total, first_step; /**< iterations when all is done; done already, by the run that is resumed */
    int ranks;
    const char *strategy;            /**< how the work is cut over them, as asked for */
    int threads;                     /**< of a rank */
    int cores;                       /**< that this process may use */
    const char *places;              /**< where the ranks run, lines with newlines between; NULL: one rank */
    int64_t tensor_bytes;            /**< all arenas: what the plan says */
    int64_t memory_by_role[8];       /**< bytes, as in `memory_names` */
    const char *const *memory_names; /**< NULL-terminated */
    int format_changes;              /**< reorders of activations an iteration */
    int micro_batches;               /**< parts that each batch goes through in */
    const char *recompute;           /**< what backward makes again: none, cheap, all */
    const char *resumed_from;        /**< checkpoint folder; NULL for a fresh run */
    int checkpoints_skipped;         /**< damaged ones that resume passed over */
} cvy_train_start;

/** How far a training is. */
typedef struct cvy_train_progress {
    int64_t step, steps_total; /**< iterations done, of all */
    int64_t epoch, epochs;     /**< epochs done; those asked for, 0 where `steps` rules */
    int64_t sample, samples;   /**< done, of the epoch under way */
    double loss;               /**< of the last batch */
    double accuracy;           /**< of the last batch, 0 to 1 (of maps over all positions); NAN for regressions */
    double learning_rate;      /**< that the last step was made with */
    double images_per_s;       /**< over the last second or so */
    double left_s;             /**< estimate of the time that is left */
} cvy_train_progress;

/** One epoch. */
typedef struct cvy_epoch_result {
    int64_t epoch;               /**< 1 is the first */
    int64_t step;                /**< iterations since training began */
    double loss, train_accuracy; /**< means over the epoch's samples as they were trained */
    double validation_loss;      /**< NAN where there is no test split */
    double validation_accuracy;  /**< 0 to 1; NAN where there is no test split, or no classes */
    double seconds, images_per_s;
    double data_wait_share;      /**< of the epoch's seconds, waiting for the loader */
    bool best;                   /**< no epoch before had a better validation result */
    bool whole;                  /**< false: `steps` ended within it, and all is of the part so far */
} cvy_epoch_result;

/** One row of the table at the end: all steps of a kind, on the rank that they took longest. */
typedef struct cvy_profile_row {
    char name[64];               /**< "convolution forward", "halo over height" */
    char algorithm[64];          /**< the backend's words; "mixed" where they differ; empty of communication */
    int64_t calls;
    double seconds, flop, bytes; /**< sums over the calls; bytes of communication as schedules count them */
    double floor_s;              /**< that the calls cannot take less than; 0 where no floor was measured */
    int rank;                    /**< where the kind took longest */
    int ranks;                   /**< that have steps of the kind: those of other stages may have none */
    double least_s;              /**< seconds on that of them where they took the least */
    double predicted_s;          /**< room for a prediction of `seconds`; the library leaves 0 */
} cvy_profile_row;

/** What one rank took. */
typedef struct cvy_rank_result {
    double iteration_s;        /**< mean, as in cvy_train_result */
    int64_t peak_memory_bytes; /**< largest resident set */
    double *seconds;           /**< of the kind of each row, in the order of the rows; 0 where it has no such steps */
} cvy_rank_result;

/** What came out. Release with cvy_train_result_clear(). */
typedef struct cvy_train_result {
    int64_t step, epoch;             /**< iterations and epochs done since training began */
    double loss, train_accuracy;     /**< of the last epoch; NAN: none */
    double validation_loss, validation_accuracy;
    double best_validation_accuracy; /**< of all epochs; NAN: none */
    double seconds;                  /**< of this call's loop, evaluation and checkpoints included */
    double images_per_s;             /**< trained, without the time of evaluation and checkpoints */
    double data_wait_share;          /**< of the training time, waiting for the loader */
    int64_t tensor_peak_bytes;       /**< measured by the allocator */
    int64_t tensor_plan_bytes;       /**< what the plan said */
    int64_t loop_allocations;        /**< allocations of the library inside the step loop: 0 */
    int64_t iterations;              /**< of this call */
    double iteration_s;              /**< of them, mean: without evaluation, checkpoints and waiting for the loader */
    int64_t peak_memory_bytes;       /**< largest resident set of a process, of all ranks */
    int threads;                     /**< of a rank */
    int rows;
    cvy_profile_row *row;            /**< largest first */
    int ranks;
    cvy_rank_result *rank;           /**< one for each; the seconds of all lie behind those of the first */
    char checkpoint[512];            /**< last one written; empty: none */
} cvy_train_result;

/** Called on the training thread; must not block for long. Any member may be NULL. */
typedef struct cvy_train_observer {
    void *context;                                                       /**< handed to every function */
    void (*setup)(void *context, const char *line);                      /**< before a part of set-up that takes
                                                                              seconds: what it does */
    void (*start)(void *context, const cvy_train_start *start);          /**< once, before the first step */
    void (*progress)(void *context, const cvy_train_progress *progress); /**< after every iteration */
    void (*epoch)(void *context, const cvy_epoch_result *result);        /**< after its evaluation */
    void (*checkpoint)(void *context, const char *path, int64_t step);   /**< once it is written whole */
    void (*warning)(void *context, const char *line);                    /**< something failed that is not fatal */
} cvy_train_observer;

/**
 * Train a model.
 *
 * Collective over `comm` of the options.
 *
 * @param[in]  model      finished, borrowed
 * @param[in]  options    borrowed
 * @param[in]  observer   may be NULL
 * @param[out] result_out released with cvy_train_result_clear(), also after a failure
 * @retval CVY_PREEMPTED        `stop` was set; a checkpoint was saved
 * @retval CVY_STOPPED          `stop` was set; there is no run folder to save into
 * @retval CVY_ERR_INPUT        options that make no sense
 * @retval CVY_ERR_DATA         data missing, damaged or of another shape; the file is named
 * @retval CVY_ERR_INFEASIBLE   no backend runs a layer as asked; the layer is named
 * @retval CVY_ERR_DIVERGED     NaN or infinity; the message names the layer and the step
 * @retval CVY_ERR_CHECKPOINT   a checkpoint could not be read or written
 * @retval CVY_ERR_IO           another file of the run could not be written
 * @retval CVY_ERR_MEMORY       the tensors, or what describes them, do not fit
 * @retval CVY_ERR_UNSUPPORTED  this build, or the backend, cannot
 */
cvy_status cvy_train(const cvy_model *model, const cvy_train_options *options, const cvy_train_observer *observer,
                     cvy_train_result *result_out);

/** Release what a result owns, and empty it. Cannot fail. */
void cvy_train_result_clear(cvy_train_result *result);

/** What an evaluation found. */
typedef struct cvy_evaluation {
    int64_t samples, correct; /**< looked at; those whose label had the largest output */
    double loss;              /**< mean over the samples */
    double accuracy;          /**< 0 to 1, of maps over all positions; NAN for regressions */
    double seconds, images_per_s;
} cvy_evaluation;

/**
 * Evaluate weights on the test split; every sample counts once.
 *
 * Collective over `comm` of the options.
 *
 * @param[in]  model          finished, borrowed
 * @param[in]  checkpoint     a run's folder (its best, else its newest checkpoint), a folder of checkpoints (the newest
 *                            whole one), a checkpoint's folder, a safetensors file; of a checkpoint the averages, where
 *                            `ema` is not 0
 * @param[in]  options        data, test_samples, batch, seed, threads, backend, layout, precision, ema and stop are
 *                            used
 * @param[in]  observer       progress alone is called; may be NULL
 * @param[out] evaluation_out untouched on failure
 * @retval CVY_STOPPED        `stop` was set; otherwise as cvy_train()
 */
cvy_status cvy_evaluate(const cvy_model *model, const char *checkpoint, const cvy_train_options *options,
                        const cvy_train_observer *observer, cvy_evaluation *evaluation_out);

/** How much to measure. */
typedef struct cvy_throughput_options {
    int64_t warmup;     /**< iterations that are not counted */
    int64_t iterations; /**< that are; 1 to 1,000,000 */
    bool primitives;    /**< also measure the floor by the best primitives, which takes a dozen iterations */
} cvy_throughput_options;

/**
 * Throughput of training on random data: medians over the iterations. Of many ranks an iteration is as long as on the
 * slowest; its parts are those of the rank that computes longest. Release with cvy_throughput_clear().
 */
typedef struct cvy_throughput {
    double images_per_s, iteration_s;
    double forward_s, recompute_s, backward_s, update_s, communication_s;
    double iteration_quartile_s[2]; /**< a quarter of the iterations took less than the first, more than the second */
    double floor_s;                 /**< no iteration can be faster, at the rates below; that of the rank with most */
    double primitives_floor_s;      /**< nor than the best primitives by themselves and the bytes of all else; 0 where
                                         it was not asked for */
    double peak_flops;              /**< flop/s, measured in this run; of many ranks, all at once, the slowest's */
    double bandwidth_Bps;           /**< of memory, measured in this run, likewise */
    int64_t batch, iterations;
    int64_t peak_memory_bytes;      /**< largest resident set of a process */
    int64_t tensor_bytes;           /**< all arenas */
    int threads;
    int format_changes;             /**< reorders of activations an iteration */
    double measured_s;              /**< of all counted iterations */
    double probe_s;                 /**< of a small product of matrices between the iterations, their median, mean over
                                         the ranks: how fast the machine was meanwhile */
    double step_overhead_s;         /**< what a step takes outside its kernel; of many ranks unknown: 0 */
    int steps;                      /**< of an iteration */
    int rows;
    cvy_profile_row *row;           /**< of all counted iterations, largest first */
} cvy_throughput;

/**
 * Measure training steps on random data: forward, backward, update.
 *
 * Collective over `comm` of the options.
 *
 * @param[in]  model          finished, borrowed
 * @param[in]  options        batch, micro_batches, recompute, seed, threads, backend, layout, deterministic_kernels,
 *                            cache, precision, optimizer, comm, strategy, plan and what stands with them are used
 * @param[in]  observer       setup alone is called; may be NULL
 * @param[in]  effort         borrowed
 * @param[out] throughput_out released with cvy_throughput_clear(); untouched on failure
 * @retval CVY_ERR_INPUT      counts or options that make no sense; otherwise as cvy_train()
 */
cvy_status cvy_measure_throughput(const cvy_model *model, const cvy_train_options *options,
                                  const cvy_train_observer *observer, const cvy_throughput_options *effort,
                                  cvy_throughput *throughput_out);

/** Release what a throughput owns, and empty it. Cannot fail. */
void cvy_throughput_clear(cvy_throughput *throughput);

#ifdef __cplusplus
}
#endif
#endif
