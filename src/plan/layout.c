/*
 * The rule: a convolution runs in the format in which the slowest of its passes is run best; among equals the one that
 * needs no reorder of its input, then the first of the list. Layers that take any format keep their input's; dense
 * layers and losses take plain. The backend says how well it runs an op and in which format it wants the weights;
 * without one (a plan for another machine) the machine's block decides. All of it is written into the plan.
 */
#include "plan/layout.h"

#include <string.h>

cvy_tensor cvy_layout_output(const cvy_layer *layer, int64_t batch, cvy_dtype dtype, cvy_format format)
{
    cvy_tensor tensor = {.shape = layer->output, .dtype = dtype, .format = format};
    tensor.shape.extent[0] = batch;
    return tensor;
}

cvy_tensor cvy_layout_parameter(const cvy_parameter *parameter, cvy_dtype dtype, cvy_format format)
{
    const cvy_parameter_spec *spec = &parameter->spec;
    cvy_tensor tensor = {.shape = spec->shape, .dtype = dtype, .format = format};
    if (spec->groups > 1) {
        tensor.grouped = true;
        tensor.shape.dims = spec->shape.dims + 1;
        tensor.shape.extent[0] = spec->groups;
        tensor.shape.extent[1] = spec->shape.extent[0] / spec->groups;
        memcpy(&tensor.shape.extent[2], &spec->shape.extent[1], sizeof(int64_t) * (size_t)(spec->shape.dims - 1));
    }
    return tensor;
}

typedef cvy_layout_question question;

static const cvy_parameter *find_parameter(const question *q, cvy_role role)
{
    int i = cvy_model_find_role(q->model, q->layer->index, role);
    return i < 0 ? NULL : &q->model->parameter[i];
}

void cvy_layout_make_op(const question *q, cvy_op_pass pass, const cvy_layer_formats *formats, cvy_format weight,
                        cvy_op *op)
{
    cvy_dtype dtype = q->options->dtype;
    const cvy_layer *source = &q->model->layer[q->layer->input[0]];
    cvy_tensor x = cvy_layout_output(source, q->options->batch, dtype, formats->input);
    cvy_tensor y = cvy_layout_output(q->layer, q->options->batch, dtype, formats->output);
    cvy_tensor w = cvy_layout_parameter(find_parameter(q, CVY_ROLE_W), dtype, weight);
    const cvy_parameter *bias = find_parameter(q, CVY_ROLE_B);
    q->layer->kind->make_op(q->layer, &x.shape, pass, op);
    const cvy_signature *signature = cvy_op_signature(op->kind, pass);
    for (int i = 0; i < signature->places; i++) {
        cvy_role role = signature->place[i].role;
        if (role == CVY_ROLE_B || role == CVY_ROLE_DB) {
            if (bias) {
                cvy_tensor b = cvy_layout_parameter(bias, dtype, CVY_FORMAT_PLAIN);
                (void)cvy_op_add(op, role, &b);
            }
        } else {
            bool weights = role == CVY_ROLE_W || role == CVY_ROLE_DW;
            bool input = role == CVY_ROLE_X || role == CVY_ROLE_DX;
            (void)cvy_op_add(op, role, weights ? &w : input ? &x : &y);
        }
    }
}

/* Let the backends choose the format of the weights of one pass; says how well the pass then runs. */
static cvy_quality choose_weight(const question *q, cvy_op_pass pass, const cvy_layer_formats *formats,
                                 cvy_format *weight)
{
    const cvy_backend_chain *backends = &q->options->backends;
    cvy_role role = pass == CVY_PASS_BACKWARD_WEIGHTS ? CVY_ROLE_DW : CVY_ROLE_W;
    cvy_op op = {0};
    cvy_layout_make_op(q, pass, formats, *weight, &op);
    cvy_quality as_it_is = cvy_backend_quality(backends, &op, NULL);
    if (as_it_is == CVY_QUALITY_FAST && *weight != CVY_FORMAT_PLAIN) {
        return as_it_is; /* the format that the weights have already serves: no reorder */
    }
    cvy_format wish = cvy_backend_choose_format(backends, &op, role);
    if (wish == *weight) {
        return as_it_is;
    }
    cvy_layout_make_op(q, pass, formats, wish, &op);
    cvy_quality as_wished = cvy_backend_quality(backends, &op, NULL);
    if (as_wished > as_it_is || (as_wished == as_it_is && pass == CVY_PASS_FORWARD)) {
        *weight = wish;
        return as_wished;
    }
    return as_it_is;
}

/* Fill the weight formats that suit given formats of x and y; the answer is the quality of the slowest pass. */
static cvy_quality judge(const question *q, cvy_layer_formats *formats)
{
    formats->weight = CVY_FORMAT_PLAIN;
    cvy_quality worst = choose_weight(q, CVY_PASS_FORWARD, formats, &formats->weight);
    formats->weight_backward = formats->weight;
    formats->gradient = formats->weight;
    if (q->options->training && worst != CVY_QUALITY_NONE) {
        cvy_quality quality = choose_weight(q, CVY_PASS_BACKWARD_WEIGHTS, formats, &formats->gradient);
        worst = quality < worst ? quality : worst;
        if (q->needs_dx) {
            quality = choose_weight(q, CVY_PASS_BACKWARD_DATA, formats, &formats->weight_backward);
            worst = quality < worst ? quality : worst;
        }
    }
    return worst;
}

static bool format_fits(const cvy_layer *layer, cvy_format format)
{
    cvy_tensor tensor = cvy_layout_output(layer, 1, CVY_F32, format);
    return cvy_tensor_format_fits(&tensor);
}

enum { MAX_CANDIDATES = 8 };

static cvy_layout_choice find_layout(const question *q)
{
    return q->options->layouts ? q->options->layouts[q->layer->index] : q->options->layout;
}

const char *cvy_layout_choice_name(cvy_layout_choice choice)
{
    static const char *const name[] = {[CVY_LAYOUT_AUTO] = "auto",
                                       [CVY_LAYOUT_PLAIN] = "plain",
                                       [CVY_LAYOUT_CHANNELS_LAST] = "channels-last",
                                       [CVY_LAYOUT_BLOCKED] = "blocked",
                                       [CVY_LAYOUT_BLOCKED_INPUT] = "blocked-input"};
    return name[choice];
}

/* Formats of activations that the user lets a convolution have, best first. */
static int list_formats(const question *q, cvy_format format[3])
{
    cvy_format blocked = q->options->block == 16 ? CVY_FORMAT_C16 : CVY_FORMAT_C8;
    switch (find_layout(q)) {
    case CVY_LAYOUT_PLAIN: format[0] = CVY_FORMAT_PLAIN; return 1;
    case CVY_LAYOUT_CHANNELS_LAST: format[0] = CVY_FORMAT_CHANNELS_LAST; return 1;
    case CVY_LAYOUT_BLOCKED:
    case CVY_LAYOUT_BLOCKED_INPUT: format[0] = blocked; return 1;
    case CVY_LAYOUT_AUTO: break;
    }
    format[0] = blocked;
    format[1] = CVY_FORMAT_CHANNELS_LAST;
    format[2] = CVY_FORMAT_PLAIN;
    return 3;
}

/*
 * Whether a layer is to take the batch in blocks: a first one, in the layout that is for it, or of volumes. Kernels for
 * few channels as they lie are made for images; of volumes some pass goes through a copy for a product, which takes
 * longer than zeros for the channels that a block lacks, and Winograd's algorithm takes blocks alone.
 */
static bool blocks_batch(const question *q)
{
    bool volume = q->layer->output.dims == 5;
    cvy_layout_choice layout = find_layout(q);
    return !q->needs_dx && (layout == CVY_LAYOUT_BLOCKED_INPUT || (layout == CVY_LAYOUT_AUTO && volume));
}

/*
 * Pairs (format of x, format of y) worth asking about, best first: those that leave x as it is, and of them the one
 * that changes nothing, before those that reorder it. Blocks are not for an image of few channels, whose padding would
 * be most of it, but where a layout asks for them; a volume goes into them first.
 */
static int list_candidates(const question *q, cvy_format current, cvy_layer_formats candidate[MAX_CANDIDATES])
{
    const cvy_layer *source = &q->model->layer[q->layer->input[0]];
    cvy_format format[3];
    int formats = list_formats(q, format);
    bool narrow = source->output.extent[1] * 2 < q->options->block;
    int count = 0;
    if (blocks_batch(q)) {
        candidate[count++] = (cvy_layer_formats){.input = format[0], .output = format[0]};
    }
    for (int i = 0; i < formats; i++) {
        if (current == format[i] && current != CVY_FORMAT_PLAIN) {
            candidate[count++] = (cvy_layer_formats){.input = current, .output = current};
        }
    }
    for (int i = 0; i < formats; i++) {
        if (current != format[i] || current == CVY_FORMAT_PLAIN) { /* first layers take a plain image and give blocks */
            candidate[count++] = (cvy_layer_formats){.input = current, .output = format[i]};
        }
    }
    for (int i = 0; i < formats; i++) {
        bool blocked = format[i] == CVY_FORMAT_C8 || format[i] == CVY_FORMAT_C16;
        if (current != format[i] && format_fits(source, format[i]) && (formats == 1 || !blocked || !narrow)) {
            candidate[count++] = (cvy_layer_formats){.input = format[i], .output = format[i]};
        }
    }
    return count;
}

/* What oneDNN's kernels take. A transposed convolution runs forward what is a convolution's gradient of data. */
void cvy_layout_rule_weights(int block, cvy_op_kind kind, bool depthwise, cvy_layer_formats *formats)
{
    bool wide = block == 16, transposed = kind == CVY_OP_TRANSPOSED_CONVOLUTION;
    cvy_format by_input = wide ? CVY_FORMAT_W_I16O16 : CVY_FORMAT_W_I8O8;
    cvy_format by_output = wide ? CVY_FORMAT_W_O16I16 : CVY_FORMAT_W_O8I8;
    if (formats->output != CVY_FORMAT_C8 && formats->output != CVY_FORMAT_C16) {
        return; /* plain weights */
    }
    if (depthwise) {
        formats->weight = wide ? CVY_FORMAT_W_G16 : CVY_FORMAT_W_G8;
        formats->gradient = formats->weight_backward = formats->weight;
    } else if (formats->input == formats->output) {
        formats->gradient = by_input;
        formats->weight = transposed ? by_output : by_input;
        formats->weight_backward = transposed ? by_input : by_output;
    } else {
        formats->weight = wide ? CVY_FORMAT_W_O16 : CVY_FORMAT_W_O8;
        formats->gradient = formats->weight_backward = formats->weight;
    }
}

static cvy_status decide_convolution(const question *q, cvy_op_kind kind, cvy_format current,
                                     cvy_layer_formats *formats)
{
    cvy_layer_formats candidate[MAX_CANDIDATES];
    if (q->options->dtype == CVY_F64) {
        return CVY_OK; /* the yardstick runs in logical order */
    }
    int count = list_candidates(q, current, candidate);
    if (q->options->backends.count == 0) {
        *formats = candidate[0];
        int64_t groups = find_parameter(q, CVY_ROLE_W)->spec.groups;
        cvy_layout_rule_weights(q->options->block, kind, groups > 1 && groups == q->layer->output.extent[1], formats);
        return CVY_OK;
    }
    cvy_quality best = CVY_QUALITY_NONE;
    cvy_quality enough = blocks_batch(q) ? CVY_QUALITY_GEMM : CVY_QUALITY_FAST;
    for (int i = 0; i < count; i++) {
        cvy_quality quality = judge(q, &candidate[i]);
        if (quality > best) {
            best = quality;
            *formats = candidate[i];
        }
        if (best >= enough) {
            break;
        }
    }
    if (best == CVY_QUALITY_SLOW && find_layout(q) == CVY_LAYOUT_AUTO) {
        *formats = (cvy_layer_formats){0}; /* plain loops gain nothing from other formats */
    }
    CVY_REQUIRE(best != CVY_QUALITY_NONE, CVY_ERR_INFEASIBLE, "layer %s: no backend runs it in any of %d formats",
                q->layer->name, count);
    return CVY_OK;
}

static void decide_dense(const question *q, cvy_layer_formats *formats)
{
    *formats = (cvy_layer_formats){0}; /* plain */
    if (q->options->backends.count > 0 && q->options->dtype == CVY_F32) {
        (void)judge(q, formats);
    }
}

cvy_op_kind cvy_layout_find_kind(const cvy_model *model, const cvy_layer *layer)
{
    const cvy_layer_kind *kind = layer->kind;
    cvy_op op = {0};
    if (kind->flow != CVY_FLOW_OPS || kind->any_format) {
        return CVY_OP_KIND_COUNT;
    }
    kind->make_op(layer, &model->layer[layer->input[0]].output, CVY_PASS_FORWARD, &op);
    return cvy_op_has_weights(op.kind) ? op.kind : CVY_OP_KIND_COUNT;
}

cvy_status cvy_layout_decide(const cvy_model *model, const cvy_plan_options *options, cvy_layer_formats *formats_out)
{
    if (options->formats) {
        memcpy(formats_out, options->formats, (size_t)model->layers * sizeof *formats_out);
        return CVY_OK;
    }
    for (int i = 0; i < model->layers; i++) {
        const cvy_layer *layer = &model->layer[i];
        cvy_layer_formats *formats = &formats_out[i];
        question q = {.model = model, .options = options, .layer = layer};
        *formats = (cvy_layer_formats){0}; /* every format plain: right for input, flatten, losses */
        if (layer->inputs == 0) {
            continue;
        }
        cvy_format current = formats_out[layer->input[0]].output;
        q.needs_dx = model->layer[layer->input[0]].kind->flow != CVY_FLOW_SOURCE;
        cvy_op_kind weighted = cvy_layout_find_kind(model, layer);
        if (cvy_op_convolves(weighted)) {
            CVY_TRY(decide_convolution(&q, weighted, current, formats));
            formats->winograd = options->winograd ? options->winograd[i] : 0;
        } else if (weighted == CVY_OP_DENSE) {
            decide_dense(&q, formats);
        } else if (layer->kind->any_format) {
            formats->input = current;
            formats->output = format_fits(layer, current) ? current : CVY_FORMAT_PLAIN;
        }
    }
    return CVY_OK;
}
