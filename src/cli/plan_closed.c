/*
 * The closed forms as a second opinion: the same layers with the same seconds of whole kernels, but one formula in
 * place of schedules, rings in place of algorithms, and nothing at the same time as anything else. Where the two differ
 * something that the formula does not know is at work, and is named.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/plan_output.h"
#include "oracle/closed_form.h"
#include "oracle/network.h"

enum { STRATEGY_WIDTH = 26, REASONS_TEXT = 256 };

/* ---- the case ---- */

/* Ranks that share a sample. */
static int64_t count_group(const cvy_mesh *mesh) { return mesh->ranks / mesh->size[CVY_AXIS_SAMPLE]; }

/* The axis of space of a mesh that has one; CVY_AXES where it has none, or several, which no form knows. */
static int find_space(const cvy_mesh *mesh)
{
    int found = CVY_AXES, count = 0;
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        if (mesh->size[axis] > 1) {
            found = axis;
            count++;
        }
    }
    return count == 1 ? found : CVY_AXES;
}

/* The line of a ring over the groups along some axes: what one flow has over the levels that it passes. */
static cvy_line find_line(cvy_network *network, unsigned axes, cvy_via via)
{
    const cvy_network_group *group = cvy_network_find_group(network, axes);
    const cvy_network_span *span = group->domains > 1 ? &group->outer : &group->inner;
    if (group->ranks == 1) {
        return (cvy_line){.latency_s = 0.0, .bandwidth_Bps = INFINITY};
    }
    return (cvy_line){.latency_s = span->latency_s[via], .bandwidth_Bps = span->Bps[via]};
}

/* Seconds of each layer, whole, of a sample: a plan of one rank with the batch that a group has. */
static cvy_status add_seconds(const cli_problem *problem, int64_t samples, cvy_closed_layer *layer)
{
    cvy_plan *plan = NULL;
    cvy_compute *compute = NULL;
    const cvy_plan_options options = {.batch = samples,
                                      .dtype = CVY_F32,
                                      .training = true,
                                      .optimizer = problem->oracle.optimizer,
                                      .block = cvy_device_block(&problem->machine->device),
                                      .data_slots = 1,
                                      .label_bytes = 4};
    cvy_status status = cvy_plan_create(problem->model, &options, &plan);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_compute_create(problem->machine, problem->oracle.precision, &compute));
    const cvy_schedule *schedule = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < schedule->steps; i++) {
        const cvy_step *step = &schedule->step[i];
        if (step->op >= 0 && step->layer >= 0) {
            cvy_closed_layer *l = &layer[step->layer];
            double seconds = cvy_compute_estimate_op(compute, &schedule->op[step->op], 1.0, 0.0).seconds;
            l->forward_s += step->phase == CVY_PHASE_FORWARD ? seconds / (double)samples : 0.0;
            l->backward_s += step->phase == CVY_PHASE_BACKWARD ? seconds / (double)samples : 0.0;
            l->update_s += step->phase == CVY_PHASE_UPDATE ? seconds : 0.0;
        }
    }
done:
    cvy_compute_destroy(&compute);
    cvy_plan_destroy(&plan);
    return status;
}

static int64_t get_extent(const cvy_shape *shape, int axis)
{
    int dim = axis < CVY_AXES ? cvy_distribution_dim((cvy_axis)axis, shape->dims) : -1;
    return dim >= 0 ? shape->extent[dim] : 1;
}

static void describe_layer(const cvy_distribution *d, int index, int space, cvy_closed_layer *out)
{
    const cvy_model *model = d->model;
    const cvy_layer *layer = &model->layer[index];
    const cvy_layer_distribution *own = &d->layer[index];
    const cvy_shape *x = &model->layer[layer->input[0]].output, *y = &layer->output;
    out->x_items = (double)cvy_shape_elements(x);
    out->y_items = (double)cvy_shape_elements(y);
    for (int i = 0; i < layer->parameters; i++) {
        const cvy_parameter_spec *spec = &model->parameter[layer->first_parameter + i].spec;
        out->w_items += spec->trainable ? (double)cvy_shape_elements(&spec->shape) : 0.0;
    }
    out->cut_channels = own->cut == CVY_CUT_FILTER || own->cut == CVY_CUT_CHANNEL || own->cut == CVY_CUT_GROUP;
    out->cut_space = space < CVY_AXES && (own->input_split & CVY_AXIS_BIT(space)) != 0;
    out->channels = (int)x->extent[1];
    out->filters = (int)y->extent[1];
    out->positions = get_extent(x, space);
    out->stage = own->stage;
    if (out->cut_space && cvy_distribution_has_halo(d, index, (cvy_axis)space) && layer->kind->make_op) {
        cvy_op op = {.kind = CVY_OP_KIND_COUNT};
        layer->kind->make_op(layer, x, CVY_PASS_FORWARD, &op);
        out->halo_items = cvy_closed_halo_items(op.params.window.window.kernel[space - CVY_AXIS_DEPTH],
                                                out->x_items / (double)out->positions);
    }
}

static cvy_status describe_links(const cli_problem *problem, const cvy_mesh *mesh, cvy_closed_case *what)
{
    const unsigned sample = CVY_AXIS_BIT(CVY_AXIS_SAMPLE), inside = ((1u << CVY_AXES) - 1) & ~sample;
    cvy_network network;
    CVY_TRY(cvy_network_setup(problem->machine, mesh, &network));
    what->inner = find_line(&network, inside, CVY_VIA_DEVICE);
    what->outer = find_line(&network, sample, CVY_VIA_DEVICE);
    what->halo = find_line(&network, inside, problem->machine->execution.host_halos ? CVY_VIA_HOST : CVY_VIA_DEVICE);
    what->gather = what->halo;
    return CVY_OK;
}

/* The closed form of an estimate, whose strategy has one. */
static cvy_status find_form(const cli_problem *problem, const cvy_estimate *e, const cvy_distribution *d,
                            cvy_closed_form *form_out)
{
    char family[CVY_STRATEGY_TEXT];
    const cvy_mesh *mesh = &e->strategy.mesh;
    const int layers = problem->model->layers, space = find_space(mesh);
    const int64_t samples = problem->batch / mesh->size[CVY_AXIS_SAMPLE] / e->strategy.micro_batches;
    cvy_closed_layer *layer = cvy_calloc((size_t)layers, sizeof *layer);
    if (!layer) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 1; i < layers; i++) {
        describe_layer(d, i, space, &layer[i]);
    }
    cvy_closed_case what = {.layer = layer + 1,
                            .layers = layers - 1,
                            .batch = (double)problem->batch,
                            .ranks = (int)mesh->ranks,
                            .group_ranks = (int)count_group(mesh),
                            .micro_batches = (int)e->strategy.micro_batches,
                            .item_bytes = problem->oracle.precision == CVY_PRECISION_FP64 ? 8.0 : 4.0,
                            .layerwise_rounds = problem->machine->execution.whole_channels ? 3 : 2};
    cvy_status status = describe_links(problem, mesh, &what);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, add_seconds(problem, samples > 0 ? samples : 1, layer));
    status = cvy_closed_form_estimate(cvy_closed_form_find(cvy_strategy_family(&e->strategy, family)), &what,
                                      form_out);
done:
    cvy_free(layer);
    return status;
}

/* ---- what is said ---- */

static bool has_form(const cvy_candidate *candidate)
{
    const cvy_estimate *e = &candidate->estimate;
    char family[CVY_STRATEGY_TEXT];
    unsigned space = e->strategy.mesh.size[CVY_AXIS_DEPTH] > 1 || e->strategy.mesh.size[CVY_AXIS_HEIGHT] > 1 ||
                     e->strategy.mesh.size[CVY_AXIS_WIDTH] > 1;
    return e->feasible && !candidate->choices && cvy_closed_form_find(cvy_strategy_family(&e->strategy, family)) &&
           (!space || find_space(&e->strategy.mesh) < CVY_AXES);
}

static void add_reason(char *text, bool holds, const char *reason)
{
    size_t length = strlen(text);
    if (holds) {
        snprintf(text + length, REASONS_TEXT - length, "%s%s", length ? ", " : "", reason);
    }
}

/* What is in the estimate, and in no formula. */
static const char *word_reasons(const cli_problem *problem, const cvy_estimate *e, const cvy_distribution *d,
                                char *text)
{
    const cvy_machine *machine = problem->machine;
    bool follows = false, whole_shares = problem->batch % e->strategy.mesh.size[CVY_AXIS_SAMPLE] == 0;
    for (int i = 0; i < d->model->layers; i++) {
        follows = follows || d->layer[i].cut == CVY_CUT_FOLLOW;
    }
    text[0] = '\0';
    add_reason(text, e->hidden_communication_s > 0.0, "overlap");
    add_reason(text, e->part_s[CVY_TIME_WAIT] > 0.0, "waiting for the slowest rank");
    add_reason(text, !whole_shares || e->balance > 0.0, "unequal shares");
    add_reason(text, follows, "norms and activations divided with the channels");
    add_reason(text, d->strategy.mesh.size[CVY_AXIS_CHANNEL] > 1 && machine->device.slice_floor > 0.0,
               "kernels that do not shrink with their slice");
    add_reason(text, machine->collectives > 0 && e->strategy.mesh.ranks > 1, "the machine's own collectives");
    add_reason(text, machine->execution.layer_host_s > 0.0, "time of the host");
    add_reason(text, e->part_s[CVY_PHASE_IO] > 0.0, "input");
    add_reason(text, e->part_s[CVY_PHASE_RECOMPUTE] > 0.0, "recomputation");
    add_reason(text, true, "copies between layers");
    return text;
}

static double get_computation(const cvy_estimate *e)
{
    return e->part_s[CVY_PHASE_FORWARD] + e->part_s[CVY_PHASE_RECOMPUTE] + e->part_s[CVY_PHASE_BACKWARD] +
           e->part_s[CVY_PHASE_UPDATE] + e->part_s[CVY_TIME_BUBBLE];
}

static double get_ratio(const cvy_estimate *e, const cvy_closed_form *form)
{
    return e->iteration_s / (cvy_closed_form_compute_s(form) + cvy_closed_form_communication_s(form));
}

/* A candidate's form, with its distribution and what is behind the difference. */
static cvy_status look(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *candidate,
                       cvy_closed_form *form_out, char *reasons)
{
    cvy_trace *trace = NULL;
    const cvy_estimate_question question = cli_answer_question(problem, candidate);
    CVY_TRY(cvy_oracle_trace(answer->oracle, &question, &trace));
    const cvy_distribution *d = trace->distribution;
    cvy_status status = find_form(problem, &candidate->estimate, d, form_out);
    if (status == CVY_OK) {
        word_reasons(problem, &candidate->estimate, d, reasons);
    }
    cvy_trace_destroy(&trace);
    return status;
}

static cvy_status print_form(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *candidate)
{
    enum { INDENT = 5 };
    char strategy[CLI_STRATEGY_TEXT], reasons[REASONS_TEXT], words[REASONS_TEXT + 160], unit[4][CVY_UNIT_TEXT];
    const cvy_estimate *e = &candidate->estimate;
    cvy_closed_form form;
    CVY_TRY(look(problem, answer, candidate, &form, reasons));
    double compute_s = cvy_closed_form_compute_s(&form), send_s = cvy_closed_form_communication_s(&form);
    printf("   ");
    cli_print_column(STRATEGY_WIDTH, cli_print_candidate(candidate, strategy));
    printf(" %10s %11s %7.2f\n     ", cvy_print_seconds(e->iteration_s, unit[0]),
           cvy_print_seconds(compute_s + send_s, unit[1]), get_ratio(e, &form));
    snprintf(words, sizeof words, "computation %s by %s, communication %s by %s; not in the form: %s",
             cvy_print_seconds(get_computation(e), unit[0]), cvy_print_seconds(compute_s, unit[1]),
             cvy_print_seconds(e->exposed_communication_s, unit[2]), cvy_print_seconds(send_s, unit[3]), reasons);
    cli_print_wrapped(INDENT, words);
    return CVY_OK;
}

cvy_status cli_print_closed_forms(const cli_problem *problem, const cli_answer *answer)
{
    const int64_t most = problem->options->plan.top ? problem->options->plan.top : 10;
    int64_t shown = 0;
    printf("\nclosed forms (Kahira et al., HPDC 2021): estimate, formula, estimate by formula\n");
    for (int i = 0; i < answer->search->count; i++) {
        const cvy_candidate *candidate = &answer->search->candidate[i];
        bool wanted = shown < most || problem->options->plan.all || i == answer->search->data;
        if (wanted && has_form(candidate)) {
            CVY_TRY(print_form(problem, answer, candidate));
            shown++;
        }
    }
    if (!shown) {
        printf("   none of these strategies has one\n");
    }
    return CVY_OK;
}

cvy_status cli_describe_closed_form(const cli_problem *problem, const cli_answer *answer,
                                    const cvy_candidate *candidate, json_t **json_out)
{
    char reasons[REASONS_TEXT];
    cvy_closed_form form;
    if (!has_form(candidate)) {
        *json_out = json_null();
        return CVY_OK;
    }
    CVY_TRY(look(problem, answer, candidate, &form, reasons));
    double compute_s = cvy_closed_form_compute_s(&form), send_s = cvy_closed_form_communication_s(&form);
    *json_out = json_pack("{s:o, s:o, s:o, s:o, s:o, s:s}", "iteration_s", cli_json_number(compute_s + send_s),
                          "ratio", cli_json_number(get_ratio(&candidate->estimate, &form)), "computation_s",
                          cli_json_number(compute_s), "communication_s", cli_json_number(send_s), "memory_bytes",
                          cli_json_number(form.memory_bytes), "without", reasons);
    return CVY_OK;
}
