/*
 * YAML as a tree, built from libyaml's events: the document interface would resolve anchors and forget whether there
 * were any, and would read all of a hostile file before a limit could be looked at.
 *
 * Nodes lie in one array in the order in which they are met (parents before children), texts in one string; both grow,
 * so they are linked by index until the whole file is in, and by `items`, the children of every node side by side, from
 * then on. Messages are one line whatever the file holds: control characters are printed as '?'.
 */
#include "base/yaml.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/memory.h"

enum { NO_TEXT = -1, TOP = -1 };

struct cvy_yaml_node {
    const cvy_yaml *yaml;
    cvy_yaml_kind kind;
    int line;        /* of its key, where it has one */
    int text_line;   /* where the lines of a text begin; 0 where they are not the file's */
    int parent;      /* TOP for the first node */
    int size, first; /* children, and where they begin in items */
    int64_t key;     /* offset in text; NO_TEXT where the parent is no mapping */
    int64_t text;    /* offset in text; NO_TEXT where the node is no scalar */
};

struct cvy_yaml {
    char *name; /* of the file; NULL where the text is from none */
    cvy_yaml_node *node;
    int nodes, node_capacity;
    char *text;
    size_t text_bytes, text_capacity;
    int *items;
};

/* What is open while events come in. */
typedef struct builder {
    cvy_yaml *yaml;
    int open[CVY_YAML_MAX_DEPTH];
    int depth;
    int64_t key;     /* that waits for its value; NO_TEXT */
    size_t key_line; /* counted from 0, as libyaml does */
    int documents;
    bool ended;
} builder;

static size_t count_lines(const char *text, size_t bytes)
{
    size_t lines = 0;
    for (size_t i = 0; i < bytes; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

/* Word a failure at a line of a file, on one line; a text that is no file has no place. */
static cvy_status fail_words(const char *name, int line, const char *format, va_list arguments)
{
    char words[1024];
    int place = name ? snprintf(words, sizeof words / 2, "%s:%d: ", name, line) : 0;
    place = place < (int)sizeof words / 2 ? place : (int)sizeof words / 2 - 1;
    vsnprintf(words + place, sizeof words - (size_t)place, format, arguments);
    for (char *c = words; *c; c++) {
        if (iscntrl((unsigned char)*c)) {
            *c = '?';
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "%s", words);
}

__attribute__((format(printf, 3, 4))) static cvy_status fail_line(const cvy_yaml *yaml, size_t line,
                                                                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cvy_status status = fail_words(yaml->name, (int)line + 1, format, arguments);
    va_end(arguments);
    return status;
}

cvy_status cvy_yaml_fail(const cvy_yaml_node *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cvy_status status = fail_words(node->yaml->name, node->line, format, arguments);
    va_end(arguments);
    return status;
}

cvy_status cvy_yaml_fail_at(const cvy_yaml_node *node, const char *at, const char *format, ...)
{
    const char *text = cvy_yaml_text(node);
    int line = node->text_line ? node->text_line + (int)count_lines(text, (size_t)(at - text)) : node->line;
    va_list arguments;
    va_start(arguments, format);
    cvy_status status = fail_words(node->yaml->name, line, format, arguments);
    va_end(arguments);
    return status;
}

static cvy_status keep_text(cvy_yaml *yaml, const yaml_event_t *event, int64_t *offset_out)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t bytes = event->data.scalar.length + 1;
    if (memchr(value, '\0', bytes - 1)) {
        return fail_line(yaml, event->start_mark.line, "a text holds a zero byte");
    }
    if (yaml->text_bytes + bytes > yaml->text_capacity) {
        size_t capacity = 2 * (yaml->text_bytes + bytes) + 256;
        char *text = cvy_recalloc(yaml->text, yaml->text_capacity, capacity, 1);
        if (!text) {
            return CVY_ERR_MEMORY;
        }
        yaml->text = text;
        yaml->text_capacity = capacity;
    }
    memcpy(yaml->text + yaml->text_bytes, value, bytes);
    *offset_out = (int64_t)yaml->text_bytes;
    yaml->text_bytes += bytes;
    return CVY_OK;
}

static cvy_status add_node(builder *b, cvy_yaml_kind kind, size_t line, int *index_out)
{
    cvy_yaml *yaml = b->yaml;
    if (yaml->nodes == CVY_YAML_MAX_NODES) {
        return fail_line(yaml, line, "more than %d entries", (int)CVY_YAML_MAX_NODES);
    }
    CVY_TRY(cvy_array_reserve(&yaml->node, yaml->nodes, &yaml->node_capacity, sizeof *yaml->node));
    int parent = b->depth ? b->open[b->depth - 1] : TOP;
    size_t shown = b->key == NO_TEXT ? line : b->key_line;
    yaml->node[yaml->nodes] = (cvy_yaml_node){
        .yaml = yaml, .kind = kind, .line = (int)shown + 1, .parent = parent, .key = b->key, .text = NO_TEXT};
    if (parent != TOP) {
        yaml->node[parent].size++;
    }
    b->key = NO_TEXT;
    *index_out = yaml->nodes++;
    return CVY_OK;
}

static bool expects_key(const builder *b)
{
    return b->depth && b->yaml->node[b->open[b->depth - 1]].kind == CVY_YAML_MAPPING && b->key == NO_TEXT;
}

static cvy_status take_scalar(builder *b, const yaml_event_t *event)
{
    int index = -1;
    int64_t text = NO_TEXT;
    CVY_TRY(keep_text(b->yaml, event, &text));
    if (expects_key(b)) {
        b->key = text;
        b->key_line = event->start_mark.line;
        return CVY_OK;
    }
    CVY_TRY(add_node(b, CVY_YAML_SCALAR, event->start_mark.line, &index));
    b->yaml->node[index].text = text;
    if (event->data.scalar.style == YAML_LITERAL_SCALAR_STYLE) {
        b->yaml->node[index].text_line = (int)event->start_mark.line + 2; /* behind that of the "|" */
    }
    return CVY_OK;
}

static cvy_status open_node(builder *b, const yaml_event_t *event, cvy_yaml_kind kind)
{
    int index = -1;
    size_t line = event->start_mark.line;
    if (expects_key(b)) {
        return fail_line(b->yaml, line, "a key is a list or a mapping, expected a word");
    }
    if (b->depth == CVY_YAML_MAX_DEPTH) {
        return fail_line(b->yaml, line, "nested deeper than %d", (int)CVY_YAML_MAX_DEPTH);
    }
    CVY_TRY(add_node(b, kind, line, &index));
    b->open[b->depth++] = index;
    return CVY_OK;
}

/* Anchors and tags: what would let a small file mean a large one, or something else than it says. */
static cvy_status check_event(const builder *b, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor || event->type == YAML_ALIAS_EVENT) {
        return fail_line(b->yaml, event->start_mark.line, "anchors and aliases are not accepted");
    }
    if (tag) {
        return fail_line(b->yaml, event->start_mark.line, "tags are not accepted, found '%.60s'", (const char *)tag);
    }
    return CVY_OK;
}

static cvy_status take_event(builder *b, const yaml_event_t *event)
{
    CVY_TRY(check_event(b, event));
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(b, event, CVY_YAML_SEQUENCE);
    case YAML_MAPPING_START_EVENT:
        return open_node(b, event, CVY_YAML_MAPPING);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return CVY_OK;
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents++) {
            return fail_line(b->yaml, event->start_mark.line, "a second document begins, expected one a file");
        }
        return CVY_OK;
    case YAML_STREAM_END_EVENT:
        b->ended = true;
        return CVY_OK;
    default:
        return CVY_OK;
    }
}

static cvy_status fail_parser(const cvy_yaml *yaml, const yaml_parser_t *parser, const char *text, size_t bytes)
{
    size_t line = parser->problem_mark.line;
    if (parser->error == YAML_READER_ERROR) { /* the reader knows bytes, and is ahead of the lines */
        line = count_lines(text, parser->problem_offset < bytes ? parser->problem_offset : bytes);
    }
    if (parser->error == YAML_MEMORY_ERROR) {
        return cvy_fail(CVY_ERR_MEMORY, "no memory to read YAML");
    }
    return fail_line(yaml, line, "not YAML: %s%s%s", parser->context ? parser->context : "",
                     parser->context ? ", " : "", parser->problem ? parser->problem : "unknown error");
}

/* libyaml compares each %TAG with all before it, and tells of none until it has them all: a file of them has no end. */
static cvy_status refuse_tag_directives(const cvy_yaml *yaml, const char *text, size_t bytes)
{
    static const char directive[] = "%TAG", breaks[] = "\n\r\x85\xa8\xa9\xbf"; /* the last bytes of NEL, LS, PS, BOM */
    const char *end = text + bytes, *at = text;
    while ((at = memmem(at, (size_t)(end - at), directive, sizeof directive - 1))) {
        if (at == text || memchr(breaks, at[-1], sizeof breaks - 1)) {
            return fail_line(yaml, count_lines(text, (size_t)(at - text)), "tags are not accepted, found %%TAG");
        }
        at += sizeof directive - 1;
    }
    return CVY_OK;
}

static cvy_status read_events(builder *b, const char *text, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* that some programs put in front of UTF-8 */
    yaml_parser_t parser;
    yaml_event_t event;
    cvy_status status = CVY_OK;
    if (bytes >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0) {
        text += sizeof mark - 1;
        bytes -= sizeof mark - 1;
    }
    CVY_TRY(refuse_tag_directives(b->yaml, text, bytes));
    if (!yaml_parser_initialize(&parser)) {
        return cvy_fail(CVY_ERR_MEMORY, "no memory to read YAML");
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING); /* what was looked through is what is read: no UTF-16 */
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    while (status == CVY_OK && !b->ended) {
        if (!yaml_parser_parse(&parser, &event)) {
            status = fail_parser(b->yaml, &parser, text, bytes);
            break;
        }
        status = take_event(b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

/* Put the children of each node side by side. Parents come before children, so one pass gives every node its place. */
static cvy_status link_items(cvy_yaml *yaml)
{
    yaml->items = cvy_calloc((size_t)yaml->nodes, sizeof *yaml->items);
    if (!yaml->items) {
        return CVY_ERR_MEMORY;
    }
    int used = 0;
    for (int i = 0; i < yaml->nodes; i++) {
        yaml->node[i].first = used;
        used += yaml->node[i].size;
        yaml->node[i].size = 0;
    }
    for (int i = 1; i < yaml->nodes; i++) {
        cvy_yaml_node *parent = &yaml->node[yaml->node[i].parent];
        yaml->items[parent->first + parent->size++] = i;
    }
    return CVY_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const cvy_yaml_node *first = *(cvy_yaml_node *const *)a, *second = *(cvy_yaml_node *const *)b;
    int order = strcmp(first->yaml->text + first->key, second->yaml->text + second->key);
    return order ? order : (first > second) - (first < second);
}

static cvy_status check_unique(const cvy_yaml *yaml, const cvy_yaml_node **sorted, const cvy_yaml_node *mapping)
{
    for (int i = 0; i < mapping->size; i++) {
        sorted[i] = cvy_yaml_item(mapping, i);
    }
    qsort(sorted, (size_t)mapping->size, sizeof *sorted, compare_keys);
    for (int i = 1; i < mapping->size; i++) {
        const char *key = yaml->text + sorted[i]->key;
        if (strcmp(key, yaml->text + sorted[i - 1]->key) == 0) {
            return cvy_yaml_fail(sorted[i], "key '%.60s' is given twice", key);
        }
    }
    return CVY_OK;
}

static cvy_status check_keys_unique(const cvy_yaml *yaml)
{
    cvy_status status = CVY_OK;
    const cvy_yaml_node **sorted = cvy_calloc((size_t)yaml->nodes, sizeof *sorted);
    if (!sorted) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < yaml->nodes && status == CVY_OK; i++) {
        if (yaml->node[i].kind == CVY_YAML_MAPPING) {
            status = check_unique(yaml, sorted, &yaml->node[i]);
        }
    }
    cvy_free(sorted);
    return status;
}

cvy_status cvy_yaml_parse(const char *name, const char *text, size_t bytes, cvy_yaml **yaml_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    cvy_yaml *yaml = cvy_calloc(1, sizeof *yaml);
    if (!yaml || (name && !(yaml->name = cvy_strdup(name)))) {
        goto done;
    }
    if (bytes > CVY_YAML_MAX_BYTES) {
        status = fail_line(yaml, 0, "%zu bytes, expected at most %d", bytes, (int)CVY_YAML_MAX_BYTES);
        goto done;
    }
    builder b = {.yaml = yaml, .key = NO_TEXT};
    CVY_TRY_GOTO(status, done, read_events(&b, text, bytes));
    if (yaml->nodes == 0) {
        status = fail_line(yaml, 0, "holds nothing");
        goto done;
    }
    CVY_TRY_GOTO(status, done, link_items(yaml));
    CVY_TRY_GOTO(status, done, check_keys_unique(yaml));
    *yaml_out = yaml;
    yaml = NULL;
done:
    cvy_yaml_destroy(&yaml);
    return status;
}

cvy_status cvy_yaml_load(const char *path, cvy_yaml **yaml_out)
{
    char *data;
    size_t bytes;
    CVY_TRY(cvy_file_read(path, CVY_YAML_MAX_BYTES, CVY_ERR_INPUT, &data, &bytes));
    cvy_status status = cvy_yaml_parse(path, data, bytes, yaml_out);
    cvy_free(data);
    return status;
}

void cvy_yaml_destroy(cvy_yaml **yaml)
{
    if (*yaml) {
        cvy_free((*yaml)->name);
        cvy_free((*yaml)->node);
        cvy_free((*yaml)->text);
        cvy_free((*yaml)->items);
        cvy_free(*yaml);
        *yaml = NULL;
    }
}

const cvy_yaml_node *cvy_yaml_root(const cvy_yaml *yaml) { return &yaml->node[0]; }
cvy_yaml_kind cvy_yaml_node_kind(const cvy_yaml_node *node) { return node->kind; }
int cvy_yaml_line(const cvy_yaml_node *node) { return node->line; }
const char *cvy_yaml_file(const cvy_yaml_node *node) { return node->yaml->name; }
int cvy_yaml_size(const cvy_yaml_node *node) { return node->size; }

const cvy_yaml_node *cvy_yaml_item(const cvy_yaml_node *node, int i)
{
    return &node->yaml->node[node->yaml->items[node->first + i]];
}

const char *cvy_yaml_key(const cvy_yaml_node *node, int i) { return node->yaml->text + cvy_yaml_item(node, i)->key; }

const cvy_yaml_node *cvy_yaml_find(const cvy_yaml_node *mapping, const char *key)
{
    for (int i = 0; mapping->kind == CVY_YAML_MAPPING && i < mapping->size; i++) {
        if (strcmp(cvy_yaml_key(mapping, i), key) == 0) {
            return cvy_yaml_item(mapping, i);
        }
    }
    return NULL;
}

const char *cvy_yaml_text(const cvy_yaml_node *node)
{
    return node->kind == CVY_YAML_SCALAR ? node->yaml->text + node->text : NULL;
}
