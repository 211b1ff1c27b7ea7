/* From a survey to a machine: samples by kind and pass, a fit for each, rules of efficiency out of the fits. */
#include "calibrate/calibration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/threads.h"

enum { SOURCE = 160 };

/* ---- fits ---- */

cvy_fit_device cvy_calibration_device(const cvy_calibration *calibration)
{
    const cvy_peaks *peaks = &calibration->peaks;
    return (cvy_fit_device){peaks->flop_per_s, peaks->memory_Bps, peaks->launch_s};
}

/* Samples of a kernel and pass, or with CVY_ANY of all: of drawn shapes, or else of layers of models. */
static int collect(const cvy_kernel_survey *survey, int kernel, int pass, bool drawn, cvy_fit_sample *sample_out)
{
    int count = 0;
    for (int i = 0; i < survey->rows; i++) {
        const cvy_kernel_survey_row *row = &survey->row[i];
        bool wanted = kernel == CVY_ANY || (cvy_op_kernel(&row->op) == kernel && (int)row->op.pass == pass);
        if (wanted && (row->family >= 0) == drawn) {
            cvy_fit_make_sample(&row->op, &row->time, row->shape, &sample_out[count++]);
        }
    }
    return count;
}

static cvy_status fit_kernel(cvy_calibration *c, int kernel, int pass, cvy_fit_sample *sample)
{
    const cvy_fit_device device = cvy_calibration_device(c);
    int count = collect(&c->survey, kernel, pass, true, sample);
    if (count >= CVY_FIT_LEAST) {
        cvy_fit *fit = &c->fit[c->fits];
        CVY_TRY(cvy_fit_run(sample, count, &device, fit));
        int layers = collect(&c->survey, kernel, pass, false, sample);
        CVY_TRY(cvy_fit_judge(fit, sample, layers, &device));
        fit->kernel = kernel;
        fit->pass = (cvy_op_pass)pass;
        c->fits++;
    }
    return CVY_OK;
}

/* Shares for whatever has none of its own, and how far off they are. */
static cvy_status fit_rest(cvy_calibration *c, cvy_fit_sample *sample)
{
    const cvy_fit_device device = cvy_calibration_device(c);
    int count = collect(&c->survey, CVY_ANY, CVY_ANY, true, sample);
    CVY_REQUIRE(count > 0, CVY_ERR_INFEASIBLE, "no kernel was measured: nothing can be fitted");
    CVY_TRY(cvy_fit_shares_find(sample, count, &device, &c->shares));
    c->rest = (cvy_fit_score){.samples = count};
    for (int i = 0; i < count; i++) {
        double seconds = cvy_fit_shares_estimate(&c->shares, &device, sample[i].flop, sample[i].bytes);
        c->rest.mape += fabs(seconds - sample[i].seconds) / sample[i].seconds / count;
    }
    return CVY_OK;
}

static void clear_fits(cvy_calibration *c)
{
    for (int i = 0; i < c->fits; i++) {
        cvy_fit_clear(&c->fit[i]);
    }
    cvy_free(c->fit);
    c->fits = 0;
}

cvy_status cvy_calibration_fit(cvy_calibration *calibration)
{
    cvy_calibration *c = calibration;
    cvy_status status = CVY_ERR_MEMORY;
    cvy_fit_sample *sample = cvy_calloc((size_t)c->survey.rows + 1, sizeof *sample);
    clear_fits(c);
    c->fit = cvy_calloc((size_t)CVY_KERNEL_COUNT * CVY_PASS_COUNT, sizeof *c->fit);
    CVY_TRY_GOTO(status, done, sample && c->fit ? CVY_OK : CVY_ERR_MEMORY);
    cvy_threads_set(1); /* nets are small: threads would wait for each other most of the time */
    for (int i = 0; i < CVY_KERNEL_COUNT * CVY_PASS_COUNT; i++) {
        CVY_TRY_GOTO(status, done, fit_kernel(c, i / CVY_PASS_COUNT, i % CVY_PASS_COUNT, sample));
    }
    status = fit_rest(c, sample);
done:
    cvy_threads_set(c->threads);
    cvy_free(sample);
    return status;
}

void cvy_calibration_clear(cvy_calibration *calibration)
{
    cvy_kernel_survey_clear(&calibration->survey);
    clear_fits(calibration);
    *calibration = (cvy_calibration){0};
}

/* ---- the machine ---- */

const char *cvy_calibration_name(const cvy_topology *host, char *name)
{
    const char *vectors = host->vector_bits >= 512 ? "avx512" : host->vector_bits >= 256 ? "avx2" : "simd128";
    char domains[24] = "";
    if (host->numa_nodes > 1) {
        snprintf(domains, sizeof domains, "-%dnuma", host->numa_nodes);
    }
    snprintf(name, CVY_CALIBRATION_NAME, "%dcore-%s-%.0fgb%s", host->cores, vectors,
             (double)host->memory_bytes / (1 << 30), domains);
    return name;
}

/* One source for figures that came out alike. */
typedef struct figure {
    const void *figure;
    const char *source;
} figure;

static cvy_status set_sources(cvy_machine *m, const figure *figures, int count)
{
    for (int i = 0; i < count; i++) {
        CVY_TRY(cvy_machine_set_source(m, figures[i].figure, figures[i].source));
    }
    return CVY_OK;
}

static cvy_status fill_device(const cvy_calibration *c, cvy_machine *m)
{
    cvy_device *d = &m->device;
    char looked[SOURCE], measured[SOURCE], spread[SOURCE];
    snprintf(looked, sizeof looked, "the system's own word, %s", c->date);
    snprintf(measured, sizeof measured, "measured with %d threads, %s", c->threads, c->date);
    snprintf(spread, sizeof spread, "quartiles of %d probes between kernels, %s", c->survey.noise.probes, c->date);
    CVY_TRY(cvy_machine_keep(m, c->host.processor[0] ? c->host.processor : "cpu", &d->name));
    d->kind = CVY_DEVICE_CPU;
    d->cores = c->threads;
    d->vector_bits = c->host.vector_bits;
    d->memory_bytes = c->host.memory_bytes / (c->network.curves > 0 ? c->network.node_ranks : 1);
    d->peak_flop_per_s[CVY_PRECISION_FP32] = c->peaks.flop_per_s;
    d->memory_Bps = c->peaks.memory_Bps;
    d->launch_s = c->peaks.launch_s;
    d->first_touch_Bps = c->peaks.first_touch_Bps;
    d->probe_s = cvy_round_figure(c->survey.probe_s);
    d->interruptions = cvy_round_figure(c->survey.interruptions);
    d->spread = cvy_round_figure(c->survey.noise.spread / 1.349); /* quartiles of a normal distribution: 1.349 apart */
    const figure figures[] = {{&d->cores, looked},           {&d->vector_bits, looked},
                              {&d->memory_bytes, looked},    {&d->memory_Bps, measured},
                              {&d->launch_s, measured},      {&d->first_touch_Bps, measured},
                              {&d->spread, spread},          {&d->interruptions, measured},
                              {&d->probe_s, measured},
                              {&d->peak_flop_per_s[CVY_PRECISION_FP32], measured}};
    return set_sources(m, figures, (int)(sizeof figures / sizeof figures[0]));
}

/* A rule; what does not bind is left at 1, which says nothing. */
static cvy_status add_rule(const cvy_calibration *c, const cvy_efficiency *rule, int samples, cvy_machine *m)
{
    char source[SOURCE];
    if (m->device.efficiencies == CVY_MAX_EFFICIENCIES) {
        return CVY_OK;
    }
    cvy_efficiency *e = &m->device.efficiency[m->device.efficiencies++];
    snprintf(source, sizeof source, "fitted to %d measured kernels, %s", samples, c->date);
    *e = *rule;
    e->peak = cvy_round_figure(rule->peak);
    e->bandwidth = cvy_round_figure(rule->bandwidth);
    e->error = cvy_round_figure(rule->error);
    const figure figures[] = {{&e->peak, source}, {&e->bandwidth, source}, {&e->error, source}};
    return set_sources(m, figures, 3);
}

/* Fits are by the numbers of their kernels: those of some convolutions come last, and must hold before those of all. */
cvy_status cvy_calibration_add_rules(const cvy_calibration *c, cvy_machine *m)
{
    for (int i = c->fits - 1; i >= 0; i--) {
        const cvy_fit *fit = &c->fit[i];
        const cvy_efficiency rule = {.kernel = fit->kernel, .pass = (int)fit->pass, .precision = CVY_PRECISION_FP32,
                                     .peak = fit->shares.peak, .bandwidth = fit->shares.bandwidth,
                                     .error = fmin(10.0, fit->score[CVY_FIT_ROOFLINE].mape)};
        CVY_TRY(add_rule(c, &rule, fit->samples, m));
    }
    const cvy_efficiency rest = {.kernel = CVY_ANY, .pass = CVY_ANY, .precision = CVY_PRECISION_FP32,
                                 .peak = c->shares.peak, .bandwidth = c->shares.bandwidth,
                                 .error = fmin(10.0, c->rest.mape)};
    return add_rule(c, &rest, c->rest.samples, m);
}

/* What a rank takes beside its tensors: the program, its libraries, those of messages where there are several. */
static cvy_status fill_process(const cvy_calibration *c, cvy_machine *m)
{
    char source[SOURCE];
    if (c->process_bytes <= 0) {
        return CVY_OK;
    }
    snprintf(source, sizeof source, "resident set of a rank without tensors, measured %s", c->date);
    m->execution.reserved_bytes = c->process_bytes;
    return cvy_machine_set_source(m, &m->execution.reserved_bytes, source);
}

cvy_status cvy_calibration_make_machine(const cvy_calibration *calibration, const char *name,
                                        cvy_machine **machine_out)
{
    const cvy_calibration *c = calibration;
    cvy_status status;
    char summary[SOURCE];
    cvy_machine *m = cvy_calloc(1, sizeof *m);
    if (!m) {
        return CVY_ERR_MEMORY;
    }
    m->nodes = m->devices_per_node = 1;
    m->execution.leader_broadcast = true; /* the defaults */
    m->execution.lockstep = m->execution.exchange_slowdown = m->execution.compute_slowdown = 1.0;
    int ranks = c->network.curves > 0 ? c->network.nodes * c->network.node_ranks : 1;
    snprintf(summary, sizeof summary, "%d rank%s of %d threads on %s, measured %s", ranks, ranks > 1 ? "s" : "",
             c->threads, c->host.processor[0] ? c->host.processor : "this machine", c->date);
    CVY_TRY_GOTO(status, done, cvy_machine_keep(m, name, &m->name));
    CVY_TRY_GOTO(status, done, cvy_machine_keep(m, summary, &m->summary));
    CVY_TRY_GOTO(status, done, fill_device(c, m));
    CVY_TRY_GOTO(status, done, cvy_calibration_add_rules(c, m));
    CVY_TRY_GOTO(status, done, fill_process(c, m));
    if (c->network.curves > 0) {
        CVY_TRY_GOTO(status, done, cvy_network_fill(&c->network, c->date, m));
    }
    CVY_TRY_GOTO(status, done, cvy_beside_fill(&c->beside, c->date, m));
    CVY_TRY_GOTO(status, done, cvy_input_fill(&c->input, c->date, m));
    *machine_out = m;
    m = NULL;
done:
    cvy_machine_destroy(&m);
    return status;
}
