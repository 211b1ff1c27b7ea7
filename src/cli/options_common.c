/* The table of options. Aliases are the words of timm and torchrun. */
#include "cli/options_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/decide.h"
#include "cli/planning.h"
#include "cli/ranks.h"

static const char *const optimizers[] = {
    [CVY_OPTIMIZE_SGD] = "sgd",           [CVY_OPTIMIZE_MOMENTUM] = "momentum",
    [CVY_OPTIMIZE_NESTEROV] = "nesterov", [CVY_OPTIMIZE_ADAMW] = "adamw",
    [CVY_OPTIMIZE_ADAM] = "adam",         [CVY_OPTIMIZE_LARS] = "lars",
    [CVY_OPTIMIZE_LAMB] = "lamb",         NULL,
};
static const char *const schedules[] = {
    [CVY_RATE_CONSTANT] = "constant",
    [CVY_RATE_STEP] = "step",
    [CVY_RATE_COSINE] = "cosine",
    [CVY_RATE_MULTISTEP] = "multistep",
    [CVY_RATE_EXPONENTIAL] = "exponential",
    [CVY_RATE_POLYNOMIAL] = "polynomial",
    NULL,
};
static const char *const layouts[] = {"auto", "measure", "rule", "plain", "channels-last", "blocked", NULL};
static const char *const recomputes[] = {"none", "cheap", "all", NULL};
static const char *const plan_recomputes[] = {"auto", "none", "cheap", "all", NULL};
static const char *const plan_precisions[] = {"fp64", "fp32", "tf32", "fp16", "bf16", NULL};
static const char *const budgets[] = {[CLI_BUDGET_QUICK] = "quick", [CLI_BUDGET_NORMAL] = "normal",
                                      [CLI_BUDGET_FULL] = "full", NULL};
static const char *const precisions[] = {[CLI_FP32] = "fp32", [CLI_FP64] = "fp64", NULL};

typedef struct row {
    unsigned commands;
    cvy_option option;
} row;

/* What counts samples, steps or bytes: any whole number that doubles hold exactly. */
#define MANY 9007199254740992.0

#define AT(field) .offset = offsetof(cli_options, field)
#define HEADING(words) {CLI_ALL, {.name = words, .type = CVY_OPTION_HEADING}}
#define FLAG(title, field, words) .name = title, .type = CVY_OPTION_FLAG, AT(field), .help = words
#define TEXT(title, field, value, words) \
    .name = title, .type = CVY_OPTION_TEXT, AT(field), .argument = value, .help = words
#define WHOLE(title, field, least, most, words) \
    .name = title, .type = CVY_OPTION_INT, AT(field), .minimum = least, .maximum = most, .argument = "N", .help = words
#define REAL(title, field, least, most, words) \
    .name = title, .type = CVY_OPTION_REAL, AT(field), .minimum = least, .maximum = most, .argument = "X", .help = words
#define CHOICE(title, field, list, value, words) \
    .name = title, .type = CVY_OPTION_CHOICE, AT(field), .choices = list, .argument = value, .help = words
#define BATCH \
    .letter = 'b', .name = "batch", .type = CVY_OPTION_COUNT, AT(train.batch), .minimum = 1, .maximum = 1 << 24, \
    .argument = "N[/rank]", .help = "Samples per iteration", .aliases = "batch-size"
#define MACHINE \
    .letter = 'm', .name = "machine", .type = CVY_OPTION_TEXT, AT(plan.machine), .argument = "MACHINE"
#define MACHINE_WORDS \
    "a name of convoy plan --list-machines, or a file; where not given, auto takes " CLI_DEFAULT_MACHINE

enum {
    T = CLI_TRAIN | CLI_SAVED,
    TE = T | CLI_EVAL,
    TV = T | CLI_VERIFY,
    TEV = TE | CLI_VERIFY,
    TBV = TV | CLI_BENCH,
    TEBV = TEV | CLI_BENCH,
    TEBVC = TEBV | CLI_CALIBRATE,
    WF = CLI_WHY | CLI_FITS,
    P = CLI_PLAN | CLI_RANKS_FOR | WF,
    PR = P | CLI_REPORT,
    PS = PR | CLI_SWEEP,
    PCS = PS | CLI_COMPARE,
    SR = CLI_SWEEP | CLI_REPORT,
};

static const row rows[] = {
    HEADING("Model and data"),
    {TEBV | CLI_MODEL | PS, {TEXT("model", model, "MODEL", "Model, in place of the operand: a zoo name with options "
                            "(resnet50:classes=10) or a YAML file")}},
    {TEV, {.letter = 'd', TEXT("data", train.data, "DIR|NAME", "Folder of the data set, or the name of one that "
                              "needs no files: digits, random, cosmo"), .aliases = "data-dir"}},
    {TEV | CLI_DATA, {TEXT("data-kind", train.data_kind, "KIND", "Kind of the data set, such as cifar10, "
                               "where its files do not tell")}},
    {TE, {WHOLE("train-samples", train.train_samples, 0, MANY, "Use at most N training samples; 0: all"),
          .aliases = "train-num-samples"}},
    {TE, {WHOLE("test-samples", train.test_samples, 0, MANY, "Use at most N test samples; 0: all"),
          .aliases = "val-num-samples"}},
    {TEV, {TEXT("mean", train.mean, "X[,X...]", "Mean of each channel, or one for all, to subtract; bytes count as 0 "
               "to 1; where not given, the kind of data set says")}},
    {TEV, {TEXT("std", train.std, "X[,X...]", "Standard deviation of each channel, or one for all, to divide by "
               "after --mean; where not given, the kind of data set says")}},
    {T, {WHOLE("crop-padding", train.crop_padding, 0, 1 << 20, "Pad training samples by N zeros on each side and crop "
               "them at random to their size; 0: as they are")}},
    {T, {REAL("hflip", train.hflip, 0, 1, "Probability that a training sample is mirrored, left to right")}},
    {T, {TEXT("weights", train.weights, "FILE", "Start from the weights of a safetensors file, such as a saved "
              "state_dict"), .aliases = "initial-checkpoint"}},
    {CLI_EVAL, {TEXT("checkpoint", checkpoint, "PATH", "Weights to evaluate: a run, its checkpoints, one of them "
                     "or a safetensors file")}},
    {CLI_CALIBRATE, {TEXT("model", model, "MODEL", "Also measure the very kernels that this model has with --batch on "
                          "one rank, or as --strategy cuts it, so that they are looked up rather than predicted")}},
    {TEBVC, {BATCH}},
    {CLI_MODEL, {BATCH, .fallback = "1"}},
    {PS, {.letter = 'b', TEXT("batch", plan.batch, "N[/rank]", "Samples per iteration: of all ranks together, or "
                             "with /rank of each, whatever the strategy"), .aliases = "batch-size"}},
    {CLI_PLAN | CLI_RANKS_FOR, {WHOLE("samples", plan.samples, 1, MANY, "Samples of an epoch: times and prices of "
                                      "epochs are told")}},
    {CLI_COMPARE, {TEXT("measured", plan.measured, "FILE", "CSV of measured iterations: columns model, machine, "
                        "strategy, ranks, global_batch, precision, and iteration_s or images_per_s; others pass "
                        "through")}},
    {CLI_COMPARE, {TEXT("matrix", matrix.list, "FILE", "Run what a list says here, and hold it against predictions: "
                        "lines of MODEL BATCH RANKS THREADS STRATEGY")}},
    {CLI_MODEL, {FLAG("list", list, "List the models of the zoo and their options")}},

    HEADING("Training"),
    {T, {.letter = 'e', WHOLE("epochs", train.epochs, 1, MANY, "Go through the training samples N times")}},
    {T, {WHOLE("steps", train.steps, 0, MANY, "Stop after N iterations, whatever --epochs says; 0: by epochs"),
         .aliases = "max-steps"}},
    {CLI_VERIFY, {WHOLE("steps", verify.steps, 1, 1 << 20, "Iterations after which weights are compared; gradients are "
                        "those of the first")}},
    {CLI_PLAN | CLI_RANKS_FOR, {.letter = 'e', WHOLE("epochs", plan.epochs, 1, MANY, "Epochs of a training, for its "
                                                     "time and price")}},
    {TBV | PCS, {CHOICE("optimizer", train.optimizer, optimizers, "NAME", "Rule that updates the weights"),
          .aliases = "opt"}},
    {TV, {REAL("learning-rate", train.learning_rate, 0, 1e6, "Learning rate after warm-up"), .aliases = "lr"}},
    {T, {WHOLE("lr-base-size", train.rate_base_size, 0, MANY, "Batch that --learning-rate is meant for: the rate is "
               "multiplied by batch / N; 0: taken as it is")}},
    {TBV, {REAL("momentum", train.momentum, 0, 1, "Momentum of momentum, nesterov and lars")}},
    {TBV, {REAL("weight-decay", train.weight_decay, 0, 1e6, "Weight decay, decoupled in adamw and lamb; 0: none")}},
    {TBV, {FLAG("no-decay-norms", train.no_decay_norms, "Keep norms and biases out of weight decay")}},
    {TV, {REAL("beta1", train.beta1, 0, 1, "Decay of the first moment of adam, adamw and lamb")}},
    {TV, {REAL("beta2", train.beta2, 0, 1, "Decay of the second moment of adam, adamw and lamb")}},
    {TV, {REAL("epsilon", train.epsilon, 0, 1, "Added to the root of the second moment of adam, adamw and lamb"),
         .aliases = "opt-eps"}},
    {TBV, {REAL("trust", train.trust, 0, 1e6, "Trust coefficient of lars")}},
    {TBV, {REAL("clip-norm", train.clip_norm, 0, 1e30, "Scale gradients down where the norm of all of them "
               "together is above X; 0: never"), .aliases = "clip-grad clip-grad-norm"}},
    {TBV, {REAL("clip-value", train.clip_value, 0, 1e30, "Cut every gradient to between -X and X; 0: never")}},
    {T | CLI_EVAL, {REAL("ema", train.ema, 0, 0.9999999, "Evaluate averages of weights and running statistics, which "
                         "keep the share X at each update; 0: no averages"),
                    .aliases = "model-ema-decay"}},
    {T, {CHOICE("schedule", train.rate, schedules, "NAME", "Course of the learning rate"), .aliases = "sched"}},
    {T, {REAL("warmup-epochs", train.warmup_epochs, 0, MANY, "Raise the learning rate from 0 over the first X "
              "epochs; 0: no warm-up")}},
    {T, {REAL("step-epochs", train.step_epochs, 1e-6, MANY, "Epochs in which the rate falls by --gamma: at once "
              "with --schedule step, evenly with exponential"),
         .aliases = "decay-epochs"}},
    {T, {REAL("gamma", train.gamma, 0, 1, "Factor by which --schedule step, multistep and exponential lower "
              "the rate"),
         .aliases = "decay-rate"}},
    {T, {TEXT("milestones", train.milestones, "LIST", "Epochs at which --schedule multistep lowers the rate, "
              "such as 30,60,80"),
         .aliases = "decay-milestones"}},
    {T, {REAL("power", train.power, 0, 100, "Exponent of --schedule polynomial")}},
    {TV, {WHOLE("seed", train.seed, 0, MANY, "Seed of all random numbers: the same seed, the same run")}},

    HEADING("Memory"),
    {TBV, {CHOICE("recompute", recompute, recomputes, "WHAT", "Activations that backward makes again rather than "
                 "finding them kept, with the same results; cheap drops norms, activations, sums, concats and "
                 "poolings, all drops everything between layers that the plan chooses")}},
    {TEBV, {WHOLE("micro-batches", micro_batches, 0, 1 << 20, "Parts that each batch goes through in, their gradients "
                 "summed for one update; 0: as many as the strategy says, or 1"),
           .aliases = "accumulate grad-accum-steps"}},

    {PS, {CHOICE("recompute", plan.recompute, plan_recomputes, "WHAT", "Activations that backward makes again rather "
                "than finding them kept, as in convoy train; auto is what is best with --strategy auto, else none")}},
    {PR, {WHOLE("micro-batches", plan.micro_batches, 1, 1 << 20, "Parts that each batch goes through in, with a "
               "--strategy; where not given, as is best"), .aliases = "accumulate grad-accum-steps"}},
    {PS, {TEXT("max-memory", plan.max_memory, "SIZE", "Memory that a rank may take, such as 12GB; where not given, "
               "what the device has")}},
    {PCS | TBV, {FLAG("shard-optimizer", plan.shard_optimizer, "Each rank along the sample axis keeps and updates "
                      "its share of the optimizer's state")}},

    HEADING("Machine"),
    {PS, {MACHINE, .help = "Machine to plan for: a name of convoy plan --list-machines, or a file"}},
    {CLI_COMPARE, {.letter = 'm', TEXT("machine", matrix.machines, "MACHINE", "Machine that predicts rows of --matrix: "
                                       "a name of convoy plan --list-machines, or a file; given again, others: a row "
                                       "goes by the one whose devices have as many cores as it has threads, and that "
                                       "has the fewest devices that are enough"), .joined_by = ";"}},
    {CLI_COMPARE, {TEXT("launcher", matrix.launcher, "COMMAND", "What starts several ranks, with {ranks}, {threads} "
                        "and {nodes} where these are to stand; where not given, mpiexec -n {ranks}")}},
    {CLI_COMPARE, {WHOLE("runs", matrix.runs, 1, CLI_MOST_RUNS, "Runs of each row of --matrix, of which the median "
                         "counts")}},
    {CLI_COMPARE, {REAL("seconds", matrix.seconds, 0.01, 1e6, "Seconds that each run measures, after its warm-up")}},
    {CLI_PLAN | CLI_WHY, {.letter = 'n', WHOLE("ranks", plan.ranks, 1, CVY_MAX_RANKS, "Devices to train on; where not "
                                               "given, those of the mesh that --strategy is, else all of the "
                                               "machine")}},
    {CLI_FITS, {.letter = 'n', WHOLE("ranks", plan.ranks, 1, CVY_MAX_RANKS, "Devices to train on; where not given, "
                                     "those of the mesh that --strategy is, else 1")}},
    {CLI_RANKS_FOR, {.letter = 'n', WHOLE("ranks", plan.ranks, 1, CVY_MAX_RANKS, "Devices to train on, at most; where "
                                          "not given, those of the mesh that --strategy is, else all of the "
                                          "machine")}},
    {CLI_REPORT, {.letter = 'n', TEXT("ranks", sweep.ranks, "N|LIST", "Devices to train on, as in convoy plan, or a "
                                      "list of counts such as 1,2,4 or 1:1024 for a study, as in convoy sweep")}},
    {CLI_PLAN, {FLAG("list-machines", plan.list_machines, "List the machines that are known by name")}},
    {PR, {.letter = 's', TEXT("strategy", plan.strategy, "STRATEGY", "How the work is cut over the ranks: auto, "
                              "serial, data, spatial, filter, channel, alternating, pipeline, or axes of a mesh "
                              "such as sample=8,channel=4")}},
    {PS, {CHOICE("precision", plan.precision, plan_precisions, "TYPE", "What products are made of"),
         .aliases = "amp-dtype"}},
    {CLI_SWEEP, {.letter = 'n', TEXT("ranks", sweep.ranks, "LIST", "Devices to train on: 1,2,4 or 1:1024, which are "
                                     "powers of two from the one to the other; where not given, from 1 up to 1024 or "
                                     "to what the machine has")}},
    {CLI_SWEEP, {.letter = 's', TEXT("strategy", sweep.strategies, "STRATEGY", "Strategy of the study, data where not "
                                     "given; given again, others to find the best of; auto: others that a cheap search "
                                     "finds"), .joined_by = ";"}},
    {SR, {TEXT("vary", sweep.vary, "NAME=VALUES", "Vary batch, arithmetic, memory-bandwidth, link-bandwidth, "
                      "link-latency, memory or precision: factors of the machine's own (x1/4:x4 in powers of two, "
                      "x0.5,x2), quantities (10Gbit/s,100Gbit/s) or names; given again, others"), .joined_by = ";"}},
    {SR, {FLAG("study", sweep.study, "Vary batch, arithmetic, memory-bandwidth, link-bandwidth and link-latency "
                      "by x1/4:x4, as where no --vary is given")}},
    {SR, {FLAG("cross", sweep.cross, "All values of all parameters with all others, in place of each parameter "
                      "by itself")}},
    {CLI_PLAN | CLI_RANKS_FOR | CLI_REPORT, {CHOICE("objective", plan.objective, cvy_objective_names, "WHAT", "What is "
                                                    "best, the least time, memory or price of an iteration")}},
    {PCS | TEBV, {TEXT("norm-axes", plan.norm_axes, "AXES", "Axes over which batch norms share their statistics, such "
                      "as height,width, or none; where not given, those that share a sample")}},
    {PCS, {TEXT("bucket", plan.bucket, "SIZE", "Gradients that are exchanged at once, such as 25MB; where not given, "
                "as the machine file says")}},
    {TBV, {TEXT("bucket", plan.bucket, "SIZE", "Gradients that are exchanged at once, such as 1MB; where not given, "
                "as the file of --machine says, or 25MB")}},
    {TBV, {FLAG("no-overlap", no_overlap, "Exchange gradients between steps of backward rather than beside them")}},
    {CLI_PLAN | CLI_RANKS_FOR, {TEXT("price", plan.price, "PRICE", "Of a device, such as 2.5USD/h; where not given, as "
                                     "the machine file says")}},
    {CLI_RANKS_FOR, {REAL("hours", plan.hours, 1e-6, MANY, "Time that the training may take")}},
    {TEBVC, {.letter = 't', WHOLE("threads", threads, 0, 4096, "Threads that compute; 0: one for each core that this "
                                "process may use"), .aliases = "threads-per-rank"}},
    {TEBV, {FLAG("pin", train.pin, "Keep each thread on a core of its own, where they are as many as the cores and "
                "OMP_PROC_BIND, OMP_PLACES and GOMP_CPU_AFFINITY are not set; for a machine with nothing else to do")}},
    {TEV, {WHOLE("data-threads", data_threads, 1, 256, "Threads that read samples ahead; results do not depend on it"),
          .aliases = "workers"}},
    {TEBVC, {TEXT("backend", train.backend, "BACKEND", "Kernels to compute with: onednn, cpu or ref; where not "
                "given, the fastest of this build")}},
    {TEBV, {CHOICE("layout", layout, layouts, "NAME", "Format of activations in memory; auto is the fastest that was "
                  "measured for this model, batch and machine, measure measures anew, rule goes without measuring")}},
    {TBV, {FLAG("deterministic-kernels", train.deterministic_kernels, "Sum directly and in a fixed order alone: no "
               "convolution by Winograd's algorithm, which is taken where it was measured to be faster, and rounds "
               "less well")}},
    {CLI_TRAIN | CLI_BENCH, {TEXT("cache", train.cache, "DIR", "Folder that remembers what was measured, by default "
                                  "convoy in $XDG_CACHE_HOME or ~/.cache")}},
    {CLI_VERIFY, {FLAG("double", in_double, "As --precision fp64: bounds of 1e-10 for gradients and 1e-9 for weights, "
                       "in place of the serial run's own noise")}},
    {TEBV, {CHOICE("precision", precision, precisions, "TYPE", "Floating type, fp64 on backend ref alone"),
           .aliases = "amp-dtype"}},
    {TEBV, {.letter = 's', TEXT("strategy", strategy, "STRATEGY", "How the work is cut over the ranks: auto, serial, "
                                "data, spatial, filter, channel, alternating, pipeline, or axes of a mesh such as "
                                "sample=2,height=2; where not given, data, and serial on one rank")}},
    {TBV & ~CLI_SAVED, {TEXT("plan", train.plan, "FILE", "Run as a plan file of convoy plan --save has decided, with "
                             "its model, batch, precision and all")}},
    {CLI_EVAL | CLI_VERIFY, {MACHINE, .help = "Machine that --strategy auto reckons with: " MACHINE_WORDS}},
    {CLI_TRAIN | CLI_BENCH, {MACHINE, .help = "Machine that --strategy auto and the predictions of --log-view reckon "
                                              "with: " MACHINE_WORDS}},
    {TEBV, {REAL("timeout", train.timeout_s, 1, 1e6, "Seconds after which a rank that says nothing is lost")}},
    {CLI_BENCH, {WHOLE("iterations", iterations, 1, 1e9, "Iterations to measure"), .aliases = "num-bench-iter"}},
    {CLI_BENCH, {WHOLE("warmup", warmup, 0, 1e9, "Iterations before those that are measured"),
                 .aliases = "num-warm-iter"}},
    {CLI_BENCH, {FLAG("primitives", primitives, "Also measure the best kernel of each convolution and product by "
                      "itself, and set the iteration against their sum")}},
    {CLI_DOCTOR, {FLAG("kernels", kernels, "Also compare the fastest kernels of this build with the plain ones")}},

    {CLI_CALIBRATE, {.letter = 's', TEXT("strategy", calibrate.strategies, "STRATEGY", "How --model is cut over the "
                                         "ranks that measure; of several, joined by ';', each")}},
    {CLI_CALIBRATE, {MACHINE, .help = "Machine whose device this is, by name or a file: its peaks and kernels stay, "
                                      "and only what is between the ranks is measured"}},
    {CLI_CALIBRATE, {TEXT("import", calibrate.import, "FILE", "Take the kernels of a CSV that were measured elsewhere, "
                          "on the device of --machine, and fit what predicts others to them")}},
    {CLI_CALIBRATE, {CHOICE("budget", calibrate.budget, budgets, "NAME", "How long to measure, about 1, 5 or 30 "
                            "minutes")}},
    {CLI_CALIBRATE, {REAL("seconds", calibrate.seconds, 0, 1e6, "Measure kernels for X seconds, whatever --budget "
                          "says, but a shape of each family at least; 0: as --budget says")}},

    HEADING("Job"),
    {CLI_SLURM, {.letter = 'N', WHOLE("nodes", slurm.nodes, 1, CVY_MAX_RANKS, "Nodes of the job")}},
    {CLI_SLURM, {.letter = 'n', WHOLE("ranks", slurm.ranks, 1, CVY_MAX_RANKS, "Ranks over all nodes")}},
    {CLI_SLURM, {.letter = 't', WHOLE("threads", threads, 1, 4096, "Cores of a rank, each for a thread")}},
    {CLI_SLURM, {TEXT("time", slurm.time, "TIME", "Limit of the job, as sbatch takes it, such as 02:00:00")}},
    {CLI_SLURM, {.letter = 'p', TEXT("partition", slurm.partition, "WORD", "Partition of the cluster")}},
    {CLI_SLURM, {.letter = 'A', TEXT("account", slurm.account, "WORD", "Account that pays")}},
    {CLI_SLURM, {.letter = 'J', TEXT("job-name", slurm.name, "WORD", "Name of the job; where not given, "
                                     "convoy-COMMAND")}},
    {CLI_SLURM, {WHOLE("grace", slurm.grace, 1, 86400, "Seconds before the end at which a training is asked to save a "
                       "checkpoint and stop")}},

    HEADING("Run and checkpoints"),
    {CLI_TRAIN, {.letter = 'o', TEXT("out", train.out, "RUN", "Folder of the run: configuration, metrics, "
                                     "checkpoints; where not given, nothing is written"), .aliases = "output"}},
    {CLI_CALIBRATE, {.letter = 'o', TEXT("out", calibrate.out, "FILE", "Machine file to write, with a folder of its "
                                         "kernels beside it; where not given, a name that says what is here"),
                     .aliases = "output"}},
    {CLI_COMPARE, {.letter = 'o', TEXT("out", matrix.out, "FILE", "Keep what is measured of --matrix, run by run: the "
                                       "same command goes on from it, and predicts anew"), .aliases = "output"}},
    {CLI_CALIBRATE, {FLAG("force", calibrate.force, "Write over a file that is no calibration's")}},
    {CLI_TRAIN, {TEXT("resume", train.resume, "RUN", "Go on with a run from its last whole checkpoint, with its own "
                      "options")}},
    {T, {WHOLE("checkpoint-every", train.checkpoint_every, 0, MANY, "Iterations between checkpoints; 0: at the end "
               "of each epoch"), .aliases = "recovery-interval"}},
    {T, {WHOLE("keep-checkpoints", keep_checkpoints, 1, 1e6, "Keep the last N checkpoints, and the best"),
         .aliases = "checkpoint-hist"}},
    {T, {FLAG("no-metrics-rates", train.no_metrics_rates, "Leave images_per_s, which a clock measures, out of "
              "metrics.jsonl: two runs alike then write the same bytes")}},

    HEADING("Output"),
    {CLI_SWEEP, {TEXT("csv", sweep.csv, "FILE", "Write all points as CSV")}},
    {CLI_COMPARE, {TEXT("csv", matrix.csv, "FILE", "Write the rows of --matrix as CSV, which --measured reads")}},
    {CLI_SWEEP, {.letter = 'o', TEXT("out", sweep.out, "FILE|DIR", "Draw the study by gnuplot: all charts in a file "
                                     "that ends in .svg, or each in one of its own in a folder")}},
    {CLI_REPORT, {.letter = 'o', TEXT("out", report.out, "FILE", "Page to write; where not given, report.html in the "
                                      "run, else here"), .aliases = "output"}},
    {CLI_PLAN, {WHOLE("top", plan.top, 1, MANY, "Show the best N strategies, and as many that are not possible; where "
                      "not given, 10, with --json all")}},
    {CLI_PLAN, {FLAG("all", plan.all, "Show all strategies")}},
    {CLI_VERIFY, {FLAG("all", plan.all, "Show all layers")}},
    {CLI_COMPARE, {FLAG("all", plan.all, "Of a run, also show the kinds of step of each rank")}},
    {CLI_PLAN, {FLAG("closed-form", plan.closed_form, "Also show what the closed forms of the oracle paper say, as a "
                     "second opinion")}},
    {CLI_PLAN, {TEXT("save", plan.save, "FILE", "Write what was decided as a plan file")}},
    {CLI_PLAN | CLI_WHY, {TEXT("plan", plan.plan, "FILE", "Look at the plan of a file, with its model, machine, batch "
                               "and all")}},
    {CLI_PLAN | CLI_WHY, {TEXT("timeline", train.timeline, "FILE", "Write the predicted iteration as a Chrome trace, "
                               "for ui.perfetto.dev")}},
    {CLI_TRAIN | CLI_BENCH, {FLAG("log-view", log_view, "Print the time of every kind of step at the end")}},
    {CLI_TRAIN, {TEXT("timeline", train.timeline, "FILE", "Write the first iterations as a Chrome trace, for "
                      "ui.perfetto.dev")}},
    {CLI_TRAIN, {WHOLE("timeline-steps", train.timeline_steps, 1, 1e6, "Iterations that the timeline holds")}},
    {CLI_ALL & ~(CLI_SAVED | CLI_SLURM | CLI_REPORT), {FLAG("json", json, "Print the result as JSON on "
                                                                              "standard output")}},
    {(TEBVC & ~CLI_SAVED) | CLI_DATA | CLI_COMPARE, {.letter = 'q', FLAG("quiet", quiet, "Print no progress, only the "
                                                                       "result, warnings and errors")}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(sizeof rows / sizeof rows[0] < (size_t)CLI_MAX_OPTIONS, "the table has outgrown its room");
_Static_assert(sizeof(cvy_optimizer_name) == sizeof(int) && sizeof(cvy_rate_kind) == sizeof(int) &&
               sizeof(cli_precision) == sizeof(int), "a choice is written as an int");

const cli_options cli_options_init = {
    .train = CVY_TRAIN_OPTIONS_INIT, .keep_checkpoints = 2, .warmup = 3, .iterations = 20,
    .data_threads = 1, .verify = CVY_VERIFY_OPTIONS_INIT, .slurm = {.nodes = 1, .ranks = 1, .grace = 120},
    .calibrate = {.budget = CLI_BUDGET_NORMAL}, .matrix = {.runs = 5, .seconds = 2.0},
    .plan = {.batch = "32/rank", .strategy = "auto", .precision = CVY_PRECISION_FP32, .epochs = 1},
};

void cli_select_options(unsigned commands, cvy_option option_out[CLI_MAX_OPTIONS])
{
    int count = 0;
    for (int i = 0; i < ROWS; i++) {
        if (!(rows[i].commands & commands)) {
            continue;
        }
        bool heading = rows[i].option.type == CVY_OPTION_HEADING;
        bool empty = count > 0 && option_out[count - 1].type == CVY_OPTION_HEADING;
        option_out[heading && empty ? count - 1 : count++] = rows[i].option; /* a heading over nothing gives way */
    }
    count -= count > 0 && option_out[count - 1].type == CVY_OPTION_HEADING;
    option_out[count] = (cvy_option){.name = NULL};
}

/* Where measured formats are remembered: as asked, else where the system keeps such things. */
static void find_cache(cli_options *options)
{
    const char *folder = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (options->train.cache) {
        return;
    }
    int bytes = folder && folder[0] == '/'
                    ? snprintf(options->cache, sizeof options->cache, "%s/convoy", folder)
                    : snprintf(options->cache, sizeof options->cache, "%s/.cache/convoy", home ? home : "");
    bool known = (folder && folder[0] == '/') || (home && home[0] == '/');
    options->train.cache = known && bytes < (int)sizeof options->cache ? options->cache : NULL;
}

/* How the ranks that there are divide the work. */
static cvy_status complete_parallel(cli_options *options)
{
    enum { MOST_SAMPLES = 1 << 24 };
    cvy_train_options *train = &options->train;
    train->comm = cli_ranks_comm();
    train->abandon = cli_ranks_abandon;
    train->strategy = options->strategy;
    train->sync_norms = options->plan.norm_axes;
    train->shard_optimizer = options->plan.shard_optimizer;
    train->overlap = !options->no_overlap;
    train->batch = train->batch < 0 ? -train->batch * cli_ranks_count() : train->batch; /* below 0: of each rank */
    CVY_REQUIRE(train->batch <= MOST_SAMPLES, CVY_ERR_INPUT, "--batch: expected at most %d samples of all ranks "
                "together, found %lld", MOST_SAMPLES, (long long)train->batch);
    options->quiet = options->quiet || !cli_ranks_speak();
    return cli_parse_size("bucket", options->plan.bucket, &train->bucket_bytes);
}

/* What the library's struct says in types of its own. */
static cvy_status complete_options(cli_options *options)
{
    cvy_train_options *train = &options->train;
    char word[CVY_WORD_TEXT];
    CVY_TRY(complete_parallel(options));
    options->precision = options->in_double ? CLI_FP64 : options->precision;
    train->threads = (int)options->threads;
    train->data_threads = (int)options->data_threads;
    train->keep_checkpoints = (int)options->keep_checkpoints;
    train->layout = layouts[options->layout];
    CVY_REQUIRE(!train->cache || !cvy_file_exists(train->cache) || cvy_folder_exists(train->cache), CVY_ERR_INPUT,
                "--cache: %s is no folder", cvy_print_word(train->cache, word));
    find_cache(options);
    train->recompute = recomputes[options->recompute];
    train->micro_batches = (int)options->micro_batches;
    train->double_precision = options->precision == CLI_FP64;
    CVY_REQUIRE(!train->double_precision || !train->backend || strcmp(train->backend, "ref") == 0, CVY_ERR_INPUT,
                "--precision fp64 runs on backend ref alone, found --backend %.60s", train->backend);
    if (train->double_precision) {
        train->backend = "ref";
    }
    return CVY_OK;
}

/* Of two models on a line one would be passed over; that of a file or the environment gives way to the line's. */
static cvy_status check_model(const cli_options *options, int argc, char **argv, const cvy_parsed_options *parsed)
{
    char word[2][CVY_WORD_TEXT];
    for (int i = 1; i < argc && parsed->operands && strcmp(argv[i], "--") != 0; i++) {
        bool named = strcmp(argv[i], "--model") == 0 || strncmp(argv[i], "--model=", strlen("--model=")) == 0;
        CVY_REQUIRE(!named, CVY_ERR_INPUT, "--model %s: '%s' stands there, too, expected one of them",
                    cvy_print_word(options->model ? options->model : "", word[0]),
                    cvy_print_word(parsed->operand[0], word[1]));
    }
    return CVY_OK;
}

cvy_status cli_parse(const cli_command *command, int argc, char **argv, cli_options *options,
                     cvy_parsed_options *parsed_out)
{
    cvy_option option[CLI_MAX_OPTIONS];
    cli_select_options(command->rows, option);
    cvy_command_options table = {.command = command->name,
                                 .operands = command->operands,
                                 .usage = command->usage,
                                 .max_operands = command->max_operands,
                                 .summary = command->summary,
                                 .examples = command->examples,
                                 .option = option};
    CVY_TRY(cvy_options_parse(&table, argc, argv, options, parsed_out));
    if (parsed_out->help) {
        fputs(parsed_out->help, stdout);
        return CVY_OK;
    }
    CVY_TRY(check_model(options, argc, argv, parsed_out));
    return complete_options(options);
}
