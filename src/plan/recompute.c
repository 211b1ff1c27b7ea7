/*
 * Which activations backward makes again rather than finding them kept.
 *
 * CHEAP: a layer that only moves bytes is dropped where that frees memory: its inputs are there anyway, since some
 * backward step reads them, or are dropped themselves, or keeping them takes at most half of what is freed. So batch
 * norms and the activations behind them go, a sum of branches goes, a concat goes, and so does a pooling of any of
 * them, its winners too (Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174, 4.2; Pleiss et
 * al., "Memory-efficient implementation of DenseNets", arXiv:1707.06990). Sums and concats that follow each other are
 * made again all at once, so that only so many in a row are dropped.
 *
 * ALL: everything is dropped but the outputs of chosen layers. Candidates are layers that all paths go through; they
 * are chosen so that what is kept and the largest part between two of them take least together (arXiv:1604.06174, 4.3,
 * with real sizes in place of a square root).
 *
 * An output is made again when the first backward step asks for it, by the same ops with the same random keys; batch
 * norms take their saved statistics, which are small and stay.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "plan/builder.h"

enum {
    MAX_JUNCTIONS = 4, /* dropped in a row: a stage of a ResNet holds 3 to 6 before it starts from kept tensors anew */
    BUDGETS = 64,      /* sizes of a part that are tried */
};

const char *cvy_recompute_name(cvy_recompute recompute)
{
    static const char *const name[] = {
        [CVY_RECOMPUTE_NONE] = "none", [CVY_RECOMPUTE_CHEAP] = "cheap", [CVY_RECOMPUTE_ALL] = "all"};
    return name[recompute];
}

typedef struct survey {
    cvy_builder *b;
    bool *read;     /* whether a backward step reads the output of a layer */
    int *junctions; /* sums and concats dropped in a row up to a layer */
} survey;

/* Outputs that may be dropped: of the stage's layers, but for the batch and the loss. */
static int get_first(const survey *s) { return s->b->first_layer > 1 ? s->b->first_layer : 1; }

static int get_end(const survey *s)
{
    int last = s->b->model->layers - 1;
    return s->b->end_layer < last ? s->b->end_layer : last;
}

/* On the first rank, whose share is the largest: all ranks must come to one decision, as they exchange what is made. */
static int64_t output_bytes(const cvy_builder *b, int layer)
{
    cvy_buffer output = b->schedule->buffer[b->layer[layer].output];
    cvy_seat first = b->seat;
    cvy_spread spread;
    int64_t samples = cvy_ceil_div(cvy_ceil_div(first.batch, first.size[CVY_AXIS_SAMPLE]), b->schedule->micro_batches);
    for (int axis = 0; axis < CVY_AXES; axis++) {
        first.coordinate[axis] = 0;
    }
    first.samples = (cvy_interval){0, samples};
    cvy_spread_find(&first, CVY_SPREAD_OUTPUT, layer, 0, &spread);
    cvy_spread_describe(&first, &b->model->layer[layer].output, &spread, &output);
    return cvy_tensor_bytes(&output.tensor);
}

static bool is_view(const cvy_builder *b, int layer)
{
    return b->model->layer[layer].kind->forward_passes == 0 || b->layer[layer].carrier >= 0;
}

static void note_reads(survey *s, int layer, cvy_op_pass pass)
{
    static const cvy_role inputs[CVY_MAX_INPUTS] = {CVY_ROLE_X, CVY_ROLE_X1, CVY_ROLE_X2, CVY_ROLE_X3};
    const cvy_layer *l = &s->b->model->layer[layer];
    cvy_op op = {0};
    l->kind->make_op(l, &s->b->model->layer[l->input[0]].output, pass, &op);
    const cvy_signature *signature = cvy_op_signature(op.kind, pass);
    bool relu = cvy_fuse_makes_relu(s->b, layer, op.kind, pass);
    for (int i = 0; signature && i < signature->places; i++) {
        if (!relu && cvy_op_tells_relu(op.kind, pass, signature->place[i].role)) {
            continue;
        }
        s->read[layer] |= signature->place[i].role == CVY_ROLE_Y;
        for (int k = 0; k < l->inputs; k++) {
            s->read[l->input[k]] |= signature->place[i].role == inputs[k];
        }
    }
}

static void find_reads(survey *s)
{
    const cvy_builder *b = s->b;
    for (int i = b->end_layer - 1; i > 0 && i >= b->first_layer; i--) {
        const cvy_layer *l = &b->model->layer[i];
        bool steps = b->layer[i].needs_gradient && !cvy_fuse_leaves_gradient(b, i);
        for (int k = 0; k < l->kind->backward_passes && steps; k++) {
            if (l->kind->backward[k] != CVY_PASS_BACKWARD_DATA || b->layer[l->input[0]].needs_gradient) {
                note_reads(s, i, l->kind->backward[k]);
            }
        }
        for (int k = 0; k < l->inputs && l->kind->flow == CVY_FLOW_CONCAT; k++) {
            s->read[l->input[k]] |= b->layer[l->input[k]].masker == i;
        }
        if (is_view(b, i)) {
            s->read[l->input[0]] |= s->read[i]; /* the same memory */
        }
    }
}

/* ---- cheap ---- */

/* Whether dropping a cheap layer frees more than its inputs take, those that nobody reads or drops otherwise. */
static bool pays(const survey *s, const cvy_layer *l)
{
    int64_t kept = 0;
    for (int k = 0; k < l->inputs; k++) {
        int source = l->input[k];
        kept += s->read[source] || s->b->layer[source].dropped ? 0 : output_bytes(s->b, source);
    }
    return 2 * kept <= output_bytes(s->b, l->index);
}

static int count_junctions(const survey *s, const cvy_layer *l)
{
    int most = 0;
    for (int k = 0; k < l->inputs; k++) {
        int before = s->b->layer[l->input[k]].dropped ? s->junctions[l->input[k]] : 0;
        most = before > most ? before : most;
    }
    return most + (l->inputs > 1);
}

static void drop_cheap(survey *s)
{
    for (int i = get_first(s); i < get_end(s); i++) {
        const cvy_layer *l = &s->b->model->layer[i];
        s->junctions[i] = count_junctions(s, l);
        if (is_view(s->b, i)) {
            s->b->layer[i].dropped = s->b->layer[l->input[0]].dropped;
        } else if (l->kind->cheap && s->junctions[i] <= MAX_JUNCTIONS && pays(s, l)) {
            s->b->layer[i].dropped = true;
            for (int k = 0; k < l->inputs; k++) {
                s->read[l->input[k]] = true;
            }
        }
    }
}

/* ---- all ---- */

/* Outputs between two that are kept: those that backward reads, all at once, and the largest that only leads there. */
typedef struct part {
    int64_t read, passing;
} part;

static void add_to_part(const survey *s, int layer, part *to)
{
    int64_t bytes = is_view(s->b, layer) ? 0 : output_bytes(s->b, layer);
    if (s->read[layer]) {
        to->read += bytes;
    } else {
        to->passing = bytes > to->passing ? bytes : to->passing;
    }
}

/*
 * Walk the layers and keep a candidate wherever waiting for the next one would exceed the budget; answers what is kept
 * and the largest part together. With @p kept_out the choice is written down, and what only leads there counts as well.
 */
static int64_t choose_kept(const survey *s, const bool *candidate, int64_t budget, bool *kept_out)
{
    int64_t kept = 0, largest = 0;
    part open = {0}, since = {0};
    int pending = 0; /* the candidate last passed; 0: none */
    for (int i = get_first(s); i < get_end(s); i++) {
        add_to_part(s, i, &open);
        add_to_part(s, i, &since);
        if (pending && open.read > budget) {
            kept += output_bytes(s->b, pending);
            open = since;
            if (kept_out) {
                kept_out[pending] = true;
            }
            pending = 0;
        }
        if (candidate[i] && !is_view(s->b, i)) { /* a view is nobody's choice */
            pending = i;
            since = (part){0};
        }
        int64_t bytes = open.read + (kept_out ? open.passing : 0);
        largest = bytes > largest ? bytes : largest;
    }
    return kept + largest;
}

static void drop_all(survey *s, const bool *candidate, bool *kept)
{
    part whole = {0};
    int64_t best_budget = 0, best = INT64_MAX;
    int last = 0;
    for (int i = get_first(s); i < get_end(s); i++) {
        add_to_part(s, i, &whole);
    }
    for (int i = 1; i <= BUDGETS; i++) {
        int64_t budget = whole.read / BUDGETS * i;
        int64_t bytes = choose_kept(s, candidate, budget, NULL);
        if (bytes < best) {
            best = bytes;
            best_budget = budget;
        }
    }
    if (choose_kept(s, candidate, best_budget, kept) >= whole.read) {
        return; /* nothing is saved */
    }
    for (int i = get_first(s); i < get_end(s); i++) {
        last = kept[i] ? i : last;
    }
    for (int i = get_first(s); i < last; i++) { /* behind the last one backward begins at once: nothing to gain */
        s->b->layer[i].dropped = !kept[i];
    }
}

cvy_status cvy_recompute_decide(cvy_builder *b)
{
    size_t layers = (size_t)b->model->layers;
    if (b->plan->options.recompute == CVY_RECOMPUTE_NONE) {
        return CVY_OK;
    }
    cvy_status status = CVY_ERR_MEMORY;
    survey s = {.b = b, .read = cvy_calloc(layers, sizeof(bool)), .junctions = cvy_calloc(layers, sizeof(int))};
    bool *candidate = cvy_calloc(layers, sizeof *candidate);
    bool *kept = cvy_calloc(layers, sizeof *kept);
    if (s.read && s.junctions && candidate && kept) {
        find_reads(&s);
        status = cvy_model_find_narrow(b->model, candidate);
    }
    if (status == CVY_OK && b->plan->options.recompute == CVY_RECOMPUTE_CHEAP) {
        drop_cheap(&s);
    } else if (status == CVY_OK) {
        drop_all(&s, candidate, kept);
    }
    cvy_free(s.read);
    cvy_free(s.junctions);
    cvy_free(candidate);
    cvy_free(kept);
    return status;
}

/* ---- backward ---- */

static cvy_status make_again(cvy_builder *b, int layer)
{
    cvy_layer_buffers *own = &b->layer[layer];
    bool normed = own->saved[CVY_ROLE_MEAN] >= 0 && !is_view(b, layer);
    own->dropped = false;
    own->output = own->variant = -1;
    for (int role = 0; role < CVY_ROLE_COUNT; role++) {
        bool statistic = role == CVY_ROLE_MEAN || role == CVY_ROLE_VARIANCE;
        own->saved[role] = normed && statistic ? own->saved[role] : -1;
    }
    return cvy_build_layer_forward(b, layer, CVY_PHASE_RECOMPUTE);
}

/* Backward from the layer to what is there, then forward again: without recursion, however long the chain. */
cvy_status cvy_recompute_restore(cvy_builder *b, int layer)
{
    int first = layer;
    int open = b->layer[layer].dropped;
    b->layer[layer].wanted = b->layer[layer].dropped;
    for (int i = layer; open > 0; i--) {
        if (!b->layer[i].wanted) {
            continue;
        }
        open--;
        first = i;
        for (int k = 0; k < b->model->layer[i].inputs; k++) {
            cvy_layer_buffers *source = &b->layer[b->model->layer[i].input[k]];
            open += source->dropped && !source->wanted;
            source->wanted |= source->dropped;
        }
    }
    for (int i = first; i <= layer; i++) {
        if (b->layer[i].wanted) {
            b->layer[i].wanted = false;
            CVY_TRY(make_again(b, i));
        }
    }
    return CVY_OK;
}
