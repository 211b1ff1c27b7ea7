/*
 * Train LeNet-5 on synthetic digits, print how it goes, and evaluate the weights: all that a program of your own needs.
 *
 * Usage: example_train_lenet5 [EPOCHS [SAMPLES [FOLDER]]]. Without a folder nothing is written; with one the run is
 * kept there, as by `convoy train --out`, and its best checkpoint is evaluated again.
 */
#include <convoy/convoy.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What the observer's functions share; the library hands it back as `context` and never looks at it. */
typedef struct report {
    int64_t every; /* steps between two lines */
} report;

static void print_start(void *context, const cvy_train_start *start)
{
    (void)context;
    printf("%s: %" PRId64 " parameters, %" PRId64 " steps of %" PRId64 " samples on %d threads, %.1f MB of tensors\n",
           start->model, start->parameters, start->steps_total, start->batch, start->threads,
           1e-6 * (double)start->tensor_bytes);
}

/* Called after every step: what it does delays the next one, so it says little. */
static void print_progress(void *context, const cvy_train_progress *progress)
{
    const report *r = context;
    if (progress->step % r->every == 0) {
        printf("step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f images/s\n", progress->step, progress->steps_total,
               progress->loss, progress->images_per_s);
    }
}

static void print_epoch(void *context, const cvy_epoch_result *result)
{
    (void)context;
    printf("epoch %" PRId64 "  loss %.4f  test accuracy %.2f %%\n", result->epoch, result->loss,
           100 * result->validation_accuracy);
}

static void print_warning(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "warning: %s\n", line);
}

static cvy_status train(const cvy_model *model, const cvy_train_options *options)
{
    report shared = {.every = 20};
    const cvy_train_observer observer = {.context = &shared,
                                         .start = print_start,
                                         .progress = print_progress,
                                         .epoch = print_epoch,
                                         .warning = print_warning};
    cvy_train_result result;
    cvy_status status = cvy_train(model, options, &observer, &result);
    if (status == CVY_OK) {
        printf("accuracy %.4f after %" PRId64 " steps in %.1f s\n", result.validation_accuracy, result.step,
               result.seconds);
    }
    cvy_train_result_clear(&result); /* also after a failure */
    return status;
}

static cvy_status evaluate(const cvy_model *model, const cvy_train_options *options)
{
    cvy_evaluation evaluation;
    cvy_status status = cvy_evaluate(model, options->out, options, NULL, &evaluation);
    if (status == CVY_OK) {
        printf("%s: %" PRId64 " of %" PRId64 " test samples right\n", options->out, evaluation.correct,
               evaluation.samples);
    }
    return status;
}

int main(int argc, char **argv)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.data = "digits";
    options.epochs = argc > 1 ? atoll(argv[1]) : 2;
    options.train_samples = argc > 2 ? atoll(argv[2]) : 0; /* 0: as many as the set has by default */
    options.test_samples = options.train_samples / 4;
    options.out = argc > 3 ? argv[3] : NULL;

    cvy_model *model = NULL;
    cvy_status status = cvy_model_open("lenet5", &model); /* or "resnet18:classes=10", or a YAML file */
    if (status == CVY_OK) {
        status = train(model, &options);
    }
    if (status == CVY_OK && options.out) {
        status = evaluate(model, &options);
    }
    cvy_model_destroy(&model);
    if (status != CVY_OK) {
        fprintf(stderr, "error: %s\n", cvy_error_message());
    }
    return cvy_status_exit_code(status);
}
