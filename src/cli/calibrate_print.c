/* The table of fits: a line for each kind and pass, errors of shapes that were held out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/calibrate.h"
#include "cli/json_output.h"

enum { CURVE_TEXT = 40 };

static void print_head(const cvy_calibration *c)
{
    char unit[2][CVY_UNIT_TEXT];
    const cvy_kernel_survey *s = &c->survey;
    if (s->rows == 0) { /* those of --machine */
        return;
    }
    printf("%s, %d cores, %d threads\n\n", c->host.processor[0] ? c->host.processor : "this machine", c->host.cores,
           c->threads);
    printf("products        %s\n", cvy_print_si(c->peaks.flop_per_s, "FLOP/s", unit[0]));
    printf("memory          %s/s; %s/s at first touch\n", cvy_print_bytes(c->peaks.memory_Bps, unit[0]),
           cvy_print_bytes(c->peaks.first_touch_Bps, unit[1]));
    printf("launch          %s\n", cvy_print_seconds(c->peaks.launch_s, unit[0]));
    printf("kernels         %d measured in %s, %d shapes of each family", s->rows,
           cvy_print_seconds(s->spent_s, unit[0]), s->rounds);
    if (s->refused > 0) {
        printf(", %d that nobody runs", s->refused);
    }
    printf("\n");
    printf("noise           %d probes, quartiles %.1f %% apart, drift %+.1f %%, interruptions %.1f %%\n\n",
           s->noise.probes, 100 * s->noise.spread, 100 * s->noise.drift, 100 * s->interruptions);
}

static void print_score(const cvy_fit_score *score)
{
    if (score->samples == 0) {
        printf("   -   -");
    } else {
        printf(" %3.0f %3.0f", fmin(999, 100 * score->median), fmin(999, 100 * score->mape));
    }
}

static void print_fit(const cvy_fit *fit)
{
    const cvy_fit_score *best = &fit->score[fit->best];
    printf("%-22.22s %-16.16s %4d", cvy_kernel_name(fit->kernel), cvy_op_pass_name(fit->pass), fit->samples);
    for (int way = 0; way < CVY_FIT_WAYS; way++) {
        print_score(&fit->score[way]);
    }
    printf(" %-8s %4.0f\n", cvy_fit_way_name(fit->best), fmin(9999, 100 * best->high));
}

/* What no fit has seen: how far off are the models' own layers. */
static void print_layers(const cvy_calibration *c)
{
    int layers = 0;
    for (int i = 0; i < c->fits; i++) {
        layers += c->fit[i].layers.samples;
    }
    if (layers == 0) {
        return;
    }
    printf("\nerrors in %% on %d layers of models, which nothing was fitted to\n", layers);
    printf("%-22s %-16s %4s%8s  %-8s %6s %6s %6s %6s\n", "kernel", "pass", "n", "roof", "taken", "median", "mean",
           "p95", "R2");
    for (int i = 0; i < c->fits; i++) {
        const cvy_fit *fit = &c->fit[i];
        const cvy_fit_score *s = &fit->layers;
        if (s->samples > 0) {
            printf("%-22.22s %-16.16s %4d", cvy_kernel_name(fit->kernel), cvy_op_pass_name(fit->pass), s->samples);
            print_score(&fit->layers_by_roofline);
            printf("  %-8s %6.1f %6.1f %6.1f %6.2f\n", cvy_fit_way_name(fit->best), fmin(9999, 100 * s->median),
                   fmin(9999, 100 * s->mape), fmin(9999, 100 * s->high), fmax(-99, s->r2));
        }
    }
}

static void print_fits(const cvy_calibration *c)
{
    printf("errors in %% on shapes held out: median and mean of each way; 95th percentile of the one taken\n");
    printf("%-22s %-16s %4s%8s%8s%8s%8s%8s %-8s %4s\n", "kernel", "pass", "n", "roof", "line", "near", "mlp",
           "gauss", "taken", "p95");
    for (int i = 0; i < c->fits; i++) {
        print_fit(&c->fit[i]);
    }
}

/* "messages", "messages both ways", "2 x all-reduce" of two groups at once. */
static const char *name_curve(const cvy_network_curve *curve, char *text)
{
    if (curve->collective == CVY_COLLECTIVE_POINT_TO_POINT) {
        return curve->both ? "messages, both" : "messages";
    }
    const char *name = cvy_collective_name(curve->collective);
    if (curve->groups == 1) {
        return name;
    }
    snprintf(text, CURVE_TEXT, "%d x %s", curve->groups, name);
    return text;
}

/* The least message's time, the rate of the largest, and how well lines say what lies between. */
static void print_network(const cvy_network_profile *n)
{
    char unit[2][CVY_UNIT_TEXT], name[CURVE_TEXT];
    if (n->curves == 0) {
        return;
    }
    printf("\n%-16s %5s  %-12s %-14s %6s  %s\n", "network", "ranks", "least", "largest", "lines", "off by at most");
    for (int i = 0; i < n->curves; i++) {
        const cvy_network_curve *curve = &n->curve[i];
        const cvy_network_point *last = &curve->point[curve->points - 1];
        double residual = 0.0;
        for (int k = 0; k < curve->pieces; k++) {
            residual = curve->piece[k].residual > residual ? curve->piece[k].residual : residual;
        }
        printf("%-16s %5d  %-12s %s/s%*s %6d  %.0f %%\n", name_curve(curve, name), curve->ranks,
               cvy_print_seconds(curve->point[0].seconds, unit[0]),
               cvy_print_bytes(last->bytes / last->seconds, unit[1]), 12 - (int)strlen(unit[1]), "", curve->pieces,
               100 * residual);
    }
    printf("bucket           %s\n", cvy_print_bytes((double)n->bucket_bytes, unit[0]));
    if (n->burst_bytes > 0) {
        printf("burst            %s behind a pause, beyond the rate\n",
               cvy_print_bytes((double)n->burst_bytes, unit[0]));
    }
}

static void print_input(const cvy_input_rates *input)
{
    char rate[2][CVY_UNIT_TEXT];
    if (input->read_Bps > 0.0) {
        printf("\ninput            files at %s/s, samples at %s/s a thread; %.2f s from start to plan\n",
               cvy_print_bytes(input->read_Bps, rate[0]), cvy_print_bytes(input->decode_Bps, rate[1]),
               input->startup_s);
    }
}

/* What ranks do to each other, and an exchange to computing. */
static void print_beside(const cvy_beside *b)
{
    if (b->rounds == 0) {
        return;
    }
    printf("\nsteps            spread %.1f %%; %.2f times as long as their kernels one by one\n", 100 * b->spread,
           b->lockstep);
    if (b->exchange_slowdown > 0.0) {
        printf("overlap          an exchange takes %.2f times as long beside computing, computing %.2f times\n",
               b->exchange_slowdown, b->compute_slowdown);
    }
}

cvy_status cli_calibration_print(const cvy_calibration *c, const char *path)
{
    print_head(c);
    if (c->survey.rows > 0) {
        print_fits(c);
    }
    print_layers(c);
    print_network(&c->network);
    print_beside(&c->beside);
    print_input(&c->input);
    printf("\nwritten to %s; convoy plan MODEL --machine %s plans for it\n", path, path);
    return CVY_OK;
}

/* ---- JSON ---- */

static json_t *make_score(const cvy_fit_score *s)
{
    if (s->samples == 0) {
        return json_null();
    }
    return json_pack("{s:i, s:o, s:o, s:o, s:o}", "samples", s->samples, "median", cli_json_number(s->median), "mape",
                     cli_json_number(s->mape), "p95", cli_json_number(s->high), "r2", cli_json_number(s->r2));
}

static json_t *make_curve(const cvy_network_curve *curve)
{
    json_t *points = json_array(), *pieces = json_array();
    for (int i = 0; i < curve->points; i++) {
        const cvy_network_point *p = &curve->point[i];
        json_array_append_new(points, json_pack("{s:o, s:o, s:o}", "bytes", cli_json_number(p->bytes), "seconds",
                                                cli_json_number(p->seconds), "error", cli_json_number(p->error)));
    }
    for (int i = 0; i < curve->pieces; i++) {
        const cvy_network_piece *p = &curve->piece[i];
        json_array_append_new(pieces, json_pack("{s:o, s:o, s:o, s:o}", "up_to_bytes", cli_json_number(p->up_to_bytes),
                                                "constant_s", cli_json_number(p->constant_s), "s_per_byte",
                                                cli_json_number(p->s_per_byte), "residual",
                                                cli_json_number(p->residual)));
    }
    return json_pack("{s:s, s:b, s:i, s:i, s:i, s:o, s:o}", "collective", cvy_collective_name(curve->collective),
                     "both_ways", curve->both, "level", curve->level, "ranks", curve->ranks, "groups", curve->groups,
                     "points", points, "lines", pieces);
}

static json_t *make_fit(const cvy_fit *fit)
{
    json_t *object = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o}", "kernel", cvy_kernel_name(fit->kernel), "pass",
                               cvy_op_pass_name(fit->pass), "samples", fit->samples, "taken",
                               cvy_fit_way_name(fit->best), "peak_share", cli_json_number(fit->shares.peak),
                               "bandwidth_share", cli_json_number(fit->shares.bandwidth));
    for (int way = 0; object && way < CVY_FIT_WAYS; way++) {
        json_object_set_new(object, cvy_fit_way_name((cvy_fit_way)way), make_score(&fit->score[way]));
    }
    if (object) {
        json_object_set_new(object, "layers", make_score(&fit->layers));
        json_object_set_new(object, "layers_by_roofline", make_score(&fit->layers_by_roofline));
    }
    return object;
}

cvy_status cli_calibration_print_json(const cvy_calibration *c, const char *path)
{
    const cvy_kernel_survey *s = &c->survey;
    char noise[CVY_NOISE_TEXT];
    json_t *fits = json_array(), *network = json_array();
    for (int i = 0; i < c->network.curves; i++) {
        json_array_append_new(network, make_curve(&c->network.curve[i]));
    }
    for (int i = 0; i < c->fits; i++) {
        json_array_append_new(fits, make_fit(&c->fit[i]));
    }
    json_t *probes = json_pack("{s:i, s:o, s:o, s:o, s:o, s:s}", "probes", s->noise.probes, "spread",
                               cli_json_number(s->noise.spread), "drift", cli_json_number(s->noise.drift), "disturbed",
                               cli_json_number(s->noise.disturbed), "interruptions",
                               cli_json_number(s->interruptions), "words",
                               cvy_noise_print(&s->noise, noise));
    json_t *beside = json_pack("{s:i, s:o, s:o, s:o, s:o}", "rounds", c->beside.rounds, "lockstep",
                               cli_json_number(c->beside.lockstep), "spread", cli_json_number(c->beside.spread),
                               "exchange_slowdown", cli_json_number(c->beside.exchange_slowdown), "compute_slowdown",
                               cli_json_number(c->beside.compute_slowdown));
    json_t *input = json_pack("{s:o, s:o, s:o}", "read_Bps", cli_json_number(c->input.read_Bps), "decode_Bps",
                              cli_json_number(c->input.decode_Bps), "startup_s", cli_json_number(c->input.startup_s));
    return cli_json_print(json_pack(
        "{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "file", path,
        "processor", c->host.processor, "cores", c->host.cores, "threads", c->threads, "peak_flop_per_s",
        cli_json_number(c->peaks.flop_per_s), "memory_Bps", cli_json_number(c->peaks.memory_Bps), "launch_s",
        cli_json_number(c->peaks.launch_s), "first_touch_Bps", cli_json_number(c->peaks.first_touch_Bps), "kernels",
        s->rows, "rounds", s->rounds, "refused", s->refused, "spent_s", cli_json_number(s->spent_s), "noise", probes,
        "network", network, "bucket_bytes", (json_int_t)c->network.bucket_bytes, "burst_bytes",
        (json_int_t)c->network.burst_bytes, "beside", beside, "input", input, "fits", fits));
}
